//===- SMTable.h - NVIDIA targets: limits and features ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The table of SMTable.td. No other file knows a chip by its number: code asks
// `target.has(sm::CpAsync)` or for a limit.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TARGET_SMTABLE_H
#define FI_TARGET_SMTABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

namespace fi::sm {

#define GET_Feature_DECL
#include "fi/Target/SMTable.inc"

/// What a feature is. Versions of the PTX ISA are times ten: 74 is 7.4.
struct FeatureEntry {
  uint8_t index;
  llvm::StringLiteral name;
  uint8_t ptx;
  llvm::StringLiteral summary;
};

/// A version of the PTX ISA, and the oldest CUDA version whose driver reads it
/// (1000 * major + 10 * minor).
struct PTXVersion {
  uint8_t Version; // Named as TableGen searches it.
  uint16_t driver;
};

/// A row of the table. Sizes are bytes unless the name says otherwise.
struct Target {
  uint8_t Major, Minor; // Named as TableGen searches them.
  llvm::StringLiteral name;
  /// LLVM's and ptxas' name of the chip.
  llvm::StringLiteral chip;
  llvm::StringLiteral generation;
  /// Code runs on this chip alone, not on later ones.
  bool isExact;
  /// The version of the PTX ISA that is emitted where no feature needs a later
  /// one.
  uint8_t ptx;
  uint16_t maxWarpsPerSM, maxCTAsPerSM, maxThreadsPerCTA;
  uint32_t registersPerSM;
  uint16_t maxRegistersPerThread;
  uint32_t sharedPerSM;
  /// What the system takes of an SM's shared memory for each CTA.
  uint32_t sharedReservedPerCTA;
  /// What a CTA may ask for, by opt-in above 48 KiB.
  uint32_t maxSharedPerCTA;
  uint16_t tensorMemoryColumns;
  uint8_t maxClusterSize;
  /// A usual device, and its size: for choices that are made without a device.
  llvm::StringLiteral device;
  uint16_t hintSMs;
  uint32_t hintL2KiB;
  uint64_t featureMask;

  bool has(Feature feature) const { return featureMask >> feature & 1; }
  /// In the order of the table.
  llvm::SmallVector<const FeatureEntry *> getFeatures() const;
  /// The lowest version of the PTX ISA for kernels that use `features`.
  unsigned getPTX(llvm::ArrayRef<Feature> features) const;
};

/// All targets, by rising capability.
llvm::ArrayRef<Target> getTargets();
/// All features.
llvm::ArrayRef<FeatureEntry> getFeatures();
const FeatureEntry &getFeature(Feature feature);

/// By name ("sm_80"), or null.
const Target *lookup(llvm::StringRef name);
/// The target whose code a device of a compute capability runs best; null where
/// it runs none.
const Target *lookupForDevice(unsigned major, unsigned minor);
/// "sm_75, sm_80, ...".
llvm::StringRef getNames();
/// The name that was probably meant, or nothing.
llvm::StringRef suggest(llvm::StringRef name);
/// "; did you mean 'sm_90a'?", or nothing.
std::string getHint(llvm::StringRef name);

/// `lookup`, or a sentence with what is allowed.
llvm::Expected<const Target *> find(llvm::StringRef name);
/// The target of this machine's device. `getCapability` asks the driver for its
/// major and minor version, and returns nothing where there is no device: the
/// compiler itself does not know a driver.
llvm::Expected<const Target *>
findNative(llvm::function_ref<std::optional<std::pair<unsigned, unsigned>>()>
               getCapability);

/// Whether `version` exists and a target's kernels may be emitted with it.
llvm::Error checkPTX(const Target &target, unsigned version);
/// "7.4" for 74.
std::string formatPTX(unsigned version);
/// The oldest CUDA version whose driver reads a version of PTX, or 0.
unsigned getDriver(unsigned version);

} // namespace fi::sm

#endif // FI_TARGET_SMTABLE_H
