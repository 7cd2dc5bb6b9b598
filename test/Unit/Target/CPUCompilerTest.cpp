//===- CPUCompilerTest.cpp - compiling in process, and its cache ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What embedders rely on: one program out of several, targets, a cache that
// several threads use at once. Set FI_PRINT_TIMES to see where time goes.
//
//===----------------------------------------------------------------------===//

#include "fi/Target/CPU/CPUCompiler.h"
#include "fi-runtime/fi_runtime.h"
#include "fi/ABI/KernelABI.h"
#include "fi/InitAll.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstdlib>
#include <cstring>
#include <thread>

using namespace fi;
using testing::HasSubstr;

namespace {

const char *const prefill = R"(
!ix = tensor<?xi32>
!pool = memref<?x8x16x128xf32>
!kv = !fi.paged_kv<16x8x128xf32, HND>
!q = tensor<?x32x128xf32>
fi.program @NAME plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, tensor<?x32xf32>) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.0883) mask(#fi.causal) : !q over !kv -> !q, tensor<?x32xf32>
  fi.return %o, %lse : !q, tensor<?x32xf32>
}
)";

std::string program(llvm::StringRef name) {
  std::string text = prefill;
  text.replace(text.find("NAME"), 4, name.str());
  return text;
}

/// A module in a context of its own.
struct Parsed {
  explicit Parsed(const std::string &text) {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    cpu::registerCompiler(registry);
    context = std::make_unique<mlir::MLIRContext>(
        registry, mlir::MLIRContext::Threading::DISABLED);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, context.get());
    if (!module)
      std::abort();
  }
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A directory that is removed.
struct Directory {
  Directory() {
    llvm::SmallString<128> made;
    if (llvm::sys::fs::createUniqueDirectory("fi-compiler-test", made))
      std::abort();
    path = made.str().str();
  }
  ~Directory() { llvm::sys::fs::remove_directories(path); }
  int count() const {
    std::error_code code;
    int n = 0;
    for (llvm::sys::fs::directory_iterator it(path, code), end;
         !code && it != end; it.increment(code))
      ++n;
    return n;
  }
  std::string path;
};

cpu::CompileOptions inCache(const Directory &directory) {
  cpu::CompileOptions options;
  options.cache.directory = directory.path;
  return options;
}

cpu::CompileOptions withoutCache() {
  cpu::CompileOptions options;
  options.cache.enabled = false;
  return options;
}

std::unique_ptr<cpu::CompiledProgram>
compile(const Parsed &parsed, const cpu::CompileOptions &options,
        llvm::StringRef name = "") {
  auto made = cpu::CompiledProgram::compile(*parsed.module, name, options);
  if (made)
    return std::move(*made);
  ADD_FAILURE() << llvm::toString(made.takeError());
  return nullptr;
}

std::string errorOf(const Parsed &parsed, llvm::StringRef name = "") {
  auto made =
      cpu::CompiledProgram::compile(*parsed.module, name, withoutCache());
  return made ? "" : llvm::toString(made.takeError());
}

/// The runtime finds all kernels, so the manifest and the code agree.
void expectWhole(const cpu::CompiledProgram &program) {
  fi_package *package = nullptr;
  llvm::StringRef manifest = program.getManifest();
  EXPECT_EQ(fi_package_from_memory(manifest.data(), manifest.size(),
                                   cpu::CompiledProgram::lookupCallback,
                                   const_cast<cpu::CompiledProgram *>(&program),
                                   &package),
            FI_OK)
      << fi_last_error();
  fi_package_release(package);
  int32_t version = 0;
  void *address = program.lookup(FI_ABI_VERSION_SYMBOL);
  ASSERT_NE(address, nullptr);
  std::memcpy(&version, address, sizeof(version));
  EXPECT_EQ(version, FI_ABI_VERSION);
  EXPECT_EQ(program.lookup("nobody"), nullptr);
}

TEST(CPUCompiler, CompilesAndCaches) {
  Directory directory;
  Parsed parsed(program("llama"));
  auto cold = compile(parsed, inCache(directory));
  ASSERT_TRUE(cold);
  EXPECT_FALSE(cold->getTimes().cached);
  expectWhole(*cold);
  auto warm = compile(parsed, inCache(directory));
  ASSERT_TRUE(warm);
  EXPECT_TRUE(warm->getTimes().cached);
  EXPECT_EQ(warm->getManifest(), cold->getManifest());
  expectWhole(*warm);
  EXPECT_EQ(directory.count(), 1);
  if (std::getenv("FI_PRINT_TIMES"))
    for (const cpu::CompiledProgram *one : {cold.get(), warm.get()}) {
      const cpu::CompileTimes &t = one->getTimes();
      std::printf(
          "%s: total %.1f ms; prepare %.1f, lower %.1f, translate %.1f, "
          "optimise %.1f, codegen %.1f, store %.1f\n",
          t.cached ? "cached" : "cold", t.total, t.prepare, t.lower,
          t.translate, t.optimise, t.codegen, t.store);
    }
}

TEST(CPUCompiler, LeavesTheModuleAndTheContextAlone) {
  Parsed parsed(program("llama"));
  std::string before, after;
  llvm::raw_string_ostream(before) << *parsed.module;
  ASSERT_TRUE(compile(parsed, withoutCache()));
  llvm::raw_string_ostream(after) << *parsed.module;
  EXPECT_EQ(before, after);
  EXPECT_FALSE(parsed.context->isMultithreadingEnabled());
}

TEST(CPUCompiler, KeyOfTheCache) {
  Directory directory;
  Parsed a(program("llama"));
  ASSERT_TRUE(compile(a, inCache(directory)));
  // Where a program stands, and what is beside it, is not part of it.
  std::string two = "// a comment\n" + program("llama");
  std::string other = program("other");
  two += other.substr(other.find("fi.program"));
  Parsed b(two);
  auto same = compile(b, inCache(directory), "llama");
  ASSERT_TRUE(same);
  EXPECT_TRUE(same->getTimes().cached);
  // Its name, the optimiser and the target are.
  auto renamed = compile(b, inCache(directory), "other");
  ASSERT_TRUE(renamed);
  EXPECT_FALSE(renamed->getTimes().cached);
  cpu::CompileOptions quick = inCache(directory);
  quick.optLevel = 1;
  auto quickly = compile(a, quick);
  ASSERT_TRUE(quickly);
  EXPECT_FALSE(quickly->getTimes().cached);
  (*a.module)->setAttr(
      kTargetAttr,
      TargetAttr::get(a.context.get(),
                      mlir::StringAttr::get(a.context.get(), "cpu"), 128,
                      /*bf16Dot=*/false));
  auto narrow = compile(a, inCache(directory));
  ASSERT_TRUE(narrow);
  EXPECT_FALSE(narrow->getTimes().cached);
  EXPECT_THAT(narrow->getManifest().str(), HasSubstr("x86-64-v2"));
  expectWhole(*narrow);
  EXPECT_EQ(directory.count(), 4);
}

TEST(CPUCompiler, ObserverSeesEveryStage) {
  Directory directory;
  Parsed parsed(program("llama"));
  ASSERT_TRUE(compile(parsed, inCache(directory)));
  std::vector<std::string> stages;
  cpu::CompileOptions options = inCache(directory);
  options.observe = [&](llvm::StringRef stage, mlir::ModuleOp module) {
    EXPECT_FALSE(module.getBody()->empty());
    stages.push_back(stage.str());
  };
  auto made = compile(parsed, options);
  ASSERT_TRUE(made);
  EXPECT_FALSE(made->getTimes().cached);
  EXPECT_THAT(stages, testing::ElementsAre("fi", "fi_tile", "vector", "llvm"));
  expectWhole(*made);
}

TEST(CPUCompiler, ThreadsShareACache) {
  Directory directory;
  std::vector<std::unique_ptr<cpu::CompiledProgram>> made(8);
  std::vector<std::unique_ptr<Parsed>> parsed;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < made.size(); ++i)
    parsed.push_back(std::make_unique<Parsed>(program(i % 2 ? "odd" : "even")));
  for (size_t i = 0; i < made.size(); ++i)
    threads.emplace_back([&, i] {
      auto one = cpu::CompiledProgram::compile(*parsed[i]->module, "",
                                               inCache(directory));
      if (one)
        made[i] = std::move(*one);
      else
        llvm::consumeError(one.takeError());
    });
  for (std::thread &thread : threads)
    thread.join();
  int compiled = 0;
  for (const auto &one : made) {
    ASSERT_TRUE(one);
    expectWhole(*one);
    compiled += !one->getTimes().cached;
  }
  EXPECT_EQ(compiled, 2);
  EXPECT_EQ(directory.count(), 2);
}

TEST(CPUCompiler, Errors) {
  Parsed empty("module {}");
  EXPECT_THAT(errorOf(empty),
              HasSubstr("expected a module with an fi.program"));
  Parsed one(program("llama"));
  EXPECT_EQ(errorOf(one, "nobody"),
            "expected one of the programs 'llama', but got 'nobody'");
  std::string text = program("a"), other = program("b");
  text += other.substr(other.find("fi.program"));
  Parsed two(text);
  EXPECT_EQ(errorOf(two), "expected the name of one of the programs 'a' 'b'");
  TargetAttr host = cpu::getHostTarget(one.context.get());
  if (host.getVectorBits() < 512) {
    (*one.module)
        ->setAttr(kTargetAttr,
                  TargetAttr::get(one.context.get(), host.getKind(), 512,
                                  /*bf16Dot=*/false));
    EXPECT_THAT(errorOf(one),
                HasSubstr("expected a target that this machine can execute"));
  }
}

} // namespace
