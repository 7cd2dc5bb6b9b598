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
  AttentionText text =
      small("captures(%c = %bias : tensor<?xf32>)\n" +
            scoreRegion("%b = fi.load %c[%kp] : tensor<?xf32>\n"
                        "%t = arith.addf %s, %b : f32\nfi.yield %t : f32"));
  text.runArguments = ", %bias: tensor<?xf32>";
  HostTensor bias(DType::F32, {129});
  for (int64_t k = 0; k < 129; ++k)
    bias.setFloat({k}, double(k % 7) / 4);
  Case(text.get(), {{1, 129}, {17, 129}})
      .give("bias", bias)
      .on(emulate)
      .check(fewPlans());
}

TEST(GPUFieldTest, PiecesWithoutVisibleKeys) {
  AttentionText text =
      small("captures(%bits = %allowed : tensor<?x?xi1>)\n" +
            maskRegion("%m = fi.load %bits[%req, %kp] : tensor<?x?xi1>\n"
                       "fi.yield %m : i1"));
  text.planArguments = ", %allowed: tensor<?x?xi1>";
  HostTensor bits(DType::I1, {3, 200});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t k = 0; k < 200; ++k) // the last request sees nothing at all
      bits.setInteger({r, k}, r < 2 && k / 64 == 1 + r);
  Case(text.get(), {{3, 200}, {18, 199}, {2, 150}})
      .give("allowed", bits)
      .on(on("sm_80"))
      .check(fewPlans());
}

TEST(GPUFieldTest, AppendsWithoutTokens) {
  std::string text = R"(!ix = tensor<?xi32>
!t = tensor<?x2x16xbf16>
!pool = memref<?x2x4x16xbf16>
!kv = !fi.paged_kv<4x2x16xbf16, HND>
fi.program @add plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%nk: !t, %nv: !t, %k: !pool, %v: !pool) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%qo : !ix) to %kv : !t, !t to !kv
  fi.return
}
)";
  std::vector<Request> batches[] = {
      {{0, 7}, {0, 0}}, {}, {{3, 9}, {0, 5}, {1, 1}}};
  for (const std::vector<Request> &requests : batches)
    Case(text, requests).on(emulate).check(fewPlans());
}

} // namespace
