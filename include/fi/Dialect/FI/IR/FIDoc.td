//===- FIDoc.td - all of the fi dialect, for its page -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

include "fi/Dialect/FI/IR/FIOps.td"
include "fi/Dialect/FI/IR/FICompanionOps.td"
include "fi/Dialect/FI/IR/FICallOps.td"
