//===- ChannelRewriting.h - rings of buffers in loops -----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What fi-tile-lower-channels does with channels within one role and between
// two.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_DIALECT_FITILE_TRANSFORMS_CHANNELREWRITING_H
#define FI_LIB_DIALECT_FITILE_TRANSFORMS_CHANNELREWRITING_H

#include "fi/Dialect/FITile/IR/FITile.h"

namespace fi::tile {

/// Adds values to those that a loop carries (over items, keys or numbers),
/// while `rewrite` changes its body: each of `carried` is what it was before,
/// in the body, and behind.
void rebuildLoop(mlir::Operation *loop, llvm::ArrayRef<mlir::Value *> carried,
                 llvm::function_ref<void(mlir::Block &)> rewrite);

/// Channels between the roles of a kernel, by mbarriers.
void lowerRoleChannels(KernelOp kernel);

} // namespace fi::tile

#endif // FI_LIB_DIALECT_FITILE_TRANSFORMS_CHANNELREWRITING_H
