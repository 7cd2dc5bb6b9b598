//===- AdditiveTesting.h - programs of states that add ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What tests of `#fi.sum` and `#fi.sigmoid` on several backends share.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_ADDITIVETESTING_H
#define FI_TEST_INTEGRATION_ADDITIVETESTING_H

#include "IntegrationTesting.h"

namespace fi::test {

/// A shared prefix and the requests' own suffixes, and an empty state.
inline std::string additiveCascade(const std::string &element,
                                   const std::string &kind) {
  return "#n = " + kind + "\n!ix = tensor<?xi32>\n!q = tensor<?x4x32x" +
         element + ">\n!lse = tensor<?x4xf32>\n!pool = memref<?x2x8x32x" +
         element + ">\n!kv = !fi.paged_kv<8x2x32x" + element +
         ", HND>\n!st = !fi.state<?x4x32xf32, #n>" + R"(
fi.program @cascade
    plan(%all: !ix, %qo: !ix, %pi: !ix, %pp: !ix, %pl: !ix, %si: !ix, %sp: !ix, %sl: !ix, %first: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32) -> (!q, !lse) {
  %prefix = fi.view.paged %k, %v tables(%pi, %pp, %pl : !ix, !ix, !ix) : !pool, !pool -> !kv
  %suffix = fi.view.paged %k, %v tables(%si, %sp, %sl : !ix, !ix, !ix) origin(%first : !ix) : !pool, !pool -> !kv
  %shared = fi.attention %q rows(%all : !ix) over %prefix scale(%sc) normalise(#n) : !q over !kv -> !st
  %own = fi.attention %q rows(%qo : !ix) over %suffix scale(%sc) normalise(#n) mask(#fi.causal) : !q over !kv -> !st
  %zero = arith.constant 0 : index
  %rows = tensor.dim %q, %zero : !q
  %none = fi.empty rows(%rows) : !st
  %s = fi.merge %none, %shared, %own : !st
  %o, %lse = fi.finalize %s : !st -> !q, !lse
  fi.return %o, %lse : !q, !lse
}
)";
}

inline constexpr const char *kAdditiveKinds[] = {"#fi.sum", "#fi.sigmoid",
                                                 "#fi.sigmoid<bias = -1.5>"};

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_ADDITIVETESTING_H
