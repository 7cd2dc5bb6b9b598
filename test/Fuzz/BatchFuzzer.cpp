//===- BatchFuzzer.cpp - any text as a batch -----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Batch.h"
#include "fi/Support/SchedulePlot.h"

using namespace fi;

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
  llvm::StringRef text(reinterpret_cast<const char *>(data), size);
  auto batch = parseBatchJson(text, "x.json");
  if (batch)
    makeTensors(*batch);
  else
    llvm::consumeError(batch.takeError());
  auto table = parseBatchCsv(text, "x.csv");
  if (!table)
    llvm::consumeError(table.takeError());
  auto picture = plotSchedule(text);
  if (!picture)
    llvm::consumeError(picture.takeError());
  return 0;
}
