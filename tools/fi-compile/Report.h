//===- Report.h - what was compiled for a model -----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TOOLS_FI_COMPILE_REPORT_H
#define FI_TOOLS_FI_COMPILE_REPORT_H

#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Target/SMTable.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace fi {

/// Sizes are bytes. `code`, `registers` and `spills` are of machine code, 0
/// where there is none.
struct KernelReport {
  std::string program, target, symbol;
  uint64_t ptx = 0, code = 0, registers = 0, spills = 0;
};

struct ModelReport {
  std::string model;
  std::vector<std::string> targets, programs;
  std::vector<KernelReport> kernels;
  uint64_t bytes = 0, compressedBytes = 0;

  /// The most that a target has.
  uint64_t getKernelsPerTarget() const;
  llvm::json::Value toJSON() const;
  void print(llvm::raw_ostream &os) const;
};

/// The kernels of a package, in the order of its PTX.
std::vector<KernelReport> describeKernels(llvm::StringRef program,
                                          const sm::Target &target,
                                          const gpu::CompiledPackage &package);

/// Adds the sizes of the files below a directory, as they are and by zlib.
llvm::Error addFileSizes(llvm::StringRef directory, ModelReport &report);

} // namespace fi

#endif // FI_TOOLS_FI_COMPILE_REPORT_H
