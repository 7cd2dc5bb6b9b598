//===- CacheEntry.cpp - compiled programs in the cache --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CacheEntry.h"
#include "Machine.h"
#include "fi/ABI/KernelABI.h"
#include "fi/Support/File.h"
#include "fi/Target/PackageFiles.h"
#include "llvm/Support/FileSystem.h"
#include <cstring>
#include <dlfcn.h>

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

namespace {

/// Code from an entry's shared object.
class LoadedProgram : public CompiledProgram {
public:
  LoadedProgram(StringRef text, void *library) : library(library) {
    manifest = text.str();
    times.cached = true;
  }
  ~LoadedProgram() override { dlclose(library); }

  void *lookup(StringRef symbol) const override {
    return dlsym(library, symbol.str().c_str());
  }

private:
  void *library;
};

} // namespace

std::string fi::cpu::getCacheKey(ModuleOp prepared, TargetAttr target,
                                 unsigned optLevel) {
  std::string fields;
  llvm::raw_string_ostream(fields) << target << "\n"
                                   << getTuning(target) << "\n"
                                   << optLevel << "\n";
  return makeCacheKey(fields, prepared);
}

std::unique_ptr<CompiledProgram> fi::cpu::loadPackage(StringRef directory) {
  // Loading a damaged object could end the process.
  if (!llvm::sys::fs::is_directory(directory) ||
      !isIntact(directory, {"manifest.json", "kernels.so"}))
    return nullptr;
  auto manifest = readFile(inDirectory(directory, "manifest.json"));
  if (!manifest) {
    llvm::consumeError(manifest.takeError());
    return nullptr;
  }
  void *library = dlopen(inDirectory(directory, "kernels.so").c_str(),
                         RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return nullptr;
  auto program =
      std::make_unique<LoadedProgram>((*manifest)->getBuffer(), library);
  void *version = program->lookup(FI_ABI_VERSION_SYMBOL);
  int32_t found = 0;
  if (version)
    std::memcpy(&found, version, sizeof(found));
  if (found != FI_ABI_VERSION)
    return nullptr;
  return program;
}
