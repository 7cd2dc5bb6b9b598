//===- KernelCases.cpp - Kernels with inputs and expected results ---------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>

namespace fi::emulator::test {

const std::vector<KernelCase> &kernelCases() {
  static const std::vector<KernelCase> all = [] {
    std::vector<KernelCase> cases = basicCases();
    for (auto *more : {matrixCases, numericCases, tmaCases, wgmmaCases})
      for (KernelCase &c : more())
        cases.push_back(std::move(c));
    return cases;
  }();
  return all;
}

const std::string &moduleText(const std::string &name) {
  static std::map<std::string, std::string> texts;
  std::string &text = texts[name];
  if (text.empty()) {
    // On another machine the sources may lie elsewhere.
    const char *folder = std::getenv("FI_EMULATOR_KERNELS");
    std::string path = std::string(folder ? folder : FI_EMULATOR_KERNELS) +
                       "/" + name + ".ptx";
    std::ifstream in(path, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in),
                std::istreambuf_iterator<char>());
    if (text.empty()) {
      std::fprintf(stderr, "cannot read %s\n", path.c_str());
      std::exit(1);
    }
  }
  return text;
}

LaunchResult runCase(Device &device, KernelCase &c, std::string_view ptx) {
  LaunchResult result;
  std::string error;
  Module *module = device.moduleLoad(
      c.module + ".ptx", ptx.empty() ? moduleText(c.module) : ptx, error);
  const Function *f = module ? module->getFunction(c.kernel, error) : nullptr;
  if (!f) {
    result.error = error;
    return result;
  }
  std::vector<uint8_t> params(f->parameterBytes());
  std::vector<uint64_t> addresses;
  for (KernelArgument &a : c.arguments) {
    uint64_t address = 0;
    if (a.isBuffer) {
      size_t bytes = a.words.size() * 4;
      address = device.memAlloc(bytes, error);
      device.memcpyToDevice(address, a.words.data(), bytes, error);
    }
    addresses.push_back(address);
  }
  for (size_t i = 0; i < f->parameters().size(); ++i) {
    KernelArgument &a = c.arguments[i];
    uint8_t *to = params.data() + f->parameters()[i].offset;
    if (a.isBuffer) {
      std::memcpy(to, &addresses[i], 8);
    } else if (a.isMap) {
      alignas(64) uint8_t bytes[tensorMapBytes];
      TensorMapConfig map = a.map;
      map.address = addresses[a.of] + a.offset;
      if (!encodeTensorMap(map, bytes, error)) {
        result.error = error;
        return result;
      }
      std::memcpy(to, bytes, sizeof(bytes));
    } else {
      std::memcpy(to, &a.scalar, 4);
    }
  }
  LaunchConfig config;
  config.grid = c.grid;
  config.block = c.block;
  config.dynamicShared = c.shared;
  config.params = params.data();
  config.paramBytes = params.size();
  result = device.launch(*f, config);
  for (size_t i = 0; i < c.arguments.size(); ++i)
    if (c.arguments[i].isBuffer) {
      Words &w = c.arguments[i].words;
      device.memcpyToHost(w.data(), addresses[i], w.size() * 4, error);
      device.memFree(addresses[i], error);
    }
  device.moduleUnload(module);
  return result;
}

} // namespace fi::emulator::test
