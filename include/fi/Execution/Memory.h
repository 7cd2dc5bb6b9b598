//===- Memory.h - where a backend's tensors live ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The one place that knows how bytes get to a backend and back. A tensor in the
// memory of a device is described by a HostTensor too, but its address means
// nothing to the host: whoever wants its contents asks here.
//
//===----------------------------------------------------------------------===//

#ifndef FI_EXECUTION_MEMORY_H
#define FI_EXECUTION_MEMORY_H

#include "fi/Support/HostTensor.h"
#include "llvm/Support/Error.h"

namespace fi {

class Memory {
public:
  virtual ~Memory();

  /// Whether the host may use addresses in this memory.
  virtual bool isHost() const = 0;
  /// A contiguous tensor whose contents are anything; it may outlive this
  /// object's user, but not this object. Aligned for any kernel and workspace.
  virtual llvm::Expected<HostTensor>
  allocate(DType type, llvm::ArrayRef<int64_t> shape) = 0;
  /// Copy and fill; done when they return, and after what ran before.
  virtual llvm::Error write(void *to, const void *from, int64_t bytes) = 0;
  virtual llvm::Error read(void *to, const void *from, int64_t bytes) = 0;
  virtual llvm::Error fill(void *to, int byte, int64_t bytes) = 0;

  /// A tensor of the host in this memory: itself where this is the host's, else
  /// a contiguous copy.
  llvm::Expected<HostTensor> upload(const HostTensor &tensor);
  /// The reverse, for contiguous tensors.
  llvm::Expected<HostTensor> download(const HostTensor &tensor);
};

/// The process's own memory.
Memory &getHostMemory();

} // namespace fi

#endif // FI_EXECUTION_MEMORY_H
