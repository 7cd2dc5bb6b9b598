//===- Layouts.cpp - layouts and their arithmetic -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spelling and checks of layout attributes and of the types that hold them, and
// Layouts.h. Constraints are LAY1 ... in docs/spec.md.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Target/SharedModel.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Bounds that keep sizes in bytes far from overflow.
static constexpr int64_t kMostRepeats = 4096, kMostRows = 4096,
                         kMostPitch = 65536;

//===----------------------------------------------------------------------===//
// Atoms
//===----------------------------------------------------------------------===//

AtomInfo fi::tile::getAtomInfo(Atom atom) {
  switch (atom) {
  case Atom::MmaC:
    return {16, 8, 4};
  case Atom::MmaA16:
    return {16, 16, 8};
  case Atom::MmaA32:
    return {16, 4, 2};
  case Atom::MmaC8:
    return {16, 16, 8};
  case Atom::Row8:
  case Atom::Row16:
  case Atom::Row32: {
    int64_t lanes = getRowLanes(atom);
    return {kLanes / lanes, lanes * kRowChunk, kRowChunk};
  }
  }
  return {0, 0, 0};
}

int64_t fi::tile::getRowLanes(Atom atom) {
  switch (atom) {
  case Atom::Row8:
    return 8;
  case Atom::Row16:
    return 16;
  case Atom::Row32:
    return 32;
  default:
    return kQuad;
  }
}

bool fi::tile::isRowAtom(Atom atom) {
  return atom == Atom::Row8 || atom == Atom::Row16 || atom == Atom::Row32;
}

Atom fi::tile::getRowAtom(int64_t columns) {
  for (Atom atom : {Atom::Row8, Atom::Row16})
    if (columns <= getAtomInfo(atom).columns)
      return atom;
  return Atom::Row32;
}

// PTX ISA, "Matrix Fragments for mma.m16n8k16": with groupID = lane / 4 and
// thread = lane % 4, element c_i lies in row groupID (i < 2) or groupID + 8,
// column 2 * thread + i % 2; element a_i in row groupID (i in 0, 1, 4, 5) or
// groupID + 8, column 2 * thread + i % 2, plus 8 for i >= 4. "Matrix Fragments
// for mma.m16n8k4 with .tf32": element a_i in row groupID (i = 0) or
// groupID + 8, column thread. Of two accumulators of which the first has the
// even columns of 16, the second the odd ones, a lane has 4 columns side by
// side.
Position fi::tile::getAtomPosition(Atom atom, int64_t reg, int64_t lane) {
  if (isRowAtom(atom)) {
    int64_t lanes = getRowLanes(atom);
    return {lane / lanes, lane % lanes * kRowChunk + reg};
  }
  if (atom == Atom::MmaA32)
    return {lane / kQuad + 8 * reg, lane % kQuad};
  if (atom == Atom::MmaC8)
    return {lane / kQuad + 8 * (reg / 4), lane % kQuad * 4 + reg % 4};
  Position position = {lane / kQuad + 8 * (reg / 2 % 2),
                       lane % kQuad * 2 + reg % 2};
  if (atom == Atom::MmaA16)
    position.column += 8 * (reg / 4);
  return position;
}

//===----------------------------------------------------------------------===//
// FragAttr, SliceAttr, SmemAttr
//===----------------------------------------------------------------------===//

Attribute FragAttr::parse(AsmParser &parser, Type) {
  int64_t rows, columns, warps, columnWarps = 1;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess())
    return {};
  FailureOr<Atom> atom = FieldParser<Atom>::parse(parser);
  if (failed(atom) || parser.parseComma() || parser.parseKeyword("rep") ||
      parser.parseEqual() || parser.parseLSquare() ||
      parser.parseInteger(rows) || parser.parseComma() ||
      parser.parseInteger(columns) || parser.parseRSquare() ||
      parser.parseComma() || parser.parseKeyword("warps") ||
      parser.parseEqual() || parser.parseInteger(warps))
    return {};
  if (succeeded(parser.parseOptionalComma()) &&
      (parser.parseKeyword("column_warps") || parser.parseEqual() ||
       parser.parseInteger(columnWarps)))
    return {};
  if (parser.parseGreater())
    return {};
  return parser.getChecked<FragAttr>(loc, parser.getContext(), *atom, rows,
                                     columns, warps, columnWarps);
}

void FragAttr::print(AsmPrinter &printer) const {
  printer << '<' << stringifyAtom(getAtom()) << ", rep = [" << getRepRows()
          << ", " << getRepColumns() << "], warps = " << getWarps();
  if (getColumnWarps() != 1)
    printer << ", column_warps = " << getColumnWarps();
  printer << '>';
}

LogicalResult
FragAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, Atom atom,
                 int64_t repRows, int64_t repColumns, int64_t warps,
                 int64_t columnWarps) {
  auto fits = [](int64_t rep) { return rep >= 1 && rep <= kMostRepeats; };
  if (!fits(repRows) || !fits(repColumns) || warps < 1 || warps > 32)
    return emitError() << "expected 1 to " << kMostRepeats
                       << " repeats and 1 to 32 warps, but got rep = ["
                       << repRows << ", " << repColumns
                       << "], warps = " << warps << " [LAY1]";
  if (columnWarps < 1 || warps * columnWarps > 32)
    return emitError() << "expected 1 to 32 warps in all, but got " << warps
                       << " x " << columnWarps << " [LAY1]";
  if (columnWarps > 1 && !isRowAtom(atom))
    return emitError() << "expected 'column_warps' of 1 in fragments of "
                          "products, but got "
                       << columnWarps << " for '" << stringifyAtom(atom)
                       << "' [LAY7]";
  return success();
}

LogicalResult
SliceAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                  int64_t dim, FragAttr) {
  if (dim != 0 && dim != 1)
    return emitError() << "expected dimension 0 or 1 to be dropped, but got "
                       << dim << " [LAY2]";
  return success();
}

/// A tile has the shape that its layout says; where `rows` or `columns` is
/// given, it is that instead.
static LogicalResult
verifyShape(ArrayRef<int64_t> shape, FragAttr frag, std::optional<int64_t> rows,
            std::optional<int64_t> columns,
            llvm::function_ref<InFlightDiagnostic()> emitError) {
  AtomInfo atom = getAtomInfo(frag.getAtom());
  int64_t wanted[] = {
      rows.value_or(atom.rows * frag.getRepRows() * frag.getWarps()),
      columns.value_or(atom.columns * frag.getRepColumns() *
                       frag.getColumnWarps())};
  if (isRowAtom(frag.getAtom()) && !columns && shape.size() == 2) {
    // The last repeat may go beyond the tile.
    int64_t most = wanted[1], step = atom.columns * frag.getColumnWarps();
    if (shape[1] % kRowChunk != 0 || shape[1] > most || shape[1] <= most - step)
      return emitError() << "expected a multiple of " << kRowChunk
                         << " columns from " << most - step + kRowChunk
                         << " to " << most << " in this layout, but got "
                         << shape[1] << " [LAY6]";
    wanted[1] = shape[1];
  }
  if (shape == ArrayRef(wanted))
    return success();
  InFlightDiagnostic diag = emitError();
  diag << "expected a tile of " << wanted[0] << 'x' << wanted[1]
       << " in this layout, but got ";
  llvm::interleave(
      shape, [&](int64_t size) { diag << size; }, [&] { diag << 'x'; });
  return diag << " [LAY6]";
}

LogicalResult FragAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type element,
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (getAtom() == Atom::MmaA16 &&
      (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() != 16))
    return emitError() << "expected elements of 16 bits in a layout of '"
                       << stringifyAtom(getAtom()) << "', but got " << element
                       << " [LAY6]";
  return verifyShape(shape, *this, std::nullopt, std::nullopt, emitError);
}

LogicalResult SliceAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  using Size = std::optional<int64_t>;
  return verifyShape(shape, getParent(), getDim() == 0 ? Size(1) : Size(),
                     getDim() == 1 ? Size(1) : Size(), emitError);
}

LogicalResult PartialAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    llvm::function_ref<InFlightDiagnostic()> emitError) const {
  if (isRowAtom(getParent().getAtom()))
    return emitError() << "expected partial results of lanes in fragments of "
                          "products, but got '"
                       << stringifyAtom(getParent().getAtom()) << "' [LAY7]";
  return verifyShape(shape, getParent(), std::nullopt, kQuad, emitError);
}

LogicalResult
SmemAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                 int64_t pitch, int64_t swizzle, int64_t panel) {
  if (pitch < kChunkBytes || pitch % kChunkBytes != 0 || pitch > kMostPitch)
    return emitError() << "expected a pitch of a multiple of " << kChunkBytes
                       << " bytes, up to " << kMostPitch << ", but got "
                       << pitch << " [LAY3]";
  if (swizzle != 0 && swizzle != 128)
    return emitError() << "expected a swizzle of 0 or 128 bytes, but got "
                       << swizzle << " [LAY3]";
  if (swizzle && pitch % swizzle != 0)
    return emitError() << "expected a pitch of a multiple of the swizzle, "
                       << swizzle << " bytes, but got " << pitch << " [LAY3]";
  if (panel && (swizzle == 0 || pitch != swizzle || panel < 8 * pitch ||
                panel % (8 * pitch) != 0 || panel > kMostRows * pitch))
    return emitError() << "expected panels of a pitch of the swizzle, a "
                          "multiple of eight rows each, but got a pitch of "
                       << pitch << ", a swizzle of " << swizzle
                       << " and panels of " << panel << " bytes [LAY3]";
  return success();
}

int64_t fi::tile::getChunkOffset(SmemAttr layout, int64_t row, int64_t chunk) {
  if (layout.getSwizzle())
    chunk ^= row % 8;
  return row * layout.getPitch() + chunk / 8 * layout.getGroupStride() +
         chunk % 8 * kChunkBytes;
}

int64_t BufType::getBytes() const {
  SmemAttr layout = getLayout();
  if (!layout.getPanel())
    return getRows() * layout.getPitch();
  int64_t bits = getElement().getIntOrFloatBitWidth();
  return llvm::divideCeil(getColumns() * bits / 8, layout.getPitch()) *
         layout.getPanel();
}

int64_t fi::tile::getCopyBytes(BufType type) {
  int64_t bytes =
      type.getColumns() * type.getElement().getIntOrFloatBitWidth() / 8;
  return bytes % kChunkBytes == 0 ? kChunkBytes : kChunkBytes / 2;
}

SmemAttr fi::tile::getSmemLayout(MLIRContext *context, int64_t columns,
                                 Type element) {
  int64_t pitch = getSharedPitch(columns, element.getIntOrFloatBitWidth());
  return SmemAttr::get(context, pitch, pitch % 128 == 0 ? 128 : 0);
}

SmemAttr fi::tile::getPanelLayout(MLIRContext *context, int64_t rows) {
  constexpr int64_t kPitch = 128;
  return SmemAttr::get(context, kPitch, /*swizzle=*/128,
                       llvm::alignTo(rows, 8) * kPitch);
}

int64_t fi::tile::countBankConflicts(SmemAttr layout, int64_t rows,
                                     int64_t chunks) {
  int64_t worst = 1;
  for (int64_t row = 0; row + 8 <= rows; row += 8)
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      // 32 banks of 4 bytes: 8 groups of a chunk each.
      int64_t uses[8] = {};
      for (int64_t r = 0; r < 8; ++r)
        worst = std::max(
            worst,
            ++uses[getChunkOffset(layout, row + r, chunk) / kChunkBytes % 8]);
    }
  return worst;
}

//===----------------------------------------------------------------------===//
// RegisterLayout
//===----------------------------------------------------------------------===//

/// Rows of a block that a lane has elements of.
static int64_t getAtomRows(Atom atom) { return isRowAtom(atom) ? 1 : 2; }

RegisterLayout::RegisterLayout(FragAttr frag, Kind kind)
    : frag(frag), kind(kind) {
  AtomInfo atom = getAtomInfo(frag.getAtom());
  switch (kind) {
  case Kind::Matrix:
    registers = frag.getRepRows() * frag.getRepColumns() * atom.registers;
    break;
  case Kind::Rows:
  case Kind::Partial:
    registers = frag.getRepRows() * getAtomRows(frag.getAtom());
    break;
  case Kind::Columns:
    registers =
        frag.getRepColumns() * atom.registers / getAtomRows(frag.getAtom());
    break;
  }
}

int64_t RegisterLayout::getRepeatColumns() const {
  return getAtomInfo(frag.getAtom()).columns * frag.getColumnWarps();
}

FailureOr<RegisterLayout> RegisterLayout::of(RankedTensorType type) {
  Attribute encoding = type.getEncoding();
  if (auto frag = dyn_cast_or_null<FragAttr>(encoding))
    return RegisterLayout(frag, Kind::Matrix);
  if (auto slice = dyn_cast_or_null<SliceAttr>(encoding))
    return RegisterLayout(slice.getParent(),
                          slice.getDim() == 1 ? Kind::Rows : Kind::Columns);
  if (auto partial = dyn_cast_or_null<PartialAttr>(encoding))
    return RegisterLayout(partial.getParent(), Kind::Partial);
  return failure();
}

bool RegisterLayout::goesBeyond(int64_t column, int64_t columns) const {
  return isRowAtom(frag.getAtom()) && column + getRepeatColumns() > columns;
}

Position RegisterLayout::getRegisterPart(int64_t reg) const {
  AtomInfo atom = getAtomInfo(frag.getAtom());
  switch (kind) {
  case Kind::Matrix: {
    int64_t block = reg / atom.registers;
    Position inAtom = getAtomPosition(frag.getAtom(), reg % atom.registers, 0);
    return {block / frag.getRepColumns() * atom.rows + inAtom.row,
            block % frag.getRepColumns() * getRepeatColumns() + inAtom.column};
  }
  case Kind::Rows:
  case Kind::Partial: {
    int64_t perBlock = getAtomRows(frag.getAtom());
    return {reg / perBlock * atom.rows + reg % perBlock * 8, 0};
  }
  case Kind::Columns: {
    int64_t perBlock = atom.registers / getAtomRows(frag.getAtom());
    int64_t inBlock = reg % perBlock;
    // Registers of the atom's first row.
    bool isFirstRow = inBlock < 2 || frag.getAtom() == Atom::MmaC8 ||
                      isRowAtom(frag.getAtom());
    int64_t atomReg = isFirstRow ? inBlock : inBlock + 2;
    return {0, reg / perBlock * getRepeatColumns() +
                   getAtomPosition(frag.getAtom(), atomReg, 0).column};
  }
  }
  return {0, 0};
}

Position RegisterLayout::getPosition(int64_t reg, int64_t lane,
                                     int64_t warp) const {
  AtomInfo atom = getAtomInfo(frag.getAtom());
  Position position = getRegisterPart(reg);
  warp %= frag.getHolders();
  if (kind != Kind::Columns)
    position.row +=
        warp / frag.getColumnWarps() * frag.getRepRows() * atom.rows +
        lane / getRowLanes();
  if (overColumns())
    position.column += warp % frag.getColumnWarps() * atom.columns +
                       lane % getRowLanes() * getNeighbours();
  return position;
}

int64_t RegisterLayout::getNeighbours() const {
  bool single = kind == Kind::Rows || kind == Kind::Partial ||
                frag.getAtom() == Atom::MmaA32;
  if (single)
    return 1;
  if (isRowAtom(frag.getAtom()))
    return kRowChunk;
  return frag.getAtom() == Atom::MmaC8 ? 4 : 2;
}

bool fi::tile::spansWarps(ReduceOp op) {
  auto frag =
      dyn_cast_or_null<FragAttr>(op.getSource().getType().getEncoding());
  return frag && frag.getColumnWarps() > 1;
}

/// Four values are read at once.
int64_t fi::tile::getReductionPitch(FragAttr frag) {
  return llvm::alignTo(frag.getColumnWarps(), 4) * sizeof(float);
}

int64_t fi::tile::getReductionBytes(ReduceOp op) {
  RankedTensorType type = op.getSource().getType();
  return type.getDimSize(0) *
         getReductionPitch(cast<FragAttr>(type.getEncoding()));
}

std::string fi::tile::drawLayout(RankedTensorType type) {
  std::string text;
  llvm::raw_string_ostream os(text);
  FailureOr<RegisterLayout> layout = RegisterLayout::of(type);
  if (failed(layout))
    return "no layout";
  AtomInfo atom = getAtomInfo(layout->getFrag().getAtom());
  int64_t rows = std::min(atom.rows, type.getDimSize(0));
  int64_t columns = std::min(atom.columns, type.getDimSize(1));
  os << "lane:register of the first " << rows << " x " << columns
     << " elements, by rows";
  for (int64_t row = 0; row < rows; ++row) {
    os << "\n ";
    for (int64_t column = 0; column < columns; ++column) {
      os << ' ';
      bool found = false;
      for (int64_t lane = 0; lane < kLanes && !found; ++lane)
        for (int64_t reg = 0; reg < layout->getRegisters() && !found; ++reg)
          if (layout->getPosition(reg, lane, 0) == Position{row, column}) {
            os << lane << ':' << reg;
            found = true;
          }
      if (!found)
        os << '-';
    }
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// rows x columns x element , layout
static ParseResult parseBuffer(AsmParser &parser, BufType &buffer) {
  SmallVector<int64_t> shape;
  Type element;
  Attribute attr;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseDimensionList(shape, /*allowDynamic=*/false) ||
      parser.parseType(element) || parser.parseComma() ||
      parser.parseAttribute(attr))
    return failure();
  auto layout = dyn_cast<SmemAttr>(attr);
  if (shape.size() != 2 || !layout)
    return parser.emitError(loc, "expected rows x columns x type and a layout "
                                 "#fi_tile.smem<...>");
  buffer = parser.getChecked<BufType>(loc, parser.getContext(), shape[0],
                                      shape[1], element, layout);
  return success(buffer != BufType());
}

static void printBuffer(AsmPrinter &printer, BufType type) {
  printer << type.getRows() << 'x' << type.getColumns() << 'x'
          << type.getElement() << ", " << type.getLayout();
}

Type BufType::parse(AsmParser &parser) {
  BufType buffer;
  if (parser.parseLess() || failed(parseBuffer(parser, buffer)) ||
      parser.parseGreater())
    return {};
  return buffer;
}

void BufType::print(AsmPrinter &printer) const {
  printer << '<';
  printBuffer(printer, *this);
  printer << '>';
}

LogicalResult
BufType::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                int64_t rows, int64_t columns, Type element, SmemAttr layout) {
  bool isNibble = isa<Float4E2M1FNType>(element) && columns % 2 == 0;
  if (!element.isIntOrFloat() ||
      (element.getIntOrFloatBitWidth() % 8 != 0 && !isNibble))
    return emitError() << "expected elements of whole bytes, or an even number "
                          "of columns of f4E2M1FN, but got "
                       << columns << " x " << element << " [LAY4]";
  int64_t bits = element.getIntOrFloatBitWidth();
  if (layout.getPanel() && rows > layout.getPanel() / layout.getPitch())
    return emitError() << "expected rows that fit into panels of "
                       << layout.getPanel() << " bytes, but got " << rows
                       << " of " << layout.getPitch() << " bytes [LAY4]";
  int64_t most = layout.getPanel() ? kMostPitch : layout.getPitch();
  if (rows < 1 || rows > kMostRows || columns < 1 || columns > most * 8 / bits)
    return emitError() << "expected 1 to " << kMostRows << " rows of at most "
                       << (layout.getPanel() ? "" : "the pitch, ") << most
                       << " bytes, but got " << rows << " of " << columns
                       << " x " << element << " [LAY4]";
  return success();
}

Type ChanType::parse(AsmParser &parser) {
  BufType buffer;
  int64_t depth;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || failed(parseBuffer(parser, buffer)) ||
      parser.parseComma() || parser.parseKeyword("depth") ||
      parser.parseEqual() || parser.parseInteger(depth) ||
      parser.parseGreater())
    return {};
  return parser.getChecked<ChanType>(loc, parser.getContext(), buffer, depth);
}

void ChanType::print(AsmPrinter &printer) const {
  printer << '<';
  printBuffer(printer, getBuffer());
  printer << ", depth = " << getDepth() << '>';
}

LogicalResult
ChanType::verify(llvm::function_ref<InFlightDiagnostic()> emitError, BufType,
                 int64_t depth) {
  if (depth < 1 || depth > 16)
    return emitError() << "expected a depth of 1 to 16 buffers, but got "
                       << depth << " [LAY5]";
  return success();
}

ShapedTile::ShapedTile(Type type) {
  if (auto buffer = dyn_cast<BufType>(type)) {
    rows = buffer.getRows();
    columns = buffer.getColumns();
    element = buffer.getElement();
    return;
  }
  auto tile = cast<RankedTensorType>(type);
  rows = tile.getDimSize(0);
  columns = tile.getDimSize(1);
  element = tile.getElementType();
}
