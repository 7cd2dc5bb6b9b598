//===- DeviceExecutor.cpp - backends on GPUs, and compiled packages -------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs that are compiled in process for a GPU, real or emulated, and
// packages from directories, which are for the host or for a GPU.
//
//===----------------------------------------------------------------------===//

#include "RuntimeExecutor.h"
#include "fi/Support/File.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Target/PackageFiles.h"
#include "llvm/Support/JSON.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;

/// The target that a module states, if it is a chip; else the device's own.
static TargetAttr chooseTarget(mlir::ModuleOp module, const Device &device) {
  auto stated = module->getAttrOfType<TargetAttr>(kTargetAttr);
  if (stated && stated.getChip())
    return stated;
  return TargetAttr::get(module.getContext(), device.getChip());
}

Expected<std::unique_ptr<Executor>>
fi::createDeviceExecutor(StringRef backend, mlir::ModuleOp module,
                         StringRef name, Signature signature,
                         const ExecutorOptions &options) {
  auto device = Device::open(backend);
  if (!device)
    return device.takeError();
  Stopwatch watch;
  auto executor =
      std::make_unique<RuntimeExecutor>(backend, std::move(signature), options);
  executor->device = std::move(*device);
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  (*copy)->setAttr(kTargetAttr, chooseTarget(module, *executor->device));
  gpu::CompileOptions compileOptions;
  // The emulator reads PTX alone.
  compileOptions.assemble = !executor->device->isEmulated();
  compileOptions.verifyEach = options.verifyEach;
  compileOptions.passManagers = options.passManagers;
  auto compiled = gpu::compileForGPU(*copy, name, compileOptions);
  if (!compiled)
    return compiled.takeError();
  llvm::SmallVector<fi_code, 2> codes;
  codes.push_back({FI_DRIVER_PTX, compiled->ptx.c_str(), compiled->ptx.size()});
  if (!compiled->cubin.empty())
    codes.push_back(
        {FI_DRIVER_CUBIN, compiled->cubin.data(), compiled->cubin.size()});
  if (fi_package_from_code(compiled->manifest.data(), compiled->manifest.size(),
                           codes.data(), codes.size(),
                           &executor->package) != FI_OK ||
      fi_package_load(executor->package, executor->device->getHandle()) !=
          FI_OK)
    return getRuntimeError();
  executor->setCompileTime(watch.getMilliseconds(), compiled->times.cached);
  return executor;
}

/// Whether a manifest is of a package for GPUs.
static bool isForGPU(StringRef manifest) {
  auto json = llvm::json::parse(manifest);
  if (!json) {
    llvm::consumeError(json.takeError());
    return false;
  }
  const llvm::json::Object *object = json->getAsObject();
  const llvm::json::Object *target =
      object ? object->getObject("target") : nullptr;
  return target && target->getString("kind") == StringRef("cuda");
}

/// Where the package for the device is that `backend` names: a part of one for
/// several targets, or `path` itself.
static Expected<std::string> findPart(StringRef path, StringRef backend) {
  auto manifest = readFile(inDirectory(path, "manifest.json"));
  if (!manifest)
    return manifest.takeError();
  auto json = llvm::json::parse((*manifest)->getBuffer());
  if (!json) {
    llvm::consumeError(json.takeError());
    return path.str(); // whoever reads it says what is wrong
  }
  const llvm::json::Object *object = json->getAsObject();
  if (!object || !object->get("targets"))
    return path.str();
  if (!backend.empty() && !Device::isName(backend))
    return createStringError("backend: a package for GPUs runs on cuda or "
                             "emulated:CHIP, but got '" +
                             backend + "'");
  auto device = Device::open(backend.empty() ? "cuda" : backend);
  if (!device)
    return device.takeError();
  fi_package *package = nullptr;
  if (fi_package_open(path.str().c_str(), &package) != FI_OK)
    return getRuntimeError();
  const char *target = nullptr;
  fi_status status =
      fi_package_target(package, (*device)->getHandle(), &target);
  std::string part = target ? inDirectory(path, target) : "";
  fi_package_release(package);
  if (status != FI_OK)
    return getRuntimeError();
  return part;
}

Expected<std::unique_ptr<Executor>>
Executor::openPackage(StringRef directory, const ExecutorOptions &options,
                      StringRef backend) {
  Stopwatch watch;
  auto part = findPart(directory, backend);
  if (!part)
    return part.takeError();
  StringRef path = *part;
  fi_package *package = nullptr;
  if (fi_package_open(path.str().c_str(), &package) != FI_OK)
    return getRuntimeError();
  auto executor =
      std::make_unique<RuntimeExecutor>("package", Signature(), options);
  executor->package = package;
  auto manifest = readFile(inDirectory(path, "manifest.json"));
  if (!manifest)
    return manifest.takeError();
  StringRef text = (*manifest)->getBuffer();
  auto signature = parseSignature(text);
  if (!signature)
    return signature.takeError();
  executor->setSignature(std::move(*signature));
  bool isGPU = isForGPU(text);
  if (isGPU != Device::isName(isGPU && backend.empty() ? "cuda" : backend) ||
      (!isGPU && !backend.empty() && backend != "cpu"))
    return createStringError(
        "backend: a package for " +
        llvm::Twine(isGPU ? "GPUs runs on cuda or emulated:CHIP"
                          : "the CPU runs on cpu") +
        ", but got '" + backend + "'");
  if (isGPU) {
    auto device = Device::open(backend.empty() ? "cuda" : backend);
    if (!device)
      return device.takeError();
    executor->device = std::move(*device);
    // The emulator reads PTX alone, whatever machine code lies beside it.
    if (executor->device->isEmulated()) {
      fi_package_release(executor->package);
      executor->package = nullptr;
      auto ptx = readFile(inDirectory(path, "kernels.ptx"));
      if (!ptx)
        return ptx.takeError();
      fi_code code = {FI_DRIVER_PTX, (*ptx)->getBufferStart(),
                      (*ptx)->getBufferSize()};
      if (fi_package_from_code(text.data(), text.size(), &code, 1,
                               &executor->package) != FI_OK)
        return getRuntimeError();
    }
    if (fi_package_load(executor->package, executor->device->getHandle()) !=
        FI_OK)
      return getRuntimeError();
  }
  executor->setCompileTime(watch.getMilliseconds(), /*cached=*/true);
  return executor;
}
