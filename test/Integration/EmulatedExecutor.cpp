//===- EmulatedExecutor.cpp - programs on an emulated GPU -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "EmulatedExecutor.h"
#include "fi-emulator/fi_emulator_driver.h"
#include "fi/Execution/Memory.h"
#include "fi/Execution/RuntimeValues.h"
#include "fi/Pipelines/Pipelines.h"
#include "mlir/Pass/PassInstrumentation.h"
#include "mlir/Pass/PassManager.h"

using namespace fi;
using namespace fi::test;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;

namespace {

/// A program on an emulated device, whose memory is the host's.
class EmulatedExecutor : public Executor {
public:
  EmulatedExecutor(const std::string &chip, uint64_t seed)
      : Executor("emulated") {
    std::string options = "check,sms=6,seed=" + std::to_string(seed);
    driver = fi_emulator_driver(chip.c_str(), options.c_str());
  }
  ~EmulatedExecutor() override {
    fi_plan_destroy(runtimePlan);
    fi_package_release(package);
    fi_device_release(device);
    fi_emulator_driver_destroy(driver);
  }

  Error load(const gpu::CompiledPackage &compiled) {
    if (!driver)
      return createStringError(fi_emu_last_error());
    auto parsed = parseSignature(compiled.manifest);
    if (!parsed)
      return parsed.takeError();
    signature = std::move(*parsed);
    ptx = compiled.ptx;
    fi_code code = {FI_DRIVER_PTX, ptx.c_str(), ptx.size()};
    if (fi_device_open(driver, 0, &device) != FI_OK ||
        fi_package_from_code(compiled.manifest.data(), compiled.manifest.size(),
                             &code, 1, &package) != FI_OK)
      return createStringError(fi_last_error());
    return Error::success();
  }

  void setPlanOptions(int workers, SplitChoice split,
                      int64_t splitKeys) override {
    options = {};
    options.struct_size = sizeof(options);
    options.workers = workers;
    options.split_policy = split == SplitChoice::Balanced ? FI_SPLIT_BALANCED
                           : split == SplitChoice::Fixed  ? FI_SPLIT_FIXED
                           : split == SplitChoice::None   ? FI_SPLIT_NONE
                                                          : FI_SPLIT_DEFAULT;
    options.split_keys = splitKeys;
  }

  Error plan(llvm::ArrayRef<HostValue> arguments) override {
    llvm::SmallVector<fi_value> tables, runValues;
    if (Error error = toRuntimeValues(signature, arguments, true, tables))
      return error;
    if (Error error = toRuntimeValues(signature, arguments, false, runValues))
      return error;
    std::vector<fi_tensor> shapes;
    for (const fi_value &value : runValues)
      shapes.push_back(value.kind == FI_VALUE_TENSOR ? value.as.tensor
                                                     : fi_tensor{});
    options.struct_size = sizeof(options);
    options.device = device;
    options.run_shapes = shapes.data();
    fi_plan_destroy(runtimePlan);
    runtimePlan = nullptr;
    if (fi_plan_create(package, tables.data(), tables.size(), &options,
                       &runtimePlan) != FI_OK)
      return createStringError(fi_last_error());
    return Error::success();
  }

  Error run(llvm::ArrayRef<HostValue> arguments,
            llvm::MutableArrayRef<HostTensor> results) override {
    llvm::SmallVector<fi_value> values;
    if (Error error = toRuntimeValues(signature, arguments, false, values))
      return error;
    std::vector<fi_tensor> outputs(results.size());
    for (auto [i, result] : llvm::enumerate(results))
      if (Error error =
              toRuntimeTensor(result, signature.results[i].name, outputs[i]))
        return error;
    auto workspace = getHostMemory().allocate(
        DType::I8,
        {static_cast<int64_t>(fi_plan_workspace_bytes(runtimePlan))});
    if (!workspace)
      return workspace.takeError();
    std::vector<void *> lent;
    Error error = Error::success();
    auto lend = [&](void *memory, size_t bytes) {
      if (bytes == 0 || error || llvm::is_contained(lent, memory))
        return;
      if (fi_emulator_driver_register(driver, memory, bytes, true) == 0)
        lent.push_back(memory);
      else
        error = createStringError(driver->last_error(driver->self));
    };
    auto lendTensor = [&](const HostTensor &tensor) {
      int64_t elements = 1;
      for (auto [size, stride] :
           llvm::zip(tensor.getShape(), tensor.getStrides()))
        elements += (size - 1) * stride;
      if (tensor.getNumElements() == 0)
        return;
      lend(tensor.getData(), elements * getByteSize(tensor.getType()));
    };
    for (auto [info, argument] : llvm::zip(signature.arguments, arguments))
      if (!info.isPlan && argument.getKind() == HostValue::Kind::Tensor)
        lendTensor(argument.getTensor());
    for (const HostTensor &result : results)
      lendTensor(result);
    lendTensor(*workspace);
    if (!error && fi_run_device(runtimePlan, fi_plan_generation(runtimePlan),
                                values.data(), values.size(), outputs.data(),
                                outputs.size(), workspace->getData(),
                                workspace->getSize(0), nullptr) != FI_OK)
      error = createStringError(fi_last_error());
    for (void *memory : lent)
      fi_emulator_driver_unregister(driver, memory);
    return error;
  }

private:
  const fi_driver *driver = nullptr;
  fi_device *device = nullptr;
  fi_package *package = nullptr;
  fi_plan *runtimePlan = nullptr;
  fi_plan_options options = {};
  std::string ptx;
};

/// Changes kernels behind the last check of what they wait for.
struct ChangeKernels : mlir::PassInstrumentation {
  explicit ChangeKernels(llvm::function_ref<void(mlir::Operation *)> change)
      : change(change) {}
  void runAfterPass(mlir::Pass *pass, mlir::Operation *kernel) override {
    if (pass->getArgument() == "fi-tile-check-async")
      change(kernel);
  }
  llvm::function_ref<void(mlir::Operation *)> change;
};

Error runPasses(mlir::ModuleOp module,
                llvm::function_ref<void(mlir::OpPassManager &)> build,
                llvm::function_ref<void(mlir::Operation *)> change = nullptr) {
  std::string message;
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          message = diagnostic.str();
        return mlir::success();
      });
  mlir::PassManager pm(module.getContext(), mlir::ModuleOp::getOperationName());
  build(pm);
  if (change)
    pm.addInstrumentation(std::make_unique<ChangeKernels>(change));
  if (mlir::failed(pm.run(module)))
    return createStringError(message);
  return Error::success();
}

/// The module's programs as placed kernels.
Expected<mlir::OwningOpRef<mlir::ModuleOp>> place(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  mlir::Operation *op = *copy;
  if (!op->hasAttr(kTargetAttr))
    op->setAttr(kTargetAttr,
                TargetAttr::get(module.getContext(), *sm::lookup("sm_80")));
  if (Error error = runPasses(*copy, [](mlir::OpPassManager &pm) {
        buildPreparePipeline(pm);
        TilePipelineOptions tile;
        tile.f16Dot = tile.bf16Dot = true;
        buildTilePipeline(pm, tile);
        buildPlacePipeline(pm, PlacePipelineOptions());
      }))
    return std::move(error);
  return copy;
}

} // namespace

Expected<gpu::CompiledPackage>
test::compileForEmulator(mlir::ModuleOp module,
                         llvm::function_ref<void(mlir::Operation *)> change) {
  auto placed = place(module);
  if (!placed)
    return placed.takeError();
  if (Error error = runPasses(
          **placed, [](mlir::OpPassManager &pm) { buildNVVMPipeline(pm); },
          change))
    return std::move(error);
  gpu::CompileOptions options;
  options.assemble = false;
  return gpu::compileForGPU(**placed, "", options);
}

Expected<std::unique_ptr<Executor>>
test::loadIntoEmulator(const gpu::CompiledPackage &compiled,
                       const std::string &chip, uint64_t seed) {
  auto executor = std::make_unique<EmulatedExecutor>(chip, seed);
  if (Error error = executor->load(compiled))
    return std::move(error);
  return executor;
}

Expected<std::unique_ptr<Executor>> test::emulate(mlir::ModuleOp module) {
  return emulateOn("sm_80")(module);
}

Case::Maker test::emulateOn(const std::string &chip, uint64_t seed) {
  return [=](mlir::ModuleOp module) -> Expected<std::unique_ptr<Executor>> {
    if (std::getenv("FI_TEST_GPU"))
      return on(chip)(module);
    auto compiled = compileForEmulator(module);
    if (!compiled)
      return compiled.takeError();
    return loadIntoEmulator(*compiled, chip, seed);
  };
}

Expected<std::unique_ptr<Executor>> test::interpret(mlir::ModuleOp module) {
  auto placed = place(module);
  if (!placed)
    return placed.takeError();
  return Executor::create("level2", **placed, "", {});
}
