//===- InitAll.h - all dialects and passes of fi ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tools and embedders that want everything.
//
//===----------------------------------------------------------------------===//

#ifndef FI_INITALL_H
#define FI_INITALL_H

#include "mlir/IR/DialectRegistry.h"

namespace fi {

/// fi's dialects, and the upstream ones that its levels use.
void registerAllDialects(mlir::DialectRegistry &registry);

/// fi's passes and pipelines.
void registerPasses();

/// The same, and the upstream passes its pipelines use. Passes that are
/// registered already may be registered again.
void registerAllPasses();

} // namespace fi

#endif // FI_INITALL_H
