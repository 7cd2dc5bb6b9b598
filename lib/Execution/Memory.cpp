//===- Memory.cpp - where a backend's tensors live ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Execution/Memory.h"
#include "fi-runtime/fi_runtime.h"
#include "fi/Support/Batch.h"
#include "llvm/ADT/Twine.h"
#include <cstdlib>
#include <cstring>
#include <limits>

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::Twine;

Memory::~Memory() = default;

Expected<HostTensor> Memory::upload(const HostTensor &tensor) {
  if (isHost())
    return tensor;
  HostTensor packed = tensor;
  if (!tensor.isContiguous()) {
    packed = HostTensor(tensor.getType(), tensor.getShape());
    copyTensor(tensor, packed);
  }
  Expected<HostTensor> copy = allocate(tensor.getType(), tensor.getShape());
  if (!copy)
    return copy;
  if (Error error =
          write(copy->getData(), packed.getData(),
                packed.getNumElements() * getByteSize(packed.getType())))
    return std::move(error);
  return copy;
}

Expected<HostTensor> Memory::download(const HostTensor &tensor) {
  if (isHost())
    return tensor;
  HostTensor copy(tensor.getType(), tensor.getShape());
  if (Error error =
          read(copy.getData(), tensor.getData(),
               tensor.getNumElements() * getByteSize(tensor.getType())))
    return std::move(error);
  return copy;
}

namespace {

class HostMemory : public Memory {
public:
  bool isHost() const override { return true; }

  Expected<HostTensor> allocate(DType type,
                                llvm::ArrayRef<int64_t> shape) override {
    // Pages of memory, so that rows of pools begin at one.
    constexpr int64_t alignment = 4096;
    static_assert(alignment % FI_WORKSPACE_ALIGNMENT == 0);
    int64_t bytes = getByteSize(type);
    bool overflow = false;
    for (int64_t size : shape)
      overflow |= __builtin_mul_overflow(bytes, size, &bytes);
    void *data = nullptr;
    if (!overflow && bytes <= std::numeric_limits<int64_t>::max() - alignment)
      data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment *
                                                   alignment +
                                               (bytes == 0 ? alignment : 0));
    if (!data && overflow)
      return createStringError("a tensor of shape " + formatShape(shape) +
                               " has no address");
    if (!data)
      return createStringError("out of memory for a tensor of " +
                               Twine(bytes >> 20) + " MiB");
    return HostTensor(type, shape, std::shared_ptr<void>(data, std::free));
  }
  Error write(void *to, const void *from, int64_t bytes) override {
    std::memcpy(to, from, bytes);
    return Error::success();
  }
  Error read(void *to, const void *from, int64_t bytes) override {
    return write(to, from, bytes);
  }
  Error fill(void *to, int byte, int64_t bytes) override {
    std::memset(to, byte, bytes);
    return Error::success();
  }
};

} // namespace

Memory &fi::getHostMemory() {
  static HostMemory memory;
  return memory;
}
