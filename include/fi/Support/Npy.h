//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads and writes .npy files (one array) and .npz files (a zip archive of
// them, stored or deflated). Element types: f4, f2, f8, i4, i8, i1, b1, little
// endian, C or Fortran order. NumPy has no bfloat16: it is `<V2` (what
// ml_dtypes writes), or
// `<u2` in a file whose name ends in `.bf16.npy`. Any bytes are either read or
// refused with a sentence.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_NPY_H
#define FI_SUPPORT_NPY_H

#include "fi/Support/HostTensor.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/raw_ostream.h"
#include <string>
#include <vector>

namespace fi {

struct NamedTensor {
  std::string name;
  HostTensor tensor;
};

/// Parses the bytes of a .npy file. `name` is for messages and tells bf16 by
/// its ending. The tensor is contiguous and owns its memory.
llvm::Expected<HostTensor> parseNpy(llvm::StringRef bytes,
                                    llvm::StringRef name);
llvm::Expected<HostTensor> readNpy(llvm::StringRef path);

/// Parses the bytes of a .npz file: its arrays in the archive's order, named
/// without the ending `.npy`.
llvm::Expected<std::vector<NamedTensor>> parseNpz(llvm::StringRef bytes,
                                                  llvm::StringRef name);
llvm::Expected<std::vector<NamedTensor>> readNpz(llvm::StringRef path);

/// The bytes of a .npy file. bf16 becomes `<V2`.
std::string formatNpy(const HostTensor &tensor);
llvm::Error writeNpy(llvm::StringRef path, const HostTensor &tensor);
/// Writes an archive without compression. A file is complete or not there.
llvm::Error writeNpz(llvm::StringRef path, llvm::ArrayRef<NamedTensor> tensors);

} // namespace fi

#endif // FI_SUPPORT_NPY_H
