//===- ChannelTest.cpp - channels in the level 2 interpreter --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of the placed form that use their channels well, and each way in
// which one may not.
//
//===----------------------------------------------------------------------===//

#include "TileTesting.h"

using namespace fi;
using namespace fi::tile;
using testing::HasSubstr;

namespace {

class ChannelTest : public TileTest {
protected:
  void SetUp() override {
    x = HostTensor(DType::F32, {48, 1, 8});
    fillNormal(x, 3);
    o = filled({8, 1, 8}, -1);
    fi_item &item = work.add();
    item.row_count = 8;
    item.q_len = 8;
    item.kv_len = 40;
    work.addRanges({{0, 32}}, {{32, 40}});
  }

  /// A kernel of one channel of `depth` buffers with these operations for each
  /// item; copies are of 8 keys of 8 elements.
  std::string runItems(const std::string &operations, int64_t depth = 2) {
    std::string text = R"(
#smem = #fi_tile.smem<pitch = 48>
!kv = !fi.ragged_kv<1x8xf32>
!m = memref<?x1x8xf32>
!buf = !fi_tile.buf<8x8xf32, #smem>
!chan = !fi_tile.chan<8x8xf32, #smem, depth = )" +
                       std::to_string(depth) + R"(>
fi_tile.kernel @k(%x: !m, %o: !m, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %zero = arith.constant 0 : index
  %eight = arith.constant 8 : index
  %no = arith.constant false
  %sum0 = arith.constant dense<0.0> : tensor<8x8xf32>
  %kv = fi_tile.view %x, %x : !m, !m -> !kv
  fi_tile.for_items %it in %w {
)" + operations + "\n  }\n  fi_tile.return\n}\n";
    if (!parse(text))
      return "does not parse: " + text;
    return run("k", {x, o}, work);
  }

  static std::string copy(const std::string &name, const std::string &key) {
    return "    %" + name + " = fi_tile.acquire %c : !chan\n" +
           "    fi_tile.copy_kv keys %kv[%it, " + key + "] to %" + name +
           " : !kv, !buf\n    fi_tile.commit %c : !chan\n";
  }

  HostTensor x, o;
  TestWork work;
};

constexpr const char *kGet = "    %b = fi_tile.get %c : !chan\n";
constexpr const char *kRead =
    "    %t = fi_tile.read %b : !buf -> tensor<8x8xf32>\n";
constexpr const char *kRelease = "    fi_tile.release %c : !chan\n";
constexpr const char *kStore =
    "    fi_tile.store_rows %t, %o[%it] group 1 : tensor<8x8xf32>, !m\n";

// Buffers come in the order in which they were acquired.
TEST_F(ChannelTest, Order) {
  ASSERT_EQ(runItems(copy("f", "%eight") + copy("g", "%zero") + kGet + kRead +
                     kRelease + kStore + "    %d = fi_tile.get %c : !chan\n" +
                     kRelease),
            "");
  for (int64_t r = 0; r < 8; ++r)
    for (int64_t d = 0; d < 8; ++d)
      ASSERT_EQ(o.getFloat({r, 0, d}), x.getFloat({8 + r, 0, d}));
}

// Rows past an item's last repeat it; a relayout changes nothing.
TEST_F(ChannelTest, Rows) {
  work.items[0].row_begin = 2;
  work.items[0].row_count = 3;
  ASSERT_EQ(runItems("    %f = fi_tile.acquire %c : !chan\n"
                     "    fi_tile.copy_rows %x[%it] to %f group 1 : !m, !buf\n"
                     "    fi_tile.commit %c : !chan\n" +
                     std::string(kGet) + kRead + kRelease +
                     "    %u = fi_tile.relayout %t : tensor<8x8xf32> -> "
                     "tensor<8x8xf32>\n"
                     "    fi_tile.store_rows %u, %o[%it] group 1 : "
                     "tensor<8x8xf32>, !m\n"),
            "");
  for (int64_t r = 0; r < 8; ++r)
    ASSERT_EQ(o.getFloat({r, 0, 5}),
              r >= 2 && r < 5 ? x.getFloat({r, 0, 5}) : -1);
}

// A cursor goes through full ranges into partial ones, and stays at the end.
TEST_F(ChannelTest, Cursors) {
  std::string text = "    %c0 = fi_tile.cursor %it step 8\n";
  std::string last = "%c0";
  for (int i = 1; i <= 6; ++i) {
    text += "    %c" + std::to_string(i) + " = fi_tile.advance " + last +
            " step 8\n";
    last = "%c" + std::to_string(i);
  }
  // Tile 4 is the partial one; 5 and 6 are past it.
  auto place = [&](const std::string &at) {
    return text + "    %key, %valid = fi_tile.cursor_key %c" + at +
           "\n    %f = fi_tile.acquire %c : !chan\n"
           "    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, "
           "!buf\n    fi_tile.commit %c : !chan\n" +
           kGet;
  };
  ASSERT_EQ(runItems(place("4") + kRead + kRelease + kStore), "");
  EXPECT_EQ(o.getFloat({1, 0, 2}), x.getFloat({33, 0, 2}));
  EXPECT_EQ(runItems(place("6") + kRelease), "");
  EXPECT_THAT(runItems(place("6") + kRead + kRelease),
              HasSubstr("'fi_tile.read' op reads a buffer that nothing was "
                        "copied into"));
}

TEST_F(ChannelTest, WaitsForEver) {
  EXPECT_THAT(runItems(kGet),
              HasSubstr("'fi_tile.get' op waits for ever: expected a "
                        "committed buffer to get, but there is none"));
  // Acquired is not committed.
  EXPECT_THAT(
      runItems("    %f = fi_tile.acquire %c : !chan\n" + std::string(kGet)),
      HasSubstr("'fi_tile.get' op waits for ever"));
  EXPECT_THAT(
      runItems(copy("f", "%zero") + copy("g", "%zero") + copy("h", "%zero")),
      HasSubstr("'fi_tile.acquire' op waits for ever: expected a free "
                "buffer, but all 2 of the channel are in use"));
  // The fifth tile of a ring that nothing is released from.
  EXPECT_THAT(runItems("    fi_tile.for_keys %t in %it all step 8 {\n" +
                           copy("f", "%t") + kGet + "      fi_tile.yield\n }",
                       4),
              HasSubstr("but all 4 of the channel are in use"));
}

TEST_F(ChannelTest, OutOfOrder) {
  EXPECT_THAT(runItems("    fi_tile.commit %c : !chan\n"),
              HasSubstr("'fi_tile.commit' op expected an acquired buffer to "
                        "commit, but there is none"));
  EXPECT_THAT(runItems(copy("f", "%zero") + kRelease),
              HasSubstr("'fi_tile.release' op expected a gotten buffer to "
                        "release, but there is none"));
  EXPECT_THAT(runItems(copy("f", "%zero") +
                       "    fi_tile.copy_kv keys %kv[%it, %zero] to %f : !kv, "
                       "!buf\n"),
              HasSubstr("'fi_tile.copy_kv' op expected an acquired buffer to "
                        "copy into, but it is committed and not gotten"));
  EXPECT_THAT(runItems(copy("f", "%zero") + kGet + kRelease +
                       "    fi_tile.copy_rows %x[%it] to %b group 1 : !m, "
                       "!buf\n"),
              HasSubstr("'fi_tile.copy_rows' op expected an acquired buffer to "
                        "copy into, but it is released"));
}

TEST_F(ChannelTest, ReadsOutOfTurn) {
  auto read = [](const std::string &name) {
    return "    %t = fi_tile.read %" + name + " : !buf -> tensor<8x8xf32>\n";
  };
  EXPECT_THAT(runItems("    %f = fi_tile.acquire %c : !chan\n" + read("f")),
              HasSubstr("'fi_tile.read' op expected a gotten buffer to read, "
                        "but it is acquired and not committed"));
  EXPECT_THAT(runItems(copy("f", "%zero") + read("f")),
              HasSubstr("but it is committed and not gotten"));
  EXPECT_THAT(runItems(copy("f", "%zero") + kGet + kRelease + read("b")),
              HasSubstr("but it is released"));
  // Products are readers, too; and a released buffer stays released when its
  // place is in use again.
  EXPECT_THAT(
      runItems(copy("f", "%zero") + kGet + kRelease + copy("g", "%eight") +
                   "    %d = fi_tile.get %c : !chan\n"
                   "    %t = fi_tile.dot %d, %b transpose : !buf, !buf -> "
                   "tensor<8x8xf32>\n",
               1),
      HasSubstr("'fi_tile.dot' op expected a gotten buffer to read, but it is "
                "released"));
  EXPECT_THAT(
      runItems("    %f = fi_tile.acquire %c : !chan\n"
               "    fi_tile.copy_kv keys %kv[%it, %zero] to %f if %no : !kv, "
               "!buf\n    fi_tile.commit %c : !chan\n" +
               std::string(kGet) + kRead + kRelease),
      HasSubstr("'fi_tile.read' op reads a buffer that nothing was copied "
                "into"));
}

TEST_F(ChannelTest, LeftOver) {
  EXPECT_THAT(runItems(copy("f", "%zero") + kGet),
              HasSubstr("'fi_tile.channel' op expected every gotten buffer to "
                        "be released before the item ends, but 1 are not"));
  EXPECT_THAT(runItems(copy("f", "%zero")),
              HasSubstr("'fi_tile.channel' op expected what is copied to be "
                        "gotten before the item ends, but a buffer is "
                        "committed and not gotten"));
  // Copies of nothing may be left, as those past the last tile are.
  EXPECT_EQ(runItems("    %f = fi_tile.acquire %c : !chan\n"
                     "    fi_tile.copy_kv keys %kv[%it, %zero] to %f if %no : "
                     "!kv, !buf\n    fi_tile.commit %c : !chan\n"),
            "");
}

// What a copy reads is checked as a load's is.
TEST_F(ChannelTest, CopiesOutOfRange) {
  work.items[0].table_begin = 40;
  EXPECT_THAT(runItems(copy("f", "%eight") + kGet + kRelease),
              HasSubstr("'fi_tile.copy_kv' op expected index of dimension 0 of "
                        "the pool for key 8 to be below 48, but got 48"));
}

} // namespace
