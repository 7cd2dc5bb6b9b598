//===- DevicePart.h - The part of a plan that is on a device ---*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Items, key ranges and tables of a batch in device memory, and its launches
// with everything in their parameters that does not change from run to run.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_DEVICE_DEVICEPART_H
#define FI_RUNTIME_DEVICE_DEVICEPART_H

#include "../Package/Manifest.h"
#include "../Support/Buffer.h"
#include "MarkLogs.h"
#include "Module.h"

namespace fi::runtime {

class PlanData;

/// What a kernel's parameters have after the buffers of its stage.
struct LaunchTail {
  const fi_item *items;
  const fi_key_range *ranges;
  char *stateO, *stateLse; // in a plan: offsets in the workspace
  uint32_t *counters;
  int64_t begin, end;
};
static_assert(sizeof(LaunchTail) == FI_GPU_TAIL_SLOTS * sizeof(int64_t),
              "slots of 8 bytes");

/// Slots of parameters of one launch at most (see Module.cpp).
constexpr size_t maxParamSlots = 512;

struct DeviceLaunch {
  void *function;
  uint32_t grid, threads, shared;
  int32_t stage;
  int32_t launch; // index into WorkLists::launches
  bool states, overlaps;
  LaunchTail tail;
  fi_fault_log *log; // of a checked kernel, else null
  char *marks;       // of a profiled kernel: its log on the device, else null
  /// Where kernels copy boxes; they belong to the manifest.
  const TensorMapRecipe *maps;
  uint32_t mapCount;
};
static_assert(offsetof(DeviceLaunch, log) ==
                  offsetof(DeviceLaunch, tail) + sizeof(LaunchTail),
              "the log is the parameter after the tail");

/// A buffer of a stage whose slots a run fills.
struct Patch {
  BufferRef buffer;
  uint32_t slot;
};

struct StagePatches {
  uint32_t firstParam, paramCount; // into `params`
  uint32_t firstPatch, patchCount;
};

/// A part of a block of bytes.
struct BytePart {
  size_t offset, bytes;
};

/// Device memory of a graph-safe plan: both batches lie there in turn, because
/// captured launches hold its addresses.
struct SharedMemory {
  char *memory = nullptr;
  /// Per launch: items there that are not surplus.
  Buffer<int64_t> items;
  char *logs = nullptr; // on the host

  void release(fi_device &device);
};

class DevicePart {
public:
  DevicePart() = default;
  DevicePart(const DevicePart &) = delete;
  DevicePart &operator=(const DevicePart &) = delete;
  ~DevicePart() { release(); }

  /// Lays out the launches of a batch and has its lists copied to the device in
  /// a stream. Keeps its memory.
  fi_status build(const Manifest &manifest, const Module &module,
                  const PlanData &plan, void *stream, SharedMemory *shared);
  /// Gives the memory back.
  void release();

  Buffer<DeviceLaunch> launches;
  Buffer<StagePatches> stages;
  Buffer<int64_t> params;
  Buffer<Patch> patches;
  MarkLogs marks; // of profiled kernels
  size_t deviceBytes() const { return capacity; }
  size_t usedBytes() const { return used; }

private:
  fi_status reserve(fi_device &device, size_t bytes, SharedMemory *shared);
  void layOutParams(const Manifest &manifest, const PlanData &plan,
                    size_t tables);
  fi_status copyGraph(const PlanData &plan, size_t ranges, size_t tables,
                      size_t counters, void *stream, SharedMemory &shared);
  fi_status placeLogs(const Manifest &manifest, const PlanData &plan,
                      SharedMemory *shared);
  fi_status copy(size_t offset, size_t bytes, void *stream);

  fi_device *device = nullptr; // kept alive by the plan
  char *memory = nullptr;      // on the device
  bool ownsMemory = true;      // else it is the plan's
  char *logs = nullptr;        // of checked kernels, on the host
  size_t logBytes = 0;
  char *staging = nullptr; // pinned
  void *copied = nullptr;  // event after the last copy
  bool copying = false;    // the event has been recorded
  size_t capacity = 0, used = 0;
};

} // namespace fi::runtime

#endif // FI_RUNTIME_DEVICE_DEVICEPART_H
