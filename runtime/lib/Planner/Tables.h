//===- Tables.h - Plan arguments, checked ----------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan arguments of one batch: checked against the manifest, read as
// integers, and turned into lengths per request for each view. No page index
// or length of the caller is used before it has passed here.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PLANNER_TABLES_H
#define FI_RUNTIME_PLANNER_TABLES_H

#include "../Package/Manifest.h"
#include "../Support/Buffer.h"

#include <array>

namespace fi::runtime {

/// A plan argument as the planner and the kernels read it.
struct Table {
  const void *data = nullptr;
  int32_t dtype = FI_I32;
  int32_t rank = 0;
  int64_t shape[maxRank] = {};
  int64_t strides[maxRank] = {};
  int64_t scalar = 0;  // scalars: the parameter slot
  int64_t integer = 0; // integer scalars

  int64_t at(int64_t offset) const {
    switch (dtype) {
    case FI_I32:
      return static_cast<const int32_t *>(data)[offset];
    case FI_I8:
      return static_cast<const int8_t *>(data)[offset];
    case FI_I1:
      return static_cast<const uint8_t *>(data)[offset] != 0;
    default:
      return static_cast<const int64_t *>(data)[offset];
    }
  }
};

/// Checks one tensor against what the manifest says of it; `owner` and `name`
/// are for the message. `status` is FI_INVALID_BATCH or FI_INVALID_RUN.
fi_status checkTensor(fi_status status, const char *owner, const char *name,
                      const fi_tensor &tensor, int32_t dtype,
                      const int64_t *shape, int32_t rank, bool written);

/// Checks a scalar and gives its parameter slot.
fi_status checkScalar(fi_status status, const char *owner, const char *name,
                      const fi_value &value, int32_t dtype, int64_t &slot);

/// Strides of a tensor, with those of a contiguous one where they are NULL.
void fillStrides(const fi_tensor &tensor, int64_t *strides);

/// The lengths of a view's requests.
struct ViewLengths {
  int64_t requests = 0;
  Buffer<int64_t> keys;       // per request
  Buffer<int64_t> origin;     // per request: position of key 0
  Buffer<int64_t> tableBegin; // per request: see fi_item
  int64_t maxPage = -1;       // largest page that is referenced
  int64_t maxValuePage = -1;  // the same of values
  int64_t tokens = 0;         // ragged: rows of the pool that are needed
  int64_t page = unknownSize;
  int64_t tableEnd = 0; // paged: entries of the table that are needed;
                        // dense: entries of a row
};

/// The query (or new) rows of a stage's requests.
struct RowLengths {
  int64_t requests = 0;
  Buffer<int64_t> begin; // [requests + 1]
};

/// The pools of a view, with the page table and the largest page of each.
struct PoolPages {
  int32_t pool, table;
  int64_t maxPage;
};
std::array<PoolPages, 3> poolsOf(const View &view, const ViewLengths &lengths);

/// The lists of the blocks of rows of a stage's requests.
struct BlockLists {
  Buffer<int64_t> first; // per request: its first block of rows; the number
  Buffer<int64_t> begin; // per block of rows, and the end
  const Table *columns = nullptr;
};

/// Reads and checks the lists of a block-sparse view.
fi_status readBlocks(const Stage &stage, const Manifest &manifest,
                     const Table *tables, const RowLengths &rows,
                     const ViewLengths &view, BlockLists &blocks);

/// Reads the table `argument` of row offsets, or makes one request of `rows`.
fi_status readRows(const Stage &stage, const Manifest &manifest,
                   const Table *tables, int64_t rows, RowLengths &lengths);

/// Reads and checks a view's tables. `page` and `tokens` are what is known of
/// the pool, or unknownSize.
fi_status readView(const Stage &stage, const Manifest &manifest,
                   const Table *tables, int64_t page, int64_t tokens,
                   ViewLengths &lengths);

/// Refuses positions of rows that are too far from zero.
fi_status checkPositions(const Stage &stage, const Manifest &manifest,
                         const Table *tables, int64_t rows);

} // namespace fi::runtime

#endif // FI_RUNTIME_PLANNER_TABLES_H
