//===- Manifest.h - a package's manifest as JSON ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_MANIFEST_H
#define FI_TARGET_MANIFEST_H

#include "fi/Dialect/FITile/IR/FITile.h"

namespace fi {

/// Prints the manifest of docs/abi.md.
void printManifest(tile::PackageOp package, llvm::raw_ostream &os);

} // namespace fi

#endif // FI_TARGET_MANIFEST_H
