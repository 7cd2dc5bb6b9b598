//===- NaiveBatch.h - A batch for the package written by hand --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Batches for test/data/gpu/naive on whatever driver: tables, tensors in device
// memory, and what must come out, computed in double on the host. Needs nothing
// but the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TOOLS_FI_GPU_SMOKE_NAIVEBATCH_H
#define FI_TOOLS_FI_GPU_SMOKE_NAIVEBATCH_H

#include "fi-runtime/fi_runtime.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace fi::smoke {

/// Memory of a device, given back when it goes.
class DeviceMemory {
public:
  DeviceMemory(const fi_driver *driver, size_t bytes);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  void *data() const { return memory; }

private:
  const fi_driver *driver;
  void *memory = nullptr;
};

class NaiveBatch {
public:
  static constexpr int64_t heads = 8, kvHeads = 2, dim = 64, page = 16;

  /// Requests of so many new tokens and keys (the new tokens among them), and
  /// rows of padding after them. A context of the device must be current.
  NaiveBatch(const fi_driver *driver, std::vector<int64_t> queries,
             std::vector<int64_t> keys, int64_t padding, uint32_t seed);

  int64_t rows() const { return rowCount; }
  const fi_value *tables() const { return planValues.data(); }
  int32_t tableCount() const { return int32_t(planValues.size()); }
  std::vector<fi_value> run;
  std::vector<fi_tensor> results;

  /// Lies from now on where another batch does, which must have as many rows
  /// and at least as many pages: for launches that were captured with that one.
  void moveTo(const NaiveBatch &other);

  /// Copies the pools and garbage for the results to the device again. "" or
  /// what went wrong.
  std::string reset(void *stream);
  /// Reads the results back and compares. "" or the first difference.
  std::string compare(void *stream);

private:
  const fi_driver *driver;
  int64_t rowCount = 0;
  std::vector<int32_t> qo, indptr, pages, last;
  std::vector<int64_t> queries, keys;
  std::vector<float> q, newK, newV, k, v, o, lse;
  std::vector<std::unique_ptr<DeviceMemory>> memory;
  std::vector<std::unique_ptr<int64_t[]>> shapes;
  std::vector<fi_value> planValues;
  float factor = 1.5f;

  fi_tensor tensor(void *data, fi_dtype dtype, std::vector<int64_t> shape);
  fi_value onDevice(const std::vector<float> &host, std::vector<int64_t> shape);
  size_t poolIndex(int64_t request, int64_t head, int64_t key) const;
};

/// Device memory of a driver's current context and its driver's sentences.
std::string lastError(const fi_driver *driver);

} // namespace fi::smoke

#endif // FI_TOOLS_FI_GPU_SMOKE_NAIVEBATCH_H
