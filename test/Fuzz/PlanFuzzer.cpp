//===- PlanFuzzer.cpp - any batch for the planner ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The bytes choose a program, a batch, options and entries of its tables that
// are spoiled. A sound batch must be planned, and each row must see each of its
// keys once; a spoiled one is refused with a sentence, or planned into memory
// that is there.
//
//===----------------------------------------------------------------------===//

#include "../Unit/Runtime/FakePackage.h"
#include "Fuzzing.h"

using namespace fi::fuzzing;
using namespace fi::test;

namespace {

/// Decisions from bytes, 0 behind their end.
class Bytes {
public:
  Bytes(const uint8_t *data, size_t size) : data(data), end(data + size) {}
  uint8_t next() { return data < end ? *data++ : 0; }
  int64_t below(int64_t count) { return next() % count; }
  bool oneIn(int64_t count) { return next() % count == 1; }
  bool isAtEnd() const { return data == end; }
  /// Small, at an edge of a type, or anything.
  int64_t value() {
    uint8_t kind = next();
    if (kind < 160)
      return int64_t(kind % 32) - 8;
    static const int64_t edges[] = {INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                    1ll << 32, -1,        1 << 20,   1ll << 40};
    if (kind < 224)
      return edges[kind % 8];
    uint64_t all = 0;
    for (int i = 0; i < 8; ++i)
      all = all << 8 | next();
    return int64_t(all);
  }

private:
  const uint8_t *data, *end;
};

} // namespace

static FakeProgram makeProgram(Bytes &bytes) {
  FakeProgram program;
  program.kvHeads = 1 + bytes.below(3);
  program.group = 1 + bytes.below(5);
  program.vo = 2;
  program.view = FakeView(bytes.below(3));
  program.headsFirst = bytes.oneIn(2);
  program.page = 1 + bytes.below(16);
  program.wideTables = bytes.oneIn(2);
  program.twoTables = program.view != FakeView::Ragged && bytes.oneIn(4);
  program.positions = bytes.oneIn(4);
  program.origin = bytes.oneIn(4);
  program.merge = !bytes.oneIn(4);
  program.bodies.clear();
  int64_t covered = 0, count = 1 + bytes.below(3);
  for (int64_t b = 0; b < count; ++b) {
    FakeBody body;
    body.tileRows = int64_t(1) << (2 * b + bytes.below(2));
    body.tileKeys = int64_t(1) << bytes.below(7);
    body.scratch = bytes.below(4) * 40;
    body.item = double(bytes.next()) * 8;
    body.tile = bytes.next();
    body.maxRows = b + 1 == count ? -1 : (covered += 1 + bytes.below(16));
    program.bodies.push_back(body);
  }
  if (program.merge && bytes.oneIn(4))
    program.split = {{"policy", "fixed"}, {"keys", 1 + bytes.below(100)}};
  return program;
}

static FakeBatch makeBatch(Bytes &bytes, const FakeProgram &program) {
  FakeBatch batch;
  for (int64_t r = bytes.below(7); r > 0; --r) {
    batch.queryLengths.push_back(bytes.below(14));
    batch.keyLengths.push_back(bytes.below(3) ? bytes.below(40)
                                              : bytes.next() * 2);
    batch.origins.push_back(bytes.value() % 1000);
  }
  batch.leadingRows = bytes.oneIn(4) ? bytes.below(6) : 0;
  batch.trailingRows = bytes.oneIn(4) ? bytes.below(6) : 0;
  batch.pageOffset = bytes.oneIn(4) ? bytes.below(9) : 0;
  batch.surplusPages = bytes.oneIn(4) ? bytes.below(9) : 0;
  if (program.positions)
    for (int64_t i = 0; i < batch.rows(); ++i)
      batch.positions.push_back(bytes.value() % 1000);
  return batch;
}

/// Puts numbers into tables; whether there were any.
static bool spoil(Bytes &bytes, FakeBatch &batch) {
  bool isSpoiled = false;
  for (int64_t n = bytes.below(4); n > 0 && !batch.plan.empty(); --n) {
    fi_value &value = batch.plan[bytes.below(batch.plan.size())];
    if (value.kind != FI_VALUE_TENSOR) {
      value.as.i64 = bytes.value();
      isSpoiled = true;
      continue;
    }
    const fi_tensor &tensor = value.as.tensor;
    int64_t elements = 1;
    for (int32_t d = 0; d < tensor.rank; ++d)
      elements *= tensor.shape[d];
    if (elements == 0)
      continue;
    int64_t at = bytes.below(elements), number = bytes.value();
    if (tensor.dtype == FI_I32)
      static_cast<int32_t *>(tensor.data)[at] = int32_t(number);
    else
      static_cast<int64_t *>(tensor.data)[at] = number;
    isSpoiled = true;
  }
  return isSpoiled;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Bytes bytes(data, size);
  FakeProgram program = makeProgram(bytes);
  fi_plan_options options = defaultOptions(1 + int32_t(bytes.below(6)));
  bool isOdd = bytes.oneIn(8);
  options.split_policy = isOdd ? int32_t(bytes.value()) : bytes.below(4);
  options.split_keys = isOdd ? bytes.value() : 1 + bytes.below(64);
  if (options.split_policy == FI_SPLIT_FIXED && !program.merge && !isOdd)
    options.split_policy = FI_SPLIT_NONE;
  options.borrow_tables = bytes.oneIn(4);
  PackagePtr package(openFake(program.manifest()));
  if (!package)
    fault(std::string("no package: ") + fi_last_error());
  PlanPtr plan;
  // Several batches into one plan: updates reuse memory.
  for (int round = 0; round < 3 && (round == 0 || !bytes.isAtEnd()); ++round) {
    FakeBatch batch = makeBatch(bytes, program);
    Recorder recorder;
    recorder.program = &program;
    recorder.visible = [](const Pair &) { return true; };
    batch.bind(program, recorder);
    options.rows = batch.trailingRows ? batch.rows() : 0;
    bool isSpoiled = spoil(bytes, batch) || isOdd;
    fi_status status;
    if (plan) {
      status = fi_plan_update(plan.get(), batch.plan.data(), batch.plan.size(),
                              &options);
    } else {
      fi_plan *made = nullptr;
      status = fi_plan_create(package.get(), batch.plan.data(),
                              batch.plan.size(), &options, &made);
      plan.reset(made);
    }
    if (status != FI_OK) {
      std::string sentence = fi_last_error();
      if (sentence.empty())
        fault("a batch is refused without a sentence");
      if (!isSpoiled)
        fault("a sound batch is refused: " + sentence);
      note(sentence);
      continue;
    }
    note(isSpoiled ? "spoiled, planned" : "planned");
    char *text = nullptr;
    if (fi_plan_explain(plan.get(), &text) != FI_OK)
      fault("a plan has no explanation");
    fi_string_free(text);
    // It may have millions of rows, which take their time to write down.
    if (isSpoiled)
      continue;
    if (fi_plan_schedule_json(plan.get(), &text) != FI_OK)
      fault("a plan has no schedule");
    fi_string_free(text);
    if (runBatch(plan.get(), batch) != FI_OK)
      fault(std::string("a sound batch does not run: ") + fi_last_error());
    std::string difference = compareCounts(program, batch, recorder);
    if (!difference.empty())
      fault(difference);
    if (!recorder.violations.empty())
      fault(recorder.violations.front());
  }
  return 0;
}
