//===- GPUFieldTest.cpp - faults of the field on an emulated GPU ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Those of FieldTest.cpp that are about kernels of GPUs: the emulator also
// tells races, accesses out of bounds and what is read before it is written.
//
//===----------------------------------------------------------------------===//

#include "EmulatedExecutor.h"
#include "FieldTesting.h"
#include <cmath>

using namespace fi;
using namespace fi::test;

namespace {

AttentionText small(const std::string &clauses = "mask(#fi.causal)") {
  AttentionText text;
  text.query = text.keys = text.values = text.output = "bf16";
  text.keyDim = text.valueDim = 16;
  text.clauses = clauses;
  return text;
}

TEST(GPUFieldTest, CausalPromptsLongerThanTheirKeys) {
  AttentionText text = small();
  text.kvHeads = text.group = 1;
  Case(text.get(), {{128, 64}, {140, 100}}).on(emulate).check(fewPlans());
}

TEST(GPUFieldTest, ExtremeScoresAndEmptyRows) {
  AttentionText text = small();
  text.scale = "1.0";
  Case(text.get(), {{1, 70}, {20, 5}, {3, 0}, {0, 9}})
      .isRandom(false)
      .adjust([](const Signature &signature, std::vector<HostValue> &values) {
        HostTensor q = values[signature.find("q")].getTensor();
        for (int64_t row = 0; row < q.getSize(0); ++row)
          for (int64_t head = 0; head < 4; ++head)
            for (int64_t d = 0; d < 16; ++d)
              q.setFloat({row, head, d}, head % 2 ? 3000 : -3000);
      })
      .on(emulate)
      .check(fewPlans());
}

TEST(GPUFieldTest, SinksOfGroupsThatFillNoTile) {
  AttentionText text = small("sink(%sink : tensor<7xf32>) mask(#fi.causal)");
  text.kvHeads = 1;
  text.group = 7;
  text.runArguments = ", %sink: tensor<7xf32>";
  Case(text.get(), {{1, 37}, {3, 70}, {2, 0}})
      .give("sink", floats({0.5, -3, 4, -INFINITY, 0, 9, -9}))
      .on(emulate)
      .check(fewPlans());
}

TEST(GPUFieldTest, RegionsSeeKeysInRangeOnly) {
  AttentionText text = withBiasOfKeys(small());
  Case(text.get(), {{1, 129}, {17, 129}})
      .give("bias", biasOfKeys(129))
      .on(emulate)
      .check(fewPlans());
}

TEST(GPUFieldTest, PiecesWithoutVisibleKeys) {
  AttentionText text = withAllowedKeys(small());
  Case(text.get(), {{3, 200}, {18, 199}, {2, 150}})
      .give("allowed", allowedPieces())
      .on(on("sm_80"))
      .check(fewPlans());
}

TEST(GPUFieldTest, AppendsWithoutTokens) {
  std::vector<Request> batches[] = {
      {{0, 7}, {0, 0}}, {}, {{3, 9}, {0, 5}, {1, 1}}};
  for (const std::vector<Request> &requests : batches)
    Case(kAppendProgram, requests).on(emulate).check(fewPlans());
}

} // namespace
