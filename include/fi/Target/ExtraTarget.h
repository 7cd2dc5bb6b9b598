//===- ExtraTarget.h - a row beside the table of targets --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For tests of what asks the table: a target that nobody makes.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_EXTRATARGET_H
#define FI_TARGET_EXTRATARGET_H

#include "fi/Target/SMTable.h"

namespace fi::sm {

/// Makes a target known by its name while the object lives, which must have one
/// of its own. Its `chip` is one that LLVM and the emulator know. Must not be
/// made or destroyed while others compile.
class ExtraTarget {
public:
  explicit ExtraTarget(const Target &target);
  ~ExtraTarget();
  ExtraTarget(const ExtraTarget &) = delete;
  ExtraTarget &operator=(const ExtraTarget &) = delete;

private:
  Target target;
};

} // namespace fi::sm

#endif // FI_TARGET_EXTRATARGET_H
