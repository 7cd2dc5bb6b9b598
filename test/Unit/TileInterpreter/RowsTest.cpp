//===- RowsTest.cpp - packed rows, captures, states and appends -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileTesting.h"

using namespace fi;
using namespace fi::tile;

namespace {

class RowsTest : public TileTest {};

/// Element (row, head, column) of test data.
double mark(int64_t row, int64_t head, int64_t column) {
  return row * 100 + head * 10 + column;
}

TEST_F(RowsTest, CopyUnpacksTheGroup) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @copy(%q: memref<?x6x4xf32>, %o: memref<?x6x4xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %q[%it] group 3 : memref<?x6x4xf32> -> tensor<8x4xf32>
    fi_tile.store_rows %t, %o[%it] group 3 : tensor<8x4xf32>, memref<?x6x4xf32>
  }
  fi_tile.return
})"));
  // A request of 4 tokens that begins at row 2; 12 packed rows for KV head 1
  // are two tiles, the second of 4 rows.
  HostTensor q = filled({8, 6, 4}, 0), o = filled({8, 6, 4}, -1);
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t h = 0; h < 6; ++h)
      for (int64_t c = 0; c < 4; ++c)
        q.setFloat({r, h, c}, mark(r, h, c));
  TestWork work;
  for (int32_t tile : {0, 1}) {
    fi_item &item = work.add();
    item.kv_head = 1;
    item.row_begin = tile * 8;
    item.row_count = tile ? 4 : 8;
    item.q_begin = 2;
    item.q_len = 4;
  }
  ASSERT_EQ(run("copy", {q, o}, work), "");
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t h = 0; h < 6; ++h)
      for (int64_t c = 0; c < 4; ++c)
        EXPECT_EQ(o.getFloat({r, h, c}),
                  r >= 2 && r < 6 && h >= 3 ? mark(r, h, c) : -1)
            << r << ' ' << h << ' ' << c;
}

TEST_F(RowsTest, RowsBeyondTheCountRepeatTheLast) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @repeat(%q: memref<?x1x4xbf16>, %o: memref<?x1x4xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %q[%it] group 1 : memref<?x1x4xbf16> -> tensor<8x4xf32>
    %sum = fi_tile.reduce add %t : tensor<8x4xf32> -> tensor<8x1xf32>
    %all = arith.constant dense<1.0> : tensor<1x8xf32>
    %total = fi_tile.dot %all, %t : tensor<1x8xf32>, tensor<8x4xf32> -> tensor<1x4xf32>
    %b = fi_tile.broadcast %total : tensor<1x4xf32> -> tensor<8x4xf32>
    fi_tile.store_rows %b, %o[%it] group 1 : tensor<8x4xf32>, memref<?x1x4xf32>
  }
  fi_tile.return
})"));
  HostTensor q = filled({5, 1, 4}, 0, DType::BF16), o = filled({5, 1, 4}, -1);
  for (int64_t r = 0; r < 5; ++r)
    q.setFloat({r, 0, 0}, r < 3 ? 1 << r : NAN);
  TestWork work;
  fi_item &item = work.add();
  item.row_count = 3;
  item.q_len = 3;
  ASSERT_EQ(run("repeat", {q, o}, work), "");
  // 1 + 2 + 4, and five times the last; never the rows of another request.
  EXPECT_EQ(o.getFloat({0, 0, 0}), 7 + 5 * 4);
  EXPECT_EQ(o.getFloat({2, 0, 0}), 27);
  EXPECT_EQ(o.getFloat({3, 0, 0}), -1);
}

TEST_F(RowsTest, StoresRoundToTheElementType) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @round(%o: memref<?x1xbf16>, %p: memref<?x1xf32>, %w: !fi_tile.work) schedule(#s) {
  %third = arith.constant dense<0.33333333> : tensor<8x1xf32>
  %b = arith.truncf %third : tensor<8x1xf32> to tensor<8x1xbf16>
  %back = arith.extf %b : tensor<8x1xbf16> to tensor<8x1xf32>
  fi_tile.for_items %it in %w {
    fi_tile.store_rows %b, %o[%it] group 1 : tensor<8x1xbf16>, memref<?x1xbf16>
    fi_tile.store_rows %back, %p[%it] group 1 : tensor<8x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
})"));
  HostTensor o = filled({1, 1}, 0, DType::BF16), p = filled({1, 1}, 0);
  TestWork work;
  work.add();
  ASSERT_EQ(run("round", {o, p}, work), "");
  EXPECT_EQ(o.getFloat({0, 0}), 0.333984375);
  EXPECT_EQ(p.getFloat({0, 0}), 0.333984375);
}

TEST_F(RowsTest, GatherReadsZeroOutOfRange) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @gather(%x: memref<?x?xi32>, %o: memref<?x1x16xi32>, %s: memref<?x1xi32>,
                       %i: index, %j: index, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %kp = fi_tile.iota %j : tensor<1x16xindex>
    %t = fi_tile.gather %x[%i, %kp] : memref<?x?xi32>, index, tensor<1x16xindex> -> tensor<1x16xi32>
    %b = fi_tile.broadcast %t : tensor<1x16xi32> -> tensor<8x16xi32>
    fi_tile.store_rows %b, %o[%it] group 1 : tensor<8x16xi32>, memref<?x1x16xi32>
    %one = fi_tile.gather %x[%i, %j] : memref<?x?xi32>, index, index -> i32
    %splat = tensor.splat %one : tensor<8x1xi32>
    fi_tile.store_rows %splat, %s[%it] group 1 : tensor<8x1xi32>, memref<?x1xi32>
  }
  fi_tile.return
})"));
  HostTensor x(DType::I32, {3, 10});
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 10; ++j)
      x.setInteger({i, j}, 1000 + i * 10 + j);
  for (int64_t i : {-1, 0, 2, 3})
    for (int64_t j : {-20, -3, 0, 4, 9, 10}) {
      HostTensor o = filled({1, 1, 16}, -1, DType::I32);
      HostTensor s = filled({1, 1}, -1, DType::I32);
      TestWork work;
      work.add();
      ASSERT_EQ(run("gather", {x, o, s, i, j}, work), "");
      for (int64_t c = 0; c < 16; ++c) {
        bool inside = i >= 0 && i < 3 && j + c >= 0 && j + c < 10;
        EXPECT_EQ(o.getInteger({0, 0, c}), inside ? 1000 + i * 10 + j + c : 0);
      }
      EXPECT_EQ(s.getInteger({0, 0}), o.getInteger({0, 0, 0}));
    }
}

TEST_F(RowsTest, AppendWritesTheValidRowsOnly) {
  ASSERT_TRUE(parse(R"(
!kv = !fi.paged_kv<4x2x8xf16, NHD>
fi_tile.kernel @append(%n: memref<?x2x8xf16>, %k: memref<?x4x2x8xf16>, %v: memref<?x4x2x8xf16>,
                       %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#s) {
  %kv = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x4x2x8xf16>, memref<?x4x2x8xf16> -> !kv
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %n[%it] group 1 : memref<?x2x8xf16> -> tensor<8x8xf16>
    %len = fi_tile.item %it[kv_len]
    %new = fi_tile.item %it[q_len]
    %row = fi_tile.item %it[row_begin]
    %a = arith.subi %len, %new : index
    %key = arith.addi %a, %row : index
    fi_tile.store_kv values %t, %kv[%it, %key] : tensor<8x8xf16>, !kv
  }
  fi_tile.return
})"));
  HostTensor n = filled({10, 2, 8}, 0, DType::F16);
  HostTensor k = filled({5, 4, 2, 8}, -1, DType::F16);
  HostTensor v = filled({5, 4, 2, 8}, -1, DType::F16);
  for (int64_t r = 0; r < 10; ++r)
    n.setFloat({r, 1, 7}, 500 + r);
  // Rows 3 to 7 become keys 6 to 10 of 11, on pages 4, 0, 2.
  TestWork work;
  fi_item &item = work.add();
  item.kv_head = 1;
  item.row_count = 5;
  item.q_begin = 3;
  item.q_len = 5;
  item.kv_len = 11;
  item.table_begin = 1;
  ASSERT_EQ(run("append", {n, k, v, integers({9, 4, 0, 2})}, work), "");
  int64_t pages[] = {4, 0, 2};
  for (int64_t p = 0; p < 3; ++p)
    for (int64_t slot = 0; slot < 4; ++slot) {
      int64_t key = p * 4 + slot;
      EXPECT_EQ(v.getFloat({pages[p], slot, 1, 7}),
                key >= 6 && key < 11 ? 500 + 3 + key - 6 : -1);
      EXPECT_EQ(v.getFloat({pages[p], slot, 0, 7}), -1);
      EXPECT_EQ(k.getFloat({pages[p], slot, 1, 7}), -1);
    }
}

TEST_F(RowsTest, OnlyTheGivenItemsRun) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @count(%o: memref<?x1xf32>, %w: !fi_tile.work) schedule(#s) {
  %one = arith.constant dense<1.0> : tensor<8x1xf32>
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %o[%it] group 1 : memref<?x1xf32> -> tensor<8x1xf32>
    %u = arith.addf %t, %one : tensor<8x1xf32>
    fi_tile.store_rows %u, %o[%it] group 1 : tensor<8x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
})"));
  HostTensor o = filled({6, 1}, 0);
  TestWork work;
  for (int64_t i = 0; i < 6; ++i)
    work.add().q_begin = i;
  for (auto [begin, end] : {std::pair(1, 1), std::pair(2, 4)})
    ASSERT_FALSE(interpretKernel(kernel("count"), {o}, work.get(), begin, end));
  for (int64_t i = 0; i < 6; ++i)
    EXPECT_EQ(o.getFloat({i, 0}), i == 2 || i == 3) << i;
}

TEST_F(RowsTest, ScfLoopsAndBranches) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @loops(%o: memref<?x1xi64>, %n: index, %m: i8, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %five = arith.constant 5 : index
  %low = arith.constant -128 : i8
  %step8 = arith.constant 100 : i8
  fi_tile.for_items %it in %w {
    // Sum of i * i for even i below n, without 4.
    %sum = scf.for %i = %zero to %n step %two iter_args(%s = %zero) -> (index) {
      %sq = arith.muli %i, %i : index
      %is = arith.cmpi slt, %i, %five : index
      %big = arith.cmpi sgt, %i, %two : index
      %four = arith.andi %is, %big : i1
      %next = scf.if %four -> (index) {
        scf.yield %s : index
      } else {
        %t = arith.addi %s, %sq : index
        scf.yield %t : index
      }
      scf.yield %next : index
    }
    // Trips of a loop over nearly all of i8.
    %trips = scf.for %i = %low to %m step %step8 iter_args(%s = %zero) -> (index) : i8 {
      %one = arith.constant 1 : index
      %t = arith.addi %s, %one : index
      scf.yield %t : index
    }
    %thousand = arith.constant 1000 : index
    %a = arith.muli %trips, %thousand : index
    %b = arith.addi %a, %sum : index
    %c = arith.index_cast %b : index to i64
    %tile = tensor.splat %c : tensor<8x1xi64>
    %yes = arith.cmpi sge, %n, %zero : index
    scf.if %yes {
      fi_tile.store_rows %tile, %o[%it] group 1 : tensor<8x1xi64>, memref<?x1xi64>
    }
  }
  fi_tile.return
})"));
  for (int64_t n : {-3, 0, 1, 2, 3, 7, 12}) {
    HostTensor o = filled({1, 1}, -1, DType::I64);
    TestWork work;
    work.add();
    ASSERT_EQ(run("loops", {o, n, int64_t(127)}, work), "");
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i += 2)
      sum += i == 4 ? 0 : i * i;
    EXPECT_EQ(o.getInteger({0, 0}), n < 0 ? -1 : 3000 + sum) << n;
  }
}

} // namespace
