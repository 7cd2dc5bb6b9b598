//===- FakeDriver.h - A device made of host memory -------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An fi_driver for tests of the runtime. Its device memory is host memory, its
// kernels are C++ functions found by name, and its streams are as lazy as can
// be: nothing that was put into one happens before somebody waits for it. Every
// call is recorded.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_UNIT_RUNTIME_FAKEDRIVER_H
#define FI_TEST_UNIT_RUNTIME_FAKEDRIVER_H

#include "FakePackage.h"
#include "fi-runtime/fi_driver.h"

#include <map>
#include <set>

namespace fi::test {

/// A kernel of the fake device: one CTA.
struct FakeCta {
  int64_t cta, ctas;
  const int64_t *params;
  size_t paramCount;
};
using FakeKernel = std::function<void(const FakeCta &)>;

class FakeDriver {
public:
  FakeDriver();
  ~FakeDriver();
  FakeDriver(const FakeDriver &) = delete;

  const fi_driver *table() const { return &driver; }
  void setLaunchesOverlap(bool can) { driver.launches_overlap = can; }

  /// What its devices are; change before opening.
  std::vector<fi_driver_device> devices;
  /// Kernels by name, of whatever module.
  std::map<std::string, FakeKernel> kernels;
  fi_driver_function functionInfo = {64, 1024, 0, 0};
  int32_t occupancy = 2;

  /// Host memory becomes the device's.
  void adopt(const void *memory, size_t bytes, int32_t ordinal = 0) {
    ranges[uintptr_t(memory)] = {bytes, ordinal};
  }

  /// The names of the calls since the last clear, in order.
  std::vector<std::string> calls;
  std::vector<fi_driver_launch> launches;
  /// All that were described, and the bytes of the last launch's.
  std::vector<fi_driver_tensor> tensors;
  std::vector<char> launchedMaps;
  size_t copiedBytes = 0;
  void clear() {
    copiedBytes = 0;
    calls.clear();
    launches.clear();
  }
  size_t count(const std::string &name) const;
  /// Calls of that name fail with `result` and text from now on.
  void failOn(const std::string &name, int result, const std::string &text) {
    failing = name;
    failure = result;
    failureText = text;
  }
  fi_driver_fault fault = {};
  std::string moduleLog;
  void *foreignStream = reinterpret_cast<void *>(0xF0);
  void *capturedStream = reinterpret_cast<void *>(0xCA);
  int32_t entered = 0;
  size_t liveAllocations() const { return owned.size(); }
  size_t liveModules = 0;
  int32_t sharedOptedIn = 0;
  /// Lets everything in all streams happen.
  void finish();
  /// Launches are kept instead of done while it is true, as in a capture.
  bool capturing = false;
  /// Does the captured launches, with the parameters that they had.
  void replay();

private:
  friend struct FakeCalls;
  struct Range {
    size_t bytes;
    int32_t ordinal;
  };
  struct Function {
    std::string name;
  };
  int begin(const char *name);

  fi_driver driver = {};
  std::map<uintptr_t, Range> ranges;
  std::map<void *, std::unique_ptr<char[]>> owned;
  std::vector<std::unique_ptr<Function>> functions;
  struct Work {
    void *stream;
    std::function<void()> run;
  };
  std::vector<Work> queue, graph;
  std::string failing, failureText, lastText;
  int failure = 0;
  int32_t current = -1;
};

/// A manifest of a FakeProgram for the device, and the text of its kernels.
json deviceManifest(const FakeProgram &program, const char *chip = "sm_80");
std::string devicePtx(const char *version = "7.4");

/// A FakeDriver with the counting kernels, a package and an open device.
struct FakeGpu {
  FakeDriver driver;
  PackagePtr package;
  fi_device *device = nullptr;
  FakeGpu();
  ~FakeGpu();
  /// Opens the program; failure is for the test to see.
  void open(const json &manifest);
  fi_plan_options options() const;
  /// Makes a bound batch's tensors the device's.
  void adopt(const FakeBatch &batch);
  /// Runs in a workspace of exact size and waits.
  fi_status run(fi_plan *plan, FakeBatch &batch);
};

} // namespace fi::test

#endif // FI_TEST_UNIT_RUNTIME_FAKEDRIVER_H
