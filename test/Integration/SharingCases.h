//===- SharingCases.h - shared pages and pools in wider memory --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches whose requests share pages, attention over several levels of
// prefixes, and pools that are parts of wider memory: one layer of a cache of
// all layers, columns beside other columns. For the CPU and for GPUs.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_SHARINGCASES_H
#define FI_TEST_INTEGRATION_SHARINGCASES_H

#include "IntegrationTesting.h"
#include "fi/Support/Random.h"
#include <cmath>

namespace fi::test {

/// The same elements where each dimension is `factors` times as large: the last
/// of that many parts of each. What lies around is NaN.
inline HostTensor spread(const HostTensor &from,
                         llvm::ArrayRef<int64_t> factors,
                         std::vector<HostTensor> &kept) {
  llvm::SmallVector<int64_t> shape(from.getShape()), strides;
  for (auto [size, factor] : llvm::zip(shape, factors))
    size *= factor;
  kept.emplace_back(from.getType(), shape);
  const HostTensor &wide = kept.back();
  fillConstant(wide, NAN);
  int64_t offset = 0, last = from.getRank() - 1;
  for (int64_t d = 0; d <= last; ++d) {
    // Columns stay together; of other dimensions every n-th is taken.
    int64_t step = d == last ? 1 : factors[d];
    strides.push_back(wide.getStrides()[d] * step);
    offset += wide.getStrides()[d] * (factors[d] - 1) *
              (d == last ? from.getSize(d) : 1);
  }
  HostTensor to(from.getType(), from.getShape(),
                static_cast<char *>(wide.getData()) +
                    offset * getByteSize(from.getType()),
                strides);
  copyTensor(from, to);
  return to;
}

struct WideMemory {
  const char *name;
  void (*change)(AttentionText &);
  /// Of the pools' dimensions.
  std::vector<int64_t> factors;
};
inline void PrintTo(const WideMemory &wide, std::ostream *os) {
  *os << wide.name;
}

/// Multiples of 8 elements apart: code for GPUs copies 16 bytes at a time.
inline std::vector<WideMemory> wideMemories() {
  using View = AttentionText::View;
  return {
      {"layer_of_all", [](AttentionText &) {}, {5, 1, 1, 1}},
      {"tokens_and_heads_apart",
       [](AttentionText &t) { t.isHND = false; },
       {2, 3, 2, 2}},
      {"values_beside_keys",
       [](AttentionText &t) { t.page = 1; },
       {1, 1, 1, 2}},
      {"dense_any_page",
       [](AttentionText &t) {
         t.view = View::Dense;
         t.isPageDynamic = true;
       },
       {2, 2, 1, 3}},
      {"fused",
       [](AttentionText &t) {
         t.isFused = true;
         t.isHND = false;
       },
       {3, 1, 2, 1, 2}},
      {"two_tables",
       [](AttentionText &t) { t.hasTwoTables = true; },
       {2, 1, 2, 1}},
      {"ragged",
       [](AttentionText &t) {
         t.view = View::Ragged;
         t.isHND = false;
       },
       {2, 3, 2}},
      {"ragged_hnd",
       [](AttentionText &t) { t.view = View::Ragged; },
       {1, 4, 1}},
      {"latent",
       [](AttentionText &t) {
         t.valueDim = 64;
         t.tailDim = 16;
         t.kvHeads = 1;
         t.group = 16;
         t.isQuerySplit = true;
       },
       {3, 2, 2}},
      {"blocks", [](AttentionText &t) { t.view = View::Bsr; }, {1, 3, 2}},
  };
}

/// Puts the pools, and the query, into wider memory.
inline void spreadAll(Case &test, const WideMemory &wide,
                      std::vector<HostTensor> &kept) {
  test.adjust([&](const Signature &signature, std::vector<HostValue> &values) {
    for (const char *name : {"q", "r", "k", "v"}) {
      int argument = signature.find(name);
      if (argument < 0)
        continue;
      HostTensor from = values[argument].getTensor();
      bool isPool = name[0] == 'k' || name[0] == 'v';
      values[argument] = spread(
          from, isPool ? wide.factors : std::vector<int64_t>{2, 3, 2}, kept);
    }
  });
}

/// Pages that several requests begin with, and one that is there twice.
inline void sharePages(Case &test) {
  test.give("qo", integers({0, 1, 2, 22, 25, 25}))
      .give("indptr", integers({0, 4, 8, 11, 16, 18}))
      .give("pages",
            integers({5, 2, 9, 0, 5, 2, 9, 1, 5, 2, 3, 5, 2, 9, 0, 2, 5, 2}))
      .give("last", integers({7, 16, 16, 3, 16}));
}

/// Three levels: what all requests begin with, what groups of them go on with,
/// and their own keys. A window of 70 reaches into all of them, by positions.
inline std::string threeLevels(const std::string &element) {
  return "!ix = tensor<?xi32>\n!q = tensor<?x4x32x" + element +
         ">\n!lse = tensor<?x4xf32>\n!pool = memref<?x2x8x32x" + element +
         ">\n!kv = !fi.paged_kv<8x2x32x" + element +
         ", HND>\n!st = !fi.state<?x4x32xf32, #fi.softmax<base = 2>>" + R"(
fi.program @levels
    plan(%all: !ix, %groups: !ix, %qo: !ix, %pos: !ix, %ai: !ix, %ap: !ix, %al: !ix, %gi: !ix, %gp: !ix,
         %gl: !ix, %gf: !ix, %oi: !ix, %op: !ix, %ol: !ix, %of: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32, %sink: tensor<4xf32>) -> (!q, !lse) {
  %a = fi.view.paged %k, %v tables(%ai, %ap, %al : !ix, !ix, !ix) : !pool, !pool -> !kv
  %g = fi.view.paged %k, %v tables(%gi, %gp, %gl : !ix, !ix, !ix) origin(%gf : !ix) : !pool, !pool -> !kv
  %o = fi.view.paged %k, %v tables(%oi, %op, %ol : !ix, !ix, !ix) origin(%of : !ix) : !pool, !pool -> !kv
  %sa = fi.attention %q rows(%all : !ix) over %a at(%pos : !ix) scale(%sc) mask(#fi.window<left = 70>)
      : !q over !kv -> !st
  %sg = fi.attention %q rows(%groups : !ix) over %g at(%pos : !ix) scale(%sc) mask(#fi.window<left = 70>)
      : !q over !kv -> !st
  %so = fi.attention %q rows(%qo : !ix) over %o at(%pos : !ix) scale(%sc)
      mask(#fi.causal, #fi.window<left = 70>) : !q over !kv -> !st
  %s = fi.merge %sa, %sg, %so : !st
  %out, %lse = fi.finalize %s sink(%sink : tensor<4xf32>) : !st -> !q, !lse
  fi.return %out, %lse : !q, !lse
}
)";
}

/// 44 keys for all; 16 and 23 for groups of 2 requests and of 1; 9, 0 and 30 of
/// their own, with 4, 0 and 6 rows at their ends.
inline void giveLevels(Case &test) {
  std::vector<int64_t> positions;
  for (auto [rows, end] :
       {std::pair(4, 44 + 16 + 9), {0, 0}, {6, 44 + 23 + 30}})
    for (int i = rows; i > 0; --i)
      positions.push_back(end - i);
  test.give("all", integers({0, 10}))
      .give("groups", integers({0, 4, 10}))
      .give("qo", integers({0, 4, 4, 10}))
      .give("pos", integers(positions))
      .give("ai", integers({0, 6}))
      .give("ap", integers({11, 3, 7, 0, 1, 2}))
      .give("al", integers({4}))
      .give("gi", integers({0, 2, 5}))
      .give("gp", integers({4, 5, 6, 8, 9}))
      .give("gl", integers({8, 7}))
      .give("gf", integers({44, 44}))
      .give("oi", integers({0, 2, 2, 6}))
      .give("op", integers({10, 12, 13, 14, 15, 16}))
      .give("ol", integers({1, 8, 6}))
      .give("of", integers({60, 60, 67}))
      .give("sink", floats({0.5, -3, 4, -INFINITY}));
}

/// New tokens into pages by two tables, or into latents, and attention after
/// it.
inline std::string appendTo(bool isLatent, const std::string &element) {
  auto rows = [&](int heads, int dim) {
    return "tensor<?x" + std::to_string(heads) + "x" + std::to_string(dim) +
           "x" + element + ">";
  };
  std::string q = isLatent ? rows(8, 72) : rows(4, 24);
  std::string o = isLatent ? rows(8, 64) : q;
  std::string first = isLatent ? rows(1, 64) : rows(2, 24);
  std::string second = isLatent ? rows(1, 8) : first;
  std::string k =
      (isLatent ? "memref<?x4x64x" : "memref<?x2x4x24x") + element + ">";
  std::string v = isLatent ? "memref<?x4x8x" + element + ">" : k;
  std::string kv =
      isLatent ? "!fi.latent_kv<64+8x" + element + ", page = 4>"
               : "!fi.paged_kv<4x2x24x" + element + ", HND, two_tables>";
  std::string table = isLatent ? "" : "%value_pages: !ix, ";
  std::string use = isLatent ? "" : "%value_pages, ";
  std::string type = isLatent ? "" : "!ix, ";
  return "!ix = tensor<?xi32>\nfi.program @step plan(%qo: !ix, %indptr: !ix, "
         "%pages: !ix, " +
         table + "%last: !ix) run(%q: " + q + ", %nk: " + first +
         ", %nv: " + second + ", %k: " + k + ", %v: " + v + ") -> (" + o +
         ") {\n  %kv = fi.view." + (isLatent ? "latent" : "paged") +
         " %k, %v tables(%indptr, %pages, " + use + "%last : !ix, !ix, " +
         type + "!ix) : " + k + ", " + v + " -> " + kv +
         "\n  fi.append %nk, %nv rows(%qo : !ix) to %kv : " + first + ", " +
         second + " to " + kv +
         "\n  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.2) "
         "mask(#fi.causal) : " +
         q + " over " + kv + " -> " + o + "\n  fi.return %o : " + o + "\n}\n";
}

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_SHARINGCASES_H
