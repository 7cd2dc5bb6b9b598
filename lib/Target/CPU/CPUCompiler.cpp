//===- CPUCompiler.cpp - from a program to machine code of this host ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/CPU/CPUCompiler.h"
#include "CacheEntry.h"
#include "LLVMCodegen.h"
#include "Lowering.h"
#include "Machine.h"
#include "SharedObject.h"
#include "fi/Target/PackageFiles.h"

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

CompiledProgram::~CompiledProgram() = default;

void *CompiledProgram::lookupCallback(void *context, const char *symbol) {
  return static_cast<CompiledProgram *>(context)->lookup(symbol);
}

namespace {

/// Code in this process.
class JITProgram : public CompiledProgram {
public:
  JITProgram(StringRef text, std::unique_ptr<llvm::orc::LLJIT> jit)
      : jit(std::move(jit)) {
    manifest = text.str();
  }

  void *lookup(StringRef symbol) const override {
    auto address = jit->lookup(symbol);
    if (!address) {
      llvm::consumeError(address.takeError());
      return nullptr;
    }
    return address->toPtr<void *>();
  }

private:
  std::unique_ptr<llvm::orc::LLJIT> jit;
};

} // namespace

/// A program runs here only if this machine has what its target says.
static llvm::Error checkHost(TargetAttr target) {
  TargetAttr host = getHostTarget(target.getContext());
  SmallVector<StringRef> present = getFeatures(host);
  if (!llvm::all_of(getFeatures(target), [&](StringRef feature) {
        return llvm::is_contained(present, feature);
      })) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "expected a target that this machine can execute, at most " << host
        << ", but got " << target
        << "; write a package for the other machine, or leave 'fi.target' away";
    return llvm::createStringError(text);
  }
  return llvm::Error::success();
}

llvm::Expected<std::unique_ptr<CompiledProgram>>
CompiledProgram::compile(ModuleOp module, StringRef name,
                         const CompileOptions &options) {
  CompileTimes times;
  double start = now();
  Lowering lowering(options);
  if (llvm::Error error = lowering.prepare(module, name))
    return std::move(error);
  if (llvm::Error error = checkHost(lowering.getTarget()))
    return std::move(error);

  CacheOptions cacheOptions = options.cache;
  cacheOptions.enabled &= !options.observe;
  Cache cache(cacheOptions);
  std::string key;
  std::unique_ptr<CompiledProgram> program;
  if (cache.isEnabled()) {
    key = getCacheKey(lowering.getModule(), lowering.getTarget(),
                      options.optLevel);
    auto load = [&](StringRef directory) {
      program = loadPackage(directory);
      return program != nullptr;
    };
    if (!cache.load(key, load))
      cache.waitOrLock(key, load);
  }
  times.prepare = now() - start;
  if (program) {
    times.cached = true;
    times.total = now() - start;
    program->times = times;
    return program;
  }

  std::vector<ObjectCode> objects;
  {
    std::optional<ParallelContext> parallel;
    if (options.sideBySide)
      parallel.emplace(module.getContext());
    double lowerStart = now();
    if (llvm::Error error = lowering.lower(Level::LLVM, options.sideBySide))
      return std::move(error);
    times.lower = now() - lowerStart;
    auto compiled = compileKernels(lowering.getKernels(), lowering.getTarget(),
                                   options.optLevel, times);
    if (!compiled)
      return compiled.takeError();
    objects = std::move(*compiled);
  }
  auto jit = loadInProcess(objects, lowering.getTarget());
  if (!jit)
    return jit.takeError();
  double storeStart = now();
  cache.store(key, [&](StringRef directory) {
    return writePackageFiles(lowering.getManifest(), objects, directory);
  });
  times.store = now() - storeStart;
  times.total = now() - start;
  program =
      std::make_unique<JITProgram>(lowering.getManifest(), std::move(*jit));
  program->times = times;
  return program;
}

//===----------------------------------------------------------------------===//
// Translations
//===----------------------------------------------------------------------===//

llvm::Error fi::cpu::printManifest(ModuleOp module, StringRef name,
                                   const CompileOptions &options,
                                   llvm::raw_ostream &os) {
  Lowering lowering(options);
  if (llvm::Error error = lowering.prepare(module, name))
    return error;
  // The scratch of a kernel is known when its loops are.
  if (llvm::Error error = lowering.lower(Level::Vector, /*split=*/false))
    return error;
  os << lowering.getManifest();
  return llvm::Error::success();
}

static llvm::Error
withIR(ModuleOp module, StringRef name, const CompileOptions &options,
       llvm::function_ref<llvm::Error(llvm::Module &, TargetAttr)> use) {
  Lowering lowering(options);
  if (llvm::Error error = lowering.prepare(module, name))
    return error;
  if (llvm::Error error = lowering.lower(Level::LLVM, /*split=*/false))
    return error;
  TargetAttr target = lowering.getTarget();
  if (auto machine = createMachine(target, options.optLevel); !machine)
    return machine.takeError();
  return runSafely([&]() -> llvm::Error {
    CompileTimes times;
    llvm::LLVMContext context;
    auto ir = translate(lowering.getModule(), target, /*definesVersion=*/true,
                        context, options.optLevel, times);
    if (!ir)
      return ir.takeError();
    return use(**ir, target);
  });
}

llvm::Error fi::cpu::printLLVMIR(ModuleOp module, StringRef name,
                                 const CompileOptions &options,
                                 llvm::raw_ostream &os) {
  return withIR(module, name, options, [&](llvm::Module &ir, TargetAttr) {
    ir.print(os, nullptr);
    return llvm::Error::success();
  });
}

llvm::Error fi::cpu::printAssembly(ModuleOp module, StringRef name,
                                   const CompileOptions &options,
                                   llvm::raw_ostream &os) {
  return withIR(module, name, options,
                [&](llvm::Module &ir, TargetAttr target) {
                  ObjectCode text;
                  llvm::raw_svector_ostream stream(text);
                  llvm::Error error = emitCode(ir, target, options.optLevel,
                                               /*asAssembly=*/true, stream);
                  os << stream.str();
                  return error;
                });
}

llvm::Error fi::cpu::writePackage(ModuleOp module, StringRef name,
                                  const CompileOptions &options,
                                  StringRef directory) {
  if (llvm::Error error = checkPackageDirectory(directory))
    return error;
  Lowering lowering(options);
  if (llvm::Error error = lowering.prepare(module, name))
    return error;
  std::vector<ObjectCode> objects;
  {
    ParallelContext parallel(module.getContext());
    if (llvm::Error error = lowering.lower(Level::LLVM, /*split=*/true))
      return error;
    CompileTimes times;
    auto compiled = compileKernels(lowering.getKernels(), lowering.getTarget(),
                                   options.optLevel, times);
    if (!compiled)
      return compiled.takeError();
    objects = std::move(*compiled);
  }
  return writePackageDirectory(directory, [&](StringRef temporary) {
    return writePackageFiles(lowering.getManifest(), objects, temporary);
  });
}
