//===- ErrorTest.cpp - what the level 2 interpreter refuses ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileTesting.h"

using namespace fi;
using namespace fi::tile;
using testing::HasSubstr;

namespace {

class TileErrorTest : public TileTest {
protected:
  void SetUp() override {
    ASSERT_TRUE(parse(R"(
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi_tile.kernel @rows(%q: memref<?x2x8xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %q[%it] group 2 : memref<?x2x8xf32> -> tensor<8x8xf32>
  }
  fi_tile.return
}
fi_tile.kernel @store(%q: memref<?x2x8xf32>, %w: !fi_tile.work) schedule(#s) {
  %t = arith.constant dense<0.0> : tensor<8x8xf32>
  fi_tile.for_items %it in %w {
    fi_tile.store_rows %t, %q[%it] group 2 : tensor<8x8xf32>, memref<?x2x8xf32>
  }
  fi_tile.return
}
fi_tile.kernel @keys(%k: memref<?x4x2x8xf32>, %pages: memref<?xi32>, %first: index, %w: !fi_tile.work) schedule(#s) {
  %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : memref<?x4x2x8xf32>, memref<?x4x2x8xf32> -> !kv
  fi_tile.for_items %it in %w {
    fi_tile.for_keys %t in %it all step 16 {
      %key = arith.addi %t, %first : index
      %0 = fi_tile.load_kv keys %kv[%it, %key] : !kv -> tensor<16x8xf32>
      fi_tile.yield
    }
  }
  fi_tile.return
}
fi_tile.kernel @append(%k: memref<?x4x2x8xf32>, %pages: memref<?xi32>, %first: index, %w: !fi_tile.work) schedule(#s) {
  %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : memref<?x4x2x8xf32>, memref<?x4x2x8xf32> -> !kv
  %t = arith.constant dense<0.0> : tensor<8x8xf32>
  fi_tile.for_items %it in %w {
    fi_tile.store_kv values %t, %kv[%it, %first] : tensor<8x8xf32>, !kv
  }
  fi_tile.return
}
fi_tile.kernel @state(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<8x8xf32>
  %l = arith.constant dense<0.0> : tensor<8x1xf32>
  fi_tile.for_items %it in %w {
    fi_tile.store_state %o, %l to %w[%it] : tensor<8x8xf32>, tensor<8x1xf32>
  }
  fi_tile.return
}
fi_tile.kernel @merge(%i: index, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %o, %l = fi_tile.load_state %w[%it, %i] : tensor<8x8xf32>, tensor<8x1xf32>
  }
  fi_tile.return
}
fi_tile.kernel @steps(%n: index, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant 5 : index
  scf.for %i = %n to %c step %n {
  }
  fi_tile.return
}
fi_tile.kernel @unknown(%m: memref<4xf32>, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant 0 : index
  %0 = memref.load %m[%c] : memref<4xf32>
  fi_tile.return
}
fi_tile.kernel @wide(%x: f80, %w: !fi_tile.work) schedule(#s) {
  fi_tile.return
}
fi_tile.kernel @dynamic(%n: index, %w: !fi_tile.work) schedule(#s) {
  %x = tensor.splat %n[%n] : tensor<?x1xindex>
  fi_tile.return
}
fi_tile.kernel @narrow(%x: i8, %f: f32, %w: !fi_tile.work) schedule(#s) {
  fi_tile.return
}
)"));
    q = filled({4, 2, 8}, 0);
    k = filled({5, 4, 2, 8}, 0);
    work = {};
    item = &work.add();
    item->kv_len = 20;
  }

  std::string keys(int64_t first = 0,
                   std::vector<int64_t> pages = {0, 1, 2, 3, 4}) {
    return run("keys", {k, integers(pages), first}, work);
  }

  HostTensor q, k;
  TestWork work;
  fi_item *item;
};

TEST_F(TileErrorTest, NamesOpAndLocation) {
  item->q_begin = 4;
  EXPECT_EQ(run("rows", {q}, work),
            "kernel.mlir:6:10: 'fi_tile.load_rows' op expected row of row 0 to "
            "be below 4, but got 4");
}

TEST_F(TileErrorTest, RowsOutOfRange) {
  item->row_count = 3;
  item->q_len = 1;
  EXPECT_THAT(run("store", {q}, work),
              HasSubstr("'fi_tile.store_rows' op expected token of row 2 to be "
                        "below 1, but got 1"));
  item->q_len = 2;
  EXPECT_EQ(run("store", {q}, work), "");
  item->kv_head = 1;
  EXPECT_THAT(run("store", {q}, work),
              HasSubstr("expected head of row 0 to be below 2, but got 2"));
}

TEST_F(TileErrorTest, Items) {
  for (int32_t count : {0, 9}) {
    item->row_count = count;
    EXPECT_THAT(run("rows", {q}, work),
                HasSubstr("'fi_tile.for_items' op expected item 0 to have 1 to "
                          "8 rows, but got " +
                          std::to_string(count)));
  }
  item->row_count = 1;
  item->row_begin = -1;
  EXPECT_THAT(run("rows", {q}, work),
              HasSubstr("a row_begin of at least 0, but got -1"));
  item->row_begin = 0;
  item->kv_head = -1;
  EXPECT_THAT(run("rows", {q}, work),
              HasSubstr("a kv_head of at least 0, but got -1"));
  item->kv_head = 0;
  item->kv_len = -5;
  EXPECT_THAT(run("rows", {q}, work),
              HasSubstr("q_begin, q_len and kv_len of at least 0, but got 0, "
                        "1 and -5"));
  item->kv_len = 0;
  item->partial_ranges = -1;
  EXPECT_THAT(run("rows", {q}, work),
              HasSubstr("counts of ranges of at least 0, but got 0 full and -1 "
                        "partial ones from 0"));
}

TEST_F(TileErrorTest, Ranges) {
  work.addRanges({}, {{0, 21}});
  EXPECT_THAT(keys(), HasSubstr("'fi_tile.for_keys' op expected a range within "
                                "the 20 keys of the request, but got range 0 "
                                "with keys [0, 21)"));
  work.ranges = {{8, 20}};
  EXPECT_THAT(keys(), HasSubstr("expected a range that begins at a multiple of "
                                "16, but got range 0 with keys [8, 20)"));
  work.ranges = {{16, 0}};
  EXPECT_THAT(keys(), HasSubstr("with keys [16, 0)"));
  work.ranges.clear();
  work.addRanges({{0, 20}}, {});
  EXPECT_THAT(keys(), HasSubstr("expected a full range that begins and ends at "
                                "a multiple of 16, but got range 0"));
  work.ranges.clear();
  work.addRanges({{0, 16}}, {{16, 20}});
  EXPECT_EQ(keys(), "");
}

TEST_F(TileErrorTest, Keys) {
  work.addRanges({}, {{0, 20}});
  EXPECT_THAT(keys(-1), HasSubstr("'fi_tile.load_kv' op expected first key of "
                                  "the tile to be below 20, but got -1"));
  EXPECT_THAT(keys(20), HasSubstr("to be below 20, but got 20"));
  EXPECT_THAT(keys(0, {0, 1, 2, 3}),
              HasSubstr("expected entry of the page table to be below 4, but "
                        "got 4"));
  EXPECT_THAT(
      keys(0, {0, 1, 5, 3, 4}),
      HasSubstr("expected index of dimension 0 of the pool for key 8 to "
                "be below 5, but got 5"));
  item->kv_head = 2;
  EXPECT_THAT(keys(), HasSubstr("expected KV head to be below 2, but got 2"));
  item->kv_head = 0;
  item->row_count = 3;
  EXPECT_EQ(run("append", {k, integers({0, 1, 2, 3, 4}), int64_t(17)}, work),
            "");
  EXPECT_THAT(
      run("append", {k, integers({0, 1, 2, 3, 4}), int64_t(18)}, work),
      HasSubstr("'fi_tile.store_kv' op expected key to be below 20, but got "
                "20"));
  k = filled({5, 4, 2, 16}, 0);
  EXPECT_THAT(
      run("append", {k, integers({0}), int64_t(0)}, work),
      HasSubstr("argument 0: expected memref<?x4x2x8xf32>, but got size "
                "16 of dimension 3"));
}

TEST_F(TileErrorTest, States) {
  EXPECT_THAT(run("state", {}, work),
              HasSubstr("expected an item with a state slot, but got slot -1"));
  EXPECT_THAT(run("merge", {int64_t(0)}, work),
              HasSubstr("expected an item with state slots, but got slot -1"));
  item->slot = 0;
  EXPECT_THAT(run("state", {}, work),
              HasSubstr("expected work with states, but got none"));
  EXPECT_THAT(run("merge", {int64_t(0)}, work),
              HasSubstr("expected work with states, but got none"));
  work.addSlots(1, 8, 8);
  EXPECT_EQ(run("state", {}, work), "");
  EXPECT_THAT(
      run("merge", {int64_t(1)}, work),
      HasSubstr("'fi_tile.load_state' op expected index of the state to "
                "be below 1, but got 1"));
  EXPECT_EQ(run("merge", {int64_t(0)}, work), "");
  StateSlots slots;
  EXPECT_THAT(run("merge", {int64_t(0)}, work, &slots),
              HasSubstr("expected slot 0 to hold a state, but nothing was "
                        "stored in it"));
  work.items.push_back(work.items[0]);
  EXPECT_THAT(run("state", {}, work),
              HasSubstr("expected slot 0 to be free, but it holds a state that "
                        "was not read"));
}

TEST_F(TileErrorTest, Arguments) {
  EXPECT_THAT(run("rows", {}, work),
              HasSubstr("'fi_tile.kernel' op expected 1 arguments beside the "
                        "work, but got 0"));
  EXPECT_THAT(run("rows", {1.0}, work),
              HasSubstr("argument 0: expected memref<?x2x8xf32>, but got a "
                        "scalar"));
  EXPECT_THAT(run("rows", {filled({4, 2, 8}, 0, DType::F16)}, work),
              HasSubstr("but got a tensor of f16"));
  EXPECT_THAT(run("rows", {filled({4, 16}, 0)}, work),
              HasSubstr("but got a tensor of rank 2"));
  EXPECT_THAT(run("merge", {0.5}, work),
              HasSubstr("argument 0: expected index, but got no integer"));
  EXPECT_THAT(run("narrow", {int64_t(256), 0.0}, work),
              HasSubstr("argument 0: expected i8, but got the number 256"));
  EXPECT_THAT(run("narrow", {int64_t(255), int64_t(0)}, work),
              HasSubstr("argument 1: expected f32, but got no float"));
  EXPECT_EQ(run("narrow", {int64_t(-128), 0.0}, work), "");
  fi_work none = {};
  EXPECT_THAT(
      llvm::toString(interpretKernel(kernel("state"), {}, none, 0, 1)),
      HasSubstr("expected a range of the work's items, but got [0, 1)"));
  EXPECT_THAT(
      llvm::toString(interpretKernel(kernel("state"), {}, work.get(), 1, 0)),
      HasSubstr("but got [1, 0)"));
}

TEST_F(TileErrorTest, ProgramsThatCannotBeInterpreted) {
  EXPECT_THAT(
      run("unknown", {filled({4}, 0)}, work),
      HasSubstr("'memref.load' op cannot be interpreted; expected "
                "fi_tile, arith, math, tensor.splat, scf.for or scf.if"));
  EXPECT_THAT(
      run("wide", {1.0}, work),
      HasSubstr("'fi_tile.kernel' op expected scalars and tiles of f16, "
                "bf16, f32, f64 or integers of at most 64 bits, but "
                "got f80"));
  EXPECT_THAT(run("dynamic", {int64_t(1)}, work),
              HasSubstr("'tensor.splat' op expected scalars and tiles of f16, "
                        "bf16, f32, f64 or integers of at most 64 bits, but "
                        "got tensor<?x1xindex>"));
  EXPECT_THAT(run("steps", {int64_t(0)}, work),
              HasSubstr("'scf.for' op expected a step of at least 1, but got "
                        "0"));
  EXPECT_THAT(run("steps", {int64_t(-1)}, work), HasSubstr("but got -1"));
}

} // namespace
