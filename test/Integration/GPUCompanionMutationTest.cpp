//===- GPUCompanionMutationTest.cpp - broken companions are reported ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Breaks statements of the PTX of appends, of norms whose rows all warps share,
// and of codes by scales of groups, one at a time: reads, writes and what is
// computed between. The emulator reports each, or a result, a code or a slot of
// a cache is another one.
//
//===----------------------------------------------------------------------===//

#include "CompanionTexts.h"
#include "PTXMutations.h"

using namespace fi;
using namespace fi::test;

namespace {

struct Companion {
  const char *name;
  std::string text;
  std::vector<Request> requests;
  std::function<void(Case &)> prepare;
  /// Sums of lanes of which half are 0, since a row has fewer warps than these.
  unsigned harmlessShuffles = 0;
};
void PrintTo(const Companion &companion, std::ostream *os) {
  *os << companion.name;
}

/// The program, behind the names of its types, in a module for a GPU.
std::string target(std::string text) {
  text.insert(text.find("fi.program"),
              "module attributes {fi.target = #fi.target<sm_80>} {\n");
  return text + "}\n";
}

std::vector<Companion> makeCompanions() {
  std::vector<Companion> all;
  AppendText plain;
  plain.dims = 32;
  all.push_back(
      {"append", target(plain.get()), {{5, 21}, {0, 12}, {18, 40}}, {}});
  AppendText codes;
  codes.codes = "f8E4M3FN";
  codes.scales = "token";
  all.push_back({"append_codes",
                 target(codes.get()),
                 {{5, 21}, {0, 12}, {18, 40}},
                 [](Case &test) { giveScales(test, "token"); }});
  AppendText latent;
  latent.isLatent = true;
  all.push_back(
      {"append_latent", target(latent.get()), {{5, 21}, {18, 40}}, {}});
  std::string row = "tensor<?x1x1032xbf16>";
  all.push_back(
      {"layer_norm",
       target("fi.program @norm run(%x: " + row +
              ", %w: tensor<1032xbf16>, %b: tensor<1032xf32>) -> (" + row +
              ") {\n  %y = fi.layer_norm %x weight(%w : tensor<1032xbf16>) "
              "bias(%b : tensor<1032xf32>) eps(1.0e-5) : " +
              row + " -> " + row + "\n  fi.return %y : " + row + "\n}\n"),
       {{5, 0}},
       {},
       /*harmlessShuffles=*/2});
  std::string x = "tensor<?x2x256xf16>", c = "tensor<?x2x256xi8>",
              s = "tensor<?x2x4xf32>", y = "tensor<?x2x256xbf16>",
              scheme = "(!fi.scaled<i8, per = token, by = f32>) group(64)";
  all.push_back(
      {"group_scales",
       target("fi.program @codes run(%x: " + x + ") -> (" + c + ", " + s +
              ", " + y + ") {\n  %c, %s = fi.quantise %x to" + scheme + " : " +
              x + " -> " + c + ", " + s + "\n  %y = fi.dequantise %c from" +
              scheme + " scales(%s : " + s + ") : " + c + " -> " + y +
              "\n  fi.return %c, %s, %y : " + c + ", " + s + ", " + y +
              "\n}\n"),
       {{70, 0}},
       {}});
  return all;
}

class GPUCompanionMutations : public PTXMutations,
                              public testing::WithParamInterface<Companion> {
protected:
  void SetUp() override {
    const Companion &companion = GetParam();
    compile(
        companion.text, companion.requests, {2},
        companion.prepare ? companion.prepare : [](Case &) {});
  }
};

INSTANTIATE_TEST_SUITE_P(Companions, GPUCompanionMutations,
                         testing::ValuesIn(makeCompanions()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

/// The next vector, which is another lane's or lies behind the end.
std::string nextVector(llvm::StringRef s) {
  return shift(s, s.find(']'), s.contains(".v") ? 16 : 4);
}

TEST_P(GPUCompanionMutations, LostStores) {
  expectFailures("st.global", 0, nothing);
}
TEST_P(GPUCompanionMutations, ShiftedStores) {
  expectFailures("st.global", 0, nextVector);
}
TEST_P(GPUCompanionMutations, ShiftedLoads) {
  expectFailures("ld.global", 0, nextVector);
}
TEST_P(GPUCompanionMutations, Arithmetic) {
  auto become = [](const char *from, const char *to) {
    return [=](llvm::StringRef s) {
      std::string changed = s.str();
      changed.replace(changed.find(from), std::strlen(from), to);
      return changed;
    };
  };
  auto expectAll = [&](const char *from, const char *to, unsigned harmless = 0,
                       const char *without = "") {
    if (!find(from, without).empty())
      expectFailures(from, harmless, become(from, to), without);
  };
  // Not the last terms of a sine, which are smaller than what is allowed.
  expectAll("add.rn.ftz.f32", "sub.rn.ftz.f32", 0, ", 0f");
  expectAll("mul.ftz.f32", "add.ftz.f32");
  expectAll("div.rn.ftz.f32", "mul.ftz.f32");
  expectAll("max.ftz.f32", "min.ftz.f32");
  expectAll("shfl.sync.bfly.b32", "shfl.sync.idx.b32",
            GetParam().harmlessShuffles);
  expectAll("rcp.rn.ftz.f32", "sqrt.rn.ftz.f32");
}

/// Sums of the warps of a row meet in shared memory.
class GPUNormMutations : public PTXMutations {
protected:
  void SetUp() override {
    for (const Companion &companion : makeCompanions())
      if (llvm::StringRef(companion.name) == "layer_norm")
        compile(companion.text, companion.requests, {2});
  }
};

TEST_F(GPUNormMutations, Barriers) {
  expectReports("bar.sync", 2, {"race", "uninitialized memory"}, nothing);
}
TEST_F(GPUNormMutations, SharedMemory) {
  expectFailures("st.shared", 0, nothing);
  expectFailures("ld.shared", 0, nextVector);
}

} // namespace
