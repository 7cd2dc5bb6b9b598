//===- NpyFuzzer.cpp - any bytes as .npy and .npz files ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Npy.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  llvm::StringRef bytes(reinterpret_cast<const char *>(data), size);
  auto tensor = fi::parseNpy(bytes, "x.npy");
  if (tensor) {
    // What was read is written as something that reads the same.
    auto again = fi::parseNpy(fi::formatNpy(*tensor), "x.npy");
    if (!again || again->getShape() != tensor->getShape())
      __builtin_trap();
  } else {
    llvm::consumeError(tensor.takeError());
  }
  auto archive = fi::parseNpz(bytes, "x.npz");
  if (!archive)
    llvm::consumeError(archive.takeError());
  return 0;
}
