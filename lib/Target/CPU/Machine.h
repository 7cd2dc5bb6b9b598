//===- Machine.h - what a target attribute means for LLVM -------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The instructions of a kernel follow from its target attribute alone, so the
// same program and target give code for the same machines wherever it is
// compiled. The host has a say in scheduling only.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_TARGET_CPU_MACHINE_H
#define FI_LIB_TARGET_CPU_MACHINE_H

#include "fi/Dialect/FI/IR/FI.h"
#include "llvm/Support/Error.h"
#include "llvm/Target/TargetMachine.h"
#include <memory>

namespace fi::cpu {

/// LLVM's name of the instruction set level: x86-64-v2, -v3 or -v4.
llvm::StringRef getLevel(TargetAttr target);
/// What the machine must have, by the names of LLVM and of the manifest.
llvm::SmallVector<llvm::StringRef> getFeatures(TargetAttr target);
/// The CPU whose latencies LLVM schedules for: this host, if it has the
/// features, else what the level says.
std::string getTuning(TargetAttr target);

/// A fresh machine; each thread needs its own.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createMachine(TargetAttr target, unsigned optLevel);

} // namespace fi::cpu

#endif // FI_LIB_TARGET_CPU_MACHINE_H
