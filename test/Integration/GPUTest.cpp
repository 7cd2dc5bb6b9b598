//===- GPUTest.cpp - programs on an emulated GPU --------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Programs of level 1 go down to PTX in process, are planned by the runtime for
// a device, and run in the emulator, with its checks, against the reference;
// and their placed form, before there is code, in the interpreter of level 2.
// Only the text of schedules differs where there are many.
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "fi-emulator/fi_emulator_driver.h"
#include "fi-runtime/fi_runtime.h"
#include "fi/Execution/Memory.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Target/GPU/GPUCompiler.h"
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
  explicit EmulatedExecutor(llvm::StringRef chip) : Executor("emulated") {
    driver = fi_emulator_driver(chip.str().c_str(), "check,sms=6");
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
    std::vector<fi_value> tables = collect(arguments, /*isPlan=*/true);
    std::vector<fi_tensor> shapes;
    for (const fi_value &value : collect(arguments, /*isPlan=*/false))
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
    std::vector<fi_value> values = collect(arguments, /*isPlan=*/false);
    std::vector<fi_tensor> outputs;
    for (const HostTensor &result : results)
      outputs.push_back(describe(result));
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
        elements = size == 0 ? 0 : elements + (size - 1) * stride;
      lend(tensor.getData(),
           std::max<int64_t>(elements, 0) * getByteSize(tensor.getType()));
    };
    for (auto [info, argument] : llvm::zip(signature.arguments, arguments))
      if (!info.isPlan && argument.getKind() == HostValue::Kind::Tensor)
        lendTensor(argument.getTensor());
    for (const HostTensor &result : results)
      lendTensor(result);
    lendTensor(*workspace);
    if (!error &&
        fi_run_device(runtimePlan, fi_plan_generation(runtimePlan),
                      values.data(), values.size(), outputs.data(),
                      outputs.size(), workspace->getData(), workspace->getSize(0), nullptr) != FI_OK)
      error = createStringError(fi_last_error());
    for (void *memory : lent)
      fi_emulator_driver_unregister(driver, memory);
    return error;
  }

private:
  static fi_tensor describe(const HostTensor &tensor) {
    auto type = [&] {
      switch (tensor.getType()) {
      case DType::F16:
        return FI_F16;
      case DType::BF16:
        return FI_BF16;
      case DType::I32:
        return FI_I32;
      case DType::I64:
        return FI_I64;
      default:
        return FI_F32;
      }
    }();
    return {tensor.getData(), type, static_cast<int32_t>(tensor.getRank()),
            tensor.getShape().data(), tensor.getStrides().data()};
  }
  std::vector<fi_value> collect(llvm::ArrayRef<HostValue> arguments,
                                bool isPlan) const {
    std::vector<fi_value> values;
    for (auto [info, argument] : llvm::zip(signature.arguments, arguments)) {
      if (info.isPlan != isPlan)
        continue;
      fi_value &value = values.emplace_back();
      value = {};
      switch (argument.getKind()) {
      case HostValue::Kind::Tensor:
        value.kind = FI_VALUE_TENSOR;
        value.as.tensor = describe(argument.getTensor());
        break;
      case HostValue::Kind::Float:
        value.kind = FI_VALUE_FLOAT;
        value.as.f32 = static_cast<float>(argument.getNumber());
        break;
      case HostValue::Kind::Integer:
        value.kind = FI_VALUE_INTEGER;
        value.as.i64 = argument.getInteger();
        break;
      }
    }
    return values;
  }

  const fi_driver *driver = nullptr;
  fi_device *device = nullptr;
  fi_package *package = nullptr;
  fi_plan *runtimePlan = nullptr;
  fi_plan_options options = {};
  std::string ptx;
};

/// The module's programs as placed kernels.
Expected<mlir::OwningOpRef<mlir::ModuleOp>> place(mlir::ModuleOp module) {
  mlir::OwningOpRef<mlir::ModuleOp> copy = module.clone();
  std::string message = "placing failed";
  mlir::ScopedDiagnosticHandler handler(
      module.getContext(), [&](mlir::Diagnostic &diagnostic) {
        if (diagnostic.getSeverity() == mlir::DiagnosticSeverity::Error)
          message = diagnostic.str();
        return mlir::success();
      });
  mlir::PassManager pm(module.getContext(),
                       mlir::ModuleOp::getOperationName());
  buildPreparePipeline(pm);
  TilePipelineOptions tile;
  tile.f16Dot = tile.bf16Dot = true;
  buildTilePipeline(pm, tile);
  buildPlacePipeline(pm, PlacePipelineOptions());
  if (mlir::failed(pm.run(*copy)))
    return createStringError(message);
  return copy;
}

Expected<std::unique_ptr<Executor>> interpret(mlir::ModuleOp module) {
  auto placed = place(module);
  if (!placed)
    return placed.takeError();
  return Executor::create("level2", **placed, "", {});
}

Expected<std::unique_ptr<Executor>> emulate(mlir::ModuleOp module) {
  auto placed = place(module);
  if (!placed)
    return placed.takeError();
  mlir::PassManager pm(module.getContext(),
                       mlir::ModuleOp::getOperationName());
  buildNVVMPipeline(pm);
  if (mlir::failed(pm.run(**placed)))
    return createStringError("lowering failed");
  gpu::CompileOptions options;
  options.assemble = false;
  auto compiled = gpu::compileForGPU(**placed, "", options);
  if (!compiled)
    return compiled.takeError();
  auto executor = std::make_unique<EmulatedExecutor>("sm_80");
  if (Error error = executor->load(*compiled))
    return std::move(error);
  return executor;
}

struct Tiles {
  int64_t rows, keys, warps, stages, lanes;
};

std::string schedule(Tiles tiles) {
  return "#fi.schedule<tile_rows = " + std::to_string(tiles.rows) +
         ", tile_keys = " + std::to_string(tiles.keys) +
         ", warps = " + std::to_string(tiles.warps) +
         ", stages = " + std::to_string(tiles.stages) +
         ", lanes = " + std::to_string(tiles.lanes) + ">";
}

AttentionText attention(const std::string &element, Tiles tiles) {
  AttentionText text;
  text.target = "#fi.target<sm_80>";
  text.query = text.keys = text.values = text.output = element;
  text.kvHeads = 2;
  text.group = 2;
  text.clauses = "mask(#fi.causal) schedules([" + schedule(tiles) + "])";
  return text;
}

/// Whole prompts, chunks, single rows, more rows than keys, and none.
std::vector<Request> batch() {
  return {{1, 37}, {5, 5}, {23, 70}, {0, 20}, {4, 0}, {9, 4}, {1, 100}};
}

llvm::ArrayRef<Planned> plans() {
  static const Planned all[] = {{3, SplitChoice::None},
                                {4, SplitChoice::Fixed, 64}};
  return all;
}

class GPUSchedules
    : public testing::TestWithParam<std::tuple<const char *, Tiles>> {};

TEST_P(GPUSchedules, GivesEqualResults) {
  auto [element, tiles] = GetParam();
  SCOPED_TRACE(schedule(tiles));
  AttentionText text = attention(element, tiles);
  Case(text.get(), batch()).on(interpret).check(plans());
  Case(text.get(), batch()).on(emulate).check(plans());
}

INSTANTIATE_TEST_SUITE_P(
    Grid, GPUSchedules,
    testing::Combine(testing::Values("f16", "bf16"),
                     testing::Values(Tiles{16, 16, 1, 1, 1},
                                     Tiles{16, 32, 1, 2, 4},
                                     Tiles{32, 64, 2, 2, 4},
                                     Tiles{64, 16, 4, 4, 4},
                                     Tiles{64, 48, 2, 3, 1},
                                     Tiles{96, 32, 3, 2, 4},
                                     Tiles{128, 64, 4, 2, 4},
                                     Tiles{128, 32, 8, 1, 4})));

} // namespace
