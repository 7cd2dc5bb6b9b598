//===- TransformTexts.h - programs that transform rows ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts of query and key regions for the tests of all backends.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_TRANSFORMTEXTS_H
#define FI_TEST_INTEGRATION_TRANSFORMTEXTS_H

#include "IntegrationTesting.h"
#include <cmath>

namespace fi::test {

/// A region `side`: query or key.
inline std::string transform(const std::string &side,
                             const std::string &operations) {
  return side +
         "(%x: f32, %y: f32, %pair: index, %req: index, %head: index, "
         "%pos: index) {\n" +
         operations + "\n}\n";
}

/// (x, y) turned by pos * 10000^(-2 pair / dim).
inline std::string rotary(int64_t dim) {
  std::string rate;
  llvm::raw_string_ostream(rate)
      << llvm::format("%.9e", -2 * std::log2(10000.0) / double(dim));
  return "%i = arith.index_cast %pair : index to i32\n"
         "%f = arith.sitofp %i : i32 to f32\n"
         "%rate = arith.constant " +
         rate +
         " : f32\n"
         "%e = arith.mulf %f, %rate : f32\n%w = math.exp2 %e : f32\n"
         "%p = arith.index_cast %pos : index to i32\n"
         "%pf = arith.sitofp %p : i32 to f32\n"
         "%angle = arith.mulf %pf, %w : f32\n"
         "%c = math.cos %angle : f32\n%s = math.sin %angle : f32\n"
         "%xc = arith.mulf %x, %c : f32\n%ys = arith.mulf %y, %s : f32\n"
         "%xs = arith.mulf %x, %s : f32\n%yc = arith.mulf %y, %c : f32\n"
         "%a = arith.subf %xc, %ys : f32\n%b = arith.addf %xs, %yc : f32\n"
         "fi.yield %a, %b : f32, f32";
}

inline AttentionText rotaryText(int64_t dim, const char *pairing) {
  AttentionText text;
  text.keyDim = text.valueDim = dim;
  text.clauses = std::string("pair<") + pairing + "> " +
                 transform("query", rotary(dim)) +
                 transform("key", rotary(dim)) + "mask(#fi.causal)";
  return text;
}

/// Half of the pairs as they are, as in partial rotary embeddings; one side.
inline AttentionText someText(const std::string &side) {
  AttentionText text;
  text.keyDim = text.valueDim = 32;
  text.clauses = "pair<half> " +
                 transform(side, "%m = arith.constant 8 : index\n"
                                 "%q = arith.cmpi ult, %pair, %m : index\n"
                                 "%r:2 = scf.if %q -> (f32, f32) {\n"
                                 "%n = arith.negf %y : f32\n"
                                 "scf.yield %n, %x : f32, f32\n"
                                 "} else {\nscf.yield %x, %y : f32, f32\n}\n"
                                 "fi.yield %r#0, %r#1 : f32, f32") +
                 "mask(#fi.causal)";
  return text;
}

/// Values that are smaller than a row: of a head, of a pair, of nothing.
inline AttentionText lessText() {
  AttentionText text;
  text.keyDim = text.valueDim = 16;
  text.clauses = "pair<interleaved> captures(%g = %gain : tensor<?xf32>, %z = "
                 "%one : f32) " +
                 transform("query", "%a = fi.load %g[%head] : tensor<?xf32>\n"
                                    "fi.yield %a, %z : f32, f32") +
                 transform("key", "%c = fi.load %g[%pair] : tensor<?xf32>\n"
                                  "%p = fi.load %g[%pos] : tensor<?xf32>\n"
                                  "fi.yield %c, %p : f32, f32") +
                 "mask(#fi.causal)";
  text.runArguments = ", %gain: tensor<?xf32>, %one: f32";
  return text;
}

/// A norm by head: what depends on the whole row is captured, [request tokens].
inline AttentionText normText() {
  AttentionText text;
  text.keyDim = text.valueDim = 24;
  text.group = 3;
  text.clauses =
      "pair<half> captures(%n = %norms : tensor<?x?xf32>, %g = %gain : "
      "tensor<?xf32>) " +
      transform("key", "%r = fi.load %n[%req, %pos] : tensor<?x?xf32>\n"
                       "%m = math.sqrt %r : f32\n"
                       "%w = fi.load %g[%head] : tensor<?xf32>\n"
                       "%t = arith.mulf %m, %w : f32\n"
                       "%a = arith.mulf %x, %t : f32\n"
                       "%b = arith.mulf %y, %t : f32\n"
                       "fi.yield %a, %b : f32, f32") +
      scoreRegion("%c = arith.constant 0.5 : f32\n"
                  "%t = arith.mulf %s, %c : f32\nfi.yield %t : f32") +
      " mask(#fi.window<left = 30>, #fi.causal)";
  text.runArguments = ", %norms: tensor<?x?xf32>, %gain: tensor<?xf32>";
  return text;
}
inline HostTensor normsOfThree() {
  HostTensor norms(DType::F32, {3, 70});
  for (int64_t r = 0; r < 3; ++r)
    for (int64_t i = 0; i < 70; ++i)
      norms.setFloat({r, i}, 0.5 + double((r * 31 + i * 7) % 11) / 8);
  return norms;
}

/// Scores far larger than queries and keys would give.
inline AttentionText growingText() {
  AttentionText text;
  text.keyDim = text.valueDim = 64;
  text.clauses = "pair<half> " +
                 transform("query", "%c = arith.constant 8.0 : f32\n"
                                    "%a = arith.mulf %x, %c : f32\n"
                                    "%b = arith.mulf %y, %c : f32\n"
                                    "fi.yield %a, %b : f32, f32") +
                 transform("key", "%c = arith.constant 4.0 : f32\n"
                                  "%a = arith.mulf %x, %c : f32\n"
                                  "%b = arith.mulf %y, %c : f32\n"
                                  "fi.yield %b, %a : f32, f32");
  return text;
}

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_TRANSFORMTEXTS_H
