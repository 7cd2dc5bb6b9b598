//===- PtxFuzzer.cpp - any bytes as a PTX module -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses and decodes; kernels that load run a little with null pointers, where
// every access must be reported and none may reach the host.
//
//===----------------------------------------------------------------------===//

#include "fi-emulator/Emulator.h"

using namespace fi::emulator;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  Options options;
  options.check = size % 2;
  options.stepLimit = 2000;
  options.maxReports = 4;
  std::string error;
  auto device = Device::create("sm_90", options, error);
  std::string_view text(reinterpret_cast<const char *>(data), size);
  Module *module = device->moduleLoad("x.ptx", text, error);
  if (!module) {
    // What is refused says why.
    if (error.empty())
      __builtin_trap();
    return 0;
  }
  for (const Function *f : module->functions()) {
    std::vector<uint8_t> params(f->parameterBytes());
    LaunchConfig config;
    config.block = Dim3{40};
    config.params = params.data();
    config.paramBytes = params.size();
    device->launch(*f, config);
  }
  return 0;
}
