//===- DumpCases.cpp - fi-emu-cases ---------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// fi-emu-cases DIR: the kernels of the tests with their inputs and what the
// emulator made of them, for check_on_gpu.py.
//
//===----------------------------------------------------------------------===//
#include "../../../emulator/tool/Npy.h"
#include "KernelCases.h"

#include <cstdio>
#include <cstring>
#include <fstream>

using namespace fi::emulator;
using namespace fi::emulator::test;

namespace {
bool save(const std::string &path, const Words &words) {
  NpyArray a;
  a.descr = "<u4";
  a.shape = {words.size()};
  a.bytes.resize(words.size() * 4);
  std::memcpy(a.bytes.data(), words.data(), a.bytes.size());
  std::string error;
  if (writeNpy(path, a, error))
    return true;
  std::fprintf(stderr, "fi-emu-cases: error: %s\n", error.c_str());
  return false;
}

/// A tensor map with the driver's numbers.
std::string mapOf(const KernelArgument &a) {
  const TensorMapConfig &m = a.map;
  auto list = [&](const auto *v, uint32_t n) {
    std::string text = "[";
    for (uint32_t i = 0; i < n; ++i)
      text += (i ? ", " : "") + std::to_string(v[i]);
    return text + "]";
  };
  return "{\"map\": {\"type\": " + std::to_string(uint32_t(m.type)) +
         ", \"dims\": " + list(m.dims, m.rank) +
         ", \"strides\": " + list(m.strides, m.rank - 1) +
         ", \"box\": " + list(m.box, m.rank) +
         ", \"element_strides\": " + list(m.elementStrides, m.rank) +
         ", \"swizzle\": " + std::to_string(uint32_t(m.swizzle)) +
         ", \"fill\": " + std::to_string(m.fill) +
         "}, \"of\": " + std::to_string(a.of) +
         ", \"offset\": " + std::to_string(a.offset) + "}";
}
} // namespace

int main(int argc, char **argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: fi-emu-cases DIR   (which exists)\n");
    return 2;
  }
  std::string dir = std::string(argv[1]) + "/", error;
  std::string json = "[";
  for (const KernelCase &which : kernelCases()) {
    KernelCase c = which;
    auto device = Device::create(c.target, {}, error);
    std::ofstream(dir + c.module + ".ptx", std::ios::binary)
        << moduleText(c.module);
    json += (json.size() > 1 ? ",\n " : "\n ") +
            std::string("{\"module\": \"") + c.module + "\", \"kernel\": \"" +
            c.kernel + "\", \"name\": \"" + c.name() + "\", \"target\": \"" +
            c.target + "\", \"grid\": [" + std::to_string(c.grid.x) + ", " +
            std::to_string(c.grid.y) + ", " + std::to_string(c.grid.z) +
            "], \"block\": [" + std::to_string(c.block.x) + ", " +
            std::to_string(c.block.y) + ", " + std::to_string(c.block.z) +
            "], \"shared\": " + std::to_string(c.shared) +
            ", \"exact\": " + (c.exactOnGpu ? "true" : "false") +
            ", \"tolerance\": " + std::to_string(c.tolerance) +
            ", \"arguments\": [";
    for (size_t i = 0; i < c.arguments.size(); ++i) {
      const KernelArgument &a = c.arguments[i];
      std::string name = c.name() + "." + std::to_string(i) + ".npy";
      json +=
          (i ? ", " : "") +
          (a.isBuffer
               ? std::string("{\"buffer\": \"") + name +
                     "\", \"output\": " + (a.isOutput ? "true" : "false") +
                     ", \"hidden\": " + (a.isHidden ? "true" : "false") + "}"
           : a.isMap ? mapOf(a)
                     : "{\"u32\": " + std::to_string(a.scalar) + "}");
      if (a.isBuffer && !save(dir + name, a.words))
        return 1;
    }
    json += "]}";
    LaunchResult r = runCase(*device, c);
    if (!r.ok()) {
      std::fprintf(stderr, "fi-emu-cases: error: %s: %s\n", c.name().c_str(),
                   r.error.c_str());
      return 1;
    }
    for (size_t i = 0; i < c.arguments.size(); ++i)
      if (c.arguments[i].isOutput &&
          !save(dir + c.name() + "." + std::to_string(i) + ".emulated.npy",
                c.arguments[i].words))
        return 1;
  }
  std::ofstream(dir + "cases.json") << json << "\n]\n";
  std::printf("%zu kernels written\n", kernelCases().size());
  return 0;
}
