//===- fi-gpu-smoke.cpp - Does the runtime work on this GPU? --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   fi-gpu-smoke [--device N | --emulate CHIP] [--explain] [PACKAGE]
//
// Runs the package written by hand (test/data/gpu/naive, the default) on a GPU
// through the runtime and checks what comes out. Needs the CUDA driver and
// nothing else; with --emulate (smaller batches on an emulated sm_80, say) not
// even that. Exit status: 0 all passed, 1 something failed, 77 no GPU.
//
//===----------------------------------------------------------------------===//
#include "Smoke.h"

#include "fi-emulator/fi_emulator_driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <memory>

using namespace fi::smoke;

namespace {

/// Graphs are the caller's, not the runtime's: straight to the driver.
std::string captureCuda(void *stream, const Step &body, Step &launch) {
  void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  auto find = [&](const char *name) {
    return library ? dlsym(library, name) : nullptr;
  };
  auto begin =
      reinterpret_cast<int (*)(void *, int)>(find("cuStreamBeginCapture_v2"));
  auto end =
      reinterpret_cast<int (*)(void *, void **)>(find("cuStreamEndCapture"));
  auto instantiate =
      reinterpret_cast<int (*)(void **, void *, unsigned long long)>(
          find("cuGraphInstantiateWithFlags"));
  auto launchGraph =
      reinterpret_cast<int (*)(void *, void *)>(find("cuGraphLaunch"));
  auto destroyExecutable =
      reinterpret_cast<int (*)(void *)>(find("cuGraphExecDestroy"));
  auto nodes = reinterpret_cast<int (*)(void *, void **, size_t *)>(
      find("cuGraphGetNodes"));
  if (!begin || !end || !instantiate || !launchGraph || !nodes ||
      !destroyExecutable)
    return "the driver has no graphs";
  constexpr int global = 0; // the strictest mode
  if (int result = begin(stream, global))
    return "cuStreamBeginCapture: error " + std::to_string(result);
  std::string problem = body();
  void *graph = nullptr, *executable = nullptr;
  if (int result = end(stream, &graph))
    return problem + " cuStreamEndCapture: error " + std::to_string(result);
  if (!problem.empty())
    return problem;
  size_t count = 0;
  nodes(graph, nullptr, &count);
  if (count == 0)
    return "the graph is empty";
  if (int result = instantiate(&executable, graph, 0))
    return "cuGraphInstantiate: error " + std::to_string(result);
  std::shared_ptr<void> kept(executable, destroyExecutable);
  launch = [=] {
    int result = launchGraph(kept.get(), stream);
    return result ? "cuGraphLaunch: error " + std::to_string(result) : "";
  };
  return "";
}

} // namespace

int main(int argc, char **argv) {
  Options options;
  options.package = "test/data/gpu/naive";
  options.capture = captureCuda;
  const fi_driver *driver = nullptr;
  std::unique_ptr<RecordingDriver> recording;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--device") == 0 && i + 1 < argc) {
      options.device = std::atoi(argv[++i]);
    } else if (std::strcmp(argv[i], "--emulate") == 0 && i + 1 < argc) {
      driver = fi_emulator_driver(argv[++i], "check");
      options.small = true;
      if (!driver) {
        std::fprintf(stderr, "fi-gpu-smoke: %s\n", fi_emu_last_error());
        return 2;
      }
      recording = std::make_unique<RecordingDriver>(driver);
      driver = recording->table();
      options.capture = recording->capture();
    } else if (std::strcmp(argv[i], "--explain") == 0) {
      options.explain = true;
    } else if (argv[i][0] == '-') {
      std::fprintf(stderr, "usage: fi-gpu-smoke [--device N | --emulate CHIP] "
                           "[--explain] [PACKAGE]\n");
      return std::strcmp(argv[i], "--help") == 0 ? 0 : 2;
    } else {
      options.package = argv[i];
    }
  }
  int failures = runSmoke(driver, options);
  return failures < 0 ? 77 : failures > 0;
}
