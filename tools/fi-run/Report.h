//===- Report.h - what fi-run prints about results --------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TOOLS_FI_RUN_REPORT_H
#define FI_TOOLS_FI_RUN_REPORT_H

#include "fi/Execution/Compare.h"
#include "llvm/Support/raw_ostream.h"

namespace fi {

/// One line a result: type, shape, range of its values.
void printSummary(llvm::raw_ostream &out, const Signature &signature,
                  const BackendRun &run);

/// One line a comparison, then PASS or FAIL. Returns whether all passed.
bool printComparisons(llvm::raw_ostream &out, llvm::StringRef backend,
                      llvm::ArrayRef<Comparison> comparisons);

/// For each attention and request: its rows with positions, visible keys,
/// log-sum- exp and the first elements of head 0's output, beside those of
/// `other` if it is not null.
void printAttentions(llvm::raw_ostream &out, const Signature &signature,
                     const BackendRun &run, const BackendRun *other);

} // namespace fi

#endif // FI_TOOLS_FI_RUN_REPORT_H
