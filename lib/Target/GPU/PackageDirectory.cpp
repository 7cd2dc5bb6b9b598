//===- PackageDirectory.cpp - a GPU's package as files --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PackageDirectory.h"
#include "fi/ABI/KernelABI.h"
#include "fi/Support/File.h"
#include "fi/Target/PackageFiles.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

using namespace fi;
using namespace fi::gpu;
using llvm::Error;
using llvm::StringRef;

namespace {

/// A file of a package and what it holds.
struct PackageFile {
  StringRef name;
  std::string CompiledPackage::*content;
  bool isRequired;
};

} // namespace

static constexpr llvm::StringLiteral kManifest = "manifest.json",
                                     kPTX = "kernels.ptx";

static const PackageFile files[] = {
    {kManifest, &CompiledPackage::manifest, true},
    {kPTX, &CompiledPackage::ptx, true},
    {"kernels.cubin", &CompiledPackage::cubin, false},
    {"kernels.fi_tile.mlir", &CompiledPackage::tiles, false}};

Error fi::gpu::writeFiles(const CompiledPackage &package, StringRef directory) {
  llvm::SmallVector<StringRef> written;
  for (const PackageFile &file : files) {
    const std::string &content = package.*file.content;
    if (content.empty() && !file.isRequired)
      continue;
    if (Error error = writeFile(inDirectory(directory, file.name),
                                [&](llvm::raw_ostream &os) { os << content; }))
      return error;
    written.push_back(file.name);
  }
  return writeChecksums(directory, written);
}

Error fi::gpu::writePackage(const CompiledPackage &package,
                            StringRef directory) {
  return writePackageDirectory(directory, [&](StringRef temporary) {
    return writeFiles(package, temporary);
  });
}

Error fi::gpu::writePackages(
    llvm::ArrayRef<std::pair<const sm::Target *, CompiledPackage>> packages,
    StringRef directory) {
  llvm::json::Array chips;
  for (auto &[chip, package] : packages)
    chips.push_back(chip->name.str());
  std::string program;
  auto json = parseJson(packages.front().second.manifest, kManifest);
  if (!json)
    return json.takeError();
  if (const llvm::json::Object *object = json->getAsObject())
    program = object->getString("program").value_or("").str();
  llvm::json::Object manifest{{"manifest", FI_MANIFEST_VERSION},
                              {"abi", FI_ABI_VERSION},
                              {"program", program},
                              {"targets", std::move(chips)}};
  return writePackageDirectory(directory, [&](StringRef temporary) -> Error {
    for (auto &[chip, package] : packages) {
      std::string part = inDirectory(temporary, chip->name);
      if (std::error_code code = llvm::sys::fs::create_directory(part))
        return llvm::createStringError("cannot make '" + part +
                                       "': " + code.message());
      if (Error error = writeFiles(package, part))
        return error;
    }
    if (Error error = writeFile(
            inDirectory(temporary, kManifest), [&](llvm::raw_ostream &os) {
              os << llvm::formatv("{0:2}", llvm::json::Value(
                                               llvm::json::Object(manifest)))
                 << "\n";
            }))
      return error;
    return writeChecksums(temporary, {kManifest});
  });
}

/// What the manifest says of the machine code.
static void readResources(CompiledPackage &package) {
  auto json = parseJson(package.manifest, kManifest);
  if (!json)
    return llvm::consumeError(json.takeError());
  const llvm::json::Object *object = json->getAsObject();
  for (StringRef key : {"target", "cubin"})
    object = object ? object->getObject(key) : nullptr;
  if (!object)
    return;
  if (const llvm::json::Array *kernels = object->getArray("kernels"))
    for (const llvm::json::Value &value : *kernels) {
      const llvm::json::Object *kernel = value.getAsObject();
      if (!kernel)
        continue;
      auto number = [&](StringRef key) -> uint64_t {
        return kernel->getInteger(key).value_or(0);
      };
      nvptx::KernelResources resources;
      resources.kernel = kernel->getString("symbol").value_or("").str();
      resources.registers = number("registers");
      resources.barriers = number("barriers");
      resources.stack = number("stack");
      resources.spillStores = number("spill_stores");
      resources.spillLoads = number("spill_loads");
      resources.staticShared = number("static_shared");
      package.resources.push_back(std::move(resources));
    }
  if (const llvm::json::Array *warnings = object->getArray("warnings"))
    for (const llvm::json::Value &warning : *warnings)
      if (auto text = warning.getAsString())
        package.warnings.push_back(text->str());
}

bool fi::gpu::readFiles(StringRef directory, CompiledPackage &package) {
  if (!llvm::sys::fs::is_directory(directory) ||
      !isIntact(directory, {kManifest, kPTX}))
    return false;
  CompiledPackage found;
  for (const PackageFile &file : files) {
    auto buffer = readFile(inDirectory(directory, file.name));
    if (buffer)
      found.*file.content = (*buffer)->getBuffer().str();
    else
      llvm::consumeError(buffer.takeError());
  }
  readResources(found);
  package = std::move(found);
  return true;
}
