//===- GPUQuantisedTest.cpp - quantised caches on GPUs --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cases of QuantisedTest.cpp as code for an sm_80, and what differs on
// chips that convert codes by an instruction.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "QuantisedTesting.h"

using namespace fi;
using namespace fi::test;

namespace {

class GPUQuantised : public testing::TestWithParam<Quantised> {};

TEST_P(GPUQuantised, Emulated) {
  Quantised with = GetParam();
  with.requests = {{1, 37}, {23, 70}, {0, 20}, {4, 0}, {9, 4}, {1, 100}};
  checkQuantised(with, [](Case &test) { test.on(on("sm_80")); }, fewPlans());
}

INSTANTIATE_TEST_SUITE_P(Schemes, GPUQuantised,
                         testing::ValuesIn(quantisedCases()),
                         [](const auto &info) { return info.param.getName(); });

struct Tiles {
  int64_t rows, keys, warps, keyWarps, stages, dim;
};

/// Schedules of one warp and of several, of groups of warps, and tiles of keys
/// as wide as a head.
class GPUQuantisedSchedules
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUQuantisedSchedules, GiveEqualResults) {
  auto [query, tiles] = GetParam();
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"}) {
    SCOPED_TRACE(codes);
    Quantised with = {query, codes, codes, "tensor", "head"};
    with.dim = tiles.dim;
    with.requests = {{1, 37}, {23, 70}, {4, 0}, {1, 100}};
    with.target = "#fi.target<sm_80>";
    with.clauses = "mask(#fi.causal) schedules([#fi.schedule<tile_rows = " +
                   std::to_string(tiles.rows) +
                   ", tile_keys = " + std::to_string(tiles.keys) +
                   ", warps = " + std::to_string(tiles.warps) +
                   ", key_warps = " + std::to_string(tiles.keyWarps) +
                   ", stages = " + std::to_string(tiles.stages) +
                   ", lanes = 4>])";
    checkQuantised(with, [](Case &test) { test.on(emulate); }, fewPlans());
    checkQuantised(with, [](Case &test) { test.on(interpret); }, fewPlans());
  }
}

INSTANTIATE_TEST_SUITE_P(
    Grid, GPUQuantisedSchedules,
    testing::Combine(testing::Values("f16", "bf16"),
                     testing::Values(Tiles{16, 16, 1, 4, 2, 64},
                                     Tiles{16, 64, 1, 1, 2, 64},
                                     Tiles{32, 32, 2, 1, 3, 96},
                                     Tiles{64, 32, 2, 2, 2, 32})));

TEST(GPUQuantisedCodes, EveryOne) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *query : {"f16", "bf16", "f32"}) {
      SCOPED_TRACE(std::string(codes) + ", " + query);
      checkEveryCode(codes, query, [](Case &test) { test.on(on("sm_80")); });
    }
}

/// In registers and, where the dim is 40, through a buffer.
TEST(GPUQuantisedCodes, Small) {
  for (const char *query : {"f16", "bf16", "f32"})
    for (const char *codes : {"f8E4M3FN", "f8E5M2"})
      for (int64_t dim : {64, 40}) {
        SCOPED_TRACE(std::string(query) + " " + codes);
        checkSmallCodes(query, codes, dim,
                        [](Case &test) { test.on(on("sm_80")); });
      }
}

TEST(GPUQuantisedFaults, OfTheField) {
  checkQuantisedFaults([](Case &test) { test.on(on("sm_80")); },
                       /*manyKeys=*/700, fewPlans());
}

TEST(GPUQuantisedAppend, Emulated) {
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
    for (const char *scales : {"tensor", "token"}) {
      SCOPED_TRACE(std::string(codes) + " per " + scales);
      checkQuantisedAppend(codes, scales, "f16",
                           [](Case &test) { test.on(on("sm_80")); });
    }
}

TEST(GPUQuantisedAppend, Blocks) {
  for (const char *scales : {"nvfp4", "nvfp4_head", "mxfp4"}) {
    SCOPED_TRACE(scales);
    checkQuantisedAppend("f4E2M1FN", scales, "bf16",
                         [](Case &test) { test.on(on("sm_80")); });
  }
}

/// By an instruction from sm_89 on.
TEST(GPUQuantisedChips, ConvertByInstructions) {
  for (const char *query : {"f16", "bf16"}) {
    Quantised with = {query, "f8E4M3FN", "f8E4M3FN", "tensor", "tensor"};
    with.requests = {{1, 37}, {23, 70}};
    checkQuantised(with, [](Case &test) { test.on(on("sm_89")); }, fewPlans());
  }
}

} // namespace
