//===- SMTable.cpp - NVIDIA targets: limits and features ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/SMTable.h"
#include "fi/Target/ExtraTarget.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"
#include <algorithm>

using namespace fi;
using namespace fi::sm;
using llvm::ArrayRef;
using llvm::StringRef;
using llvm::Twine;

namespace {
#define GET_SMFeatureTable_IMPL
#define GET_SMTargetTable_IMPL
#define GET_PTXVersionTable_IMPL
#include "fi/Target/SMTable.inc"
} // namespace

static_assert(std::size(SMFeatureTable) <= 64, "features are bits of a mask");

llvm::SmallVector<const FeatureEntry *> Target::getFeatures() const {
  llvm::SmallVector<const FeatureEntry *> result;
  for (const FeatureEntry &feature : SMFeatureTable)
    if (has(Feature(feature.index)))
      result.push_back(&feature);
  return result;
}

unsigned Target::getPTX(ArrayRef<Feature> features) const {
  unsigned version = ptx;
  for (Feature feature : features)
    version = std::max<unsigned>(version, getFeature(feature).ptx);
  return version;
}

ArrayRef<Target> sm::getTargets() { return SMTargetTable; }

ArrayRef<FeatureEntry> sm::getFeatures() { return SMFeatureTable; }

const FeatureEntry &sm::getFeature(Feature feature) {
  return *lookupFeature(feature);
}

static llvm::SmallVector<const Target *, 1> &getExtraTargets() {
  static llvm::SmallVector<const Target *, 1> targets;
  return targets;
}

ExtraTarget::ExtraTarget(const Target &target) : target(target) {
  getExtraTargets().push_back(&this->target);
}

ExtraTarget::~ExtraTarget() { llvm::erase(getExtraTargets(), &target); }

const Target *sm::lookup(StringRef name) {
  for (const Target &target : SMTargetTable)
    if (target.name == name)
      return &target;
  for (const Target *target : getExtraTargets())
    if (target->name == name)
      return target;
  return nullptr;
}

const Target *sm::lookupForDevice(unsigned major, unsigned minor) {
  if (major > UINT8_MAX || minor > UINT8_MAX)
    return nullptr;
  if (const Target *exact = lookupCapability(major, minor))
    return exact;
  // Code for a chip runs on all later ones, unless it is for that chip alone.
  const Target *best = nullptr;
  for (const Target &target : SMTargetTable)
    if (!target.isExact &&
        std::make_pair<unsigned, unsigned>(target.Major, target.Minor) <=
            std::make_pair(major, minor))
      best = &target;
  return best;
}

StringRef sm::getNames() {
  static const std::string names =
      llvm::join(llvm::map_range(SMTargetTable,
                                 [](const Target &target) -> StringRef {
                                   return target.name;
                                 }),
                 ", ");
  return names;
}

StringRef sm::suggest(StringRef name) {
  std::string lower = name.lower();
  StringRef given = lower;
  // What people write of a chip: "sm90", "compute_90", "90", "sm_90f".
  given.consume_front("compute");
  given.consume_front("sm");
  given.consume_front("_");
  StringRef digits = given.take_while(llvm::isDigit);
  for (const Target &target : SMTargetTable)
    if (!digits.empty() &&
        target.name.drop_front(3).take_while(llvm::isDigit) == digits)
      return target.name;
  StringRef best;
  unsigned least = 3;
  for (const Target &target : SMTargetTable)
    if (unsigned distance = target.name.edit_distance(lower, true, least);
        distance < least) {
      least = distance;
      best = target.name;
    }
  return best;
}

std::string sm::getHint(StringRef name) {
  StringRef meant = suggest(name);
  return meant.empty() ? "" : ("; did you mean '" + meant + "'?").str();
}

llvm::Expected<const Target *> sm::find(StringRef name) {
  if (const Target *target = lookup(name))
    return target;
  return llvm::createStringError("expected one of the targets " + getNames() +
                                 ", but got '" + name + "'" + getHint(name));
}

llvm::Expected<const Target *> sm::findNative(
    llvm::function_ref<std::optional<std::pair<unsigned, unsigned>>()>
        getCapability) {
  auto capability = getCapability();
  if (!capability)
    return llvm::createStringError(
        "expected a CUDA device for the target 'native', but found none; name "
        "one of " +
        getNames());
  auto [major, minor] = *capability;
  if (const Target *target = lookupForDevice(major, minor))
    return target;
  return llvm::createStringError(
      "expected a CUDA device of compute capability 7.5 or later, but found " +
      Twine(major) + "." + Twine(minor));
}

llvm::Error sm::checkPTX(const Target &target, unsigned version) {
  if (lookupPTXVersion(version) && version >= target.ptx)
    return llvm::Error::success();
  std::string allowed;
  for (const PTXVersion &known : PTXVersionTable)
    if (known.Version >= target.ptx)
      allowed += (allowed.empty() ? "" : ", ") + formatPTX(known.Version);
  return llvm::createStringError("expected a PTX version of " + target.name +
                                 " among " + allowed + ", but got " +
                                 formatPTX(version));
}

std::string sm::formatPTX(unsigned version) {
  return (Twine(version / 10) + "." + Twine(version % 10)).str();
}

unsigned sm::getDriver(unsigned version) {
  if (version > UINT8_MAX)
    return 0;
  const PTXVersion *known = lookupPTXVersion(version);
  return known ? known->driver : 0;
}
