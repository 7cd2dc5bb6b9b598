//===- Memory.cpp - loads and stores in the level 2 interpreter -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Addresses are indices into host tensors, found from the description of each
// layout alone, and every index is checked.
//
//===----------------------------------------------------------------------===//

#include "Strand.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

using Indices = SmallVector<int64_t, 5>;

static llvm::Error fail(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}
static llvm::Error at(Operation *op, llvm::Error error) {
  return makeError(op, llvm::toString(std::move(error)));
}

static llvm::Error checkIndex(const llvm::Twine &what, int64_t index,
                              int64_t size) {
  if (index >= 0 && index < size)
    return llvm::Error::success();
  return fail("expected " + what + " to be below " + llvm::Twine(size) +
              ", but got " + llvm::Twine(index));
}

//===----------------------------------------------------------------------===//
// Rows of elements
//===----------------------------------------------------------------------===//

/// Which columns of a row a tile has: `first + c * step`.
namespace {
struct Columns {
  int64_t first = 0, step = 1;
};
} // namespace

/// The elements of the last dimension behind `indices`, or the one element
/// where `indices` are complete.
static void readRow(const HostTensor &from, ArrayRef<int64_t> indices,
                    int64_t columns, bool floats, Elements &to,
                    Columns where = {}) {
  Indices all(indices);
  bool complete = static_cast<int64_t>(indices.size()) == from.getRank();
  if (!complete)
    all.push_back(0);
  for (int64_t c = 0; c < columns; ++c) {
    if (!complete)
      all.back() = where.first + c * where.step;
    if (floats)
      to.floats.push_back(from.getFloat(all));
    else
      to.integers.push_back(from.getInteger(all));
  }
}

/// Of codes of 4 bits, two to a byte.
static void readPackedRow(const HostTensor &from, ArrayRef<int64_t> indices,
                          int64_t columns, Elements &to) {
  Indices all(indices);
  all.push_back(0);
  for (int64_t c = 0; c < columns; ++c) {
    all.back() = c / 2;
    int64_t byte = from.getInteger(all);
    to.floats.push_back(readFloat4(c % 2 ? byte >> 4 : byte));
  }
}

static void writeRow(const HostTensor &to, ArrayRef<int64_t> indices,
                     int64_t columns, int64_t row, bool floats,
                     const Elements &from, Columns where = {}) {
  Indices all(indices);
  bool complete = static_cast<int64_t>(indices.size()) == to.getRank();
  if (!complete)
    all.push_back(0);
  for (int64_t c = 0; c < columns; ++c) {
    if (!complete)
      all.back() = where.first + c * where.step;
    if (floats)
      to.setFloat(all, from.floats[row * columns + c]);
    else
      to.setInteger(all, from.integers[row * columns + c]);
  }
}

//===----------------------------------------------------------------------===//
// Packed rows
//===----------------------------------------------------------------------===//

/// The part of a tile's columns that is meant, where one is.
static std::optional<int64_t> partOf(Value part, Strand &strand) {
  if (!part)
    return std::nullopt;
  return strand.integer(part);
}

/// The columns that an op with `first` and `step` means, where it has these.
template <typename Op>
static std::optional<Columns> columnsOf(Op op, Strand &strand) {
  if (!op.getFirst())
    return std::nullopt;
  return Columns{strand.integer(op.getFirst()),
                 static_cast<int64_t>(op.getStep())};
}

/// Whether a tile's columns are some of a row of `size` elements.
static llvm::Error checkColumns(Columns where, int64_t columns, int64_t size) {
  if (llvm::Error error = checkIndex("first column", where.first, size))
    return error;
  return checkIndex("last of " + llvm::Twine(columns) + " columns",
                    where.first + (columns - 1) * where.step, size);
}

/// [row, head] of row `r` of an item's tile.
static llvm::Expected<Indices>
findRow(const HostTensor &tensor, const fi_item &item, int64_t group, int64_t r,
        int64_t columns, std::optional<int64_t> part = {},
        std::optional<int64_t> head = {}, std::optional<Columns> where = {}) {
  int64_t packed = item.row_begin + r;
  int64_t token = packed / group;
  if (llvm::Error error =
          checkIndex("token of row " + llvm::Twine(r), token, item.q_len))
    return error;
  Indices indices = {item.q_begin + token,
                     head.value_or(item.kv_head) * group + packed % group};
  const char *names[] = {"row", "head"};
  if (tensor.getRank() == 1) // one head
    indices.pop_back();
  for (size_t d = 0; d < indices.size(); ++d)
    if (llvm::Error error =
            checkIndex(llvm::Twine(names[d]) + " of row " + llvm::Twine(r),
                       indices[d], tensor.getSize(d)))
      return error;
  if (where && tensor.getRank() == 3) {
    if (llvm::Error error = checkColumns(*where, columns, tensor.getSize(2)))
      return error;
  } else if (part && tensor.getRank() == 3) {
    if (llvm::Error error =
            checkIndex("part of " + llvm::Twine(columns) + " columns", *part,
                       tensor.getSize(2) / columns))
      return error;
  } else if (tensor.getRank() == 3 && tensor.getSize(2) != columns)
    return fail("expected rows of " + llvm::Twine(columns) +
                " elements, but got " + llvm::Twine(tensor.getSize(2)));
  return indices;
}

static llvm::Expected<Elements>
readRows(Value from, Value itemValue, int64_t group, int64_t rows,
         int64_t columns, bool floats, Strand &strand,
         std::optional<int64_t> head, std::optional<Columns> where) {
  const HostTensor &source = strand.tensor(from);
  const fi_item &item = strand.item(itemValue);
  Elements result;
  for (int64_t r = 0; r < rows; ++r) {
    llvm::Expected<Indices> row =
        findRow(source, item, group, std::min<int64_t>(r, item.row_count - 1),
                columns, /*part=*/{}, head, where);
    if (!row)
      return row.takeError();
    readRow(source, *row, columns, floats, result, where.value_or(Columns()));
  }
  return result;
}

llvm::Expected<Elements> fi::tile::readRows(Value from, Value itemValue,
                                            int64_t group, int64_t rows,
                                            int64_t columns, bool floats,
                                            Strand &strand) {
  return ::readRows(from, itemValue, group, rows, columns, floats, strand,
                    /*head=*/{}, /*where=*/{});
}

static llvm::Error loadRows(LoadRowsOp op, Strand &strand) {
  llvm::Expected<Elements> rows = ::readRows(
      op.getSource(), op.getItem(), op.getGroup(), op.getType().getDimSize(0),
      op.getType().getDimSize(1), hasFloats(op.getType()), strand,
      partOf(op.getHead(), strand), columnsOf(op, strand));
  if (!rows)
    return at(op, rows.takeError());
  strand.set(op, std::make_shared<const Elements>(std::move(*rows)));
  return llvm::Error::success();
}

static llvm::Error storeRows(StoreRowsOp op, Strand &strand) {
  const HostTensor &target = strand.tensor(op.getTarget());
  const fi_item &item = strand.item(op.getItem());
  auto type = cast<RankedTensorType>(op.getTile().getType());
  int64_t rows = std::min<int64_t>(type.getDimSize(0), item.row_count);
  int64_t columns = type.getDimSize(1);
  std::optional<int64_t> part = partOf(op.getPart(), strand);
  std::optional<Columns> where = columnsOf(op, strand);
  // A value per row is stored with part 0.
  if (columns == 1 && part.value_or(0) != 0)
    return llvm::Error::success();
  for (int64_t r = 0; r < rows; ++r) {
    llvm::Expected<Indices> row =
        findRow(target, item, op.getGroup(), r, columns, part,
                partOf(op.getHead(), strand), where);
    if (!row)
      return at(op, row.takeError());
    writeRow(target, *row, columns, r, hasFloats(type),
             strand.elements(op.getTile()),
             where ? *where : Columns{part.value_or(0) * columns});
  }
  return llvm::Error::success();
}

static llvm::Error loadColumns(LoadColumnsOp op, Strand &strand) {
  const HostTensor &source = strand.tensor(op.getSource());
  int64_t columns = op.getType().getDimSize(1);
  if (source.getRank() != 1 || source.getSize(0) != columns)
    return at(op, fail("expected a vector of " + llvm::Twine(columns) +
                       " elements, but got another shape"));
  Elements row;
  readRow(source, {}, columns, hasFloats(op.getType()), row);
  strand.set(op, std::make_shared<const Elements>(std::move(row)));
  return llvm::Error::success();
}

//===----------------------------------------------------------------------===//
// Keys and values
//===----------------------------------------------------------------------===//

/// Where a key's or value's row lies.
namespace {
struct KVRow {
  const HostTensor *pool;
  Indices indices;
};
} // namespace

/// The page where a key lies, and its slot there.
static llvm::Expected<std::pair<int64_t, int64_t>>
findSlot(int64_t page, const HostTensor &table, int64_t key,
         int64_t tableBegin) {
  if (page <= 0)
    return fail("expected pages of at least 1 key, but got " +
                llvm::Twine(page));
  // The table is flat, or [requests, pages], which is flat as well.
  int64_t entry = tableBegin + key / page;
  Indices entryIndices = {entry};
  if (table.getRank() == 2) {
    int64_t columns = std::max<int64_t>(table.getSize(1), 1);
    entryIndices = {entry < 0 ? -1 : entry / columns, entry % columns};
  }
  if (llvm::Error error =
          checkIndex("entry of the page table", entry, table.getNumElements()))
    return std::move(error);
  return std::pair(table.getInteger(entryIndices), key % page);
}

/// What the head and the token of a row are in a pool with this order.
static Indices inOrder(HeadOrder order, int64_t head, int64_t token) {
  return order == HeadOrder::NHD ? Indices{token, head} : Indices{head, token};
}

static llvm::Expected<Indices> findIndices(KVViewTypeInterface view,
                                           ArrayRef<HostTensor> pools,
                                           ArrayRef<HostTensor> tables,
                                           KVPart part, int64_t head,
                                           int64_t key, int64_t tableBegin) {
  if (auto ragged = dyn_cast<RaggedKVType>(view))
    return inOrder(ragged.getOrder(), head, tableBegin + key);
  if (auto bsr = dyn_cast<BsrKVType>(view))
    return inOrder(bsr.getOrder(), head, tableBegin + key);
  auto paged = dyn_cast<PagedKVType>(view);
  auto latent = dyn_cast<LatentKVType>(view);
  if (!paged && !latent)
    return fail("expected a view that this interpreter knows");
  bool values = part == KVPart::Values;
  int64_t page = view.getPageSize();
  if (ShapedType::isDynamic(page)) {
    int64_t dim = latent ? 1
                         : (paged.getFused() ? 2 : 1) +
                               (paged.getOrder() == HeadOrder::NHD ? 0 : 1);
    page = pools[0].getSize(dim);
  }
  if (tables.empty())
    return fail("expected a page table");
  const HostTensor &table =
      values && paged && paged.getTwoTables() ? tables.back() : tables.front();
  auto slot = findSlot(page, table, key, tableBegin);
  if (!slot)
    return slot.takeError();
  Indices indices = {slot->first};
  if (latent) {
    indices.push_back(slot->second);
    return indices;
  }
  if (paged.getFused())
    indices.push_back(values);
  llvm::append_range(indices, inOrder(paged.getOrder(), head, slot->second));
  return indices;
}

static llvm::Expected<KVRow> findKVRow(KVViewTypeInterface view,
                                       ArrayRef<HostTensor> pools,
                                       ArrayRef<HostTensor> tables, KVPart part,
                                       int64_t head, int64_t key,
                                       int64_t tableBegin) {
  if (llvm::Error error = checkIndex("KV head", head, view.getKVHeads()))
    return std::move(error);
  if (pools.size() != view.getPoolCount())
    return fail("expected " + llvm::Twine(view.getPoolCount()) +
                " pools, but got " + llvm::Twine(pools.size()));
  for (const HostTensor &pool : pools)
    if (pool.getRank() != view.getPoolRank())
      return fail("expected pools of rank " + llvm::Twine(view.getPoolRank()) +
                  ", but got " + llvm::Twine(pool.getRank()));
  if (tables.size() != view.getTableCount())
    return fail("expected " + llvm::Twine(view.getTableCount()) +
                " page tables, but got " + llvm::Twine(tables.size()));
  llvm::Expected<Indices> indices =
      findIndices(view, pools, tables, part, head, key, tableBegin);
  if (!indices)
    return indices.takeError();
  KVRow row = {&pools[view.getPool(part)], *indices};
  for (auto [d, index] : llvm::enumerate(row.indices))
    if (llvm::Error error =
            checkIndex("index of dimension " + llvm::Twine(d) +
                           " of the pool for key " + llvm::Twine(key),
                       index, row.pool->getSize(d)))
      return std::move(error);
  int64_t columns = view.getPoolColumns(part);
  if (row.pool->getShape().back() != columns)
    return fail("expected rows of " + llvm::Twine(columns) +
                " elements in the pool, but got " +
                llvm::Twine(row.pool->getShape().back()));
  return row;
}

llvm::Expected<int64_t>
fi::tile::getKVRowOffset(KVViewTypeInterface view, ArrayRef<HostTensor> pools,
                         ArrayRef<HostTensor> tables, KVPart part, int64_t head,
                         int64_t key, int64_t tableBegin) {
  llvm::Expected<KVRow> row =
      findKVRow(view, pools, tables, part, head, key, tableBegin);
  if (!row)
    return row.takeError();
  int64_t offset = 0;
  for (auto [index, stride] : llvm::zip(row->indices, row->pool->getStrides()))
    offset += index * stride;
  return offset;
}

/// The row of an item's key, which must be one of the request.
static llvm::Expected<KVRow> findItemRow(const KVView &view, KVPart part,
                                         const fi_item &item, int64_t key) {
  if (llvm::Error error = checkIndex("key", key, item.kv_len))
    return error;
  return findKVRow(view.type, view.pools, view.tables, part, item.kv_head, key,
                   item.table_begin);
}

llvm::Expected<Elements> fi::tile::readKV(Value viewValue, Value itemValue,
                                          KVPart part, int64_t key,
                                          int64_t rows, int64_t columns,
                                          bool floats, Strand &strand) {
  const KVView &view = strand.view(viewValue);
  const fi_item &item = strand.item(itemValue);
  // A tile that begins beyond the keys is none that a loop visits.
  if (llvm::Error error = checkIndex("first key of the tile", key, item.kv_len))
    return std::move(error);
  Elements result;
  for (int64_t j = 0; j < rows; ++j) {
    llvm::Expected<KVRow> row = findItemRow(
        view, part, item, j < item.kv_len - key ? key + j : item.kv_len - 1);
    if (!row)
      return row.takeError();
    if (isa<Float4E2M1FNType>(view.type.getPartType(part)))
      readPackedRow(*row->pool, row->indices, columns, result);
    else
      readRow(*row->pool, row->indices, columns, floats, result);
  }
  return result;
}

static llvm::Error loadKV(LoadKVOp op, Strand &strand) {
  llvm::Expected<Elements> rows =
      readKV(op.getView(), op.getItem(), op.getPart(),
             strand.integer(op.getKey()), op.getType().getDimSize(0),
             op.getType().getDimSize(1), hasFloats(op.getType()), strand);
  if (!rows)
    return at(op, rows.takeError());
  strand.set(op, std::make_shared<const Elements>(std::move(*rows)));
  return llvm::Error::success();
}

/// A scale has the place of its key's row in the pool, or of its page.
static llvm::Error loadScales(LoadScalesOp op, Strand &strand) {
  const KVView &view = strand.view(op.getView());
  const HostTensor &scales = strand.tensor(op.getScales());
  const fi_item &item = strand.item(op.getItem());
  int64_t key = strand.integer(op.getKey());
  bool isPerPage =
      getNumberGranularity(view.type, op.getPart() == KVPart::Values) ==
      Granularity::Page;
  BlockScaledType blocks = op.getBlockScheme();
  Elements result;
  int64_t keys =
      blocks ? op.getType().getDimSize(0) : op.getType().getNumElements();
  for (int64_t j = 0; j < keys; ++j) {
    llvm::Expected<KVRow> row = findItemRow(
        view, op.getPart(), item, std::min<int64_t>(key + j, item.kv_len - 1));
    if (!row)
      return at(op, row.takeError());
    Indices indices = row->indices;
    if (auto paged = dyn_cast<PagedKVType>(view.type);
        paged && paged.getFused())
      indices.erase(indices.begin() + 1);
    if (isPerPage && !blocks)
      indices = {indices.front(), item.kv_head};
    for (auto [d, index] : llvm::enumerate(indices))
      if (llvm::Error error =
              checkIndex("index of dimension " + llvm::Twine(d) +
                             " of the scales for key " + llvm::Twine(key + j),
                         index, scales.getSize(d)))
        return at(op, std::move(error));
    if (!blocks) {
      result.floats.push_back(scales.getFloat(indices));
      continue;
    }
    indices.push_back(0);
    for (int64_t c = 0; c < op.getType().getDimSize(1); ++c) {
      indices.back() = c / blocks.getBlock();
      result.floats.push_back(scales.getFloat(indices));
    }
  }
  strand.set(op, std::make_shared<const Elements>(std::move(result)));
  return llvm::Error::success();
}

static llvm::Error storeKV(StoreKVOp op, Strand &strand) {
  const KVView &view = strand.view(op.getView());
  const fi_item &item = strand.item(op.getItem());
  int64_t key = strand.integer(op.getKey());
  auto type = cast<RankedTensorType>(op.getTile().getType());
  std::optional<Columns> where = columnsOf(op, strand);
  int64_t rows = std::min<int64_t>(type.getDimSize(0), item.row_count);
  for (int64_t r = 0; r < rows; ++r) {
    llvm::Expected<KVRow> row = findItemRow(view, op.getPart(), item, key + r);
    if (!row)
      return at(op, row.takeError());
    int64_t columns = type.getDimSize(1);
    const Elements &elements = strand.elements(op.getTile());
    if (where)
      if (llvm::Error error = checkColumns(
              *where, columns, row->pool->getSize(row->pool->getRank() - 1)))
        return at(op, std::move(error));
    if (view.type.getPoolColumns(op.getPart()) ==
        view.type.getPartDim(op.getPart())) {
      writeRow(*row->pool, row->indices, columns, r, hasFloats(type), elements,
               where.value_or(Columns()));
      continue;
    }
    Indices all(row->indices);
    all.push_back(0);
    for (int64_t c = 0; c < columns; c += 2) {
      const int64_t *pair = &elements.integers[r * columns + c];
      all.back() = c / 2;
      row->pool->setInteger(all, (pair[0] & 15) | (pair[1] & 15) << 4);
    }
  }
  return llvm::Error::success();
}

/// One byte of each block, whatever it stands for.
static llvm::Error storeScales(StoreScalesOp op, Strand &strand) {
  const KVView &view = strand.view(op.getView());
  const HostTensor &scales = strand.tensor(op.getScales());
  const fi_item &item = strand.item(op.getItem());
  int64_t key = strand.integer(op.getKey());
  int64_t block = op.getBlockScheme().getBlock();
  auto type = cast<RankedTensorType>(op.getTile().getType());
  int64_t rows = std::min<int64_t>(type.getDimSize(0), item.row_count);
  int64_t columns = type.getDimSize(1);
  const std::vector<int64_t> &codes = strand.integers(op.getTile());
  for (int64_t r = 0; r < rows; ++r) {
    llvm::Expected<KVRow> row = findItemRow(view, op.getPart(), item, key + r);
    if (!row)
      return at(op, row.takeError());
    Indices indices = row->indices;
    if (auto paged = dyn_cast<PagedKVType>(view.type);
        paged && paged.getFused())
      indices.erase(indices.begin() + 1);
    indices.push_back(0);
    for (auto [d, index] : llvm::enumerate(indices))
      if (llvm::Error error =
              checkIndex("index of dimension " + llvm::Twine(d) +
                             " of the scales for key " + llvm::Twine(key + r),
                         index, scales.getSize(d)))
        return at(op, std::move(error));
    for (int64_t c = 0; c < columns; c += block) {
      indices.back() = c / block;
      writeInteger(scales.at(indices), DType::I8, codes[r * columns + c]);
    }
  }
  return llvm::Error::success();
}

static void makeView(ViewOp op, Strand &strand) {
  auto view = std::make_shared<KVView>();
  view->type = cast<KVViewTypeInterface>(op.getType());
  for (Value pool : op.getPools())
    view->pools.push_back(strand.tensor(pool));
  for (Value table : op.getPages())
    view->tables.push_back(strand.tensor(table));
  strand.set(op, std::shared_ptr<const KVView>(std::move(view)));
}

//===----------------------------------------------------------------------===//
// Captures and states
//===----------------------------------------------------------------------===//

static void gather(GatherOp op, Strand &strand) {
  const HostTensor &source = strand.tensor(op.getSource());
  bool floats = hasFloats(op.getType());
  uint64_t width =
      op.getBits()
          ? getWidth(
                cast<MemRefType>(op.getSource().getType()).getElementType())
          : 0;
  Elements result;
  for (int64_t i = 0; i < countElements(op.getType()); ++i) {
    Indices indices;
    bool inside = true;
    for (auto [d, index] : llvm::enumerate(op.getIndices())) {
      const std::vector<int64_t> &values = strand.integers(index);
      indices.push_back(values[values.size() == 1 ? 0 : i]);
      if (op.getBits())
        indices.back() >>= llvm::Log2_64(width);
      inside &= indices.back() >= 0 && indices.back() < source.getSize(d);
    }
    if (op.getBits()) {
      const std::vector<int64_t> &bits = strand.integers(op.getIndices()[0]);
      uint64_t bit =
          static_cast<uint64_t>(bits[bits.size() == 1 ? 0 : i]) % width;
      result.integers.push_back(
          inside &&
                  (static_cast<uint64_t>(source.getInteger(indices)) >> bit & 1)
              ? wrap(1, 1)
              : 0);
      continue;
    }
    if (floats)
      result.floats.push_back(inside ? source.getFloat(indices) : 0.0);
    else
      result.integers.push_back(
          inside ? wrap(static_cast<uint64_t>(source.getInteger(indices)),
                        getWidth(op.getType()))
                 : 0);
  }
  strand.set(op.getResult(),
             std::make_shared<const Elements>(std::move(result)));
}

/// A part is one group's.
static llvm::Error checkPart(std::optional<int64_t> part, Strand &strand) {
  if (!part)
    return llvm::Error::success();
  return checkIndex("part of the columns", *part,
                    strand.getContext().getGroups());
}

namespace {
/// Where a state's tile, or a part of its columns, lies in memory.
struct StateRows {
  StateRows(Operation *op, Value item, Value tile, float *states, int64_t slot,
            std::optional<int64_t> part, Strand &strand) {
    auto type = cast<RankedTensorType>(tile.getType());
    rows = type.getDimSize(0);
    columns = width = type.getDimSize(1);
    int64_t ofSlot = rows, first = 0;
    if (const LaterRows *later = strand.laterRows(item)) {
      ofSlot = op->getParentOfType<KernelOp>().getSchedule().getTileRows();
      first = later->firstRow;
      rows = std::min(rows, std::max<int64_t>(0, ofSlot - first));
    }
    base = states;
    if (part && columns > 1) {
      width *= strand.getContext().getGroups();
      base += *part * columns;
    }
    base += (slot * ofSlot + first) * width;
  }
  float *row(int64_t r) const { return base + r * width; }

  int64_t rows, columns, width;
  float *base;
};
} // namespace

/// Stores a state in the slot `index` after the item's own.
template <typename StoreOp>
static llvm::Error storeState(StoreOp op, int64_t index, Strand &strand) {
  const fi_work &work = strand.work(op.getWork());
  const fi_item &item = strand.item(op.getItem());
  if (item.slot < 0)
    return makeError(op, "expected an item with a state slot, but got slot " +
                             llvm::Twine(item.slot));
  if (!work.state_o || !work.state_lse)
    return makeError(op, "expected work with states, but got none");
  int64_t slot = item.slot + index;
  // Groups of warps store a part of the columns each, and the statistic with
  // the first.
  std::optional<int64_t> part = partOf(op.getPart(), strand);
  if (llvm::Error error = checkPart(part, strand))
    return at(op, std::move(error));
  // Of rows, whoever has the first ones says that there is a state.
  bool isFirst = part.value_or(0) == 0;
  const LaterRows *later = strand.laterRows(op.getItem());
  if (isFirst && (!later || later->firstRow == 0) &&
      !strand.getContext().slots.write(work.state_o, slot))
    return makeError(op, "expected slot " + llvm::Twine(slot) +
                             " to be free, but it holds a state that was not "
                             "read");
  for (auto [tile, states] : {std::pair(op.getOutput(), work.state_o),
                              std::pair(op.getStatistic(), work.state_lse)}) {
    StateRows place(op, op.getItem(), tile, states, slot, part, strand);
    if (!isFirst && place.columns == 1)
      continue;
    const std::vector<double> &values = strand.floats(tile);
    for (int64_t r = 0; r < place.rows; ++r)
      for (int64_t c = 0; c < place.columns; ++c)
        place.row(r)[c] = static_cast<float>(values[r * place.columns + c]);
  }
  return llvm::Error::success();
}

static llvm::Error loadState(LoadStateOp op, Strand &strand) {
  const fi_work &work = strand.work(op.getWork());
  const fi_item &item = strand.item(op.getItem());
  int64_t index = strand.integer(op.getIndex());
  if (llvm::Error error =
          checkIndex("index of the state", index, item.slot_count))
    return at(op, std::move(error));
  std::optional<int64_t> part = partOf(op.getPart(), strand);
  if (llvm::Error error = checkPart(part, strand))
    return at(op, std::move(error));
  int64_t slot = item.slot + index;
  if (item.slot < 0)
    return makeError(op, "expected an item with state slots, but got slot " +
                             llvm::Twine(item.slot));
  if (!work.state_o || !work.state_lse)
    return makeError(op, "expected work with states, but got none");
  if (!strand.getContext().slots.read(work.state_o, slot) &&
      strand.getContext().knowsSlots)
    return makeError(op, "expected slot " + llvm::Twine(slot) +
                             " to hold a state, but nothing was stored in it");
  for (auto [tile, states] : {std::pair(op.getOutput(), work.state_o),
                              std::pair(op.getStatistic(), work.state_lse)}) {
    StateRows place(op, op.getItem(), tile, states, slot, part, strand);
    std::vector<double> values;
    for (int64_t r = 0; r < place.rows; ++r)
      values.insert(values.end(), place.row(r), place.row(r) + place.columns);
    values.resize(countElements(tile.getType()));
    strand.set(tile, makeFloats(std::move(values)));
  }
  return llvm::Error::success();
}

llvm::Expected<bool> fi::tile::evaluateMemory(Operation *op, Strand &strand) {
  auto done = [](llvm::Error error) -> llvm::Expected<bool> {
    if (error)
      return std::move(error);
    return true;
  };
  if (auto load = dyn_cast<LoadRowsOp>(op))
    return done(loadRows(load, strand));
  if (auto store = dyn_cast<StoreRowsOp>(op))
    return done(storeRows(store, strand));
  if (auto load = dyn_cast<LoadColumnsOp>(op))
    return done(loadColumns(load, strand));
  if (auto load = dyn_cast<LoadKVOp>(op))
    return done(loadKV(load, strand));
  if (auto load = dyn_cast<LoadScalesOp>(op))
    return done(loadScales(load, strand));
  if (auto store = dyn_cast<StoreKVOp>(op))
    return done(storeKV(store, strand));
  if (auto store = dyn_cast<StoreScalesOp>(op))
    return done(storeScales(store, strand));
  if (auto store = dyn_cast<StoreStateOp>(op))
    return done(storeState(store, 0, strand));
  if (auto store = dyn_cast<StoreMergedStateOp>(op))
    return done(storeState(store, strand.integer(store.getIndex()), strand));
  if (auto load = dyn_cast<LoadStateOp>(op))
    return done(loadState(load, strand));
  if (auto view = dyn_cast<ViewOp>(op)) {
    makeView(view, strand);
    return true;
  }
  if (auto load = dyn_cast<GatherOp>(op)) {
    gather(load, strand);
    return true;
  }
  if (auto dim = dyn_cast<memref::DimOp>(op)) {
    strand.set(dim.getResult(),
               makeIntegers({strand.tensor(dim.getSource())
                                 .getSize(static_cast<int>(
                                     strand.integer(dim.getIndex())))}));
    return true;
  }
  return false;
}
