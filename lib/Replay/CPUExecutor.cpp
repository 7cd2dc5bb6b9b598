//===- CPUExecutor.cpp - a replay on this host's CPU ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles in process, then does what a serving engine does with the runtime's
// C interface: one plan object that is planned again for each step.
//
//===----------------------------------------------------------------------===//

#include "fi-runtime/fi_runtime.h"
#include "fi/Replay/Executor.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "llvm/Support/Error.h"
#include <cstdlib>

using namespace llvm;

namespace fi::replay {

namespace {

int32_t getRuntimeType(DType type) {
  switch (type) {
  case DType::F32:
    return FI_F32;
  case DType::F16:
    return FI_F16;
  case DType::BF16:
    return FI_BF16;
  case DType::I64:
    return FI_I64;
  case DType::I8:
    return FI_I8;
  case DType::I1:
    return FI_I1;
  default:
    return FI_I32;
  }
}

/// A view of a tensor; the tensor must outlive it.
fi_tensor borrow(const HostTensor &tensor) {
  return {tensor.getData(), getRuntimeType(tensor.getType()),
          int32_t(tensor.getRank()), tensor.getShape().data(),
          tensor.getStrides().data()};
}

fi_value makeValue(const fi_tensor &tensor) {
  fi_value value = {};
  value.kind = FI_VALUE_TENSOR;
  value.as.tensor = tensor;
  return value;
}

Error check(fi_status status) {
  if (status == FI_OK)
    return Error::success();
  return createStringError(inconvertibleErrorCode(), fi_last_error());
}

class CPUExecutor : public Executor {
public:
  CPUExecutor(const Program &program, const CPUExecutorOptions &options)
      : program(program), options(options) {}
  ~CPUExecutor() override {
    fi_plan_destroy(currentPlan);
    fi_package_release(package);
    std::free(workspace);
  }

  Error compile() {
    auto module = program.getOp()->getParentOfType<mlir::ModuleOp>();
    auto made =
        cpu::CompiledProgram::compile(module, program.getOp().getName());
    if (!made)
      return made.takeError();
    code = std::move(*made);
    StringRef manifest = code->getManifest();
    return check(fi_package_from_memory(manifest.data(), manifest.size(),
                                        cpu::CompiledProgram::lookupCallback,
                                        code.get(), &package));
  }

  std::string describe() const override {
    int32_t workers =
        currentPlan ? fi_plan_workers(currentPlan) : options.workers;
    return "cpu" +
           (workers > 0 ? ", " + std::to_string(workers) + " workers" : "");
  }

  Error plan(const StepBatch &batch) override {
    const std::vector<int32_t> *tables[] = {&batch.rows, &batch.pageIndptr,
                                            &batch.pages, &batch.lastPage};
    int64_t sizes[4];
    fi_value values[4];
    for (unsigned role = 0; role < 4; ++role) {
      sizes[role] = tables[role]->size();
      // The plan arguments come first in a program (PRG4).
      values[program.getArgument(Role(role))] =
          makeValue({const_cast<int32_t *>(tables[role]->data()), FI_I32, 1,
                     &sizes[role], nullptr});
    }
    if (currentPlan)
      return check(fi_plan_update(currentPlan, values, 4, nullptr));

    fi_plan_options planOptions = {};
    planOptions.struct_size = sizeof(planOptions);
    planOptions.workers = options.workers;
    planOptions.split_policy = options.splitPolicy;
    planOptions.split_keys = options.splitKeys;
    // With the size of the pools, a page out of range is found when planning.
    std::array<int64_t, 4> poolShape = program.getPoolShape(options.pages);
    fi_tensor shapes[kRoles] = {};
    if (options.pages > 0)
      for (Role role : {Role::Keys, Role::Values}) {
        fi_tensor &shape = shapes[program.getArgument(role) - 4];
        shape.rank = poolShape.size();
        shape.dtype = getRuntimeType(program.getKVType());
        shape.shape = poolShape.data();
      }
    if (options.pages > 0)
      planOptions.run_shapes = shapes;
    return check(
        fi_plan_create(package, values, 4, &planOptions, &currentPlan));
  }

  Error prepare() override {
    size_t bytes = fi_plan_workspace_bytes(currentPlan);
    if (bytes <= workspaceBytes)
      return Error::success();
    std::free(workspace);
    workspaceBytes = 0;
    // Some headroom, so that a growing batch does not allocate at each step.
    size_t wanted = (bytes + bytes / 4 + FI_WORKSPACE_ALIGNMENT - 1) /
                    FI_WORKSPACE_ALIGNMENT * FI_WORKSPACE_ALIGNMENT;
    workspace = std::aligned_alloc(FI_WORKSPACE_ALIGNMENT, wanted);
    if (!workspace)
      return createStringError(inconvertibleErrorCode(),
                               "out of memory for a workspace of " +
                                   Twine(wanted) + " bytes");
    workspaceBytes = wanted;
    return Error::success();
  }

  Error run(const StepTensors &tensors) override {
    fi_value values[kRoles];
    unsigned count = 0;
    const std::pair<Role, const HostTensor *> arguments[] = {
        {Role::Query, &tensors.query},
        {Role::NewKeys, &tensors.newKeys},
        {Role::NewValues, &tensors.newValues},
        {Role::Keys, &tensors.keys},
        {Role::Values, &tensors.values}};
    for (auto [role, tensor] : arguments)
      if (int index = program.getArgument(role); index >= 0) {
        values[index - 4] = makeValue(borrow(*tensor));
        ++count;
      }
    fi_tensor results[] = {borrow(tensors.output), borrow(tensors.lse)};
    return check(fi_run(currentPlan, fi_plan_generation(currentPlan), values,
                        count, results, program.hasLse() ? 2 : 1, workspace,
                        workspaceBytes));
  }

  Expected<std::string> getSchedule() override {
    char *text = nullptr;
    if (Error error = check(fi_plan_schedule_json(currentPlan, &text)))
      return std::move(error);
    std::string copy = text;
    fi_string_free(text);
    return copy;
  }

  double getCompileMilliseconds() const override {
    return code->getTimes().total;
  }

private:
  Program program;
  CPUExecutorOptions options;
  std::unique_ptr<cpu::CompiledProgram> code;
  fi_package *package = nullptr;
  fi_plan *currentPlan = nullptr;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
};

} // namespace

Expected<std::unique_ptr<Executor>>
createCPUExecutor(const Program &program, const CPUExecutorOptions &options) {
  auto executor = std::make_unique<CPUExecutor>(program, options);
  if (Error error = executor->compile())
    return std::move(error);
  return executor;
}

} // namespace fi::replay
