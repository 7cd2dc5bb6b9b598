//===- Ptxas.h - machine code from PTX, where ptxas is there ----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// ptxas is never required: without it the driver assembles PTX when it loads
// it. With it a package has machine code, and what kernels use of a chip is
// known when they are compiled.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_NVPTX_PTXAS_H
#define FI_TARGET_NVPTX_PTXAS_H

#include "fi/Target/SMTable.h"
#include "llvm/Support/Error.h"
#include <string>
#include <vector>

namespace fi::nvptx {

/// What a kernel uses, as ptxas says it. Sizes are bytes: of a thread for the
/// stack and spills, of a CTA for static shared memory.
struct KernelResources {
  std::string kernel;
  unsigned registers = 0, barriers = 0;
  uint64_t stack = 0, spillStores = 0, spillLoads = 0, staticShared = 0;
};

struct Assembly {
  std::string cubin;
  /// In the order of the PTX.
  std::vector<KernelResources> kernels;
  /// Sentences, for example of products that run one after the other (C7510).
  std::vector<std::string> warnings;
};

/// The path of ptxas: $FI_PTXAS (set but empty: none), the first in PATH, or
/// the one of /usr/local/cuda. Empty where there is none; an error where
/// $FI_PTXAS names no program.
llvm::Expected<std::string> findPtxas();

/// Its release, as it prints it ("13.0.88").
llvm::Expected<std::string> getPtxasVersion(llvm::StringRef ptxas);

/// Assembles PTX for the chip of its target. An error has the location that
/// the PTX has for the line.
llvm::Expected<Assembly> assemble(llvm::StringRef ptx, const sm::Target &target,
                                  llvm::StringRef ptxas);

/// Reads what `ptxas -v` prints. For tests.
void readPtxasOutput(llvm::StringRef text, Assembly &assembly);

} // namespace fi::nvptx

#endif // FI_TARGET_NVPTX_PTXAS_H
