//===- BufferizableOpInterfaceImpl.h - fi under bufferization ---*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For embedders whose functions hold fi ops on tensors: one-shot bufferization
// turns them into the same ops on memrefs.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
#define FI_DIALECT_FI_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H

#include "mlir/IR/DialectRegistry.h"

namespace mlir::bufferization {
struct BufferizationOptions;
} // namespace mlir::bufferization

namespace fi {

/// Attaches BufferizableOpInterface to the ops of fi.
void registerBufferizableOpInterfaceExternalModels(
    mlir::DialectRegistry &registry);

/// Keeps bufferization out of `fi.program`, whose tensors become buffers when
/// it is lowered to level 2. With `allowUnknownOps` the ops of fi in a program
/// stay as they are anyway; this keeps other ops there too, and needs no such
/// option.
void leavePrograms(mlir::bufferization::BufferizationOptions &options);

} // namespace fi

#endif // FI_DIALECT_FI_TRANSFORMS_BUFFERIZABLEOPINTERFACEIMPL_H
