//===- PlacedTesting.h - placed kernels in the emulator ---------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Lowers level 2 text to PTX in process and runs it, with all checks, in the
// emulator, on tensors of the host and hand-made work.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_PLACED_PLACEDTESTING_H
#define FI_TEST_UNIT_PLACED_PLACEDTESTING_H

#include "../TileInterpreter/TileTesting.h"
#include "fi-emulator/Emulator.h"
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Target/NVPTX/EmitPTX.h"
#include "mlir/Pass/PassManager.h"

namespace fi::tile {

class PlacedTest : public ::testing::Test {
protected:
  PlacedTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    nvptx::registerEmitter(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  bool parse(const std::string &text) {
    module =
        mlir::parseSourceString<mlir::ModuleOp>(text, &context, "kernel.mlir");
    return static_cast<bool>(module);
  }
  bool runPasses(llvm::function_ref<void(mlir::OpPassManager &)> build) {
    mlir::PassManager pm(&context, mlir::ModuleOp::getOperationName());
    build(pm);
    return mlir::succeeded(pm.run(*module));
  }
  KernelOp kernel(llvm::StringRef name) {
    return module->lookupSymbol<KernelOp>(name);
  }

  /// Takes the module, placed and allocated, to a device. "" or the error.
  std::string compile(llvm::StringRef target = "sm_80") {
    for (auto op : module->getOps<KernelOp>()) {
      ScheduleAttr schedule = op.getSchedule();
      auto shared = op->getAttrOfType<mlir::IntegerAttr>(kSharedAttr);
      launches[op.getSymName()] = {
          static_cast<uint32_t>(kLanes * schedule.getWarps() *
                                schedule.getKeyWarps()),
          static_cast<uint32_t>(shared ? shared.getInt() : 0)};
    }
    if (!runPasses([](mlir::OpPassManager &pm) { buildNVVMPipeline(pm); }))
      return "lowering failed";
    llvm::Expected<std::string> ptx =
        nvptx::emitPTX(*module, *sm::lookup(target));
    if (!ptx)
      return llvm::toString(ptx.takeError());
    emulator::Options options;
    options.check = true;
    options.stepLimit = 50'000'000;
    std::string error;
    device = emulator::Device::create(target.str(), options, error);
    if (device)
      code = device->moduleLoad("kernel.ptx", *ptx, error);
    return error;
  }

  /// Does all items on `blocks` CTAs. "" or the error or the reports.
  std::string launch(llvm::StringRef name,
                     llvm::ArrayRef<TileArgument> arguments, TestWork &work,
                     uint32_t blocks = 1) {
    std::string error;
    const emulator::Function *function = code->getFunction(name.str(), error);
    if (!function)
      return error;
    std::vector<void *> lent;
    auto lend = [&](const void *data, size_t bytes, bool writable) {
      if (bytes == 0 || !error.empty())
        return int64_t(0);
      auto *memory = const_cast<void *>(data);
      if (device->registerMemory(memory, bytes, writable, error))
        lent.push_back(memory);
      return static_cast<int64_t>(reinterpret_cast<uintptr_t>(data));
    };
    std::vector<int64_t> params;
    for (const TileArgument &argument : arguments) {
      if (auto *tensor = std::get_if<HostTensor>(&argument)) {
        int64_t bytes =
            tensor->getNumElements() * getByteSize(tensor->getType());
        params.push_back(lend(tensor->getData(), bytes, true));
        llvm::append_range(params, tensor->getShape());
        llvm::append_range(params, tensor->getStrides());
      } else if (auto *number = std::get_if<double>(&argument)) {
        params.push_back(llvm::bit_cast<uint32_t>(static_cast<float>(*number)));
      } else {
        params.push_back(std::get<int64_t>(argument));
      }
    }
    auto lendAll = [&](auto &values, bool writable) {
      params.push_back(
          lend(values.data(), values.size() * sizeof(values[0]), writable));
    };
    lendAll(work.items, false);
    lendAll(work.ranges, false);
    lendAll(work.outputs, true);
    lendAll(work.statistics, true);
    params.push_back(0); // counters
    params.push_back(0);
    params.push_back(work.items.size());
    if (error.empty()) {
      emulator::LaunchConfig config;
      auto [threads, shared] = launches[name];
      config.grid.x = blocks;
      config.block.x = threads;
      config.dynamicShared = shared;
      config.params = params.data();
      config.paramBytes = params.size() * sizeof(int64_t);
      emulator::LaunchResult result = device->launch(*function, config);
      error = result.error;
      for (const emulator::Report &report : result.reports)
        error += "\n" + report.str();
      statistics = result.statistics;
    }
    for (void *memory : lent) {
      std::string ignored;
      device->unregisterMemory(memory, ignored);
    }
    return error;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<emulator::Device> device;
  emulator::Module *code = nullptr;
  emulator::Statistics statistics;

private:
  llvm::StringMap<std::pair<uint32_t, uint32_t>> launches;
};

/// An attribute or a type as text.
template <typename T> std::string print(T value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

} // namespace fi::tile

#endif // FI_TEST_UNIT_PLACED_PLACEDTESTING_H
