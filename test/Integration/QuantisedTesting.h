//===- QuantisedTesting.h - programs over quantised caches ------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Cases that the tests of the CPU and of GPUs share.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_QUANTISEDTESTING_H
#define FI_TEST_INTEGRATION_QUANTISEDTESTING_H

#include "SharingCases.h"
#include "fi/Support/Random.h"

namespace fi::test {

struct Quantised {
  std::string query, keys, values;
  std::string keyScales, valueScales;
  AttentionText::View view = AttentionText::View::Paged;
  bool isHND = true, isFused = false, isPageDynamic = false;
  int64_t dim = 64, group = 2;
  std::string clauses = "mask(#fi.causal)";
  std::string target = {};
  std::vector<Request> requests = mixedBatch();
  /// Of a view of latents; whether the query is two operands.
  int64_t tailDim = 0;
  bool isQuerySplit = false;
  /// Scales are parts of wider memory, among what is no number.
  bool hasWideScales = false;

  std::string getName() const {
    std::string name = query + "_" + keys + keyScales + "_" + values +
                       valueScales + "_" + std::to_string(dim) + "_" +
                       std::to_string(group) + (isHND ? "_hnd" : "_nhd");
    if (isFused)
      name += "_fused";
    if (isPageDynamic)
      name += "_dynamic";
    if (view == AttentionText::View::Ragged)
      name += "_ragged";
    if (view == AttentionText::View::Dense)
      name += "_dense";
    if (view == AttentionText::View::Bsr)
      name += "_bsr";
    if (tailDim)
      name += isQuerySplit ? "_latent_split" : "_latent";
    if (clauses != "mask(#fi.causal)")
      name += "_variant";
    return name;
  }
};

inline void PrintTo(const Quantised &with, std::ostream *os) {
  *os << with.getName();
}

/// Scales between 1/64 and 1/16.
inline HostTensor makeScales(llvm::ArrayRef<int64_t> shape, uint64_t seed) {
  HostTensor tensor(DType::F32, shape);
  Random random(seed);
  auto *data = static_cast<float *>(tensor.getData());
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    data[i] = static_cast<float>(0x1p-6 * (1 + random.below(1000) / 333.0));
  return tensor;
}

inline void checkQuantised(const Quantised &with,
                           llvm::function_ref<void(Case &)> prepare,
                           llvm::ArrayRef<Planned> plans) {
  AttentionText text;
  text.query = text.output = with.query;
  text.keys = with.keys;
  text.values = with.values;
  text.keyScales = with.keyScales;
  text.valueScales = with.valueScales;
  text.view = with.view;
  text.isHND = with.isHND;
  text.isFused = with.isFused;
  text.isPageDynamic = with.isPageDynamic;
  text.keyDim = text.valueDim = with.dim;
  text.group = with.group;
  text.tailDim = with.tailDim;
  text.isQuerySplit = with.isQuerySplit;
  if (with.tailDim)
    text.kvHeads = 1;
  text.clauses = with.clauses;
  text.target = with.target;
  Case test(text.get(), with.requests);
  if (with.isPageDynamic)
    test.setPageSize(16);
  for (auto [name, scales] :
       {std::pair("ks", with.keyScales), std::pair("vs", with.valueScales)})
    if (scales == "tensor" || scales == "nvfp4")
      test.giveNumber(name, name[0] == 'k' ? 0.021 : 0.037);
  prepare(test);
  std::vector<HostTensor> kept;
  // Codes as large as their type has, made smaller by scales.
  test.adjust([&](const Signature &signature, std::vector<HostValue> &inputs) {
    for (const char *name : {"k", "v"}) {
      int argument = signature.find(name);
      if (argument < 0)
        continue;
      const HostTensor &pool = inputs[argument].getTensor();
      const ViewInfo &view = signature.attentions[0].view;
      if (getByteSize(pool.getType()) != 1 || view.scales[name[0] == 'v'].block)
        continue;
      // Slots without keys keep what is no number.
      Random random(deriveSeed(7, name));
      auto *bytes = static_cast<char *>(pool.getData());
      for (int64_t i = 0; i < pool.getNumElements(); ++i)
        if (std::isfinite(readFloat(bytes + i, pool.getType())))
          writeSaturated(bytes + i, pool.getType(), random.normal() * 24);
    }
    for (const char *name : {"ks", "vs"}) {
      int argument = signature.find(name);
      if (argument < 0)
        continue;
      const ArgumentInfo &info = signature.arguments[argument];
      if (info.kind == ArgumentInfo::Kind::Scalar)
        continue;
      llvm::SmallVector<int64_t, 4> shape(info.shape);
      const HostTensor &pool =
          inputs[signature.find(
                     name[0] == 'k' || signature.find("v") < 0 ? "k" : "v")]
              .getTensor();
      const ViewInfo &view = signature.attentions[0].view;
      llvm::SmallVector<int64_t, 5> sizes(pool.getShape());
      if (view.isFused)
        sizes.erase(sizes.begin() + 1);
      if (view.scales[name[0] == 'v'].isPerPage)
        shape = {sizes[0], view.heads};
      else if (shape.size() > 1)
        shape.assign(sizes.begin(), sizes.end() - 1);
      inputs[argument] = HostValue(makeScales(shape, deriveSeed(9, name)));
    }
    if (!with.hasWideScales)
      return;
    for (const char *name : {"ks", "vs", "kb", "vb"}) {
      int argument = signature.find(name);
      if (argument < 0 || inputs[argument].getKind() != HostValue::Kind::Tensor)
        continue;
      HostTensor narrow = inputs[argument].getTensor();
      llvm::SmallVector<int64_t> factors(narrow.getRank(), 2);
      inputs[argument] = HostValue(spread(narrow, factors, kept));
    }
  });
  test.check(plans);
}

/// What caches of codes were wrong at elsewhere (docs/faults.md), on a backend:
/// windows that end anywhere in a tile, scales that do not lie together, and
/// one row over many keys with splits.
inline void checkQuantisedFaults(llvm::function_ref<void(Case &)> prepare,
                                 int64_t manyKeys,
                                 llvm::ArrayRef<Planned> plans) {
  for (int64_t window : {1, 15, 16, 17, 64, 100}) {
    SCOPED_TRACE("window " + std::to_string(window));
    Quantised with = {"bf16", "f8E4M3FN", "f8E4M3FN", "tensor", "head"};
    with.clauses =
        "mask(#fi.causal, #fi.window<left = " + std::to_string(window - 1) +
        ">)";
    with.requests = {{1, 130}, {40, 70}, {3, 3}};
    checkQuantised(with, prepare, plans);
  }
  for (auto [codes, scales] :
       {std::pair("i8", "token"), std::pair("f8E4M3FN", "page"),
        std::pair("f4E2M1FN", "nvfp4"), std::pair("f4E2M1FN", "mxfp4")}) {
    SCOPED_TRACE(std::string("wide scales per ") + scales);
    Quantised with = {"bf16", codes, codes, scales, scales};
    with.requests = {{1, 130}, {40, 70}};
    with.hasWideScales = true;
    checkQuantised(with, prepare, plans);
  }
  for (const char *scales : {"nvfp4", "mxfp4"}) {
    SCOPED_TRACE(std::string("many keys, ") + scales);
    Quantised with = {"bf16", "f4E2M1FN", "f4E2M1FN", scales, scales};
    with.requests = {{1, manyKeys}};
    checkQuantised(with, prepare, plans);
  }
}

/// New tokens, from what rounds to nothing to what is large; some rows are 0.
inline void makeNewTokens(const Signature &signature,
                          const std::vector<HostValue> &inputs) {
  for (const char *name : {"nk", "nv"}) {
    const HostTensor &fresh = inputs[signature.find(name)].getTensor();
    auto *bytes = static_cast<char *>(fresh.getData());
    int64_t size = getByteSize(fresh.getType()), dim = fresh.getSize(2);
    for (int64_t i = 0; i < fresh.getNumElements(); ++i) {
      double factor = std::ldexp(1.0, static_cast<int>(i / 16 % 23) - 14) *
                      (i / dim % 5 ? 1 : 0);
      writeFloat(bytes + i * size, fresh.getType(),
                 readFloat(bytes + i * size, fresh.getType()) * factor);
    }
  }
}

/// Scales of blocks are made from the new tokens. Codes and scales that a test
/// gives are those of older ones.
inline void checkBlockAppend(const std::string &scheme,
                             const std::string &element,
                             llvm::function_ref<void(Case &)> prepare) {
  bool isMX = scheme == "mxfp4", hasHeads = scheme == "nvfp4_head";
  std::string number = isMX ? "" : hasHeads ? "tensor<2xf32>" : "f32";
  auto withNumber = [&](const std::string &text) {
    return isMX ? std::string() : text;
  };
  std::string text =
      "!ix = tensor<?xi32>\n!new = tensor<?x2x64x" + element +
      ">\n!q = tensor<?x4x64x" + element +
      ">\n!pool = memref<?x2x16x32xi8>\n!s = memref<?x2x16x" +
      (isMX ? "2xf8E8M0FNU" : "4xf8E4M3FN") + ">\n" +
      withNumber("!n = " + number + "\n") +
      "!kv = !fi.paged_kv<16x2x64x!fi.block_scaled<f4E2M1FN, " +
      (isMX       ? "32, f8E8M0FNU"
       : hasHeads ? "16, f8E4M3FN, per = head"
                  : "16, f8E4M3FN") +
      R"(>, HND>
fi.program @p plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %nk: !new, %nv: !new, %k: !pool, %v: !pool, %kb: !s, %vb: !s)" +
      withNumber(", %ks: !n, %vs: !n") + R"() -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales()" +
      (isMX ? "%kb, %vb : !s, !s" : "%kb, %ks, %vb, %vs : !s, !n, !s, !n") +
      R"() : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, !new to !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q
  fi.return %o : !q
})";
  Case test(text, {{1, 37}, {23, 70}, {0, 20}, {9, 9}});
  if (number == "f32")
    test.giveNumber("ks", 0.013).giveNumber("vs", 0.0041);
  prepare(test);
  test.adjust([&](const Signature &signature, std::vector<HostValue> &inputs) {
    if (hasHeads)
      for (const char *name : {"ks", "vs"})
        inputs[signature.find(name)] =
            HostValue(makeScales({2}, deriveSeed(9, name)));
    makeNewTokens(signature, inputs);
  });
  test.check({{2}});
}

/// New keys and values go into the pools, and are attended to; pools are
/// compared too. Some are beyond the largest code.
inline void checkQuantisedAppend(const std::string &codes,
                                 const std::string &scales,
                                 const std::string &element,
                                 llvm::function_ref<void(Case &)> prepare) {
  bool isMX = scales == "mxfp4", isNumber = scales == "tensor";
  if (isMX || scales == "nvfp4" || scales == "nvfp4_head")
    return checkBlockAppend(scales, element, prepare);
  std::string scaleType = isNumber           ? "f32"
                          : scales == "head" ? "tensor<2xf32>"
                          : scales == "page" ? "tensor<?x2xf32>"
                                             : "tensor<?x2x16xf32>";
  std::string text = R"(
!ix = tensor<?xi32>
!new = tensor<?x2x32x)" +
                     element +
                     R"(>
!q = tensor<?x4x32x)" +
                     element +
                     R"(>
!pool = memref<?x2x16x32x)" +
                     codes + R"(>
!s = )" + scaleType + R"(
!kv = !fi.paged_kv<16x2x32x!fi.scaled<)" +
                     codes + ", per = " + scales + R"(, by = f32>, HND>
fi.program @p plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %nk: !new, %nv: !new, %k: !pool, %v: !pool, %ks: !s, %vs: !s) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks, %vs : !s, !s) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, !new to !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q
  fi.return %o : !q
})";
  Case test(text, {{1, 37}, {23, 70}, {0, 20}, {9, 9}});
  if (isNumber)
    test.giveNumber("ks", 0.013).giveNumber("vs", 0.0041);
  prepare(test);
  test.adjust([&](const Signature &signature, std::vector<HostValue> &inputs) {
    for (const char *name : {"ks", "vs"}) {
      int argument = signature.find(name);
      if (isNumber)
        continue;
      llvm::SmallVector<int64_t, 4> shape(
          inputs[argument].getTensor().getShape());
      inputs[argument] = HostValue(makeScales(shape, deriveSeed(9, name)));
    }
    for (const char *name : {"nk", "nv"}) {
      const HostTensor &fresh = inputs[signature.find(name)].getTensor();
      auto *bytes = static_cast<char *>(fresh.getData());
      int64_t size = getByteSize(fresh.getType());
      // From what rounds to nothing to what is too large.
      for (int64_t i = 0; i < fresh.getNumElements(); ++i) {
        double factor = std::ldexp(1.0, static_cast<int>(i % 29) - 20);
        writeFloat(bytes + i * size, fresh.getType(),
                   readFloat(bytes + i * size, fresh.getType()) * factor);
      }
    }
  });
  test.check({{2}});
}

/// Values of every code, 64 a row, and values of those codes alone that have no
/// leading one, which are so small that they vanish beside the others.
inline void checkEveryCode(const std::string &codes, const std::string &query,
                           llvm::function_ref<void(Case &)> prepare) {
  int smallest = codes == "f8E4M3FN" ? 0x87 : codes == "f8E5M2" ? 0x83 : 0xff;
  for (int bits : {0xff, smallest}) {
    SCOPED_TRACE(bits);
    AttentionText text;
    text.view = AttentionText::View::Contiguous;
    text.isHND = false;
    text.kvHeads = 1;
    text.group = 1;
    text.keyDim = text.valueDim = 64;
    text.query = text.output = query;
    text.keys = text.values = codes;
    text.keyScales = text.valueScales = "tensor";
    Case test(text.get(), {{4, 64}});
    test.giveNumber("ks", 0x1p-6).giveNumber("vs", 0.5);
    prepare(test);
    test.adjust(
        [&](const Signature &signature, std::vector<HostValue> &inputs) {
          const HostTensor &values = inputs[signature.find("v")].getTensor();
          auto *bytes = static_cast<uint8_t *>(values.getData());
          for (int64_t i = 0; i < values.getNumElements(); ++i) {
            bytes[i] = static_cast<uint8_t>(i & bits);
            if (!std::isfinite(readFloat(bytes + i, values.getType())))
              bytes[i] = 0;
          }
        });
    test.check({{1}});
  }
}

/// Codes of numbers that are not normal, under large scales.
inline void checkSmallCodes(const std::string &query, const std::string &codes,
                            int64_t dim,
                            llvm::function_ref<void(Case &)> prepare) {
  AttentionText text;
  text.query = text.output = query;
  text.keys = text.values = codes;
  text.keyScales = text.valueScales = "tensor";
  text.keyDim = text.valueDim = dim;
  Case test(text.get(), {{1, 37}, {20, 33}});
  test.giveNumber("ks", 64).giveNumber("vs", 128);
  prepare(test);
  test.adjust([](const Signature &signature, std::vector<HostValue> &inputs) {
    for (const char *name : {"k", "v"}) {
      const HostTensor &pool = inputs[signature.find(name)].getTensor();
      bool isE5M2 = pool.getType() == DType::F8E5M2;
      auto *bytes = static_cast<uint8_t *>(pool.getData());
      Random random(deriveSeed(5, name));
      for (int64_t i = 0; i < pool.getNumElements(); ++i)
        bytes[i] = static_cast<uint8_t>(random.below(isE5M2 ? 4 : 8) |
                                        random.below(2) << 7);
    }
  });
  test.check({{2}});
}

inline std::vector<Quantised> quantisedCases() {
  using View = AttentionText::View;
  std::vector<Quantised> cases;
  for (const char *query : {"f32", "f16", "bf16"})
    for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"})
      cases.push_back({query, codes, codes, "tensor", "tensor"});
  for (const char *scales : {"head", "page", "token"})
    for (const char *query : {"f32", "f16", "bf16"})
      cases.push_back({query, "f8E4M3FN", "f8E4M3FN", scales, scales});
  // Layouts.
  cases.push_back(
      {"bf16", "f8E4M3FN", "f8E4M3FN", "token", "token", View::Paged, false});
  cases.push_back(
      {"f16", "i8", "i8", "token", "token", View::Paged, true, true});
  cases.push_back(
      {"f16", "i8", "i8", "page", "page", View::Paged, false, true});
  cases.push_back({"bf16", "f8E5M2", "f8E5M2", "token", "head", View::Dense,
                   true, false, true});
  cases.push_back(
      {"f16", "f8E4M3FN", "f8E4M3FN", "token", "token", View::Ragged, false});
  cases.push_back({"bf16", "i8", "i8", "token", "token", View::Ragged, true});
  // One side only, and unlike ones.
  cases.push_back({"f16", "f8E4M3FN", "f16", "tensor", ""});
  cases.push_back({"bf16", "bf16", "f8E4M3FN", "", "head"});
  cases.push_back({"f16", "f8E5M2", "i8", "head", "tensor"});
  for (const char *scales : {"tensor", "head", "token"})
    cases.push_back(
        {"bf16", "f8E4M3FN", "f8E4M3FN", scales, scales, View::Bsr, false});
  cases.push_back({"f16", "i8", "i8", "token", "tensor", View::Bsr, true});
  cases.push_back(
      {"bf16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4", View::Bsr, false});
  // Latents, of which a scale is for keys, tails and values.
  for (const char *scales : {"tensor", "head", "page", "token"})
    for (bool isSplit : {true, false}) {
      Quantised with = {"bf16", "f8E4M3FN", "f8E4M3FN", scales, ""};
      with.tailDim = 32;
      with.group = 8;
      with.isQuerySplit = isSplit;
      cases.push_back(with);
    }
  for (const char *query : {"f32", "f16"}) {
    Quantised with = {query, "i8", "i8", "tensor", ""};
    with.tailDim = 16;
    with.group = 4;
    with.isQuerySplit = true;
    with.view = View::Dense;
    with.isPageDynamic = true;
    cases.push_back(with);
  }
  // Dims that are no multiple of what a product takes, and other groups.
  cases.push_back({"f16", "f8E4M3FN", "f8E4M3FN", "tensor", "tensor",
                   View::Paged, true, false, false, 40, 1});
  cases.push_back({"bf16", "f8E4M3FN", "f8E4M3FN", "head", "head", View::Paged,
                   true, false, false, 128, 4});
  cases.push_back({"bf16", "i8", "i8", "tensor", "tensor", View::Paged, true,
                   false, false, 72, 3});
  // Blocks of codes of 4 bits.
  for (const char *query : {"f32", "f16", "bf16"})
    for (const char *scheme : {"nvfp4", "nvfp4_head", "mxfp4"})
      cases.push_back({query, "f4E2M1FN", "f4E2M1FN", scheme, scheme});
  cases.push_back(
      {"bf16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4", View::Paged, false});
  cases.push_back({"f16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4", View::Paged,
                   true, true, true});
  cases.push_back({"bf16", "f4E2M1FN", "f4E2M1FN", "mxfp4", "nvfp4_head",
                   View::Dense, true, false, true});
  cases.push_back(
      {"f16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4", View::Ragged, false});
  cases.push_back(
      {"bf16", "f4E2M1FN", "f4E2M1FN", "mxfp4", "mxfp4", View::Ragged, true});
  cases.push_back({"bf16", "bf16", "f4E2M1FN", "", "nvfp4"});
  cases.push_back({"f16", "f4E2M1FN", "f8E4M3FN", "nvfp4", "token"});
  cases.push_back({"f16", "f8E4M3FN", "f4E2M1FN", "tensor", "mxfp4"});
  cases.push_back({"bf16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4",
                   View::Paged, true, false, false, 48, 1});
  cases.push_back({"f16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4", View::Paged,
                   true, false, false, 16, 3});
  cases.push_back({"bf16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4",
                   View::Paged, true, false, false, 128, 4});
  // Regions see keys with their scales.
  const char *gains = R"(pair<half>
      key(%x: f32, %y: f32, %i: index, %req: index, %h: index, %p: index) {
        %c1 = arith.constant 1.000000e+00 : f32
        %a = arith.mulf %x, %y : f32
        %b = arith.addf %y, %c1 : f32
        fi.yield %a, %b : f32, f32
      }
      mask(#fi.causal))";
  for (const char *scales : {"tensor", "token"})
    cases.push_back({"f16", "f8E4M3FN", "f8E4M3FN", scales, scales, View::Paged,
                     true, false, false, 64, 2, gains});
  // Neighbours as pairs, of keys as they are.
  const char *turned = R"(pair<interleaved>
      query(%x: f32, %y: f32, %i: index, %req: index, %h: index, %p: index) {
        %n = arith.negf %y : f32
        fi.yield %n, %x : f32, f32
      }
      mask(#fi.causal))";
  for (const char *scales : {"tensor", "head", "page", "token"})
    cases.push_back({"f16", "f8E4M3FN", "f8E4M3FN", scales, scales, View::Paged,
                     false, false, false, 64, 2, turned});
  cases.push_back({"bf16", "f4E2M1FN", "f4E2M1FN", "nvfp4", "nvfp4",
                   View::Paged, true, false, false, 64, 2, gains});
  cases.push_back({"f32", "f8E4M3FN", "f8E4M3FN", "token", "token", View::Paged,
                   true, false, false, 64, 2,
                   "normalise(#fi.sum) mask(#fi.causal)"});
  cases.push_back({"f32", "f4E2M1FN", "f4E2M1FN", "mxfp4", "mxfp4", View::Paged,
                   true, false, false, 64, 2,
                   "normalise(#fi.sum) mask(#fi.causal)"});
  return cases;
}

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_QUANTISEDTESTING_H
