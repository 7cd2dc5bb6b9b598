//===- ExecutionTesting.h - programs for tests of fi/Execution --*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_EXECUTION_EXECUTIONTESTING_H
#define FI_TEST_UNIT_EXECUTION_EXECUTIONTESTING_H

#include "fi/Execution/Compare.h"
#include "fi/Execution/Inputs.h"
#include "fi/InitAll.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

namespace fi::test {

/// Paged, NHD, pages of 4 keys, 2 query heads on 1 KV head of 8 elements.
inline constexpr const char *kPaged = R"(
!ix = tensor<?xi32>
!pool = memref<?x4x1x8xf32>
!kv = !fi.paged_kv<4x1x8xf32, NHD>
!q = tensor<?x2x8xf32>
fi.program @p plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32) -> (!q, tensor<?x2xf32>) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(%sc) mask(#fi.causal)
      : !q over !kv -> !q, tensor<?x2xf32>
  fi.return %o, %lse : !q, tensor<?x2xf32>
})";

struct TestProgram {
  explicit TestProgram(const char *text) : context(makeRegistry()) {
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module) {
      ADD_FAILURE() << "the program does not parse";
      return;
    }
    auto found = getSignature(*module->getOps<ProgramOp>().begin());
    if (found)
      signature = *found;
    else
      ADD_FAILURE() << llvm::toString(found.takeError());
  }
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }
  std::vector<HostValue> inputs(llvm::StringRef batchText,
                                InputOptions options = {}) {
    auto batch = parseBatchJson(batchText, "b.json");
    if (!batch) {
      ADD_FAILURE() << llvm::toString(batch.takeError());
      return {};
    }
    auto made = makeInputs(signature, *batch, options);
    if (made)
      return *made;
    ADD_FAILURE() << llvm::toString(made.takeError());
    return {};
  }
  std::string inputError(llvm::StringRef batchText, InputOptions options = {}) {
    auto batch = parseBatchJson(batchText, "b.json");
    if (!batch)
      return llvm::toString(batch.takeError());
    auto made = makeInputs(signature, *batch, options);
    return made ? "no error" : llvm::toString(made.takeError());
  }
  /// Runs on the reference backend.
  BackendRun run(llvm::ArrayRef<HostValue> inputs) {
    BackendRun result;
    auto executor = Executor::create("reference", *module, "", {});
    if (!executor) {
      ADD_FAILURE() << llvm::toString(executor.takeError());
      return result;
    }
    result.backend = "reference";
    result.arguments = takeArguments(signature, inputs);
    auto results = (*executor)->allocateResults(result.arguments);
    if (!results) {
      ADD_FAILURE() << llvm::toString(results.takeError());
      return result;
    }
    result.results = *results;
    std::string problem =
        llvm::toString((*executor)->run(result.arguments, result.results));
    EXPECT_EQ(problem, "");
    result.visibleKeys = (*executor)->getVisibleKeys().vec();
    result.transformedScores = (*executor)->getTransformedScores().vec();
    result.weightedSums = (*executor)->getWeightedSums().vec();
    result.tolerances = (*executor)->getTolerances().vec();
    result.argumentTolerances = (*executor)->getArgumentTolerances().vec();
    return result;
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Signature signature;
};

} // namespace fi::test

#endif // FI_TEST_UNIT_EXECUTION_EXECUTIONTESTING_H
