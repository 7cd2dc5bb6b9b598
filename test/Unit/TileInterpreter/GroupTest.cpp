//===- GroupTest.cpp - groups of warps in the level 2 interpreter ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels whose groups of warps take the tiles of an item in turn and share
// what they have found, and each way in which they can miss one another.
//
//===----------------------------------------------------------------------===//

#include "TileTesting.h"

using namespace fi;
using namespace fi::tile;
using testing::HasSubstr;

namespace {

class GroupTest : public TileTest {
protected:
  void SetUp() override {
    x = HostTensor(DType::F32, {64, 1, 8});
    for (int64_t r = 0; r < 64; ++r)
      for (int64_t d = 0; d < 8; ++d)
        x.setFloat({r, 0, d}, r + d / 8.0);
    o = filled({16, 1, 8}, -1);
    addItem({{0, 16}}, {{24, 56}});
  }

  void addItem(std::vector<fi_key_range> full,
               std::vector<fi_key_range> partial) {
    fi_item &item = work.add();
    item.q_begin = 8 * (work.items.size() - 1);
    item.row_count = 8;
    item.q_len = 8;
    item.kv_len = 60;
    work.addRanges(full, partial);
  }

  /// A kernel of two groups with these operations for each item; tiles are of
  /// 8 keys, and `%sum` is what a group adds up.
  std::string runItems(const std::string &operations) {
    std::string text = R"(
#g = #fi.schedule<tile_rows = 8, tile_keys = 8, warps = 1, key_warps = 2>
!kv = !fi.ragged_kv<1x8xf32>
!m = memref<?x1x8xf32>
!t = tensor<8x8xf32>
!l = tensor<8x1xf32>
!h = tensor<8x4xf32>
!two = tensor<2x8xf32>
!twol = tensor<2x1xf32>
#smem = #fi_tile.smem<pitch = 48>
!chan = !fi_tile.chan<8x8xf32, #smem, depth = 1>
fi_tile.kernel @k(%x: !m, %o: !m, %w: !fi_tile.work) schedule(#g) {
  %c = fi_tile.channel : !chan
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %two = arith.constant 2 : index
  %nothing = arith.constant dense<0.0> : !t
  %lse = arith.constant dense<0.0> : !l
  %kv = fi_tile.view %x, %x : !m, !m -> !kv
  %group = fi_tile.group
  %groups = fi_tile.groups
  %isFirst = arith.cmpi eq, %group, %zero : index
  fi_tile.for_items %it in %w {
    %sum = fi_tile.for_keys %t in %it all step 8 iter_args(%s = %nothing) -> (!t) {
      %k = fi_tile.load_kv keys %kv[%it, %t] : !kv -> !t
      %n = arith.addf %s, %k : !t
      fi_tile.yield %n : !t
    }
)" + operations + "\n  }\n  fi_tile.return\n}\n";
    if (!parse(text))
      return "does not parse: " + text;
    return run("k", {x, o}, work);
  }

  HostTensor x, o;
  TestWork work;
};

constexpr const char *kShare = "    fi_tile.share_state %sum, %lse : !t, !l\n";
constexpr const char *kLoad =
    "    %a, %la = fi_tile.load_group_state %zero part %group of 8 : !h, !l\n"
    "    %b, %lb = fi_tile.load_group_state %one part %group of 8 : !h, !l\n";
constexpr const char *kStore =
    "    %all = arith.addf %a, %b : !h\n"
    "    fi_tile.store_rows %all, %o[%it] group 1 part %group : !h, !m\n";

// Tiles of each range in turn: group 0 has keys 0, 24 and 40, group 1 8, 32 and
// 48; each stores half of the columns of the sum of both.
TEST_F(GroupTest, TakeTilesInTurn) {
  addItem({{8, 16}}, {});
  ASSERT_EQ(runItems(kShare + std::string(kLoad) + kStore), "");
  auto sum = [&](std::vector<int64_t> tiles, int64_t r, int64_t d) {
    double result = 0;
    for (int64_t first : tiles)
      result += x.getFloat({first + r, 0, d});
    return result;
  };
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t d = 0; d < 8; ++d) {
      EXPECT_EQ(o.getFloat({r, 0, d}), sum({0, 8, 24, 32, 40, 48}, r, d));
      EXPECT_EQ(o.getFloat({8 + r, 0, d}), sum({8}, r, d));
    }
  // What one group alone has found.
  ASSERT_EQ(runItems(kShare + std::string(kLoad) +
                     "    fi_tile.store_rows %b, %o[%it] group 1 part %group : "
                     "!h, !m\n"),
            "");
  EXPECT_EQ(o.getFloat({3, 0, 5}), sum({8, 32, 48}, 3, 5));
  EXPECT_EQ(o.getFloat({11, 0, 5}), 0);
}

// Each group takes some rows of all columns; an item without its first rows
// says where they are stored.
TEST_F(GroupTest, ShareRows) {
  addItem({{8, 16}}, {});
  work.items[1].row_count = 3;
  const std::string rows = R"(
    %begin = arith.muli %group, %two : index
    %four = arith.constant 4 : index
    %count = fi_tile.item %it[row_count]
    scf.for %r = %begin to %count step %four {
      %rest = fi_tile.from_row %it[%r]
      %a, %la = fi_tile.load_group_state %zero part %zero of 8 from %r : !two, !twol
      %b, %lb = fi_tile.load_group_state %one part %zero of 8 from %r : !two, !twol
      %all = arith.addf %a, %b : !two
      fi_tile.store_rows %all, %o[%rest] group 1 : !two, !m
    }
)";
  ASSERT_EQ(runItems(kShare + rows), "");
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t d = 0; d < 8; ++d) {
      double sum = 0;
      for (int64_t first : {0, 8, 24, 32, 40, 48})
        sum += x.getFloat({first + r, 0, d});
      EXPECT_EQ(o.getFloat({r, 0, d}), sum);
      // Rows that the second item does not have are not stored.
      EXPECT_EQ(o.getFloat({8 + r, 0, d}),
                r < 3 ? x.getFloat({8 + r, 0, d}) : -1);
    }
  EXPECT_THAT(runItems(kShare + std::string("    %e = fi_tile.item "
                                            "%it[row_count]\n"
                                            "    %r = fi_tile.from_row "
                                            "%it[%e]\n")),
              HasSubstr("'fi_tile.from_row' op expected a row of the item's 8, "
                        "but got 8"));
  EXPECT_THAT(
      runItems(kShare + std::string("    %e = arith.constant 8 : index\n"
                                    "    %a, %la = fi_tile.load_group_state "
                                    "%zero part %zero of 8 from %e : !two, "
                                    "!twol\n")),
      HasSubstr("'fi_tile.load_group_state' op expected a row of 8, but got "
                "8"));
}

// A cursor visits the tiles of its group, and channels are the group's own.
TEST_F(GroupTest, CursorsAndChannels) {
  std::string text = R"(
    %c0 = fi_tile.cursor %it step 8
    %c1 = fi_tile.advance %c0 step 8
    %c2 = fi_tile.advance %c1 step 8
    %key, %valid = fi_tile.cursor_key %c2
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !fi_tile.buf<8x8xf32, #smem>
    fi_tile.commit %c : !chan
    %g = fi_tile.get %c : !chan
    %mine = fi_tile.read %g : !fi_tile.buf<8x8xf32, #smem> -> !t
    fi_tile.release %c : !chan
    fi_tile.share_state %mine, %lse : !t, !l
)";
  ASSERT_EQ(runItems(text + kLoad + kStore), "");
  EXPECT_EQ(o.getFloat({2, 0, 6}),
            x.getFloat({40 + 2, 0, 6}) + x.getFloat({48 + 2, 0, 6}));
}

TEST_F(GroupTest, MissOneAnother) {
  // One group alone shares: the other is at the end of the item.
  EXPECT_THAT(
      runItems("    scf.if %isFirst {\n" + std::string(kShare) + "    }\n"),
      HasSubstr(
          "'fi_tile.share_state' op waits for ever: expected all 2 groups "
          "of warps, but group 1 is at 'fi_tile.yield'"));
  // At different places.
  EXPECT_THAT(runItems("    scf.if %isFirst {\n" + std::string(kShare) +
                       "    } else {\n" + kShare + "    }\n"),
              HasSubstr("'fi_tile.share_state' op waits for ever: expected all "
                        "2 groups of warps, but group 1 is at "
                        "'fi_tile.share_state'"));
  // Ranges of an odd number of tiles leave one group with fewer.
  work.ranges[1].end = 48;
  EXPECT_THAT(runItems("    fi_tile.for_keys %t in %it all step 8 {\n" +
                       std::string(kShare) + "      fi_tile.yield\n    }\n"),
              HasSubstr("'fi_tile.share_state' op waits for ever"));
}

TEST_F(GroupTest, LoadsOfWhatIsNotThere) {
  EXPECT_THAT(runItems(kLoad + std::string(kStore)),
              HasSubstr("'fi_tile.load_group_state' op expected a state that "
                        "group 0 has shared in this item, but there is none"));
  // What was shared in the item before is gone.
  addItem({{8, 16}}, {});
  EXPECT_THAT(
      runItems("    %begin = fi_tile.item %it[q_begin]\n"
               "    %is = arith.cmpi eq, %begin, %zero : index\n"
               "    scf.if %is {\n" +
               std::string(kShare) + "    }\n" + kLoad + kStore),
      HasSubstr("expected a state that group 0 has shared in this item, "
                "but there is none"));
  EXPECT_THAT(
      runItems(kShare +
               std::string("    %a, %la = fi_tile.load_group_state %two part "
                           "%zero of 8 : !h, !l\n")),
      HasSubstr("'fi_tile.load_group_state' op expected a group of warps below "
                "2, but got 2"));
  EXPECT_THAT(
      runItems(kShare +
               std::string("    %a, %la = fi_tile.load_group_state %one part "
                           "%two of 8 : !h, !l\n")),
      HasSubstr("'fi_tile.load_group_state' op expected a part of 4 of the 8 "
                "columns, but got part 2"));
  EXPECT_THAT(
      runItems(kShare +
               std::string("    %a, %la = fi_tile.load_group_state %one part "
                           "%one of 16 : !t, !l\n")),
      HasSubstr("'fi_tile.load_group_state' op expected a state of 8 x 16, but "
                "group 1 has shared 8 rows of 64 elements in all"));
}

// A part is one group's.
TEST_F(GroupTest, PartsOutOfRange) {
  EXPECT_THAT(runItems(kShare + std::string(kLoad) +
                       "    fi_tile.store_rows %a, %o[%it] group 1 part %two : "
                       "!h, !m\n"),
              HasSubstr("'fi_tile.store_rows' op expected part of 4 columns to "
                        "be below 2, but got 2"));
}

// Groups store a state in parts; whoever loads it whole gets all of them.
TEST_F(GroupTest, StatesInParts) {
  work.items[0].slot = 1;
  work.addSlots(3, 8, 8);
  std::string text =
      kShare + std::string(kLoad) +
      "    fi_tile.store_state %b, %lb to %w[%it] part %group : !h, !l\n"
      "    %p, %lp = fi_tile.load_state %w[%it, %zero] part %group : !h, !l\n"
      "    fi_tile.store_rows %p, %o[%it] group 1 part %group : !h, !m\n";
  ASSERT_EQ(runItems(text), "");
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t d = 0; d < 8; ++d) {
      double expected = 0;
      for (int64_t first : {8, 32, 48})
        expected += x.getFloat({first + r, 0, d});
      EXPECT_EQ(o.getFloat({r, 0, d}), expected);
      EXPECT_EQ(work.outputs[(8 + r) * 8 + d], expected);
    }
  EXPECT_EQ(work.statistics[8 + 3], 0);
}

} // namespace
