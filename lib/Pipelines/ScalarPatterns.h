//===- ScalarPatterns.h - what both conversions to llvm share --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_PIPELINES_SCALARPATTERNS_H
#define FI_LIB_PIPELINES_SCALARPATTERNS_H

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"

namespace fi {

/// Control flow, and arithmetic on numbers and vectors, on a CPU and on a GPU.
inline void populateScalarsToLLVM(const mlir::LLVMTypeConverter &converter,
                                  mlir::RewritePatternSet &patterns) {
  mlir::populateSCFToControlFlowConversionPatterns(patterns);
  mlir::cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
  mlir::arith::populateArithToLLVMConversionPatterns(converter, patterns);
  mlir::index::populateIndexToLLVMConversionPatterns(converter, patterns);
  mlir::ub::populateUBToLLVMConversionPatterns(converter, patterns);
  mlir::populateMathToLLVMConversionPatterns(converter, patterns);
}

} // namespace fi

#endif // FI_LIB_PIPELINES_SCALARPATTERNS_H
