//===- Tables.cpp - Plan arguments, checked -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Checks of tensors, and the reading of indptr, page and length tables. The
// rules follow what serving engines send: an indptr need not start at 0, tables
// may be longer than they need to be, and a request without pages is empty
// whatever its last page says.
//
//===----------------------------------------------------------------------===//
#include "Tables.h"
#include "../Support/Error.h"

#include <cinttypes>

// The scan over page tables is the longest loop of planning a decode batch.
#if defined(__x86_64__) && defined(__GNUC__) && defined(__ELF__) &&            \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define FI_WIDE_LOOP __attribute__((target_clones("avx2", "default")))
#else
#define FI_WIDE_LOOP
#endif

namespace fi::runtime {

fi_status checkTensor(fi_status status, const char *owner, const char *name,
                      const fi_tensor &tensor, int32_t dtype,
                      const int64_t *shape, int32_t rank, bool written) {
  if (!dtypeMatches(dtype, tensor.dtype))
    return fail(status,
                "%s: operand '%s': expected dtype %s, but got %s; convert it "
                "first",
                owner, name, dtypeName(dtype), dtypeName(tensor.dtype));
  if (tensor.rank != rank)
    return fail(status, "%s: operand '%s': expected rank %d, but got rank %d",
                owner, name, rank, tensor.rank);
  if (rank > 0 && !tensor.shape)
    return fail(status, "%s: operand '%s': expected a shape, but got NULL",
                owner, name);
  bool empty = false;
  for (int32_t d = 0; d < rank; ++d) {
    if (tensor.shape[d] < 0 || tensor.shape[d] > INT64_C(1) << 48)
      return fail(status,
                  "%s: operand '%s': expected a size in dimension %d, but got "
                  "%" PRId64,
                  owner, name, d, tensor.shape[d]);
    if (shape[d] != unknownSize && shape[d] != tensor.shape[d])
      return fail(status,
                  "%s: operand '%s': expected size %" PRId64
                  " in dimension %d, but got %" PRId64,
                  owner, name, shape[d], d, tensor.shape[d]);
    empty |= tensor.shape[d] == 0;
  }
  if (empty)
    return FI_OK;
  if (tensor.strides) {
    if (rank > 0 && tensor.shape[rank - 1] > 1 && tensor.strides[rank - 1] != 1)
      return fail(status,
                  "%s: operand '%s': expected a contiguous last dimension "
                  "(stride 1), but got stride %" PRId64 "; copy it first",
                  owner, name, tensor.strides[rank - 1]);
    for (int32_t d = 0; d < rank && written; ++d)
      if (tensor.shape[d] > 1 && tensor.strides[d] == 0)
        return fail(status,
                    "%s: operand '%s': expected elements apart, because it is "
                    "written, but got stride 0 in dimension %d",
                    owner, name, d);
  }
  if (!tensor.data)
    return fail(status, "%s: operand '%s': expected data, but got NULL", owner,
                name);
  // Sizes of elements are powers of two.
  if (reinterpret_cast<uintptr_t>(tensor.data) & (dtypeSize(dtype) - 1))
    return fail(status,
                "%s: operand '%s': expected data aligned to the %d bytes of "
                "its elements, but got %p",
                owner, name, static_cast<int>(dtypeSize(dtype)), tensor.data);
  return FI_OK;
}

fi_status checkScalar(fi_status status, const char *owner, const char *name,
                      const fi_value &value, int32_t dtype, int64_t &slot) {
  bool integer = isIntegerDtype(dtype);
  if (value.kind != (integer ? FI_VALUE_INTEGER : FI_VALUE_FLOAT))
    return fail(status,
                "%s: operand '%s': expected a scalar of dtype %s (fi_value "
                "kind %s), but got kind %d",
                owner, name, dtypeName(dtype),
                integer ? "FI_VALUE_INTEGER" : "FI_VALUE_FLOAT", value.kind);
  if (!integer) {
    if (dtype != FI_F32)
      return fail(FI_UNSUPPORTED,
                  "%s: operand '%s': scalars of dtype %s are not supported; "
                  "use f32",
                  owner, name, dtypeName(dtype));
    uint32_t bits;
    std::memcpy(&bits, &value.as.f32, sizeof(bits));
    slot = bits;
    return FI_OK;
  }
  int64_t most = dtype == FI_I32  ? INT32_MAX
                 : dtype == FI_I8 ? INT8_MAX
                 : dtype == FI_I1 ? 1
                                  : INT64_MAX;
  int64_t least = dtype == FI_I1 ? 0 : -most - 1;
  if (value.as.i64 < least || value.as.i64 > most)
    return fail(status,
                "%s: operand '%s': expected a value of dtype %s, but got "
                "%" PRId64,
                owner, name, dtypeName(dtype), value.as.i64);
  slot = value.as.i64;
  return FI_OK;
}

void fillStrides(const fi_tensor &tensor, int64_t *strides) {
  int64_t step = 1;
  for (int32_t d = tensor.rank - 1; d >= 0; --d) {
    strides[d] = tensor.strides ? tensor.strides[d] : step;
    // Sizes are at most 2^48 each; a tensor that overflows cannot exist.
    if (__builtin_mul_overflow(step, tensor.shape[d], &step))
      step = 0;
  }
}

namespace {

/// Reads a table of rank 1.
void readIntegers(const Table &table, int64_t first, int64_t count,
                  int64_t *out) {
  if (table.dtype == FI_I32) {
    const int32_t *in = static_cast<const int32_t *>(table.data) + first;
    for (int64_t i = 0; i < count; ++i)
      out[i] = in[i];
  } else if (count > 0) {
    std::memcpy(out, static_cast<const int64_t *>(table.data) + first,
                count * sizeof(int64_t));
  }
}

/// No request has more keys; keeps all arithmetic on key indices in 64 bits.
constexpr int64_t maxKeys = INT64_C(1) << 40;
/// A mask's bounds are derived for positions below 2^29, where a region's
/// arithmetic is of 32 bits and no operand gives other positions.
constexpr int64_t maxMaskedKeys = (INT64_C(1) << 29) - 1;
/// No pool has more pages, since no tensor has a larger size.
constexpr int64_t maxPages = INT64_C(1) << 48;
bool isOutside(int64_t page) { return page < 0 || page >= maxPages; }

/// Least and largest of a run of page indices.
struct Extremes {
  int64_t least = INT64_MAX, most = INT64_MIN;
  bool areOutside() const { return least < 0 || most >= maxPages; }
};

FI_WIDE_LOOP void scan32(const int32_t *in, int64_t count, int32_t *extremes) {
  int32_t least = INT32_MAX, most = INT32_MIN;
  for (int64_t i = 0; i < count; ++i) {
    least = in[i] < least ? in[i] : least;
    most = in[i] > most ? in[i] : most;
  }
  extremes[0] = least;
  extremes[1] = most;
}

void scan(const Table &table, int64_t offset, int64_t count, Extremes &all) {
  if (count <= 0)
    return;
  if (table.dtype == FI_I32) {
    int32_t extremes[2];
    scan32(static_cast<const int32_t *>(table.data) + offset, count, extremes);
    all.least = std::min<int64_t>(all.least, extremes[0]);
    all.most = std::max<int64_t>(all.most, extremes[1]);
    return;
  }
  const int64_t *in = static_cast<const int64_t *>(table.data) + offset;
  for (int64_t i = 0; i < count; ++i) {
    all.least = std::min(all.least, in[i]);
    all.most = std::max(all.most, in[i]);
  }
}

struct Reader {
  const Stage &stage;
  const Manifest &manifest;
  const Table *tables;

  const char *name(int32_t argument) const {
    return manifest.arguments[argument].name.c_str();
  }

  /// Reads an indptr: at least one entry, not negative, not falling.
  fi_status readIndptr(int32_t argument, Buffer<int64_t> &out) const {
    const Table &table = tables[argument];
    int64_t count = table.shape[0];
    if (count < 1)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected one entry more than there are "
                  "requests, but got an empty array",
                  stage.name.c_str(), name(argument));
    out.resize(count);
    readIntegers(table, 0, count, out.data());
    if (out[0] < 0)
      return fail(FI_INVALID_BATCH,
                  "%s: operand '%s': expected a first entry of at least 0, but "
                  "got %s[0] = %" PRId64,
                  stage.name.c_str(), name(argument), name(argument), out[0]);
    for (int64_t i = 1; i < count; ++i)
      if (out[i] < out[i - 1])
        return fail(FI_INVALID_BATCH,
                    "%s: operand '%s': expected a non-decreasing array, but "
                    "got %s[%" PRId64 "] = %" PRId64 " after %" PRId64
                    "; give prefix sums of the lengths",
                    stage.name.c_str(), name(argument), name(argument), i,
                    out[i], out[i - 1]);
    return FI_OK;
  }

  /// A table with an entry for each request; surplus ones are legal.
  fi_status checkRequests(int32_t argument, int64_t got, int64_t requests,
                          const char *other) const {
    if (got >= requests)
      return FI_OK;
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected entries for the %" PRId64
                " requests of '%s', but got %" PRId64,
                stage.name.c_str(), name(argument), requests, other, got);
  }

  fi_status tooLong(int32_t argument, int64_t request) const {
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected at most 2^40 keys for a request, "
                "but request %" PRId64 " has more",
                stage.name.c_str(), name(argument), request);
  }

  fi_status pageOutside(int32_t argument, int64_t index, int64_t value,
                        int64_t request) const {
    std::string below = value < 0 ? "" : " below " + std::to_string(maxPages);
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected page indices from 0%s, but got "
                "%s[%" PRId64 "] = %" PRId64 " (request %" PRId64 ")",
                stage.name.c_str(), name(argument), below.c_str(),
                name(argument), index, value, request);
  }

  fi_status readPaged(ViewLengths &v) const {
    const View &view = stage.view;
    // tableBegin holds the indptr while the lengths are made of it.
    FI_TRY(readIndptr(view.indptr, v.tableBegin));
    v.requests = int64_t(v.tableBegin.size()) - 1;
    const Table &last = tables[view.last];
    FI_TRY(
        checkRequests(view.last, last.shape[0], v.requests, name(view.indptr)));
    int64_t first = v.tableBegin[0], end = v.tableBegin[v.requests];
    v.keys.resize(v.requests);
    readIntegers(last, 0, v.requests, v.keys.data());
    for (int64_t r = 0; r < v.requests; ++r) {
      int64_t count = v.tableBegin[r + 1] - v.tableBegin[r];
      if (count == 0) {
        v.keys[r] = 0;
        continue;
      }
      if (v.keys[r] < 1 || v.keys[r] > v.page)
        return fail(FI_INVALID_BATCH,
                    "%s: operand '%s': expected 1 to %" PRId64
                    " (the page size) for a request with pages, but got "
                    "%s[%" PRId64 "] = %" PRId64,
                    stage.name.c_str(), name(view.last), v.page,
                    name(view.last), r, v.keys[r]);
      if (count > maxKeys / v.page)
        return tooLong(view.indptr, r);
      v.keys[r] += (count - 1) * v.page;
    }
    for (int32_t argument : {view.pages, view.valuePages}) {
      if (argument == none)
        continue;
      const Table &pages = tables[argument];
      if (pages.shape[0] < end)
        return fail(FI_INVALID_BATCH,
                    "%s: operand '%s': expected at least the %" PRId64
                    " entries that '%s' ends at, but got %" PRId64,
                    stage.name.c_str(), name(argument), end, name(view.indptr),
                    pages.shape[0]);
      Extremes extremes;
      scan(pages, first, end - first, extremes);
      if (extremes.areOutside())
        for (int64_t r = 0; r < v.requests; ++r)
          for (int64_t i = v.tableBegin[r]; i < v.tableBegin[r + 1]; ++i)
            if (isOutside(pages.at(i)))
              return pageOutside(argument, i, pages.at(i), r);
      v.maxValuePage = end > first ? extremes.most : -1;
      if (argument == view.pages)
        v.maxPage = v.maxValuePage;
    }
    v.tableEnd = end;
    return FI_OK;
  }

  /// The pages of one row of a dense table.
  fi_status scanRow(int32_t argument, int64_t request, int64_t used,
                    Extremes &extremes) const {
    const Table &table = tables[argument];
    int64_t row = request * table.strides[0];
    scan(table, row, used, extremes);
    if (used && extremes.areOutside())
      for (int64_t i = 0; i < used; ++i)
        if (isOutside(table.at(row + i)))
          return pageOutside(argument, i, table.at(row + i), request);
    return FI_OK;
  }

  fi_status readDense(ViewLengths &v) const {
    const View &view = stage.view;
    const Table &lengths = tables[view.lengths], &pages = tables[view.pages];
    bool hasTwo = view.valuePages != none;
    const Table &valuePages = hasTwo ? tables[view.valuePages] : pages;
    v.requests = pages.shape[0];
    FI_TRY(checkRequests(hasTwo ? view.valuePages : view.pages,
                         valuePages.shape[0], v.requests, name(view.pages)));
    int64_t width = std::min(pages.shape[1], valuePages.shape[1]);
    FI_TRY(checkRequests(view.lengths, lengths.shape[0], v.requests,
                         name(view.pages)));
    v.keys.resize(v.requests);
    v.tableBegin.resize(v.requests);
    readIntegers(lengths, 0, v.requests, v.keys.data());
    Extremes extremes, ofValues;
    for (int64_t r = 0; r < v.requests; ++r) {
      int64_t used = v.keys[r] <= 0 ? 0 : (v.keys[r] - 1) / v.page + 1;
      if (v.keys[r] < 0 || used > width)
        return fail(FI_INVALID_BATCH,
                    "%s: operand '%s': expected a number of keys that %" PRId64
                    " pages of %" PRId64 " can hold, but got %s[%" PRId64
                    "] = %" PRId64,
                    stage.name.c_str(), name(view.lengths), width, v.page,
                    name(view.lengths), r, v.keys[r]);
      if (v.keys[r] > maxKeys)
        return tooLong(view.lengths, r);
      v.tableBegin[r] = r * pages.strides[0];
      v.tableEnd = std::max(v.tableEnd, used);
      FI_TRY(scanRow(view.pages, r, used, extremes));
      if (hasTwo)
        FI_TRY(scanRow(view.valuePages, r, used, ofValues));
    }
    v.maxPage = extremes.most < 0 ? -1 : extremes.most;
    v.maxValuePage = !hasTwo             ? v.maxPage
                     : ofValues.most < 0 ? -1
                                         : ofValues.most;
    return FI_OK;
  }

  fi_status readRagged(int64_t tokens, ViewLengths &v) const {
    const View &view = stage.view;
    if (view.indptr == none) {
      if (tokens == unknownSize)
        return fail(FI_INVALID_BATCH,
                    "%s: operand '%s': its number of keys is not known when "
                    "planning, because the view has no indptr; give its shape "
                    "in run_shapes of the options",
                    stage.name.c_str(), name(view.keys));
      v.requests = 1;
      v.keys.assign(1, tokens);
      v.tableBegin.assign(1, 0);
      v.tokens = tokens;
      return FI_OK;
    }
    FI_TRY(readIndptr(view.indptr, v.tableBegin));
    v.requests = int64_t(v.tableBegin.size()) - 1;
    v.keys.resize(v.requests);
    for (int64_t r = 0; r < v.requests; ++r)
      v.keys[r] = v.tableBegin[r + 1] - v.tableBegin[r];
    v.tokens = v.tableBegin[v.requests];
    for (int64_t r = 0; v.tokens > maxKeys && r < v.requests; ++r)
      if (v.keys[r] > maxKeys)
        return tooLong(view.indptr, r);
    return FI_OK;
  }
};

} // namespace

std::array<PoolPages, 3> poolsOf(const View &view, const ViewLengths &lengths) {
  int32_t valueTable = view.valuePages != none ? view.valuePages : view.pages;
  return {{{view.keys, view.pages, lengths.maxPage},
           {view.values, valueTable, lengths.maxValuePage},
           {view.tail, view.pages, lengths.maxPage}}};
}

fi_status readBlocks(const Stage &stage, const Manifest &manifest,
                     const Table *tables, const RowLengths &rows,
                     const ViewLengths &view, BlockLists &blocks) {
  Reader reader{stage, manifest, tables};
  const View &layout = stage.view;
  auto blocksOf = [](int64_t size, int64_t block) {
    return size / block + (size % block != 0);
  };
  FI_TRY(reader.readIndptr(layout.rowIndptr, blocks.begin));
  blocks.columns = &tables[layout.columns];
  int64_t known = int64_t(blocks.begin.size()) - 1;
  if (blocks.begin[known] > blocks.columns->shape[0])
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected at least the %" PRId64
                " entries that '%s' ends at, but got %" PRId64,
                stage.name.c_str(), reader.name(layout.columns),
                blocks.begin[known], reader.name(layout.rowIndptr),
                blocks.columns->shape[0]);
  blocks.first.resize(rows.requests + 1);
  blocks.first[0] = 0;
  for (int64_t r = 0; r < rows.requests; ++r)
    blocks.first[r + 1] =
        blocks.first[r] +
        blocksOf(rows.begin[r + 1] - rows.begin[r], layout.blockRows);
  if (blocks.first[rows.requests] > known)
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': expected an entry more than the %" PRId64
                " blocks of %" PRId64 " rows, but got %" PRId64,
                stage.name.c_str(), reader.name(layout.rowIndptr),
                blocks.first[rows.requests], layout.blockRows, known + 1);
  for (int64_t r = 0; r < rows.requests; ++r) {
    int64_t end = blocksOf(view.keys[r], layout.blockColumns);
    for (int64_t b = blocks.first[r]; b < blocks.first[r + 1]; ++b) {
      int64_t least = 0;
      for (int64_t i = blocks.begin[b]; i < blocks.begin[b + 1]; ++i) {
        int64_t column = blocks.columns->at(i);
        if (column < least || column >= end)
          return fail(FI_INVALID_BATCH,
                      "%s: operand '%s': expected numbers that rise within the "
                      "%" PRId64 " blocks of keys of request %" PRId64
                      ", but got %s[%" PRId64 "] = %" PRId64,
                      stage.name.c_str(), reader.name(layout.columns), end, r,
                      reader.name(layout.columns), i, column);
        least = column + 1;
      }
    }
  }
  return FI_OK;
}

fi_status readRows(const Stage &stage, const Manifest &manifest,
                   const Table *tables, int64_t rows, RowLengths &lengths) {
  if (stage.rows == none) {
    lengths.requests = 1;
    lengths.begin.resize(2);
    lengths.begin[0] = 0;
    lengths.begin[1] = rows;
    return FI_OK;
  }
  Reader reader{stage, manifest, tables};
  FI_TRY(reader.readIndptr(stage.rows, lengths.begin));
  lengths.requests = int64_t(lengths.begin.size()) - 1;
  return FI_OK;
}

static fi_status checkPosition(const Stage &stage, const char *name,
                               int64_t index, int64_t position) {
  constexpr int64_t far = INT64_C(1) << 48;
  if (position >= -far && position <= far)
    return FI_OK;
  return fail(FI_INVALID_BATCH,
              "%s: operand '%s': expected positions within 2^48, but got "
              "%s[%" PRId64 "] = %" PRId64,
              stage.name.c_str(), name, name, index, position);
}

fi_status readView(const Stage &stage, const Manifest &manifest,
                   const Table *tables, int64_t page, int64_t tokens,
                   ViewLengths &v) {
  const View &view = stage.view;
  Reader reader{stage, manifest, tables};
  v.maxPage = v.maxValuePage = -1;
  v.tokens = v.tableEnd = 0;
  v.page = page;
  if (view.kind != ViewKind::Ragged && page == unknownSize)
    return fail(FI_INVALID_BATCH,
                "%s: operand '%s': its page size is not known when planning; "
                "give its shape in run_shapes of the options",
                stage.name.c_str(), reader.name(view.keys));
  switch (view.kind) {
  case ViewKind::Paged:
    FI_TRY(reader.readPaged(v));
    break;
  case ViewKind::Dense:
    FI_TRY(reader.readDense(v));
    break;
  case ViewKind::Ragged:
    FI_TRY(reader.readRagged(tokens, v));
    break;
  }
  for (int64_t r = 0; !stage.mask.terms.empty() && r < v.requests; ++r)
    if (v.keys[r] > maxMaskedKeys)
      return fail(FI_INVALID_BATCH,
                  "%s: expected at most %" PRId64
                  " keys in a request, for positions that its mask may have "
                  "computed in 32 bits, but got %" PRId64
                  " in request %" PRId64,
                  stage.name.c_str(), maxMaskedKeys, v.keys[r], r);
  if (view.origin == none) {
    v.origin.assign(v.requests, 0);
    return FI_OK;
  }
  FI_TRY(reader.checkRequests(view.origin, tables[view.origin].shape[0],
                              v.requests,
                              reader.name(view.indptr != none  ? view.indptr
                                          : view.pages != none ? view.pages
                                                               : view.keys)));
  v.origin.resize(v.requests);
  readIntegers(tables[view.origin], 0, v.requests, v.origin.data());
  for (int64_t r = 0; r < v.requests; ++r)
    FI_TRY(checkPosition(stage, reader.name(view.origin), r, v.origin[r]));
  return FI_OK;
}

fi_status checkPositions(const Stage &stage, const Manifest &manifest,
                         const Table *tables, int64_t rows) {
  const Table &table = tables[stage.positions];
  constexpr int64_t atOnce = 512;
  int64_t positions[atOnce];
  for (int64_t first = 0; first < rows; first += atOnce) {
    int64_t count = rows - first < atOnce ? rows - first : atOnce;
    readIntegers(table, first, count, positions);
    for (int64_t i = 0; i < count; ++i)
      FI_TRY(checkPosition(stage,
                           manifest.arguments[stage.positions].name.c_str(),
                           first + i, positions[i]));
  }
  return FI_OK;
}

} // namespace fi::runtime
