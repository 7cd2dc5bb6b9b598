//===- DLPack.h - the binary interface of DLPack ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What of DLPack (https://github.com/dmlc/dlpack, versions 0.x and 1.x) the
// Python package uses: tensors, the capsules of `__dlpack__`, and the table of
// C functions behind `__dlpack_c_exchange_api__`. Layouts are those of the
// standard; names are ours.
//
//===----------------------------------------------------------------------===//

#ifndef FI_PYTHON_DLPACK_H
#define FI_PYTHON_DLPACK_H

#include <cstdint>

namespace fi::python::dlpack {

enum DeviceType : int32_t { Cpu = 1, Cuda = 2, CudaHost = 3, CudaManaged = 13 };
enum TypeCode : uint8_t {
  Int = 0,
  UInt = 1,
  Float = 2,
  BFloat = 4,
  Bool = 6,
  Float8E4M3FN = 10,
  Float8E5M2 = 12,
  Float8E8M0FNU = 14
};

struct Version {
  uint32_t major, minor;
};

struct Device {
  int32_t type;
  int32_t id;
};

struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};

struct Tensor {
  void *data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t *shape;
  int64_t *strides; // in elements; null: contiguous
  uint64_t byteOffset;
};

/// Behind a capsule "dltensor".
struct Managed {
  Tensor tensor;
  void *context;
  void (*deleter)(Managed *);
};

/// Behind a capsule "dltensor_versioned".
struct ManagedVersioned {
  Version version;
  void *context;
  void (*deleter)(ManagedVersioned *);
  uint64_t flags; // bit 0: read-only
  Tensor tensor;
};

/// Behind the capsule "dlpack_exchange_api" of a tensor's type. Functions
/// return 0, or set a Python error.
struct ExchangeAPI {
  Version version;
  ExchangeAPI *previous;
  int (*allocate)(Tensor *prototype, ManagedVersioned **out, void *context,
                  void (*setError)(void *context, const char *kind,
                                   const char *message));
  int (*managedFromObject)(void *object, ManagedVersioned **out);
  int (*managedToObject)(ManagedVersioned *tensor, void **out);
  /// A view without ownership; may be null.
  int (*viewOfObject)(void *object, Tensor *out);
  int (*currentStream)(int32_t deviceType, int32_t deviceId, void **out);
};

} // namespace fi::python::dlpack

#endif // FI_PYTHON_DLPACK_H
