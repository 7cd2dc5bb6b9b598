//===- GPUCompiler.cpp - from a program to a package for a GPU ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/GPU/GPUCompiler.h"
#include "FeatureUse.h"
#include "Launch.h"
#include "PackageDirectory.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Target/CodegenSupport.h"
#include "fi/Target/Manifest.h"
#include "fi/Target/SelectProgram.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace fi;
using namespace fi::gpu;

void fi::gpu::registerCompiler(DialectRegistry &registry) {
  nvptx::registerEmitter(registry);
}

namespace {

/// The name by which PTX refers to the text of level 2.
constexpr llvm::StringLiteral kTilesFile = "kernels.fi_tile.mlir";

/// A program on its way down.
class Lowering {
public:
  explicit Lowering(const CompileOptions &options) : options(options) {}

  llvm::Error prepare(ModuleOp original, StringRef name);
  llvm::Error lower();

  ModuleOp getModule() { return *module; }
  OwningOpRef<ModuleOp> takeModule() { return std::move(module); }
  const sm::Target &getChip() const { return *chip; }
  /// The package with the manifest; null where the input has kernels alone.
  tile::PackageOp getPackage() {
    auto packages = module->getOps<tile::PackageOp>();
    return packages.empty() ? tile::PackageOp() : *packages.begin();
  }

  /// Whether the input was at level 1.
  bool hasProgram = false;
  /// The text of level 2, in that case.
  std::string tiles;
  /// Kernels as they were there, where the input came no further.
  SmallVector<KernelAtLevel2> kernels;

private:
  /// Whether kernels are in the placed form: with channels.
  bool isPlaced() {
    return module->walk([](tile::ChannelOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  llvm::Error runStage(StringRef name,
                       llvm::function_ref<void(OpPassManager &)> build) {
    if (llvm::Error error =
            runPasses(*module, build, options.verifyEach, options.passManagers))
      return error;
    if (options.observe)
      options.observe(name, *module);
    return llvm::Error::success();
  }

  const CompileOptions &options;
  OwningOpRef<ModuleOp> module;
  TargetAttr target;
  const sm::Target *chip = nullptr;
};

} // namespace

llvm::Error Lowering::prepare(ModuleOp original, StringRef name) {
  target = original->getAttrOfType<TargetAttr>(kTargetAttr);
  chip = target ? target.getChip() : nullptr;
  if (!chip)
    return makeError(original, "expected a module with a target among " +
                                   sm::getNames() +
                                   " for code of a GPU, for example "
                                   "fi.target = #fi.target<sm_80>");
  hasProgram = !original.getOps<ProgramOp>().empty();
  if (!hasProgram && original.getOps<tile::PackageOp>().empty() &&
      name.empty()) {
    module = original.clone();
    return llvm::Error::success();
  }
  auto selected = selectProgram(original, name);
  if (!selected)
    return selected.takeError();
  module = std::move(*selected);
  if (!hasProgram)
    return llvm::Error::success();
  return runStage("fi", [](OpPassManager &pm) { buildPreparePipeline(pm); });
}

llvm::Error Lowering::lower() {
  if (hasProgram) {
    TilePipelineOptions tile;
    setOptions(target, tile);
    if (llvm::Error error = runStage(
            "fi_tile", [&](OpPassManager &pm) { buildTilePipeline(pm, tile); }))
      return error;
  }
  if (!module->getOps<tile::KernelOp>().empty()) {
    PlacePipelineOptions place;
    setOptions(target, place);
    if (!isPlaced())
      if (llvm::Error error = runStage("placed", [&](OpPassManager &pm) {
            buildPlacePipeline(pm, place);
          }))
        return error;
    for (auto kernel : module->getOps<tile::KernelOp>())
      kernels.push_back({kernel.getSymName().str(), kernel.getSchedule(),
                         KernelTraits(kernel)});
    // PTX leads to the last text that a person reads.
    if (hasProgram)
      tiles = nvptx::snapshotLocations(*module, kTilesFile);
    if (llvm::Error error =
            runStage("nvvm", [](OpPassManager &pm) { buildNVVMPipeline(pm); }))
      return error;
  }
  if (tile::PackageOp package = getPackage()) {
    if (llvm::Error error = completeLaunches(*module, package, *chip))
      return error;
    auto ptx = nvptx::choosePTX(*module, *chip, options.emit.ptx);
    if (!ptx)
      return ptx.takeError();
    setTarget(package, *chip, *ptx);
  }
  return llvm::Error::success();
}

/// All that decides the bytes, a line each.
static std::string getCacheFields(const sm::Target &chip,
                                  const CompileOptions &options,
                                  StringRef ptxasVersion) {
  std::string fields;
  llvm::raw_string_ostream(fields)
      << chip.name << "\n"
      << (options.emit.ptx ? options.emit.ptx : unsigned(chip.ptx)) << " "
      << options.emit.optLevel << " " << options.emit.locations << "\n"
      << "ptxas " << (ptxasVersion.empty() ? "none" : ptxasVersion) << "\n";
  return fields;
}

/// Fills `result` from a lowered module.
static llvm::Error generate(Lowering &lowering, const CompileOptions &options,
                            StringRef ptxas, StringRef ptxasVersion,
                            CompiledPackage &result) {
  const sm::Target &chip = lowering.getChip();
  tile::PackageOp package = lowering.getPackage();
  // The manifest is not for LLVM.
  OwningOpRef<tile::PackageOp> taken;
  if (package) {
    package->remove();
    taken = package;
  }
  auto ptx = nvptx::emitPTX(lowering.takeModule(), chip, options.emit,
                            &result.times.emit);
  if (!ptx)
    return ptx.takeError();
  result.ptx = std::move(*ptx);
  if (package && !lowering.kernels.empty())
    result.explanation =
        setFeatures(package, chip, lowering.kernels, result.ptx);
  if (!ptxas.empty()) {
    double start = now();
    auto assembly = nvptx::assemble(result.ptx, chip, ptxas);
    if (!assembly)
      return assembly.takeError();
    result.times.assemble = now() - start;
    if (package)
      setCubin(package, chip, ptxasVersion, *assembly);
    result.cubin = std::move(assembly->cubin);
    result.resources = std::move(assembly->kernels);
    result.warnings = std::move(assembly->warnings);
  }
  if (package) {
    llvm::raw_string_ostream os(result.manifest);
    fi::printManifest(package, os);
  }
  result.tiles = std::move(lowering.tiles);
  return llvm::Error::success();
}

llvm::Expected<CompiledPackage>
fi::gpu::compileForGPU(ModuleOp module, StringRef name,
                       const CompileOptions &options) {
  double start = now();
  CompiledPackage result;
  Lowering lowering(options);
  if (llvm::Error error = lowering.prepare(module, name))
    return std::move(error);

  std::string ptxas, ptxasVersion, missing;
  if (!options.assemble) {
    missing = "it was not asked for";
  } else {
    auto found = nvptx::findPtxas();
    if (!found)
      return found.takeError();
    ptxas = std::move(*found);
    if (ptxas.empty()) {
      missing = "ptxas is not there; the driver assembles the PTX";
    } else {
      auto version = nvptx::getPtxasVersion(ptxas);
      if (!version)
        return version.takeError();
      ptxasVersion = std::move(*version);
    }
  }

  CacheOptions cacheOptions = options.cache;
  // Below level 1 the PTX names lines of a file that the key does not know.
  cacheOptions.enabled &= !options.observe && lowering.hasProgram;
  Cache cache(cacheOptions);
  std::string key;
  double prepare = now() - start;
  if (cache.isEnabled()) {
    key =
        makeCacheKey(getCacheFields(lowering.getChip(), options, ptxasVersion),
                     lowering.getModule());
    auto load = [&](StringRef directory) {
      return readFiles(directory, result);
    };
    bool isFound = cache.load(key, load) || cache.waitOrLock(key, load);
    prepare = now() - start;
    if (isFound) {
      result.cubinMissing = missing;
      result.times.prepare = result.times.total = prepare;
      result.times.cached = true;
      return result;
    }
  }
  result.times.prepare = prepare;
  double lowerStart = now();
  if (llvm::Error error = lowering.lower())
    return std::move(error);
  result.times.lower = now() - lowerStart;
  if (llvm::Error error =
          generate(lowering, options, ptxas, ptxasVersion, result))
    return std::move(error);
  result.cubinMissing = missing;
  double storeStart = now();
  cache.store(
      key, [&](StringRef directory) { return writeFiles(result, directory); });
  result.times.store = now() - storeStart;
  result.times.total = now() - start;
  return result;
}

llvm::Error fi::gpu::printLLVMIR(ModuleOp module, StringRef name,
                                 const CompileOptions &options,
                                 llvm::raw_ostream &os) {
  Lowering lowering(options);
  if (llvm::Error error = lowering.prepare(module, name))
    return error;
  if (llvm::Error error = lowering.lower())
    return error;
  if (tile::PackageOp package = lowering.getPackage())
    package.erase();
  auto text =
      nvptx::emitLLVMIR(lowering.getModule(), lowering.getChip(), options.emit);
  if (!text)
    return text.takeError();
  os << *text;
  return llvm::Error::success();
}
