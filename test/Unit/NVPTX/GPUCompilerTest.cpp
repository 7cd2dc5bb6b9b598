//===- GPUCompilerTest.cpp - programs to packages for GPUs ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "fi/Target/PackageFiles.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "gmock/gmock.h"

using namespace mlir;
using namespace fi;
using llvm::toString;
using testing::HasSubstr;

static const char *const program = R"(
  !q = tensor<?x4x64xf16>
  !k = tensor<?x2x64xf16>
  !kv = !fi.ragged_kv<2x64xf16>
  module attributes {fi.target = #fi.target<sm_80>} {
    fi.program @attend run(%q: !q, %k: !k, %v: !k) -> (!q) {
      %kv = fi.view.ragged %k, %v : !k, !k -> !kv
      %o = fi.attention %q over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q
      fi.return %o : !q
    }
  })";

namespace {

class GPUCompiler : public testing::Test {
protected:
  GPUCompiler()
      : context(makeRegistry(), MLIRContext::Threading::DISABLED),
        module(parseSourceString<ModuleOp>(program, &context)) {
    llvm::SmallString<128> path;
    EXPECT_FALSE(llvm::sys::fs::createUniqueDirectory("fi-gpu-cache", path));
    cache = path.str().str();
    options.cache.directory = cache;
    options.assemble = false;
  }
  ~GPUCompiler() override { llvm::sys::fs::remove_directories(cache); }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    gpu::registerCompiler(registry);
    return registry;
  }

  gpu::CompiledPackage compile() {
    auto package = gpu::compileForGPU(*module, "", options);
    if (package)
      return std::move(*package);
    ADD_FAILURE() << toString(package.takeError());
    return {};
  }

  /// The directories in the cache, without locks.
  std::vector<std::string> entries() {
    std::vector<std::string> found;
    std::error_code code;
    for (llvm::sys::fs::directory_iterator it(cache, code), end; it != end;
         it.increment(code))
      if (llvm::sys::fs::is_directory(it->path()))
        found.push_back(it->path());
    return found;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  gpu::CompileOptions options;
  std::string cache;
};

} // namespace

TEST_F(GPUCompiler, ProgramsBecomePackages) {
  ASSERT_TRUE(module);
  gpu::CompiledPackage package = compile();
  EXPECT_FALSE(package.times.cached);
  EXPECT_THAT(package.manifest, HasSubstr("\"chip\": \"sm_80\""));
  EXPECT_THAT(package.manifest, HasSubstr("\"launch\": {"));
  EXPECT_THAT(package.ptx, HasSubstr("mma.sync.aligned.m16n8k16"));
  EXPECT_THAT(package.ptx, HasSubstr("\"kernels.fi_tile.mlir\""));
  EXPECT_THAT(package.tiles, HasSubstr("fi_tile.kernel"));
}

TEST_F(GPUCompiler, TheCacheHasTheSameBytes) {
  ASSERT_TRUE(module);
  gpu::CompiledPackage first = compile(), second = compile();
  EXPECT_TRUE(second.times.cached);
  EXPECT_EQ(first.manifest, second.manifest);
  EXPECT_EQ(first.ptx, second.ptx);
  EXPECT_EQ(first.tiles, second.tiles);
  ASSERT_EQ(entries().size(), 1u);
  EXPECT_TRUE(isIntact(entries()[0], {"manifest.json", "kernels.ptx"}));

  // What is damaged is made again.
  ASSERT_FALSE(llvm::errorToBool(
      writeFile(inDirectory(entries()[0], "kernels.ptx"),
                [](llvm::raw_ostream &os) { os << "half"; })));
  gpu::CompiledPackage third = compile();
  EXPECT_FALSE(third.times.cached);
  EXPECT_EQ(first.ptx, third.ptx);
  EXPECT_TRUE(compile().times.cached);

  // What decides the bytes is in the key.
  options.emit.ptx = 80;
  EXPECT_FALSE(compile().times.cached);
  options.emit.ptx = 0;
  options.emit.locations = false;
  EXPECT_FALSE(compile().times.cached);
  options.emit.locations = true;
  options.emit.optLevel = 0;
  EXPECT_FALSE(compile().times.cached);
  EXPECT_EQ(entries().size(), 4u);

  options.emit.optLevel = nvptx::EmitOptions().optLevel;
  std::vector<std::string> stages;
  options.observe = [&](StringRef stage, ModuleOp) {
    stages.push_back(stage.str());
  };
  EXPECT_FALSE(compile().times.cached);
  EXPECT_THAT(stages, testing::ElementsAre("fi", "fi_tile", "placed", "nvvm"));
}

TEST_F(GPUCompiler, MachineCodeComesWithItsResources) {
  ASSERT_TRUE(module);
  auto ptxas = nvptx::findPtxas();
  ASSERT_TRUE(bool(ptxas));
  if (ptxas->empty())
    GTEST_SKIP() << "no ptxas";
  options.assemble = true;
  gpu::CompiledPackage first = compile(), second = compile();
  EXPECT_TRUE(second.times.cached);
  EXPECT_FALSE(first.cubin.empty());
  EXPECT_EQ(first.cubin, second.cubin);
  EXPECT_EQ(first.cubinMissing, "");
  ASSERT_FALSE(first.resources.empty());
  ASSERT_EQ(first.resources.size(), second.resources.size());
  for (size_t i = 0; i < first.resources.size(); ++i) {
    const nvptx::KernelResources &a = first.resources[i];
    const nvptx::KernelResources *b = nullptr;
    for (const nvptx::KernelResources &other : second.resources)
      if (other.kernel == a.kernel)
        b = &other;
    ASSERT_NE(b, nullptr);
    EXPECT_GT(a.registers, 0u);
    EXPECT_EQ(a.registers, b->registers);
    EXPECT_EQ(a.barriers, b->barriers);
    EXPECT_EQ(a.spillLoads, b->spillLoads);
  }
}
