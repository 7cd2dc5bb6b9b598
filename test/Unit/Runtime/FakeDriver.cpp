//===- FakeDriver.cpp - A device made of host memory ----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// See FakeDriver.h.
//
//===----------------------------------------------------------------------===//
#include "FakeDriver.h"

#include <algorithm>

namespace fi::test {

struct FakeCalls {
  static FakeDriver &of(void *self) { return *static_cast<FakeDriver *>(self); }

  static const char *lastError(void *self) { return of(self).lastText.c_str(); }
  static int deviceCount(void *self, int32_t *count) {
    *count = int32_t(of(self).devices.size());
    return of(self).begin("device_count");
  }
  static int deviceInfo(void *self, int32_t ordinal, fi_driver_device *info) {
    *info = of(self).devices[ordinal];
    return of(self).begin("device_info");
  }
  static int contextOpen(void *self, int32_t ordinal, void **context) {
    *context = reinterpret_cast<void *>(uintptr_t(0x1000 + ordinal));
    return of(self).begin("context_open");
  }
  static void contextClose(void *self, void *) {
    of(self).begin("context_close");
  }
  static int contextEnter(void *self, void *context, int32_t *changed) {
    FakeDriver &fake = of(self);
    int32_t ordinal = int32_t(reinterpret_cast<uintptr_t>(context) - 0x1000);
    *changed = fake.current != ordinal;
    if (*changed) {
      ++fake.entered;
      fake.current = ordinal;
    }
    return 0;
  }
  static void contextLeave(void *self, void *) {
    --of(self).entered;
    of(self).current = -1;
  }
  static int memoryAlloc(void *self, size_t bytes, void **memory) {
    FakeDriver &fake = of(self);
    if (int result = fake.begin("memory_alloc"))
      return result;
    auto block = std::make_unique<char[]>(bytes + 256);
    uintptr_t at = (reinterpret_cast<uintptr_t>(block.get()) + 255) & ~255ull;
    *memory = reinterpret_cast<void *>(at);
    fake.adopt(*memory, bytes, fake.current);
    fake.owned[*memory] = std::move(block);
    return 0;
  }
  static int memoryFree(void *self, void *memory) {
    FakeDriver &fake = of(self);
    fake.finish(); // as drivers do
    fake.ranges.erase(uintptr_t(memory));
    fake.owned.erase(memory);
    return fake.begin("memory_free");
  }
  static int hostAlloc(void *self, size_t bytes, void **memory) {
    FakeDriver &fake = of(self);
    if (int result = fake.begin("host_alloc"))
      return result;
    auto block = std::make_unique<char[]>(bytes);
    *memory = block.get();
    fake.owned[*memory] = std::move(block);
    return 0;
  }
  static int hostFree(void *self, void *memory) {
    of(self).owned.erase(memory);
    return of(self).begin("host_free");
  }
  static int pointerInfo(void *self, const void *pointer,
                         fi_driver_pointer *info) {
    FakeDriver &fake = of(self);
    *info = {FI_DRIVER_HOST, 0};
    auto it = fake.ranges.upper_bound(uintptr_t(pointer));
    if (it != fake.ranges.begin() &&
        uintptr_t(pointer) < (--it)->first + it->second.bytes)
      *info = {FI_DRIVER_DEVICE, it->second.ordinal};
    return fake.begin("pointer_info");
  }
  static int copy(void *self, void *to, const void *from, size_t bytes,
                  void *stream, const char *name) {
    FakeDriver &fake = of(self);
    if (int result = fake.begin(name))
      return result;
    fake.copiedBytes += bytes;
    fake.queue.push_back({stream, [=] { std::memcpy(to, from, bytes); }});
    return 0;
  }
  static int copyToDevice(void *self, void *to, const void *from, size_t bytes,
                          void *stream) {
    return copy(self, to, from, bytes, stream, "copy_to_device");
  }
  static int copyToHost(void *self, void *to, const void *from, size_t bytes,
                        void *stream) {
    return copy(self, to, from, bytes, stream, "copy_to_host");
  }
  static int streamCreate(void *self, void **stream) {
    static uintptr_t next = 0x100;
    *stream = reinterpret_cast<void *>(next++);
    return of(self).begin("stream_create");
  }
  static int streamDestroy(void *self, void *) {
    return of(self).begin("stream_destroy");
  }
  static int streamSynchronize(void *self, void *) {
    of(self).finish();
    return of(self).begin("stream_synchronize");
  }
  static int streamCheck(void *self, void *, void *stream) {
    if (stream != of(self).foreignStream)
      return 0;
    of(self).lastText = "a stream of another device";
    return FI_DRIVER_OTHER_DEVICE;
  }
  static int streamCapturing(void *self, void *stream, int32_t *capturing) {
    *capturing = stream == of(self).capturedStream;
    return 0;
  }
  static int eventCreate(void *self, void **event) {
    *event = reinterpret_cast<void *>(0xE0);
    return of(self).begin("event_create");
  }
  static int eventDestroy(void *self, void *) {
    return of(self).begin("event_destroy");
  }
  static int eventRecord(void *self, void *, void *) {
    return of(self).begin("event_record");
  }
  static int eventSynchronize(void *self, void *) {
    of(self).finish();
    return of(self).begin("event_synchronize");
  }
  static int eventMilliseconds(void *self, void *, void *, float *ms) {
    *ms = 1;
    return of(self).begin("event_milliseconds");
  }
  static int moduleLoad(void *self, int32_t kind, const void *code,
                        size_t bytes, char *log, size_t logBytes,
                        void **module) {
    FakeDriver &fake = of(self);
    int result = fake.begin(kind == FI_DRIVER_PTX ? "load_ptx" : "load_cubin");
    if (result) {
      std::snprintf(log, logBytes, "%s", fake.moduleLog.c_str());
      return result;
    }
    ++fake.liveModules;
    *module = new std::string(static_cast<const char *>(code), bytes);
    return 0;
  }
  static int moduleUnload(void *self, void *module) {
    delete static_cast<std::string *>(module);
    --of(self).liveModules;
    return of(self).begin("module_unload");
  }
  static int moduleFunction(void *self, void *module, const char *name,
                            void **function, fi_driver_function *info) {
    FakeDriver &fake = of(self);
    if (static_cast<std::string *>(module)->find(name) == std::string::npos ||
        !fake.kernels.count(name)) {
      fake.lastText = "NOT_FOUND";
      return FI_DRIVER_NOT_FOUND;
    }
    fake.functions.push_back(
        std::make_unique<FakeDriver::Function>(FakeDriver::Function{name}));
    *function = fake.functions.back().get();
    *info = fake.functionInfo;
    return fake.begin("module_function");
  }
  static int functionShared(void *self, void *, size_t bytes) {
    of(self).sharedOptedIn = int32_t(bytes);
    return of(self).begin("function_shared");
  }
  static int functionOccupancy(void *self, void *, int32_t, size_t,
                               int32_t *ctas) {
    *ctas = of(self).occupancy;
    return of(self).begin("function_occupancy");
  }
  static void lastFault(void *self, fi_driver_fault *fault) {
    *fault = of(self).fault;
  }
  static int launch(void *self, void *function,
                    const fi_driver_launch *launch) {
    FakeDriver &fake = of(self);
    if (int result = fake.begin("launch"))
      return result;
    fake.launches.push_back(*launch);
    const char *end =
        static_cast<const char *>(launch->params) + launch->param_bytes;
    fake.launchedMaps.assign(
        end - launch->tensor_maps * FI_DRIVER_TENSOR_MAP_BYTES, end);
    const FakeKernel &kernel =
        fake.kernels[static_cast<FakeDriver::Function *>(function)->name];
    const int64_t *params = static_cast<const int64_t *>(launch->params);
    // Parameters are read now, the kernel runs later.
    std::vector<int64_t> copied(params, params + launch->param_bytes / 8);
    uint32_t ctas = launch->grid[0];
    auto &to = fake.capturing ? fake.graph : fake.queue;
    to.push_back({launch->stream, [=] {
                    for (uint32_t c = 0; c < ctas; ++c)
                      kernel({c, ctas, copied.data(), copied.size()});
                  }});
    return 0;
  }
  static int tensorMap(void *self, const fi_driver_tensor *tensor, void *map) {
    FakeDriver &fake = of(self);
    if (int result = fake.begin("tensor_map"))
      return result;
    fake.tensors.push_back(*tensor);
    if (uintptr_t(map) % 64 != 0)
      return FI_DRIVER_ERROR;
    // Its number, so that a test sees which one a launch has.
    std::memset(map, int(fake.tensors.size()), FI_DRIVER_TENSOR_MAP_BYTES);
    return FI_DRIVER_OK;
  }
};

FakeDriver::FakeDriver() {
  driver = {FI_DRIVER_VERSION,
            /*launches_overlap=*/0,
            "fake",
            this,
            FakeCalls::lastError,
            FakeCalls::deviceCount,
            FakeCalls::deviceInfo,
            FakeCalls::contextOpen,
            FakeCalls::contextClose,
            FakeCalls::contextEnter,
            FakeCalls::contextLeave,
            FakeCalls::memoryAlloc,
            FakeCalls::memoryFree,
            FakeCalls::hostAlloc,
            FakeCalls::hostFree,
            FakeCalls::pointerInfo,
            FakeCalls::copyToDevice,
            FakeCalls::copyToHost,
            FakeCalls::streamCreate,
            FakeCalls::streamDestroy,
            FakeCalls::streamSynchronize,
            FakeCalls::streamCheck,
            FakeCalls::streamCapturing,
            FakeCalls::eventCreate,
            FakeCalls::eventDestroy,
            FakeCalls::eventRecord,
            FakeCalls::eventSynchronize,
            FakeCalls::eventMilliseconds,
            FakeCalls::moduleLoad,
            FakeCalls::moduleUnload,
            FakeCalls::moduleFunction,
            FakeCalls::functionShared,
            FakeCalls::functionOccupancy,
            FakeCalls::tensorMap,
            FakeCalls::launch,
            FakeCalls::lastFault};
  fi_driver_device device = {};
  std::snprintf(device.name, sizeof(device.name), "Fake A100");
  device.compute_major = 8;
  device.multiprocessors = 108;
  device.max_threads = 1024;
  device.shared = 48 << 10;
  device.shared_optin = 163 << 10;
  device.shared_multiprocessor = 164 << 10;
  device.registers = 65536;
  device.cache = 40 << 20;
  device.memory = int64_t(40) << 30;
  device.ptx_version = 84;
  std::snprintf(device.driver, sizeof(device.driver), "driver for CUDA 12.4");
  devices.push_back(device);
}

FakeDriver::~FakeDriver() = default;

int FakeDriver::begin(const char *name) {
  calls.push_back(name);
  if (failing != name)
    return 0;
  lastText = failureText;
  return failure;
}

size_t FakeDriver::count(const std::string &name) const {
  return size_t(std::count(calls.begin(), calls.end(), name));
}

void FakeDriver::replay() {
  finish();
  for (Work &work : graph)
    work.run();
}

void FakeDriver::finish() {
  std::vector<Work> now;
  now.swap(queue);
  for (Work &work : now)
    work.run();
}

json deviceManifest(const FakeProgram &program, const char *chip) {
  json manifest = program.manifest();
  manifest["target"] = {{"kind", "cuda"}, {"chip", chip}, {"ptx", "7.4"}};
  json &stage = manifest["stages"][0];
  auto launched = [](json &kernel) {
    kernel["scratch"] = 0;
    kernel["launch"] = {{"threads", 128},
                        {"shared", 0},
                        {"grid", "items"},
                        {"empty_items", true}};
  };
  for (json &body : stage["bodies"])
    launched(body);
  if (stage.contains("merge")) {
    if (stage["merge"].is_array())
      for (json &merge : stage["merge"])
        launched(merge);
    else
      launched(stage["merge"]);
  }
  return manifest;
}

std::string devicePtx(const char *version) {
  std::string text = std::string(".version ") + version +
                     "\n.target sm_80\n.address_size 64\n";
  for (const char *kind : {"body", "merge"})
    for (int i = 0; i < 4; ++i)
      text += std::string(".visible .entry ") + kind + std::to_string(i) +
              "(\n)\n{ ret; }\n";
  return text;
}

FakeGpu::FakeGpu() {
  // The kernels of the cpu, one item at a time.
  for (const char *kind : {"body", "merge"})
    for (int i = 0; i < 4; ++i) {
      std::string name = kind + std::to_string(i);
      auto kernel = reinterpret_cast<fi_cpu_kernel>(
          findFakeKernel(nullptr, name.c_str()));
      auto merge = reinterpret_cast<fi_cpu_kernel>(
          findFakeKernel(nullptr, ("merge" + std::to_string(i)).c_str()));
      driver.kernels[name] = [kernel, merge](const FakeCta &cta) {
        const int64_t *tail = cta.params + cta.paramCount - 7;
        fi_work work = {reinterpret_cast<const fi_item *>(tail[0]),
                        reinterpret_cast<const fi_key_range *>(tail[1]),
                        reinterpret_cast<float *>(tail[2]),
                        reinterpret_cast<float *>(tail[3])};
        uint32_t *counters = reinterpret_cast<uint32_t *>(tail[4]);
        alignas(FI_ALIGNMENT) char scratch[1024];
        for (int64_t i = tail[5] + cta.cta; i < tail[6]; i += cta.ctas) {
          if (work.items[i].row_count == 0)
            continue; // surplus
          kernel(cta.params, &work, i, i + 1, scratch);
          fi_item item = work.items[i];
          if (!counters || item.slot < 0)
            continue;
          // The last to arrive merges, and leaves the counter as it was.
          uint32_t &arrived = counters[item.first_slot];
          if (++arrived < uint32_t(item.slot_count))
            continue;
          arrived = 0;
          item.slot = item.first_slot;
          work.items = &item;
          merge(cta.params, &work, 0, 1, scratch);
          work.items = reinterpret_cast<const fi_item *>(tail[0]);
        }
      };
    }
}

FakeGpu::~FakeGpu() {
  package.reset();
  fi_device_release(device);
}

void FakeGpu::open(const json &manifest) {
  if (!device)
    fi_device_open(driver.table(), 0, &device);
  std::string text = manifest.dump(), ptx = devicePtx();
  fi_code code = {FI_DRIVER_PTX, ptx.data(), ptx.size()};
  fi_package *opened = nullptr;
  fi_package_from_code(text.data(), text.size(), &code, 1, &opened);
  package.reset(opened);
}

fi_plan_options FakeGpu::options() const {
  fi_plan_options options = defaultOptions(0);
  options.device = device;
  return options;
}

void FakeGpu::adopt(const FakeBatch &batch) {
  // Where a tensor begins is all that is asked for.
  auto tensor = [&](const fi_tensor &t) { driver.adopt(t.data, 8); };
  for (const fi_value &value : batch.run)
    if (value.kind == FI_VALUE_TENSOR)
      tensor(value.as.tensor);
  for (const fi_tensor &result : batch.results)
    tensor(result);
}

fi_status FakeGpu::run(fi_plan *plan, FakeBatch &batch) {
  Workspace workspace(fi_plan_workspace_bytes(plan));
  driver.adopt(workspace.data(), workspace.size() + 1);
  adopt(batch);
  fi_status status =
      fi_run_device(plan, fi_plan_generation(plan), batch.run.data(),
                    int32_t(batch.run.size()), batch.results.data(),
                    int32_t(batch.results.size()), workspace.data(),
                    workspace.size(), nullptr);
  driver.finish();
  return workspace.guardIntact() ? status : fi_status(-1);
}

} // namespace fi::test
