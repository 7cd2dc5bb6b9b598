//===- FeatureUse.h - what kernels use of their target ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Which features of the table of targets a kernel's instructions are of, and
// why it does without the others that its target has.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_GPU_FEATUREUSE_H
#define FI_LIB_TARGET_GPU_FEATUREUSE_H

#include "fi/Dialect/FITile/IR/FITile.h"
#include "fi/Target/SMTable.h"
#include "llvm/ADT/StringMap.h"
#include <string>

namespace fi::gpu {

/// What a kernel does at level 2, as far as it decides which instructions could
/// serve it.
struct KernelTraits {
  explicit KernelTraits(tile::KernelOp kernel);

  /// Products: whether there are any, whether they are of warpgroups, whether
  /// tensor cores take the codes of both operands, and of what their operands
  /// are.
  bool hasProducts = false, hasWarpgroups = false, multipliesCodes = false;
  bool ofF16 = false, ofBF16 = false, ofF32 = false;
  /// What is read or written in memory beside numbers.
  bool readsFP8 = false, readsInt8 = false, readsFP4 = false;
  bool writesFP8 = false, writesFP4 = false, readsFP8Rows = false;
  /// Scales of blocks that are of FP8.
  bool readsFP8Scales = false, writesFP8Scales = false;
  /// Numbers of 16 bits that are written.
  bool writesF16 = false, writesBF16 = false;
  /// Copies to shared memory, by which warps, and how.
  bool hasCopies = false, hasRoles = false, hasTensorCopies = false;
  /// Keys and values that lie in pages.
  bool hasPages = false;
  bool hasExponents = false;
  bool hasMaxima = false, hasStates = false;
  int64_t tileRows = 0;
};

/// A feature that a target has and a kernel does not use.
struct UnusedFeature {
  sm::Feature feature;
  /// A clause: why not.
  llvm::StringRef why;
  /// Whether nothing in the kernel is of its kind, so that nothing was chosen.
  bool isIdle;
};

/// A kernel at level 2, by its name, while there is the context of its
/// schedule.
struct KernelAtLevel2 {
  std::string name;
  ScheduleAttr schedule;
  KernelTraits traits;
};

/// Of each kernel of a PTX text, the features that its instructions are of, as
/// a mask like that of `sm::Target`.
llvm::StringMap<uint64_t> findFeatures(llvm::StringRef ptx);

/// In the order of the table.
llvm::SmallVector<UnusedFeature> explainUnused(const sm::Target &chip,
                                               uint64_t used,
                                               const KernelTraits &traits);

/// Tells a package which features its kernels use, and why not the others:
/// `uses` and `unused` of the manifest's target (docs/abi.md). Returns the same
/// for people.
std::string setFeatures(tile::PackageOp package, const sm::Target &chip,
                        llvm::ArrayRef<KernelAtLevel2> kernels,
                        llvm::StringRef ptx);

} // namespace fi::gpu

#endif // FI_LIB_TARGET_GPU_FEATUREUSE_H
