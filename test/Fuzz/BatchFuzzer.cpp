//===- BatchFuzzer.cpp - any text as JSON and CSV of the tools -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches (of which values of the arguments of several programs are made),
// models, traces, schedules.
//
//===----------------------------------------------------------------------===//

#include "FuzzContext.h"
#include "fi/Execution/Inputs.h"
#include "fi/Fuzz/Program.h"
#include "fi/Model/Model.h"
#include "fi/Replay/Trace.h"
#include "fi/Support/Batch.h"
#include "fi/Support/SchedulePlot.h"
#include "fi/Support/Timeline.h"

using namespace fi;
using namespace fi::fuzzing;

/// What is refused has a sentence.
template <typename T> static bool isTaken(llvm::Expected<T> &result) {
  if (result)
    return true;
  std::string sentence = llvm::toString(result.takeError());
  if (sentence.empty())
    fault("something is refused without a sentence");
  note(sentence);
  return false;
}

/// Of a dozen programs, with the views that there are.
static llvm::ArrayRef<Signature> getSignatures() {
  static const std::vector<Signature> signatures = [] {
    std::vector<Signature> made;
    FuzzContext context;
    for (uint64_t seed = 1; seed <= 12; ++seed) {
      fuzz::Choices choices(seed);
      auto module =
          context.parse(fuzz::makeProgram(choices, fuzz::Family::CPU).text);
      if (!module)
        fault("a random program does not parse: " + context.lastError);
      auto signature = getSignature(*module, "");
      if (!signature)
        fault("a random program has no signature: " +
              llvm::toString(signature.takeError()));
      made.push_back(std::move(*signature));
    }
    return made;
  }();
  return signatures;
}

/// Keys and rows of all requests: what a batch makes its user pay for.
static int64_t getTokens(const Batch &batch) {
  int64_t tokens = batch.poolPages.value_or(0);
  for (const RequestLengths &request : batch.requests)
    tokens += std::min<int64_t>(request.queryLength, 1 << 20) +
              std::min<int64_t>(request.keyLength, 1 << 20);
  return tokens * std::clamp<int64_t>(batch.pageSize.value_or(1), 1, 1 << 20);
}

/// Makes tensors of the small arguments that need no file.
static void makeTensors(const Batch &batch) {
  for (auto &[name, source] : batch.arguments) {
    if (source.kind == ArgumentSource::Kind::Npy ||
        source.kind == ArgumentSource::Kind::Npz)
      continue;
    int64_t count = 1;
    if (source.shape)
      for (int64_t size : *source.shape)
        count = std::min<int64_t>(count * std::min<int64_t>(size, 1 << 16),
                                  1 << 16);
    if (count == 1 << 16)
      continue;
    for (DType type : {DType::F32, DType::I32})
      for (size_t rank : {0, 1, 2}) {
        llvm::SmallVector<int64_t, 2> shape(rank, -1);
        auto tensor = makeTensor(source, name, type, shape, 1);
        if (!tensor)
          llvm::consumeError(tensor.takeError());
      }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::ArrayRef<Signature> signatures = getSignatures();
  outcome = 0;
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto batch = parseBatchJson(text, "x.json");
  if (isTaken(batch)) {
    makeTensors(*batch);
    // Files that a batch names are other inputs' business.
    bool hasFiles = llvm::any_of(batch->arguments, [](const auto &argument) {
      return argument.second.kind == ArgumentSource::Kind::Npy ||
             argument.second.kind == ArgumentSource::Kind::Npz;
    });
    for (const Signature &signature : signatures) {
      if (hasFiles || getTokens(*batch) > 1 << 14)
        break;
      auto inputs = makeInputs(signature, *batch, {});
      if (isTaken(inputs))
        note("made inputs");
    }
  }
  auto table = parseBatchCsv(text, "x.csv");
  isTaken(table);
  auto picture = plotSchedule(text);
  isTaken(picture);
  auto timeline = plotTimeline(text);
  if (isTaken(timeline))
    note("a timeline");
  auto phases = summarizeTimeline(text);
  isTaken(phases);
  auto trace = replay::parseTrace(text, "x.csv");
  isTaken(trace);
  auto model = model::parseModel(text, "x.json");
  if (isTaken(model) && model->layers.size() < 100) {
    note("a model");
    model::makePrograms(*model);
  }
  return 0;
}
