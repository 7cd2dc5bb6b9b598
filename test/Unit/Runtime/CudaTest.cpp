//===- CudaTest.cpp - The CUDA driver behind the table --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The adapter over a libcuda that the tests bring along. The driver is loaded
// once in a process, so every case has a child process of its own.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"
#include "fi-runtime/fi_call.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace fi::test;

namespace {

/// What `body` says in a child with that library and that mode.
std::string inChild(const char *library, const char *mode,
                    const std::function<std::string()> &body) {
  int ends[2];
  if (pipe(ends))
    return "no pipe";
  pid_t child = fork();
  if (child == 0) {
    setenv("FI_CUDA_LIBRARY", library, 1);
    setenv("FI_FAKE_CUDA", mode, 1);
    std::string said = body();
    bool written =
        write(ends[1], said.data(), said.size()) == ssize_t(said.size());
    _exit(written ? 0 : 1);
  }
  close(ends[1]);
  std::string said;
  char chunk[4096];
  while (ssize_t n = read(ends[0], chunk, sizeof(chunk)))
    said.append(chunk, size_t(std::max<ssize_t>(n, 0)));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status ? "the child died" : said;
}

std::string openFirst() {
  fi_device *device = nullptr;
  if (fi_device_open(nullptr, 0, &device) == FI_OK)
    return "opened";
  return (fi_device_count(nullptr) ? "counted " : "") +
         std::string(fi_last_error());
}

TEST(Cuda, SaysWhatIsMissing) {
  EXPECT_EQ(inChild("libno-such-cuda.so.1", "", openFirst),
            "device: there is no CUDA driver on this machine "
            "(libno-such-cuda.so.1: cannot open shared object file: No such "
            "file or directory); install NVIDIA's driver, or compile for the "
            "cpu");
  EXPECT_EQ(inChild("libm.so.6", "", openFirst),
            "device: the CUDA driver is too old: 'libm.so.6' has no function "
            "'cuInit'; install a driver for CUDA 11.0 or later");
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "old", openFirst),
            "device: the CUDA driver is too old: it is for CUDA 10.2; install "
            "a driver for CUDA 11.0 or later");
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "nodevice", openFirst),
            "device: the CUDA driver cannot be used: CUDA_ERROR_NO_DEVICE "
            "(what it means); run on a machine with a GPU that this process "
            "may see, or compile for the cpu");
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "uninitialised", openFirst),
            "device: the CUDA driver cannot be used: "
            "CUDA_ERROR_NOT_INITIALIZED (what it means); check that the driver "
            "is loaded (nvidia-smi)");
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "", openFirst), "opened");
}

/// Programs that functions call run on the first device, if there is one.
TEST(Cuda, IsWhereCallsRun) {
  auto registerProgram = [] {
    FakeGpu gpu; // for its package alone
    gpu.open(deviceManifest(FakeProgram()));
    if (fi_call_register(nullptr, gpu.package.get(), nullptr) == FI_OK)
      return std::string("registered");
    return std::string(fi_last_error());
  };
  EXPECT_EQ(
      inChild("libno-such-cuda.so.1", "", registerProgram),
      "fi_call_register: package 'counting' is compiled for sm_80, and no "
      "'device' was given: device: there is no CUDA driver on this "
      "machine (libno-such-cuda.so.1: cannot open shared object file: No "
      "such file or directory); install NVIDIA's driver, or compile for "
      "the cpu");
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "", registerProgram), "registered");
}

TEST(Cuda, DescribesDevices) {
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "",
                    [] {
                      fi_device *device = nullptr;
                      fi_driver_device info;
                      if (fi_device_open(nullptr, 1, &device) != FI_OK)
                        return std::string(fi_last_error());
                      fi_device_describe(device, &info);
                      fi_device_release(device);
                      return std::string(info.name) + " " +
                             std::to_string(info.multiprocessors) + " " +
                             std::to_string(info.shared_optin) + " " +
                             std::to_string(info.ptx_version) + " " +
                             info.driver + ", " +
                             std::to_string(fi_device_count(nullptr));
                    }),
            "Fake H1 132 232448 85 driver for CUDA 12.6, 2");
}

/// The kernels of a FakeGpu, for the library's launches.
FakeGpu *kernels = nullptr;
int launches = 0;
void *lastStream = nullptr;
void launch(const char *name, unsigned grid, unsigned, unsigned, void *stream,
            const void *params, size_t bytes) {
  ++launches;
  lastStream = stream;
  for (unsigned c = 0; c < grid; ++c)
    kernels->driver.kernels[name](
        {c, grid, static_cast<const int64_t *>(params), bytes / 8});
}

/// The batch of a test, copied into device memory and back.
std::string planAndRun(void *current, void *stream, const char *ptxVersion) {
  void *library = dlopen(FI_FAKE_CUDA_LIBRARY, RTLD_NOW);
  auto at = [&](const char *name) { return dlsym(library, name); };
  void *&currentContext = *static_cast<void **>(at("fake_cuda_current"));
  currentContext = current;
  *reinterpret_cast<decltype(&launch) *>(at("fake_cuda_launch")) = launch;
  FakeGpu gpu;
  kernels = &gpu;
  fi_device *device = nullptr;
  if (fi_device_open(nullptr, 0, &device) != FI_OK)
    return fi_last_error();
  FakeProgram program;
  program.bodies = {{4, 16, -1, 0, 10, 100, 10}};
  std::string text = deviceManifest(program).dump();
  std::string ptx = devicePtx(ptxVersion);
  fi_code code = {FI_DRIVER_PTX, ptx.data(), ptx.size()};
  fi_package *opened = nullptr;
  if (fi_package_from_code(text.data(), text.size(), &code, 1, &opened))
    return fi_last_error();
  PackagePtr package(opened);
  FakeBatch batch;
  Recorder recorder;
  recorder.visible = [](const Pair &) { return true; };
  batch.queryLengths = {1, 3};
  batch.keyLengths = {700, 9};
  batch.bind(program, recorder);
  fi_plan_options options = defaultOptions(0);
  options.device = device;
  options.stream = stream;
  fi_status status = FI_OK;
  PlanPtr plan = planBatch(package.get(), batch, options, &status);
  if (!plan)
    return fi_last_error();
  // Everything a run touches must be the driver's.
  const fi_driver *driver = fi_device_driver(device);
  auto onDevice = [&](size_t bytes) {
    void *memory = nullptr;
    driver->memory_alloc(driver->self, bytes + 64, &memory);
    return memory;
  };
  for (size_t i = 1; i < batch.run.size(); ++i)
    batch.run[i].as.tensor.data = onDevice(64);
  for (fi_tensor &result : batch.results)
    result.data = onDevice(4096);
  size_t bytes = fi_plan_workspace_bytes(plan.get());
  status =
      fi_run_device(plan.get(), 0, batch.run.data(), int32_t(batch.run.size()),
                    batch.results.data(), 2, onDevice(bytes), bytes, stream);
  if (status != FI_OK)
    return fi_last_error();
  std::memcpy(batch.output.data(), batch.results[0].data,
              (batch.output.size() - 1) * sizeof(float));
  std::memcpy(batch.lse.data(), batch.results[1].data,
              (batch.lse.size() - 1) * sizeof(float));
  std::string problem = compareCounts(program, batch, recorder);
  if (!problem.empty())
    return problem;
  if (currentContext != current)
    return "another context is current";
  if (launches != 2 || lastStream != stream)
    return "launches";
  plan.reset();
  package.reset();
  fi_device_release(device);
  if (*static_cast<int *>(at("fake_cuda_modules")) ||
      *static_cast<int *>(at("fake_cuda_pushes")) ||
      *static_cast<int *>(at("fake_cuda_primary")))
    return "something was not given back";
  return "ran";
}

TEST(Cuda, RunsInTheCallersContext) {
  auto in = [](void *context, void *stream) {
    return inChild(FI_FAKE_CUDA_LIBRARY, "",
                   [=] { return planAndRun(context, stream, "7.4"); });
  };
  void *stream = reinterpret_cast<void *>(0x5000);
  EXPECT_EQ(in(nullptr, stream), "ran");                         // none
  EXPECT_EQ(in(reinterpret_cast<void *>(0xC0), stream), "ran");  // primary
  EXPECT_EQ(in(reinterpret_cast<void *>(0xC1), nullptr), "ran"); // another's
  EXPECT_EQ(in(reinterpret_cast<void *>(0xD0), stream), "ran");  // made
}

TEST(Cuda, Refuses) {
  auto with = [](const char *mode, uintptr_t stream, const char *ptx) {
    return inChild(FI_FAKE_CUDA_LIBRARY, mode, [=] {
      return planAndRun(nullptr, reinterpret_cast<void *>(stream), ptx);
    });
  };
  EXPECT_EQ(with("", 0x5001, "7.4"),
            "plan: options.stream: cuda device 0 (Fake H0): expected a stream "
            "of this device and context, but got one of another; pass a stream "
            "of the device that the plan was made for");
  EXPECT_EQ(with("", 0x5002, "7.4"),
            "plan: options.stream: cuda device 0 (Fake H0): "
            "CUDA_ERROR_INVALID_HANDLE (what it means)");
  EXPECT_EQ(with("oldptx", 0x5000, "7.4"),
            "package 'counting': its code is PTX 7.4, but the driver for CUDA "
            "11.3 reads PTX up to 7.3; update the driver, or compile with a "
            "ptx version of at most 7.3");
  EXPECT_EQ(with("alien", 0x5000, "7.4"),
            "run: operand 'q': expected memory of device 0 (Fake H0), but got "
            "memory of device 1; copy it, or plan for that device");
}

/// Tensors are described as the driver's function takes them, and kernels with
/// such parameters get all of theirs one by one.
std::string describeAndLaunch() {
  fi_device *device = nullptr;
  if (fi_device_open(nullptr, 0, &device) != FI_OK)
    return fi_last_error();
  const fi_driver *driver = fi_device_driver(device);
  fi_driver_tensor tensor = {};
  alignas(64) uint64_t params[8 + 16] = {1, 2, 3};
  tensor.data = params;
  tensor.rank = 3;
  tensor.element = 2;
  tensor.swizzle = 128;
  for (int d = 0; d < 3; ++d) {
    tensor.sizes[d] = 10 + d;
    tensor.strides[d] = 160 * d;
    tensor.box[d] = 4 + d;
  }
  if (driver->tensor_map(driver->self, &tensor, params + 8))
    return "tensor_map";
  const uint64_t *map = params + 8;
  uint64_t step = uint64_t(1) << 32;
  const uint64_t expected[] = {uint64_t(uintptr_t(params)),
                               1 | 3 << 8 | 2 << 16,
                               10,
                               4 | step,
                               160,
                               11,
                               5 | step,
                               320,
                               12,
                               6 | step};
  for (int i = 0; i < 10; ++i)
    if (map[i] != expected[i])
      return "map " + std::to_string(i) + ": " + std::to_string(map[i]);
  fi_driver_launch launch = {};
  launch.params = params;
  launch.param_bytes = sizeof(params);
  launch.slots = 3;
  launch.tensor_maps = 1;
  if (driver->launch(driver->self, nullptr, &launch))
    return "launch";
  void *fake = dlopen(FI_FAKE_CUDA_LIBRARY, RTLD_NOW);
  auto each = static_cast<void **>(dlsym(fake, "fake_cuda_each"));
  for (int i = 0; i < 3; ++i)
    if (each[i] != params + i)
      return "parameter " + std::to_string(i);
  std::string said = each[3] == params + 8 ? "described" : "the map";
  fi_device_release(device);
  return said;
}

TEST(Cuda, TensorMaps) {
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "", describeAndLaunch), "described");
}

/// How launches that may begin early are made.
std::string launchEarly() {
  const fi_driver *driver = nullptr;
  if (fi_cuda_driver(&driver) != FI_OK)
    return fi_last_error();
  uint64_t params[4] = {};
  fi_driver_launch launch = {};
  for (uint32_t *size : {launch.grid, launch.block})
    size[0] = size[1] = size[2] = 1;
  launch.params = params;
  // One by one, so that the fake looks for no function.
  launch.param_bytes = sizeof(params);
  launch.slots = 1;
  launch.tensor_maps = 1;
  void *fake = dlopen(FI_FAKE_CUDA_LIBRARY, RTLD_NOW);
  const int &count = *static_cast<int *>(dlsym(fake, "fake_cuda_overlaps"));
  std::string said = driver->launches_overlap ? "can" : "cannot";
  for (int32_t overlaps : {0, 1, 1}) {
    launch.overlaps = overlaps;
    if (driver->launch(driver->self, nullptr, &launch))
      return "launch";
    said += " " + std::to_string(count);
  }
  return said;
}

TEST(Cuda, LaunchesOverlap) {
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "", launchEarly), "can 0 1 2");
  // Before CUDA 12.3, and where nobody wants it.
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "oldptx", launchEarly),
            "cannot 0 0 0");
  EXPECT_EQ(inChild(FI_FAKE_CUDA_LIBRARY, "",
                    [] {
                      setenv("FI_OVERLAP_LAUNCHES", "0", 1);
                      return launchEarly();
                    }),
            "cannot 0 0 0");
}

} // namespace
