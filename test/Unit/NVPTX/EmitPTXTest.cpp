//===- EmitPTXTest.cpp - PTX in process -----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "fi/InitAll.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include <thread>

using namespace mlir;
using namespace fi;
using llvm::toString;
using testing::HasSubstr;

static const char *const good = R"(
  llvm.func @k(%p: !llvm.ptr<1>, %i: i64) attributes {nvvm.kernel} {
    llvm.store %i, %p : i64, !llvm.ptr<1>
    llvm.return
  })";

/// No chip before sm_89 has the instruction.
static const char *const bad = R"(
  llvm.func @k(%p: !llvm.ptr<1>, %i: i32, %x: f32) attributes {nvvm.kernel} {
    %r = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e4m3.f32"(%i, %i, %i, %i, %i, %i, %x, %x, %x, %x) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
    llvm.store %r, %p : !llvm.struct<(f32, f32, f32, f32)>, !llvm.ptr<1>
    llvm.return
  })";

namespace {

/// A context and a module in it.
struct Parsed {
  explicit Parsed(StringRef text)
      : context(makeRegistry(), MLIRContext::Threading::DISABLED),
        module(parseSourceString<ModuleOp>(text, &context, "input.mlir")) {}

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    gpu::registerCompiler(registry);
    return registry;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST(EmitPTX, GoesOnAfterAFailure) {
  const sm::Target &chip = *sm::lookup("sm_80");
  Parsed works(good), fails(bad);
  auto first = nvptx::emitPTX(*works.module, chip);
  ASSERT_TRUE(bool(first)) << toString(first.takeError());
  for (int i = 0; i < 3; ++i) {
    auto none = nvptx::emitPTX(*fails.module, chip);
    ASSERT_FALSE(bool(none));
    EXPECT_THAT(toString(none.takeError()),
                HasSubstr("gave up on a kernel for sm_80 and PTX 7.4: Cannot "
                          "select"));
    nvptx::EmitTimes times;
    auto again = nvptx::emitPTX(*works.module, chip, {}, &times);
    ASSERT_TRUE(bool(again)) << toString(again.takeError());
    EXPECT_EQ(*again, *first);
    EXPECT_GT(times.convert, 0);
    EXPECT_GT(times.codegen, 0);
  }
  auto newer = nvptx::emitPTX(*fails.module, *sm::lookup("sm_120a"));
  EXPECT_TRUE(bool(newer)) << toString(newer.takeError());
}

TEST(EmitPTX, SeveralThreadsAtOnce) {
  std::string failures[4];
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 8; ++i) {
        bool isGood = (t + i) % 2 == 0;
        Parsed parsed(isGood ? good : bad);
        auto ptx = nvptx::emitPTX(*parsed.module, *sm::lookup("sm_80"));
        std::string why = ptx ? "" : toString(ptx.takeError());
        if (isGood ? !why.empty()
                   : !StringRef(why).contains("Cannot select: intrinsic"))
          failures[t] = "thread " + std::to_string(t) + ": " + why;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_THAT(failures, testing::Each(""));
}

TEST(EmitPTX, EveryTarget) {
  Parsed parsed(good);
  for (const sm::Target &chip : sm::getTargets()) {
    auto ptx = nvptx::emitPTX(*parsed.module, chip);
    ASSERT_TRUE(bool(ptx)) << toString(ptx.takeError());
    EXPECT_THAT(*ptx, HasSubstr(".version " + sm::formatPTX(chip.ptx) +
                                "\n.target " + chip.name.str() + "\n"));
  }
}

TEST(EmitPTX, LocationsAreLinesOfTheSnapshot) {
  Parsed parsed(good);
  std::string text = nvptx::snapshotLocations(*parsed.module, "tiles.mlir");
  StringRef before = StringRef(text).split("llvm.store").first;
  std::string line = std::to_string(before.count('\n') + 1);
  auto ptx = nvptx::emitPTX(*parsed.module, *sm::lookup("sm_80"));
  ASSERT_TRUE(bool(ptx)) << toString(ptx.takeError());
  EXPECT_THAT(*ptx, HasSubstr("\"tiles.mlir\""));
  size_t store = ptx->find("st.global");
  ASSERT_NE(store, std::string::npos);
  size_t loc = ptx->rfind(".loc", store);
  ASSERT_NE(loc, std::string::npos);
  EXPECT_THAT(ptx->substr(loc, store - loc),
              testing::StartsWith(".loc\t1 " + line + " "));
}

/// Two kernels from two files, each of which the other's text would number
/// first, and the symbol that they share.
static std::string twoKernels(StringRef first, StringRef second) {
  auto kernel = [](StringRef name, StringRef outer, StringRef inner) {
    return ("llvm.func @" + name +
            "(%p: !llvm.ptr<1>, %i: i64) attributes {nvvm.kernel} {\n"
            "  %s = llvm.mlir.addressof @shared : !llvm.ptr<3>\n"
            "  llvm.store %i, %s : i64, !llvm.ptr<3> loc(\"" +
            inner +
            "\":7:1)\n"
            "  llvm.store %i, %p : i64, !llvm.ptr<1> loc(\"" +
            outer +
            "\":9:1)\n"
            "  llvm.return loc(\"" +
            outer + "\":10:1)\n} loc(\"" + outer + "\":5:1)\n")
        .str();
  };
  return "llvm.mlir.global external @shared() {addr_space = 3 : i32} : "
         "!llvm.array<0 x i8>\n" +
         kernel(first, "a.mlir", "b.mlir") + kernel(second, "b.mlir", "a.mlir");
}

static int count(StringRef text, StringRef what) {
  return static_cast<int>(text.count(what));
}

TEST(EmitPTX, KernelsBecomeOneText) {
  Parsed parsed(twoKernels("k", "l"));
  const sm::Target &chip = *sm::lookup("sm_80");
  auto ptx = nvptx::emitPTX(*parsed.module, chip);
  ASSERT_TRUE(bool(ptx)) << toString(ptx.takeError());
  EXPECT_EQ(count(*ptx, ".version"), 1) << *ptx;
  EXPECT_EQ(count(*ptx, ".extern .shared"), 1);
  EXPECT_EQ(count(*ptx, ".visible .entry"), 2);
  // A number for each file, and its lines under that number in both kernels.
  EXPECT_EQ(count(*ptx, "\t.file\t"), 2);
  size_t second = ptx->find(".entry l(");
  ASSERT_NE(second, std::string::npos);
  std::string a = StringRef(*ptx).contains(".file\t1 \"a.mlir\"") ? "1" : "2";
  std::string b = a == "1" ? "2" : "1";
  EXPECT_THAT(*ptx, HasSubstr(".file\t" + a + " \"a.mlir\""));
  EXPECT_THAT(*ptx, HasSubstr(".file\t" + b + " \"b.mlir\""));
  for (auto [text, outer, inner] : {std::tuple(ptx->substr(0, second), a, b),
                                    std::tuple(ptx->substr(second), b, a)}) {
    EXPECT_THAT(text, HasSubstr(".loc\t" + outer + " 9 "));
    EXPECT_THAT(text, HasSubstr(".loc\t" + inner + " 7 "));
  }
  auto again = nvptx::emitPTX(*parsed.module, chip);
  ASSERT_TRUE(bool(again));
  EXPECT_EQ(*again, *ptx);

  // What one kernel cannot do is said, whichever it is.
  Parsed mixed(std::string(good) +
               StringRef(bad).ltrim().str().replace(0, 12, "llvm.func @b"));
  auto none = nvptx::emitPTX(*mixed.module, chip);
  ASSERT_FALSE(bool(none));
  EXPECT_THAT(toString(none.takeError()), HasSubstr("Cannot select"));
}

/// A function that kernels call stays in the module with them.
TEST(EmitPTX, FunctionsThatKernelsShare) {
  std::string text = R"(
  llvm.func internal @f(%i: i64) -> i64 attributes {no_inline} {
    llvm.return %i : i64
  })";
  for (const char *name : {"k", "l"})
    text += std::string("llvm.func @") + name + R"((%p: !llvm.ptr<1>, %i: i64)
      attributes {nvvm.kernel} {
    %r = llvm.call @f(%i) : (i64) -> i64
    llvm.store %r, %p : i64, !llvm.ptr<1>
    llvm.return
  })";
  Parsed parsed(text);
  ASSERT_TRUE(parsed.module);
  nvptx::EmitOptions options;
  options.optLevel = 2; // -O3 would put it into both
  auto ptx = nvptx::emitPTX(*parsed.module, *sm::lookup("sm_80"), options);
  ASSERT_TRUE(bool(ptx)) << toString(ptx.takeError());
  EXPECT_EQ(count(*ptx, ".visible .entry"), 2) << *ptx;
  EXPECT_THAT(*ptx, HasSubstr(".func "));
}

TEST(CompileForGPU, PackagesInMemory) {
  std::string text =
      "module attributes {fi.target = #fi.target<sm_80>} {\n"
      "fi_tile.package @p {manifest = 1, stages = [{bodies = [{symbol = \"k\", "
      "launch = {threads = 32}}]}]}" +
      std::string(good) + "}";
  Parsed parsed(text);
  gpu::CompileOptions options;
  options.assemble = false;
  auto package = gpu::compileForGPU(*parsed.module, "p", options);
  ASSERT_TRUE(bool(package)) << toString(package.takeError());
  EXPECT_THAT(package->manifest, HasSubstr("\"chip\": \"sm_80\""));
  EXPECT_THAT(package->ptx, HasSubstr(".visible .entry k("));
  EXPECT_EQ(package->cubin, "");
  EXPECT_EQ(package->cubinMissing, "it was not asked for");
  EXPECT_EQ(package->tiles, "");
  EXPECT_FALSE(package->times.cached);
  // The input is as it was.
  EXPECT_EQ(std::distance(parsed.module->getBody()->begin(),
                          parsed.module->getBody()->end()),
            2);
}

TEST(CompileForGPU, TargetsThatAreNone) {
  Parsed parsed(good);
  auto package = gpu::compileForGPU(*parsed.module, "");
  ASSERT_FALSE(bool(package));
  EXPECT_THAT(toString(package.takeError()),
              HasSubstr("expected a module with a target among sm_75, "));
}
