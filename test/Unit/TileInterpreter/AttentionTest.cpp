//===- AttentionTest.cpp - hand-written attention kernels of level 2 ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masked attention of one request over pages, with the normaliser's ops and
// with the online softmax written out, against a naive loop; split, merged,
// with sink.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "TileTesting.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"
#include "mlir/Pass/PassManager.h"

using namespace fi;
using namespace fi::tile;

namespace {

struct Expected {
  std::vector<double> output;
  double lse; // base 2
};

/// One request in a pool that holds NaN wherever no key of it lies.
class TileAttentionTest : public TileTest {
protected:
  static constexpr int64_t kHeads = 6, kKVHeads = 2, kGroup = 3, kDim = 16,
                           kPage = 4, kRow = 2;

  void makeRequest(int64_t qLen, int64_t kvLen, int64_t origin) {
    this->qLen = qLen;
    this->kvLen = kvLen;
    this->origin = origin;
    q = HostTensor(DType::F32, {kRow + qLen + 1, kHeads, kDim});
    fillNormal(q, 1);
    int64_t pages = (kvLen + kPage - 1) / kPage;
    k = filled({pages + 3, kKVHeads, kPage, kDim}, NAN);
    v = filled({pages + 3, kKVHeads, kPage, kDim}, NAN);
    std::vector<int64_t> table = {77, 78}; // of another request
    for (int64_t p = 0; p < pages; ++p)
      table.push_back((p * 5 + 3) % (pages + 3));
    pageTable = integers(table);
    // A permutation only if 5 and the number of pages have no common divisor.
    ASSERT_NE((pages + 3) % 5, 0);
    Random random(7);
    for (int64_t key = 0; key < kvLen; ++key)
      for (int64_t h = 0; h < kKVHeads; ++h)
        for (int64_t d = 0; d < kDim; ++d) {
          k.setFloat(at(key, h, d), random.normal() * 2);
          v.setFloat(at(key, h, d), random.normal());
        }
    sinks = HostTensor(DType::F32, {q.getSize(0), kHeads});
    fillNormal(sinks, 3);
    o = filled({q.getSize(0), kHeads, kDim}, -7);
    lse = filled({q.getSize(0), kHeads}, -7);
  }

  std::vector<int64_t> at(int64_t key, int64_t head, int64_t d) {
    return {pageTable.getInteger({2 + key / kPage}), head, key % kPage, d};
  }

  Expected attend(int64_t token, int64_t head, bool sink) {
    std::vector<double> scores;
    double top = sink ? sinks.getFloat({kRow + token, head}) : -kInf;
    int64_t position = origin + kvLen - qLen + token;
    for (int64_t key = 0; key < kvLen && origin + key <= position; ++key) {
      double s = 0;
      for (int64_t d = 0; d < kDim; ++d)
        s += q.getFloat({kRow + token, head, d}) *
             k.getFloat(at(key, head / kGroup, d));
      scores.push_back(s * 0.25);
      top = std::max(top, scores.back());
    }
    Expected result = {std::vector<double>(kDim, 0.0), -kInf};
    double sum =
        sink ? std::exp(sinks.getFloat({kRow + token, head}) - top) : 0;
    for (size_t key = 0; key < scores.size(); ++key) {
      double weight = std::exp(scores[key] - top);
      sum += weight;
      for (int64_t d = 0; d < kDim; ++d)
        result.output[d] += weight * v.getFloat(at(key, head / kGroup, d));
    }
    if (sum == 0)
      return result;
    for (double &x : result.output)
      x /= sum;
    result.lse = (top + std::log(sum)) / std::log(2.0);
    return result;
  }

  void check(bool sink = false) {
    for (int64_t row = 0; row < q.getSize(0); ++row)
      for (int64_t h = 0; h < kHeads; ++h) {
        if (row < kRow || row >= kRow + qLen) {
          EXPECT_EQ(lse.getFloat({row, h}), -7);
          EXPECT_EQ(o.getFloat({row, h, 0}), -7);
          continue;
        }
        Expected expected = attend(row - kRow, h, sink);
        for (int64_t d = 0; d < kDim; ++d)
          ASSERT_NEAR(o.getFloat({row, h, d}), expected.output[d], 1e-6)
              << row << ' ' << h << ' ' << d;
        if (std::isinf(expected.lse))
          ASSERT_EQ(lse.getFloat({row, h}), expected.lse) << row << ' ' << h;
        else
          ASSERT_NEAR(lse.getFloat({row, h}), expected.lse, 2e-6)
              << row << ' ' << h;
      }
  }

  /// An item for each KV head, tile of 8 packed rows and piece of `pieceKeys`
  /// keys (all if 0), with the ranges that the causal mask leaves.
  TestWork makeWork(int64_t pieceKeys) {
    TestWork work;
    int32_t slot = 0;
    for (int32_t head = 0; head < kKVHeads; ++head)
      for (int64_t row = 0; row < qLen * kGroup; row += 8)
        for (int64_t begin = 0;
             begin < std::max<int64_t>(kvLen, 1) && (begin == 0 || pieceKeys);
             begin += pieceKeys ? pieceKeys : 1) {
          fi_item &item = work.add();
          item.kv_head = head;
          item.row_begin = row;
          item.row_count = std::min<int64_t>(8, qLen * kGroup - row);
          item.q_begin = kRow;
          item.q_len = qLen;
          item.kv_len = kvLen;
          item.kv_origin = origin;
          item.table_begin = 2;
          if (pieceKeys)
            item.slot = slot++;
          int64_t first = kvLen - qLen + row / kGroup;
          int64_t last = kvLen - qLen + (row + item.row_count - 1) / kGroup;
          int64_t end = std::min(kvLen, last + 1);
          if (pieceKeys)
            end = std::min(end, begin + pieceKeys);
          int64_t full = std::max<int64_t>(first + 1, 0) / 16 * 16;
          full = std::min(std::max(full, begin), end / 16 * 16);
          std::vector<fi_key_range> fulls, partials;
          if (begin < full)
            fulls.push_back({begin, full});
          if (std::max(begin, full) < end)
            partials.push_back({std::max(begin, full), end});
          work.addRanges(fulls, partials);
        }
    return work;
  }

  std::vector<TileArgument> arguments() { return {q, k, v, pageTable, o, lse}; }

  int64_t qLen, kvLen, origin;
  HostTensor q, k, v, pageTable, sinks, o, lse;
};

TEST_F(TileAttentionTest, UpdateOpsMatchANaiveLoop) {
  for (bool twoLoops : {false, true}) {
    ASSERT_TRUE(parse(makeAttention(twoLoops ? Style::TwoLoops : Style::Ops)));
    makeRequest(/*qLen=*/5, /*kvLen=*/37, /*origin=*/0);
    TestWork work = makeWork(0);
    ASSERT_EQ(work.ranges.size(), 8u); // each item has a full and a partial one
    ASSERT_EQ(run("attention", arguments(), work), "");
    check();
  }
}

TEST_F(TileAttentionTest, WrittenOutSoftmaxMatchesANaiveLoop) {
  ASSERT_TRUE(parse(makeAttention(Style::WrittenOut)));
  makeRequest(/*qLen=*/7, /*kvLen=*/70, /*origin=*/11);
  TestWork work = makeWork(0);
  ASSERT_EQ(run("attention", arguments(), work), "");
  check();
}

// With channels, and with copies 1 to 3 tiles ahead, through one loop and from
// one loop into the next.
TEST_F(TileAttentionTest, PlacedKernelsMatchANaiveLoop) {
  for (Style style : {Style::WrittenOut, Style::TwoLoops})
    for (int64_t stages : {1, 2, 4}) {
      SCOPED_TRACE(stages);
      ASSERT_TRUE(parse(makeAttention(style)));
      KernelOp placed = kernel("attention");
      placed.setScheduleAttr(ScheduleAttr::get(
          &context, /*tileRows=*/8, /*tileKeys=*/16, /*mr=*/0, /*nr=*/0,
          /*lanes=*/1, /*maxRows=*/0, /*stream=*/0, /*warps=*/1,
          /*keyWarps=*/1, stages));
      mlir::PassManager pm(&context, mlir::ModuleOp::getOperationName());
      auto &kernels = pm.nest<KernelOp>();
      kernels.addPass(createFITileOnlineSoftmax());
      kernels.addPass(createFITilePlaceOperands());
      kernels.addPass(createFITilePipeline());
      ASSERT_TRUE(mlir::succeeded(pm.run(*module)));
      int64_t loads = 0, copies = 0;
      placed.walk([&](LoadKVOp) { ++loads; });
      placed.walk([&](CopyKVOp copy) { copies += !!copy.getValid(); });
      EXPECT_EQ(loads, 0);
      EXPECT_EQ(copies > 0, stages > 1);
      for (auto [rows, keys] :
           {std::pair(7, 70), std::pair(5, 37), std::pair(9, 4),
            std::pair(3, 0), std::pair(2, 150)}) {
        makeRequest(rows, keys, 0);
        TestWork work = makeWork(0);
        ASSERT_EQ(run("attention", arguments(), work), "");
        check();
      }
    }
}

TEST_F(TileAttentionTest, ShortAndEmptyContexts) {
  // More rows than keys: the first rows see nothing and are empty states.
  for (Style style : {Style::Ops, Style::WrittenOut})
    for (auto [rows, keys] : {std::pair(9, 4), std::pair(1, 1), std::pair(3, 0),
                              std::pair(17, 16)}) {
      ASSERT_TRUE(parse(makeAttention(style)));
      makeRequest(rows, keys, 0);
      TestWork work = makeWork(0);
      ASSERT_EQ(run("attention", arguments(), work), "");
      check();
    }
}

TEST_F(TileAttentionTest, PiecesMergeToTheWhole) {
  for (bool sink : {false, true}) {
    ASSERT_TRUE(parse(makeAttention(Style::States) + makeMerge(sink)));
    makeRequest(/*qLen=*/6, /*kvLen=*/61, /*origin=*/0);
    TestWork pieces = makeWork(16);
    int64_t count = pieces.items.size();
    ASSERT_EQ(count, 2 * 3 * 4);
    pieces.addSlots(count, 8, kDim);
    StateSlots slots;
    ASSERT_EQ(run("attention", arguments(), pieces, &slots), "");

    TestWork merges = pieces;
    merges.items.clear();
    for (int64_t i = 0; i < count; i += 4) {
      fi_item item = pieces.items[i];
      item.slot_count = 4;
      merges.items.push_back(item);
    }
    fi_work states = pieces.get();
    fi_work work = merges.get();
    work.state_o = states.state_o;
    work.state_lse = states.state_lse;
    auto merge = [&] {
      return llvm::toString(interpretKernel(kernel("merge"), {o, lse, sinks},
                                            work, 0, merges.items.size(),
                                            &slots));
    };
    ASSERT_EQ(merge(), "");
    check(sink);

    // All states were read, so the next layer may write the slots again, once.
    ASSERT_EQ(run("attention", arguments(), pieces, &slots), "");
    EXPECT_THAT(
        run("attention", arguments(), pieces, &slots),
        testing::HasSubstr("'fi_tile.store_state' op expected slot 0 to "
                           "be free, but it holds a state that was "
                           "not read"));
    slots.clear();
    EXPECT_THAT(
        merge(),
        testing::HasSubstr("'fi_tile.load_state' op expected slot 0 to hold a "
                           "state, but nothing was stored in it"));
  }
}

TEST_F(TileAttentionTest, SinkWhenFinalising) {
  ASSERT_TRUE(parse(makeAttention(Style::Sink)));
  for (int64_t keys : {0, 3, 40}) {
    makeRequest(/*qLen=*/4, keys, /*origin=*/0);
    TestWork work = makeWork(0);
    std::vector<TileArgument> all = arguments();
    all.push_back(sinks);
    ASSERT_EQ(run("attention", all, work), "");
    check(/*sink=*/true);
  }
}

TEST_F(TileAttentionTest, NaturalBaseOfTheStatistic) {
  std::string text = makeAttention(Style::Ops);
  for (size_t at; (at = text.find("base = 2")) != std::string::npos;)
    text.replace(at, 8, "base = e");
  ASSERT_TRUE(parse(text));
  makeRequest(3, 20, 0);
  TestWork work = makeWork(0);
  ASSERT_EQ(run("attention", arguments(), work), "");
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t h = 0; h < kHeads; ++h)
      lse.setFloat({kRow + i, h}, lse.getFloat({kRow + i, h}) / std::log(2.0));
  check();
}

} // namespace
