//===- TargetTest.cpp - every family of kernels on every target -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of level 1 with the schedules that are chosen for each target, from
// text to PTX, in an emulator of that target with its checks, against the
// reference. What runs is every family on every target, with types that take
// turns; with FI_TEST_MATRIX=full in the environment all types on all targets.
// scripts/make_target_matrix.py makes docs/target-matrix.md from the results of
// that; with FI_TEST_ASSEMBLE ptxas has assembled the kernels, too.
//
//===----------------------------------------------------------------------===//

#include "CompanionTexts.h"
#include "EmulatedExecutor.h"
#include "fi/Target/ExtraTarget.h"
#include "fi/Target/NVPTX/Ptxas.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/MapVector.h"

using namespace fi;
using namespace fi::test;

namespace {

/// A family's program with one of the types, on one batch.
struct Work {
  std::string family;
  /// The query's type, or that and what keys and values are stored as.
  std::string types;
  std::string text;
  std::vector<Request> requests;
  Planned planned = {3, SplitChoice::None};
  std::function<void(Case &)> prepare = [](Case &) {};
};

/// How keys and values are stored: their type, and what shares a scale.
struct Storage {
  const char *query, *element, *scales;
  /// What the output is of, where that is not the query's type.
  const char *output = nullptr;
};
constexpr Storage kStorages[] = {
    {"f16", "f16", ""},
    {"bf16", "bf16", ""},
    {"f32", "f32", ""},
    {"f16", "f8E4M3FN", "tensor"},
    {"bf16", "f8E4M3FN", "head"},
    {"f16", "f8E5M2", "tensor"},
    {"bf16", "i8", "token"},
    {"f16", "f4E2M1FN", "nvfp4"},
    {"bf16", "f4E2M1FN", "mxfp4"},
    {"f8E4M3FN", "f8E4M3FN", "tensor", "bf16"},
    {"f8E5M2", "f8E4M3FN", "head", "f16"},
    {"f8E4M3FN", "f16", "", "f16"},
};

/// Targets that have tensor cores for FP8, and others, of each kind.
bool isTargetOfFP8(llvm::StringRef chip) {
  return llvm::is_contained(
      {"sm_75", "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"}, chip);
}
bool hasQueryOfFP8(llvm::StringRef types) { return types.starts_with("f8"); }

std::string describe(const Storage &storage) {
  std::string name = storage.query;
  if (!*storage.scales)
    return storage.output ? name + "_" + storage.element : name;
  llvm::StringRef scales = storage.scales;
  return name + "_" +
         (scales.ends_with("fp4") ? scales.str()
                                  : std::string(storage.element));
}

AttentionText attention(const Storage &storage) {
  AttentionText text;
  text.query = storage.query;
  text.output = storage.output ? storage.output : storage.query;
  text.keys = text.values = storage.element;
  text.keyScales = text.valueScales = storage.scales;
  text.kvHeads = 1;
  text.group = 4;
  text.clauses = "mask(#fi.causal)";
  return text;
}

/// Scales that keep codes in range of the query's type.
std::function<void(Case &)> scalesOf(const Storage &storage) {
  llvm::StringRef scales = storage.scales;
  if (scales.empty())
    return [](Case &) {};
  bool isNumber = scales == "tensor" || scales == "nvfp4";
  bool isBlock = scales.ends_with("fp4");
  return [=](Case &test) {
    if (isNumber)
      test.giveNumber("ks", 0.021).giveNumber("vs", 0.037);
    if (isNumber || isBlock)
      return;
    test.adjust([](const Signature &signature, std::vector<HostValue> &inputs) {
      for (const char *name : {"ks", "vs"}) {
        HostValue &value = inputs[signature.find(name)];
        llvm::SmallVector<int64_t, 4> shape(value.getTensor().getShape());
        value = HostValue(makeScales(shape, deriveSeed(9, name)));
      }
    });
  };
}

/// Pieces of a cut that the program states, and nothing, merged.
std::string mergeText(const std::string &element) {
  std::string text = R"(!ix = tensor<?xi32>
!q = tensor<?x2x32xELT>
!lse = tensor<?x2xf32>
!t = tensor<?x1x32xELT>
!kv = !fi.ragged_kv<1x32xELT>
!seg = !fi.state<?x2x32xf32, #fi.softmax<base = 2>, segmented>
!st = !fi.state<?x2x32xf32, #fi.softmax<base = 2>>
fi.program @cut plan(%qo: !ix, %ip: !ix) run(%q: !q, %k: !t, %v: !t) -> (!q, !lse) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(0.4) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %zero = arith.constant 0 : index
  %n = tensor.dim %q, %zero : !q
  %e = fi.empty rows(%n) : !st
  %m = fi.merge %s, %e : !st
  %o, %l = fi.finalize %m : !st -> !q, !lse
  fi.return %o, %l : !q, !lse
}
)";
  for (size_t at; (at = text.find("ELT")) != std::string::npos;)
    text.replace(at, 3, element);
  return text;
}

std::string normText(const std::string &op, const std::string &element) {
  std::string x = "tensor<?x2x64x" + element + ">",
              w = "tensor<64x" + element + ">";
  return "fi.program @norm run(%x: " + x + ", %w: " + w + ") -> (" + x +
         ") {\n  %y = fi." + op + " %x weight(%w : " + w +
         ") eps(1.0e-6) : " + x + " -> " + x + "\n  fi.return %y : " + x +
         "\n}\n";
}

std::vector<Work> makeWork() {
  std::vector<Work> all;
  auto add = [&](const std::string &family, const std::string &types,
                 const std::string &text, std::vector<Request> requests) {
    Work &work = all.emplace_back();
    work.family = family;
    work.types = types;
    work.text = text;
    work.requests = std::move(requests);
    return &work;
  };
  for (const Storage &storage : kStorages) {
    // One program: the rows of its requests decide which bodies run.
    std::string text = attention(storage).get(), types = describe(storage);
    auto scales = scalesOf(storage);
    add("prefill", types, text, {{37, 37}, {20, 20}})->prepare = scales;
    add("append", types, text, {{19, 75}})->prepare = scales;
    add("verify", types, text, {{6, 50}, {8, 21}})->prepare = scales;
    Work *decode = add("decode", types, text, {{1, 37}, {1, 140}, {0, 0}});
    decode->planned = {4, SplitChoice::Fixed, 64};
    decode->prepare = scales;
    // The widest heads that there are.
    AttentionText wide = attention(storage);
    wide.keyDim = wide.valueDim = 256;
    wide.page = 1;
    wide.isHND = false;
    if (types == "f16" || types == "bf16" || types == "bf16_f8E4M3FN")
      add("wide_heads", types, wide.get(), {{1, 37}, {9, 20}})->prepare =
          scales;
    AttentionText latent = attention(storage);
    latent.valueDim = 64;
    latent.tailDim = 32;
    latent.group = 8;
    latent.isQuerySplit = true;
    latent.valueScales = "";
    if (types == "f16" || types == "bf16" || types == "f16_f8E4M3FN" ||
        types == "f8E4M3FN_f8E4M3FN")
      add("latent", types, latent.get(), {{1, 37}, {3, 20}})->prepare =
          [=](Case &test) {
            if (*storage.scales)
              test.giveNumber("ks", 0.021);
          };
    AttentionText blocks = attention(storage);
    blocks.view = AttentionText::View::Bsr;
    blocks.blockColumns = 32;
    if (types == "f16" || types == "bf16" || types == "bf16_i8")
      add("blocks", types, blocks.get(), {{16, 100}, {3, 64}})->prepare =
          scales;
  }
  for (const char *element : {"f16", "bf16", "f32"}) {
    AttentionText turned = rotaryText(32, "half");
    turned.query = turned.keys = turned.values = turned.output = element;
    add("rotary_attention", element, turned.get(), {{1, 37}, {9, 20}});
    add("merge", element, mergeText(element), {{3, 70}, {1, 5}, {2, 0}});
    AppendText append;
    append.element = append.pool = element;
    append.dim = 32;
    add("kv_append", element, append.get(), {{1, 37}, {9, 20}, {0, 3}});
    add("rms_norm", element, normText("rms_norm", element), {{5, 0}});
    add("layer_norm", element, normText("layer_norm", element), {{5, 0}});
    add("gated", element, gatedText(1, 64, "silu", element, element), {{5, 0}});
    RopeText rope;
    rope.input = rope.output = element;
    rope.dim = rope.dims = 32;
    add("rope", element, rope.get(), {{9, 0}})->prepare = [](Case &test) {
      test.give("pos", positionsOf(9, "i32"));
    };
  }
  for (const char *codes : {"f8E4M3FN", "f8E5M2", "i8"}) {
    AppendText append;
    append.codes = codes;
    append.scales = "tensor";
    append.dim = 32;
    add("kv_append", std::string("bf16_") + codes, append.get(),
        {{1, 37}, {9, 20}})
        ->prepare = [](Case &test) { giveScales(test, "tensor"); };
  }
  return all;
}

const std::vector<Work> &getWork() {
  static const std::vector<Work> all = makeWork();
  return all;
}

using Param = std::tuple<std::string, size_t>;

/// Targets with the numbers of their work.
std::vector<Param> getParams() {
  const char *wanted = std::getenv("FI_TEST_MATRIX");
  bool isFull = wanted && llvm::StringRef(wanted) == "full";
  llvm::MapVector<llvm::StringRef, std::vector<size_t>> families;
  for (auto [number, work] : llvm::enumerate(getWork()))
    families[work.family].push_back(number);
  std::vector<Param> params;
  for (auto [t, target] : llvm::enumerate(sm::getTargets()))
    for (auto [f, family] : llvm::enumerate(families)) {
      const std::vector<size_t> &numbers = family.second;
      for (auto [i, number] : llvm::enumerate(numbers))
        if (isFull || i == (t + f) % numbers.size() ||
            (isTargetOfFP8(target.name) &&
             hasQueryOfFP8(getWork()[number].types)))
          params.emplace_back(target.name.str(), number);
    }
  return params;
}

class TargetTest : public testing::TestWithParam<Param> {};

/// The kernels of `text` for a chip, through ptxas.
llvm::Error assembleFor(const std::string &text, const sm::Target &chip) {
  auto ptxas = nvptx::findPtxas();
  if (!ptxas)
    return ptxas.takeError();
  if (ptxas->empty())
    return llvm::createStringError("ptxas is not there");
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceString<mlir::ModuleOp>(text, &getContext());
  (*module)->setAttr(kTargetAttr, TargetAttr::get(&getContext(), chip));
  gpu::CompileOptions options;
  options.assemble = false;
  auto compiled = gpu::compileForGPU(*module, "", options);
  if (!compiled)
    return compiled.takeError();
  auto assembly = nvptx::assemble(compiled->ptx, chip, *ptxas);
  return assembly ? llvm::Error::success() : assembly.takeError();
}

TEST_P(TargetTest, EqualsReference) {
  const auto &[chip, number] = GetParam();
  const Work &work = getWork()[number];
  RecordProperty("target", chip);
  RecordProperty("family", work.family);
  RecordProperty("types", work.types);
  Case test(work.text, work.requests);
  test.on(on(chip));
  work.prepare(test);
  test.check({work.planned});
  if (std::getenv("FI_TEST_ASSEMBLE")) {
    llvm::Error error = assembleFor(work.text, *sm::lookup(chip));
    RecordProperty("assembled", error ? "no" : "yes");
    if (error)
      ADD_FAILURE() << llvm::toString(std::move(error));
  }
}

INSTANTIATE_TEST_SUITE_P(Matrix, TargetTest, testing::ValuesIn(getParams()),
                         [](const auto &info) {
                           const Work &work =
                               getWork()[std::get<1>(info.param)];
                           return std::get<0>(info.param) + "_" + work.family +
                                  "_" + work.types;
                         });

//===----------------------------------------------------------------------===//
// Targets that nobody makes
//===----------------------------------------------------------------------===//

struct MadeUp {
  const char *name, *of;
  std::vector<sm::Feature> without;
  uint32_t sharedKiB;
  /// Instructions that its code must not have.
  std::vector<const char *> forbidden;
};

void PrintTo(const MadeUp &made, std::ostream *os) { *os << made.name; }

/// A real target without some features and with other limits.
sm::Target makeTarget(const MadeUp &made) {
  sm::Target target = *sm::lookup(made.of);
  target.name = llvm::StringLiteral("made_up");
  for (sm::Feature feature : made.without)
    target.featureMask &= ~(uint64_t(1) << feature);
  target.maxSharedPerCTA = made.sharedKiB << 10;
  target.sharedPerSM = target.maxSharedPerCTA + target.sharedReservedPerCTA;
  return target;
}

/// The most that a launch of a manifest asks for.
int64_t getMost(llvm::StringRef manifest, const char *what) {
  int64_t most = -1;
  std::string key = std::string("\"") + what + "\": ";
  for (size_t at = 0; (at = manifest.find(key, at)) != llvm::StringRef::npos;) {
    int64_t value;
    llvm::StringRef rest = manifest.substr(at += key.size());
    if (!rest.consumeInteger(10, value))
      most = std::max(most, value);
  }
  return most;
}

class MadeUpTargetTest : public testing::TestWithParam<MadeUp> {};

/// Families that multiply run on targets whose features no real one has
/// together, and in little shared memory.
TEST_P(MadeUpTargetTest, EqualsReference) {
  // Their code is for the emulator alone, whatever card there is.
  if (std::getenv("FI_TEST_GPU"))
    GTEST_SKIP() << "no GPU is one of them";
  const MadeUp &made = GetParam();
  getContext().loadDialect<FIDialect>(); // for attributes
  sm::Target row = makeTarget(made);
  sm::ExtraTarget extra(row);
  auto target = TargetAttr::get(&getContext(), row);
  for (const Work &work : getWork()) {
    // With types that the features are about.
    if (work.family != "decode" && work.family != "rotary_attention")
      continue;
    if (work.types != "f16" && work.types != "bf16" &&
        work.types != "f16_f8E4M3FN")
      continue;
    SCOPED_TRACE(work.family + " " + work.types);
    Case test(work.text, work.requests);
    test.on([&](mlir::ModuleOp module)
                -> llvm::Expected<std::unique_ptr<Executor>> {
      mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
      (*copy)->setAttr(kTargetAttr, target);
      gpu::CompileOptions options;
      options.assemble = false;
      auto compiled = gpu::compileForGPU(*copy, "", options);
      if (!compiled)
        return compiled.takeError();
      for (const char *text : made.forbidden)
        EXPECT_FALSE(llvm::StringRef(compiled->ptx).contains(text)) << text;
      int64_t shared = getMost(compiled->manifest, "shared");
      EXPECT_GT(shared, 0);
      EXPECT_LE(shared, int64_t(row.maxSharedPerCTA));
      return Executor::create("emulated:made_up", *copy, "", {});
    });
    work.prepare(test);
    test.check({work.planned});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rows, MadeUpTargetTest,
    testing::Values(
        MadeUp{"NoAsyncCopies", "sm_89", {sm::CpAsync}, 23, {"cp.async"}},
        MadeUp{"NoBF16NorFP8",
               "sm_100a",
               {sm::MmaBF16, sm::CvtFP4, sm::CvtFP8},
               37,
               {"bf16.bf16", "e4m3x2", "e2m1x2"}},
        MadeUp{"ShortProducts",
               "sm_80",
               {sm::MmaF16K16, sm::MmaTF32},
               48,
               {"m16n8k16.row.col.f32.f16", "tf32"}}),
    [](const auto &info) { return info.param.name; });

} // namespace
