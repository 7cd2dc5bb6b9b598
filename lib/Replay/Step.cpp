//===- Step.cpp - one step of a replay as arguments -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Counts what the runtime's schedule lists.
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Step.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace fi::replay {

std::vector<HostTensor> StepTensors::getResults(const Program &program) const {
  std::vector<HostTensor> results = {output};
  if (program.hasLse())
    results.push_back(lse);
  return results;
}

std::vector<HostValue> makeArguments(const Program &program,
                                     const StepBatch &batch,
                                     const StepTensors &tensors) {
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
  return arguments;
}

Expected<ScheduleSummary> summarizeSchedule(StringRef text) {
  Expected<json::Value> parsed = json::parse(text);
  if (!parsed)
    return parsed.takeError();
  auto fail = [] {
    return createStringError(inconvertibleErrorCode(),
                             "the runtime's schedule lacks its workers, stages "
                             "or items; runtime and tool do not fit");
  };
  const json::Object *root = parsed->getAsObject();
  const json::Array *workers = root ? root->getArray("workers") : nullptr;
  const json::Array *stages = root ? root->getArray("stages") : nullptr;
  if (!workers || !stages)
    return fail();
  ScheduleSummary summary;
  summary.workers = workers->size();
  for (const json::Value &worker : *workers) {
    const json::Object *object = worker.getAsObject();
    const json::Array *items = object ? object->getArray("items") : nullptr;
    if (!items)
      return fail();
    for (const json::Value &value : *items) {
      const json::Object *item = value.getAsObject();
      std::optional<int64_t> stage, slot;
      if (item) {
        stage = item->getInteger("stage");
        slot = item->getInteger("slot");
      }
      if (!stage || !slot || *stage < 0 || *stage >= int64_t(stages->size()))
        return fail();
      if (item->getBoolean("merge").value_or(false))
        continue;
      ++summary.items;
      const json::Object *op = (*stages)[*stage].getAsObject();
      if (op && op->getString("op") == "attention" && *slot >= 0)
        ++summary.splits;
    }
  }
  return summary;
}

} // namespace fi::replay
