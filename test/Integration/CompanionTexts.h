//===- CompanionTexts.h - programs of what stands beside attention -*- C++ -*-//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Texts and inputs of programs with companions.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_COMPANIONTEXTS_H
#define FI_TEST_INTEGRATION_COMPANIONTEXTS_H

#include "QuantisedTesting.h"
#include "TransformTexts.h"

namespace fi::test {

inline std::string rowsType(int64_t heads, int64_t dim,
                            const std::string &element) {
  return "tensor<?x" + std::to_string(heads) + "x" + std::to_string(dim) + "x" +
         element + ">";
}

/// The same where the program's tensors are memrefs.
inline std::string memoryType(int64_t heads, int64_t dim,
                              const std::string &element) {
  return "memref" + rowsType(heads, dim, element).substr(6);
}

/// A gate whose result is `dim` wide, in memory.
inline std::string gatedMemoryText(int64_t heads, int64_t dim) {
  std::string x = memoryType(heads, 2 * dim, "bf16"),
              y = memoryType(heads, dim, "f32");
  return "fi.program @gate run(%x: " + x + ", %y: " + y +
         ") {\n  fi.gated %x act(silu) outs(%y : " + y + ") : " + x +
         "\n  fi.return\n}\n";
}

/// A gate whose result is `dim` wide.
inline std::string gatedText(int64_t heads, int64_t dim,
                             const std::string &activation = "silu",
                             const std::string &input = "bf16",
                             const std::string &output = "bf16") {
  std::string x = rowsType(heads, 2 * dim, input),
              y = rowsType(heads, dim, output);
  return "fi.program @gate run(%x: " + x + ") -> (" + y +
         ") {\n  %y = fi.gated %x act(" + activation + ") : " + x + " -> " + y +
         "\n  fi.return %y : " + y + "\n}\n";
}

/// The angle's part of `rotary`, with the rates scaled.
inline std::string scaledRotary(int64_t dim, const std::string &scaling) {
  // Of llama 3: a factor of 8 for slow rates, none for fast ones; of yarn: by
  // a ramp over pairs, and a factor of both elements.
  std::string scaled =
      scaling == "llama3"
          ? "%la = arith.constant 434.6 : f32\n"
            "%lb = arith.constant -0.333333 : f32\n"
            "%m = arith.mulf %w0, %la : f32\n%n = arith.addf %m, %lb : f32\n"
          : "%ra = arith.constant -0.125 : f32\n"
            "%rb = arith.constant 1.5 : f32\n"
            "%m = arith.mulf %f, %ra : f32\n%n = arith.addf %m, %rb : f32\n";
  scaled +=
      "%zero = arith.constant 0.0 : f32\n%one = arith.constant 1.0 : f32\n"
      "%eighth = arith.constant 0.125 : f32\n"
      "%n0 = arith.maximumf %n, %zero : f32\n"
      "%smooth = arith.minimumf %n0, %one : f32\n"
      "%rough = arith.subf %one, %smooth : f32\n"
      "%slow = arith.mulf %w0, %eighth : f32\n"
      "%u0 = arith.mulf %rough, %slow : f32\n"
      "%u1 = arith.mulf %smooth, %w0 : f32\n"
      "%w = arith.addf %u0, %u1 : f32\n";
  std::string text = rotary(dim);
  text.replace(text.find("%w = "), 5, "%w0 = ");
  text.insert(text.find("%p = "), scaled);
  if (scaling == "yarn") {
    text.erase(text.find("fi.yield"));
    text += "%factor = arith.constant 1.138629 : f32\n"
            "%a2 = arith.mulf %a, %factor : f32\n"
            "%b2 = arith.mulf %b, %factor : f32\n"
            "fi.yield %a2, %b2 : f32, f32";
  }
  return text;
}

/// Cosines and sines that a captured table `%t` [positions, 2, pairs] has.
inline std::string tableRotary() {
  return "%zero = arith.constant 0 : index\n%one = arith.constant 1 : index\n"
         "%c = fi.load %t[%pos, %zero, %pair] : tensor<?x2x?xf32>\n"
         "%s = fi.load %t[%pos, %one, %pair] : tensor<?x2x?xf32>\n"
         "%xc = arith.mulf %x, %c : f32\n%ys = arith.mulf %y, %s : f32\n"
         "%xs = arith.mulf %x, %s : f32\n%yc = arith.mulf %y, %c : f32\n"
         "%a = arith.subf %xc, %ys : f32\n%b = arith.addf %xs, %yc : f32\n"
         "fi.yield %a, %b : f32, f32";
}

inline HostTensor cosinesAndSines(int64_t positions, int64_t pairs) {
  HostTensor table(DType::F32, {positions, 2, pairs});
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t i = 0; i < pairs; ++i) {
      double angle = double(p) * std::pow(10000, -double(i) / double(pairs));
      table.setFloat({p, 0, i}, std::cos(angle));
      table.setFloat({p, 1, i}, std::sin(angle));
    }
  return table;
}

struct RopeText {
  std::string input = "bf16", output = "bf16", index = "i32";
  /// The scaling of a region, or the attribute that stands for one.
  std::string pairing = "half", scaling, spelling;
  int64_t heads = 3, dim = 64, dims = 64;
  bool isPlanned = false, isTable = false, isInPlace = false;

  std::string get() const {
    std::string x = rowsType(heads, dim, input),
                y = rowsType(heads, dim, output),
                ix = "tensor<?x" + index + ">";
    if (isInPlace)
      x = y = memoryType(heads, dim, input);
    std::string text = "fi.program @rope ";
    text += isPlanned ? "plan(%pos: " + ix + ") run(%x: " + x
                      : "run(%x: " + x + ", %pos: " + ix;
    if (isTable)
      text += ", %table: tensor<?x2x?xf32>";
    text += isInPlace ? ") {\n  fi.rope" : ") -> (" + y + ") {\n  %y = fi.rope";
    text += " %x at(%pos : " + ix + ") pair<" + pairing + "> ";
    if (dims != dim)
      text += "dims(" + std::to_string(dims) + ") ";
    if (isTable)
      text += "captures(%t = %table : tensor<?x2x?xf32>) ";
    text += !spelling.empty()
                ? "transform(" + spelling + ")"
                : transform("transform", isTable ? tableRotary()
                                         : scaling.empty()
                                             ? rotary(dims)
                                             : scaledRotary(dims, scaling));
    if (isInPlace)
      return text + " outs(%x : " + x + ") : " + x + "\n  fi.return\n}\n";
    return text + " : " + x + " -> " + y + "\n  fi.return %y : " + y + "\n}\n";
  }
};

/// Positions in no order.
inline HostTensor positionsOf(int64_t rows, const std::string &index) {
  HostTensor positions(*parseDType(index), {rows});
  for (int64_t i = 0; i < rows; ++i)
    positions.setInteger({i}, i * 397 % 2048);
  return positions;
}

/// New keys, and values, that go into the cache transformed.
struct AppendText {
  std::string pairing = "half", element = "bf16", pool = "bf16";
  /// What the pools hold, and what shares a scale; empty: `pool`.
  std::string codes, scales;
  int64_t dim = 64, dims = 0;
  bool ofValues = false, isHND = true, isLatent = false, hasOrigin = false;

  std::string get() const {
    std::string d = std::to_string(dim);
    std::string stored = codes.empty() ? pool : codes;
    std::string scaleType = scales == "tensor" ? "f32"
                            : scales == "head" ? "tensor<2xf32>"
                                               : "tensor<?x2x16xf32>";
    std::string text = "!ix = tensor<?xi32>\n!new = tensor<?x" +
                       std::string(isLatent ? "1x" : "2x") + d + "x" + element +
                       ">\n!tail = tensor<?x1x32x" + element + ">\n";
    if (isLatent)
      text += "!pool = memref<?x16x" + d + "x" + pool +
              ">\n!tails = memref<?x16x32x" + pool + ">\n!kv = !fi.latent_kv<" +
              d + "+32x" + pool + ", page = 16>\n";
    else
      text += "!pool = memref<?x" + std::string(isHND ? "2x16x" : "16x2x") + d +
              "x" + stored + ">\n!kv = !fi.paged_kv<16x2x" + d + "x" +
              (codes.empty() ? pool
                             : "!fi.scaled<" + codes + ", per = " + scales +
                                   ", by = f32>") +
              (isHND ? ", HND>\n" : ", NHD>\n");
    if (!codes.empty())
      text += "!s = " + scaleType + "\n";
    std::string second = isLatent ? "!tail" : "!new";
    text +=
        "fi.program @p plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix" +
        std::string(hasOrigin ? ", %first: !ix" : "") +
        ") run(%nk: !new, %nv: " + second +
        ", %k: !pool, %v: " + (isLatent ? "!tails" : "!pool") +
        (codes.empty() ? "" : ", %ks: !s, %vs: !s") + ") {\n";
    text += std::string("  %kv = fi.view.") + (isLatent ? "latent" : "paged") +
            " %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) " +
            (codes.empty() ? "" : "scales(%ks, %vs : !s, !s) ") +
            (hasOrigin ? "origin(%first : !ix) " : "") + ": !pool, " +
            (isLatent ? "!tails" : "!pool") + " -> !kv\n";
    int64_t paired = isLatent ? 32 : dims ? dims : dim;
    text +=
        "  fi.append %nk, %nv rows(%qo : !ix) to %kv pair<" + pairing + "> ";
    if (dims)
      text += "dims(" + std::to_string(dims) + ") ";
    if (!isLatent)
      text += transform("key", rotary(paired));
    if (isLatent || ofValues)
      text += transform(isLatent ? "tail" : "value", rotary(paired));
    return text + " : !new, " + second + " to !kv\n  fi.return\n}\n";
  }
};

/// Scales by which most codes are in range.
inline void giveScales(Case &test, const std::string &kind) {
  if (kind == "tensor") {
    test.giveNumber("ks", 0.013).giveNumber("vs", 0.041);
    return;
  }
  test.adjust([](const Signature &signature, std::vector<HostValue> &values) {
    for (const char *name : {"ks", "vs"}) {
      HostValue &value = values[signature.find(name)];
      llvm::SmallVector<int64_t, 4> shape(value.getTensor().getShape());
      HostTensor scales = makeScales(shape, deriveSeed(9, name));
      // Quotients that f32 rounds to what lies between two integers: the
      // interpreter of level 2, which computes in double, has other codes.
      auto *data = static_cast<float *>(scales.getData());
      for (int64_t i = 0; i < scales.getNumElements(); ++i)
        data[i] *= 1.0123457F;
      value = HostValue(scales);
    }
  });
}

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_COMPANIONTEXTS_H
