//===- FIAttrs.cpp - attributes of the fi dialect -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spelling and checks, and what each short spelling means as a region.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FI/IR/Features.h"
#include "fi/Target/SMTable.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;

#include "fi/Dialect/FI/IR/FIEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "fi/Dialect/FI/IR/FIAttrs.cpp.inc"

void FIDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "fi/Dialect/FI/IR/FIAttrs.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// Masks: the position arguments are (request, q_head, kv_head, q_pos, kv_pos)
//===----------------------------------------------------------------------===//

static Value compare(OpBuilder &b, Location loc, arith::CmpIPredicate predicate,
                     Value lhs, Value rhs) {
  return arith::CmpIOp::create(b, loc, predicate, lhs, rhs);
}

Value CausalAttr::buildMask(OpBuilder &b, Location loc,
                            ValueRange positions) const {
  return compare(b, loc, arith::CmpIPredicate::sle, positions[4], positions[3]);
}

LogicalResult
WindowAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   std::optional<int64_t> left, std::optional<int64_t> right) {
  for (auto [what, bound] :
       {std::pair("left", left), std::pair("right", right)})
    if (bound && *bound < 0)
      return emitError() << "expected window bound '" << what
                         << "' to be 0 or more (leave it out for none), but "
                            "got "
                         << *bound << " [MSK1]";
  if (!left && !right)
    return emitError() << "expected a window to have a bound 'left' or 'right' "
                          "[MSK2]";
  return success();
}

Value WindowAttr::buildMask(OpBuilder &b, Location loc,
                            ValueRange positions) const {
  // No position is as far from another one, and the sum does not wrap (MSK6).
  constexpr int64_t kFarthest = int64_t(1) << 62;
  Value q = positions[3], k = positions[4], visible;
  if (getLeft()) {
    Value left =
        arith::ConstantIndexOp::create(b, loc, std::min(*getLeft(), kFarthest));
    Value least = arith::SubIOp::create(b, loc, q, left);
    visible = compare(b, loc, arith::CmpIPredicate::sge, k, least);
  }
  if (getRight()) {
    Value right = arith::ConstantIndexOp::create(
        b, loc, std::min(*getRight(), kFarthest));
    Value most = arith::AddIOp::create(b, loc, q, right);
    Value below = compare(b, loc, arith::CmpIPredicate::sle, k, most);
    visible = visible
                  ? arith::AndIOp::create(b, loc, visible, below).getResult()
                  : below;
  }
  return visible;
}

LogicalResult
AnyAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                ArrayRef<Attribute> masks) {
  if (masks.empty())
    return emitError() << "expected at least 1 mask in #fi.any [MSK3]";
  for (Attribute mask : masks)
    if (!isa<MaskAttrInterface>(mask))
      return emitError() << "expected masks in #fi.any, but got " << mask
                         << " [MSK3]";
  return success();
}

Value AnyAttr::buildMask(OpBuilder &b, Location loc,
                         ValueRange positions) const {
  Value visible;
  for (Attribute mask : getMasks()) {
    Value one = cast<MaskAttrInterface>(mask).buildMask(b, loc, positions);
    visible =
        visible ? arith::OrIOp::create(b, loc, visible, one).getResult() : one;
  }
  return visible;
}

//===----------------------------------------------------------------------===//
// Scores: the arguments are (score, request, q_head, kv_head, q_pos, kv_pos)
//===----------------------------------------------------------------------===//

Attribute SoftcapAttr::parse(AsmParser &parser, Type) {
  double cap;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseFloat(cap) || parser.parseGreater())
    return {};
  return parser.getChecked<SoftcapAttr>(
      loc, parser.getContext(), parser.getBuilder().getF32FloatAttr(cap));
}

void SoftcapAttr::print(AsmPrinter &printer) const {
  printer << "<";
  printer.printFloat(getCap().getValue());
  printer << ">";
}

LogicalResult
SoftcapAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                    FloatAttr cap) {
  llvm::APFloat value = cap.getValue();
  if (!value.isFinite() || value.isNegative() || value.isZero())
    return emitError() << "expected a soft cap that is positive and finite, "
                          "but got "
                       << cap.getValueAsDouble() << " [SCR1]";
  return success();
}

Value SoftcapAttr::buildScore(OpBuilder &b, Location loc,
                              ValueRange arguments) const {
  double cap = getCap().getValueAsDouble();
  auto constant = [&](double value) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(value));
  };
  Value scaled =
      arith::MulFOp::create(b, loc, arguments[0], constant(1.0 / cap));
  // Multiplied by the cap, its error is absolute.
  Value tanh = math::TanhOp::create(
      b, loc, scaled,
      arith::FastMathFlagsAttr::get(b.getContext(), arith::FastMathFlags::afn));
  return arith::MulFOp::create(b, loc, tanh, constant(cap));
}

//===----------------------------------------------------------------------===//
// Target, schedule, split
//===----------------------------------------------------------------------===//

Attribute TargetAttr::parse(AsmParser &parser, Type) {
  StringRef kind;
  std::optional<int64_t> bits;
  bool bf16Dot = false, amx = false;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseLess() || parser.parseKeyword(&kind))
    return {};
  while (succeeded(parser.parseOptionalComma())) {
    StringRef option;
    SMLoc optionLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&option))
      return {};
    if (option == "vector_bits") {
      if (parser.parseEqual() || parser.parseInteger(bits.emplace()))
        return {};
    } else if (option == "bf16_dot") {
      bf16Dot = true;
    } else if (option == "amx") {
      amx = true;
    } else {
      parser.emitError(optionLoc, "expected 'vector_bits = ', 'bf16_dot' or "
                                  "'amx', but got '")
          << option << "'";
      return {};
    }
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<TargetAttr>(
      loc, parser.getContext(), parser.getBuilder().getStringAttr(kind),
      bits.value_or(kind == "cpu" ? 128 : 0), bf16Dot, amx);
}

void TargetAttr::print(AsmPrinter &printer) const {
  printer << "<" << getKind().getValue();
  if (isCPU())
    printer << ", vector_bits = " << getVectorBits();
  if (getBf16Dot())
    printer << ", bf16_dot";
  if (getAmx())
    printer << ", amx";
  printer << ">";
}

LogicalResult
TargetAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                   StringAttr kind, int64_t vectorBits, bool bf16Dot,
                   bool amx) {
  if (kind.getValue() != "cpu") {
    if (!sm::lookup(kind.getValue()))
      return emitError() << "expected a target among cpu, " << sm::getNames()
                         << ", but got '" << kind.getValue() << "'"
                         << sm::getHint(kind.getValue()) << " [TGT1]";
    if (vectorBits || bf16Dot || amx)
      return emitError() << "expected target '" << kind.getValue()
                         << "' without vector_bits, bf16_dot and amx, which "
                            "are of 'cpu' [TGT2]";
    return success();
  }
  if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
    return emitError() << "expected vector_bits of 128, 256 or 512, but got "
                       << vectorBits << " [TGT2]";
  if (bf16Dot && vectorBits != 512)
    return emitError() << "expected vector_bits of 512 with bf16_dot, but got "
                       << vectorBits << " [TGT3]";
  if (amx && !bf16Dot)
    return emitError() << "expected bf16_dot with amx [TGT3]";
  return success();
}

const sm::Target *TargetAttr::getChip() const {
  return sm::lookup(getKind().getValue());
}

const sm::Target &fi::getChipOf(Operation *op) {
  for (; op; op = op->getParentOp())
    if (auto target = op->getAttrOfType<TargetAttr>(kTargetAttr))
      if (const sm::Target *chip = target.getChip())
        return *chip;
  return *llvm::find_if(sm::getTargets(), [](const sm::Target &target) {
    return target.has(sm::CpAsync);
  });
}

namespace {
/// A schedule's parameters by name, in the order in which they are printed.
struct ScheduleField {
  StringRef name;
  int64_t value;
};
} // namespace

Attribute ScheduleAttr::parse(AsmParser &parser, Type) {
  // -1: no default. Blocks of registers belong to the CPU, warps to a GPU.
  ScheduleField fields[] = {
      {"tile_rows", -1}, {"tile_keys", -1}, {"mr", 0},         {"nr", 0},
      {"lanes", 1},      {"max_rows", 0},   {"stream", 0},     {"warps", 0},
      {"key_warps", 0},  {"stages", 0},     {"load_warps", 0}, {"wgmma", 0},
      {"rotate", 0},     {"turns", 0},      {"tma", 0},        {"late", 0}};
  SMLoc loc = parser.getCurrentLocation();
  auto parseField = [&]() -> ParseResult {
    StringRef name;
    SMLoc nameLoc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name))
      return failure();
    for (ScheduleField &field : fields)
      if (field.name == name)
        return failure(parser.parseEqual() || parser.parseInteger(field.value));
    return parser.emitError(nameLoc)
           << "expected one of tile_rows, tile_keys, mr, nr, lanes, max_rows, "
              "stream, warps, key_warps, stages, load_warps, wgmma, rotate, "
              "turns, tma, late, but got '"
           << name << "'";
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseField))
    return {};
  bool onGPU = fields[7].value != 0;
  if (onGPU && fields[8].value == 0)
    fields[8].value = 1;
  if (onGPU && fields[9].value == 0)
    fields[9].value = 1;
  for (ScheduleField &field : fields)
    if (field.value < 0 || (!onGPU && field.value == 0 &&
                            (field.name == "mr" || field.name == "nr"))) {
      parser.emitError(loc, "expected '") << field.name << "' in a schedule";
      return {};
    }
  return parser.getChecked<ScheduleAttr>(
      loc, parser.getContext(), fields[0].value, fields[1].value,
      fields[2].value, fields[3].value, fields[4].value, fields[5].value,
      fields[6].value, fields[7].value, fields[8].value, fields[9].value,
      fields[10].value, fields[11].value, fields[12].value, fields[13].value,
      fields[14].value, fields[15].value);
}

ScheduleAttr ScheduleAttr::withTiles(int64_t tileRows, int64_t tileKeys,
                                     int64_t warps, int64_t keyWarps,
                                     int64_t stages) const {
  return get(getContext(), tileRows, tileKeys, getMr(), getNr(), getLanes(),
             getMaxRows(), getStream(), warps, keyWarps, stages, getLoadWarps(),
             getWgmma(), getRotate(), getTurns(), getTma(), getLate());
}

void ScheduleAttr::print(AsmPrinter &printer) const {
  printer << "<tile_rows = " << getTileRows()
          << ", tile_keys = " << getTileKeys();
  if (getMr())
    printer << ", mr = " << getMr() << ", nr = " << getNr();
  if (getWarps()) {
    printer << ", warps = " << getWarps();
    if (getKeyWarps() != 1)
      printer << ", key_warps = " << getKeyWarps();
    if (getLoadWarps())
      printer << ", load_warps = " << getLoadWarps();
    printer << ", stages = " << getStages();
    if (getWgmma())
      printer << ", wgmma = " << getWgmma();
    if (getRotate())
      printer << ", rotate = " << getRotate();
    if (getTurns())
      printer << ", turns = " << getTurns();
    if (getTma())
      printer << ", tma = " << getTma();
    if (getLate())
      printer << ", late = " << getLate();
  }
  printer << ", lanes = " << getLanes();
  if (getMaxRows())
    printer << ", max_rows = " << getMaxRows();
  if (getStream())
    printer << ", stream = " << getStream();
  printer << ">";
}

LogicalResult
ScheduleAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                     int64_t tileRows, int64_t tileKeys, int64_t mr, int64_t nr,
                     int64_t lanes, int64_t maxRows, int64_t stream,
                     int64_t warps, int64_t keyWarps, int64_t stages,
                     int64_t loadWarps, int64_t wgmma, int64_t rotate,
                     int64_t turns, int64_t tma, int64_t late) {
  auto inRange = [&](StringRef name, int64_t value, int64_t most) {
    if (value >= 1 && value <= most)
      return success();
    emitError() << "expected '" << name << "' between 1 and " << most
                << ", but got " << value << " [SCH1]";
    return failure();
  };
  if (failed(inRange("tile_rows", tileRows, 4096)) ||
      failed(inRange("tile_keys", tileKeys, 4096)) ||
      failed(inRange("lanes", lanes, 64)))
    return failure();
  if (warps) {
    if (failed(inRange("warps", warps, 32)) ||
        failed(inRange("key_warps", keyWarps, 32)) ||
        failed(inRange("stages", stages, 16)))
      return failure();
    if (warps * keyWarps > 32)
      return emitError() << "expected at most 32 warps in all, but got "
                         << warps << " x " << keyWarps << " [SCH1]";
    if (loadWarps < 0 || loadWarps > 32 - warps * keyWarps)
      return emitError() << "expected 'load_warps' of 0 or such that there are "
                            "at most 32 warps in all, but got "
                         << loadWarps << " beside " << warps << " x "
                         << keyWarps << " [SCH1]";
    if (loadWarps && keyWarps > 1)
      return emitError() << "expected 'load_warps' without groups of warps "
                            "that copy for themselves ('key_warps'), but got "
                         << loadWarps << " and " << keyWarps << " [SCH1]";
    std::pair<StringRef, int64_t> switches[] = {
        {"wgmma", wgmma}, {"rotate", rotate}, {"turns", turns}};
    for (auto [name, value] : switches)
      if (value != 0 && (value != 1 || !wgmma))
        return emitError() << "expected '" << name
                           << "' of 0 or 1, and 1 with 'wgmma' alone, but got "
                           << value << " [SCH1]";
    if (tma != 0 && (tma != 1 || !loadWarps))
      return emitError() << "expected 'tma' of 0 or 1, and 1 with 'load_warps' "
                            "alone, but got "
                         << tma << " [SCH1]";
    if (late != 0 && late != 1)
      return emitError() << "expected 'late' of 0 or 1, but got " << late
                         << " [SCH1]";
    if (turns)
      return emitError() << "expected 'turns' of 0, since warpgroups that take "
                            "turns are not made yet, but got "
                         << turns << " [SCH1]";
    if (wgmma && (!loadWarps || warps % 4 != 0 || loadWarps % 4 != 0 ||
                  tileRows != 16 * warps))
      return emitError() << "expected with 'wgmma' warpgroups of four warps, "
                            "with 16 'tile_rows' each, and warps that load for "
                            "them, but got 'warps' = "
                         << warps << ", 'tile_rows' = " << tileRows
                         << ", 'load_warps' = " << loadWarps << " [SCH1]";
  } else if (failed(inRange("mr", mr, 64)) || failed(inRange("nr", nr, 16))) {
    return failure();
  } else if (loadWarps || wgmma || rotate || turns || tma || late) {
    return emitError()
           << "expected 'load_warps', 'wgmma', 'rotate', 'turns', 'tma' and "
              "'late' in a schedule with 'warps', but there are none [SCH1]";
  }
  if (mr && tileRows % mr != 0)
    return emitError() << "expected 'tile_rows' to be a multiple of 'mr' = "
                       << mr << ", but got " << tileRows << " [SCH1]";
  if (tileKeys % lanes != 0)
    return emitError() << "expected 'tile_keys' to be a multiple of 'lanes' = "
                       << lanes << ", but got " << tileKeys << " [SCH1]";
  if (maxRows < 0)
    return emitError() << "expected 'max_rows' of 0 or more, but got "
                       << maxRows << " [SCH1]";
  if (stream != 0 && stream != 1)
    return emitError() << "expected 'stream' of 0 or 1, but got " << stream
                       << " [SCH1]";
  return success();
}

Attribute SplitAttr::parse(AsmParser &parser, Type) {
  int64_t keys = 0;
  SMLoc loc = parser.getCurrentLocation();
  StringRef policy;
  if (parser.parseLess() || parser.parseKeyword(&policy))
    return {};
  if (policy == "fixed") {
    if (parser.parseEqual() || parser.parseInteger(keys))
      return {};
    if (keys <= 0) {
      parser.emitError(loc, "expected a fixed split of at least 1 key, but "
                            "got ")
          << keys << " [SPL1]";
      return {};
    }
  } else if (policy != "balanced") {
    parser.emitError(loc, "expected 'balanced' or 'fixed = <keys>', but got '")
        << policy << "'";
    return {};
  }
  if (parser.parseGreater())
    return {};
  return parser.getChecked<SplitAttr>(loc, parser.getContext(), keys);
}

void SplitAttr::print(AsmPrinter &printer) const {
  if (getKeys())
    printer << "<fixed = " << getKeys() << ">";
  else
    printer << "<balanced>";
}

LogicalResult
SplitAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError,
                  int64_t keys) {
  if (keys < 0)
    return emitError() << "expected a fixed split of at least 1 key, but got "
                       << keys << " [SPL1]";
  return success();
}
