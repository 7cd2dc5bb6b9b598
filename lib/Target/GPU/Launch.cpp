//===- Launch.cpp - the manifest of kernels for a GPU ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Launch.h"
#include "fi/Target/CodegenSupport.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace fi;

namespace {

/// Visits the bodies and merges of a manifest.
class Launches {
public:
  Launches(ModuleOp module, const sm::Target &chip)
      : module(module), chip(chip), b(module.getContext()) {}

  /// `attr` with a launch for each kernel. After an error nothing is of use.
  Attribute complete(Attribute attr) {
    if (auto array = dyn_cast<ArrayAttr>(attr)) {
      SmallVector<Attribute> elements;
      for (Attribute element : array)
        elements.push_back(complete(element));
      return b.getArrayAttr(elements);
    }
    auto dictionary = dyn_cast<DictionaryAttr>(attr);
    if (!dictionary)
      return attr;
    NamedAttrList entries;
    for (NamedAttribute entry : dictionary)
      entries.append(entry.getName(), complete(entry.getValue()));
    if (auto symbol = dyn_cast_or_null<StringAttr>(dictionary.get("symbol")))
      completeKernel(symbol, entries);
    return entries.getDictionary(b.getContext());
  }

  llvm::Error take() {
    return error ? std::move(*error) : llvm::Error::success();
  }

private:
  void fail(Operation *op, const Twine &text) {
    if (!error)
      error = makeError(op, text);
  }

  void completeKernel(StringAttr symbol, NamedAttrList &entries) {
    auto kernel = module.lookupSymbol<LLVM::LLVMFuncOp>(symbol);
    if (!kernel || !kernel->hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName()))
      return fail(module, "expected a function '" + symbol.getValue() +
                              "' with 'nvvm.kernel', which the manifest "
                              "names, but got none");
    checkParameters(kernel);
    NamedAttrList launch;
    if (auto known = dyn_cast_or_null<DictionaryAttr>(entries.get("launch")))
      launch = known;
    std::optional<int64_t> required = getThreads(kernel);
    if (!launch.get("threads")) {
      if (!required)
        return fail(kernel, "expected 'threads' in the manifest's launch of '" +
                                symbol.getValue() +
                                "', or 'nvvm.reqntid' on the kernel, but got "
                                "neither");
      launch.set("threads", b.getI64IntegerAttr(*required));
    }
    if (!launch.get("shared"))
      launch.set("shared", b.getI64IntegerAttr(0));
    if (!launch.get("grid"))
      launch.set("grid", b.getStringAttr("items"));
    int64_t threads = getNumber(launch, "threads"),
            shared = getNumber(launch, "shared");
    if (required && threads != *required)
      return fail(kernel, "expected " + Twine(*required) +
                              " threads in the manifest's launch, as in "
                              "'nvvm.reqntid', but got " +
                              Twine(threads));
    if (threads < 1 || threads > chip.maxThreadsPerCTA)
      return fail(kernel, "expected 1 to " + Twine(chip.maxThreadsPerCTA) +
                              " threads of a CTA for " + chip.name +
                              ", but got " + Twine(threads));
    int64_t limit = chip.maxSharedPerCTA;
    if (shared < 0 || shared > limit)
      return fail(kernel, "expected at most " + Twine(limit) +
                              " bytes of shared memory of a CTA for " +
                              chip.name + ", but got " + Twine(shared) + ", " +
                              Twine(shared - limit) +
                              " too many; take smaller tiles or fewer stages");
    entries.set("launch", launch.getDictionary(b.getContext()));
    // Kernels need no memory of their own.
    entries.set("scratch", b.getI64IntegerAttr(0));
  }

  /// The runtime writes slots of 8 bytes.
  void checkParameters(LLVM::LLVMFuncOp kernel) {
    constexpr unsigned slotBytes = 8, maxBytes = 4096;
    for (auto [index, type] : llvm::enumerate(kernel.getArgumentTypes()))
      if (!isa<LLVM::LLVMPointerType>(type) && !type.isInteger(64) &&
          !type.isF64()) {
        std::string text;
        llvm::raw_string_ostream(text)
            << "expected parameters of 8 bytes (a pointer or i64), but "
               "parameter "
            << index << " of '" << kernel.getSymName() << "' is " << type;
        return fail(kernel, text);
      }
    if (kernel.getNumArguments() * slotBytes > maxBytes)
      fail(kernel, "expected at most " + Twine(maxBytes) +
                       " bytes of parameters, but '" + kernel.getSymName() +
                       "' has " + Twine(kernel.getNumArguments() * slotBytes));
  }

  static std::optional<int64_t> getThreads(LLVM::LLVMFuncOp kernel) {
    auto sizes = kernel->getAttrOfType<DenseI32ArrayAttr>(
        NVVM::NVVMDialect::getReqntidAttrName());
    if (!sizes)
      return std::nullopt;
    int64_t threads = 1;
    for (int32_t size : sizes.asArrayRef())
      threads *= size;
    return threads;
  }

  static int64_t getNumber(const NamedAttrList &launch, StringRef name) {
    auto number = dyn_cast_or_null<IntegerAttr>(launch.get(name));
    return number ? number.getInt() : -1;
  }

  ModuleOp module;
  const sm::Target &chip;
  Builder b;
  std::optional<llvm::Error> error;
};

} // namespace

llvm::Error fi::gpu::completeLaunches(ModuleOp module, tile::PackageOp package,
                                      const sm::Target &chip) {
  Launches launches(module, chip);
  Attribute manifest = launches.complete(package.getManifestAttr());
  if (llvm::Error error = launches.take())
    return error;
  package.setManifestAttr(cast<DictionaryAttr>(manifest));
  return llvm::Error::success();
}

void fi::gpu::setTarget(tile::PackageOp package, const sm::Target &chip,
                        unsigned ptx) {
  Builder b(package.getContext());
  SmallVector<StringRef> features;
  for (const sm::FeatureEntry *feature : chip.getFeatures())
    features.push_back(feature->name);
  NamedAttrList target;
  target.set("kind", b.getStringAttr("cuda"));
  target.set("chip", b.getStringAttr(chip.chip));
  target.set("ptx", b.getStringAttr(sm::formatPTX(ptx)));
  target.set("driver", b.getI64IntegerAttr(sm::getDriver(ptx)));
  target.set("features", b.getStrArrayAttr(features));
  NamedAttrList entries(package.getManifest());
  entries.set("target", target.getDictionary(b.getContext()));
  package.setManifestAttr(entries.getDictionary(b.getContext()));
}

void fi::gpu::setCubin(tile::PackageOp package, const sm::Target &chip,
                       StringRef ptxasVersion,
                       const nvptx::Assembly &assembly) {
  Builder b(package.getContext());
  SmallVector<Attribute> kernels;
  for (const nvptx::KernelResources &kernel : assembly.kernels) {
    NamedAttrList uses;
    uses.set("symbol", b.getStringAttr(kernel.kernel));
    for (auto [name, number] :
         {std::pair<StringRef, uint64_t>("registers", kernel.registers),
          {"barriers", kernel.barriers},
          {"stack", kernel.stack},
          {"spill_stores", kernel.spillStores},
          {"spill_loads", kernel.spillLoads},
          {"static_shared", kernel.staticShared}})
      uses.set(name, b.getI64IntegerAttr(number));
    kernels.push_back(uses.getDictionary(b.getContext()));
  }
  NamedAttrList cubin;
  cubin.set("chip", b.getStringAttr(chip.chip));
  cubin.set("ptxas", b.getStringAttr(ptxasVersion));
  cubin.set("kernels", b.getArrayAttr(kernels));
  if (!assembly.warnings.empty())
    cubin.set("warnings", b.getStrArrayAttr(llvm::to_vector_of<StringRef>(
                              assembly.warnings)));
  NamedAttrList entries(package.getManifest());
  NamedAttrList target(cast<DictionaryAttr>(entries.get("target")));
  target.set("cubin", cubin.getDictionary(b.getContext()));
  entries.set("target", target.getDictionary(b.getContext()));
  package.setManifestAttr(entries.getDictionary(b.getContext()));
}
