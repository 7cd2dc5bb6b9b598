//===- ManifestLaunch.h - Reading how kernels are launched -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_PACKAGE_MANIFESTLAUNCH_H
#define FI_RUNTIME_PACKAGE_MANIFESTLAUNCH_H

#include "JsonReader.h"
#include "Manifest.h"

namespace fi::runtime {

/// The launch of a kernel of a stage whose buffers are known; kernels of
/// devices have one, and no others.
LaunchShape readLaunch(const JsonReader &json, const Manifest &m,
                       const Stage &stage);

/// What a manifest's target says of a device.
void readDeviceTarget(const JsonReader &target, Manifest &m);

/// A name such as sm_90a.
std::string readChip(const JsonReader &json);

std::vector<std::string> readStrings(const JsonReader &json);

} // namespace fi::runtime

#endif // FI_RUNTIME_PACKAGE_MANIFESTLAUNCH_H
