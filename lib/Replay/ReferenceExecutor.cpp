//===- ReferenceExecutor.cpp - a replay on the reference interpreter ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Interpreter/Reference.h"
#include "fi/Replay/Executor.h"
#include <cstring>

using namespace llvm;

namespace fi::replay {

Executor::~Executor() = default;

Expected<std::vector<HostTensor>>
interpretStep(const Program &program, const StepBatch &batch,
              const StepTensors &tensors,
              const std::vector<std::pair<int64_t, int64_t>> *onlyRows) {
  auto table = [](const std::vector<int32_t> &values) {
    return HostTensor(DType::I32, {int64_t(values.size())},
                      const_cast<int32_t *>(values.data()));
  };
  auto valueOf = [&](Role role) -> HostTensor {
    switch (role) {
    case Role::Rows:
      return table(batch.rows);
    case Role::Indptr:
      return table(batch.pageIndptr);
    case Role::Pages:
      return table(batch.pages);
    case Role::LastPage:
      return table(batch.lastPage);
    case Role::Query:
      return tensors.query;
    case Role::NewKeys:
      return tensors.newKeys;
    case Role::NewValues:
      return tensors.newValues;
    case Role::Keys:
      return tensors.keys;
    case Role::Values:
      return tensors.values;
    }
    return HostTensor();
  };
  std::vector<HostValue> arguments(program.getOp().getArgumentTypes().size(),
                                   HostValue(HostTensor()));
  for (unsigned role = 0; role < kRoles; ++role)
    if (int index = program.getArgument(Role(role)); index >= 0)
      arguments[index] = HostValue(valueOf(Role(role)));
  ReferenceOptions options;
  if (onlyRows)
    options.onlyRows = *onlyRows;
  return interpretProgram(program.getOp(), arguments, options);
}

namespace {

class ReferenceExecutor : public Executor {
public:
  explicit ReferenceExecutor(const Program &program) : program(program) {}

  std::string describe() const override { return "reference interpreter"; }
  Error plan(const StepBatch &batch) override {
    planned = batch;
    return Error::success();
  }
  Error prepare() override { return Error::success(); }
  Error run(const StepTensors &tensors) override {
    auto results = interpretStep(program, planned, tensors, nullptr);
    if (!results)
      return results.takeError();
    const HostTensor *places[] = {&tensors.output, &tensors.lse};
    for (auto [i, result] : enumerate(*results))
      std::memcpy(places[i]->getData(), result.getData(),
                  result.getNumElements() * getByteSize(result.getType()));
    return Error::success();
  }
  Expected<std::string> getSchedule() override { return std::string(); }

private:
  Program program;
  StepBatch planned;
};

} // namespace

std::unique_ptr<Executor> createReferenceExecutor(const Program &program) {
  return std::make_unique<ReferenceExecutor>(program);
}

} // namespace fi::replay
