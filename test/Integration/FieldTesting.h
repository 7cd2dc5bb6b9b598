//===- FieldTesting.h - programs that libraries have failed on --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the tests of faults of the field have on the CPU and on GPUs.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_INTEGRATION_FIELDTESTING_H
#define FI_TEST_INTEGRATION_FIELDTESTING_H

#include "IntegrationTesting.h"

namespace fi::test {

/// A mask that reads `allowed` by request and key.
inline AttentionText withAllowedKeys(AttentionText text) {
  text.clauses = "captures(%bits = %allowed : tensor<?x?xi1>)\n" +
                 maskRegion("%m = fi.load %bits[%req, %kp] : tensor<?x?xi1>\n"
                            "fi.yield %m : i1");
  text.planArguments = ", %allowed: tensor<?x?xi1>";
  return text;
}

/// Of 200 keys, requests see 64 in a row, others each; the last one of three
/// sees nothing at all.
inline HostTensor allowedPieces() {
  HostTensor bits(DType::I1, {3, 200});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t k = 0; k < 200; ++k)
      bits.setInteger({r, k}, r < 2 && k / 64 == 1 + r);
  return bits;
}

/// A score with a `bias` for each key.
inline AttentionText withBiasOfKeys(AttentionText text) {
  text.clauses = "captures(%c = %bias : tensor<?xf32>)\n" +
                 scoreRegion("%b = fi.load %c[%kp] : tensor<?xf32>\n"
                             "%t = arith.addf %s, %b : f32\nfi.yield %t : f32");
  text.runArguments = ", %bias: tensor<?xf32>";
  return text;
}

inline HostTensor biasOfKeys(int64_t keys) {
  HostTensor bias(DType::F32, {keys});
  for (int64_t k = 0; k < keys; ++k)
    bias.setFloat({k}, double(k % 7) / 4);
  return bias;
}

/// Appends and nothing else.
inline constexpr const char *kAppendProgram = R"(!ix = tensor<?xi32>
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

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_FIELDTESTING_H
