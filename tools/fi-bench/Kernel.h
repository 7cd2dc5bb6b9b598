//===- Kernel.h - a compiled attention with its data ------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One attention program with seeded inputs, planned and ready to be run again
// and again: what most rows measure.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TOOLS_FI_BENCH_KERNEL_H
#define FI_TOOLS_FI_BENCH_KERNEL_H

#include "fi-runtime/fi_runtime.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Support/HostTensor.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace fi::bench {

enum class Mask { Causal, Full, Window };

/// Equal requests of one attention.
struct Problem {
  DType type = DType::F32;
  bool paged = false; ///< else ragged: tokens, heads, dim
  HeadOrder order = HeadOrder::HND;
  int64_t page = 16;
  int64_t queryHeads = 32, kvHeads = 8, dim = 128;
  int64_t requests = 1, rows = 1024, keys = 1024; ///< of each request
  Mask mask = Mask::Causal;
  int64_t window = 512; ///< keys a row sees with Mask::Window
  int workers = 1;
  int64_t vectorBits = 0; ///< 0: the host's

  std::string printProgram() const;
  int64_t getVisiblePairs() const;
  double getOperations() const {
    return 4.0 * queryHeads * dim * getVisiblePairs();
  }
  double getKVBytes() const {
    return 2.0 * requests * keys * kvHeads * dim * getByteSize(type);
  }
};

mlir::MLIRContext &getContext();

/// Parses a program; diagnostics become the error.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
parseModule(llvm::StringRef text);

/// A contiguous tensor and its shape in the runtime's form.
class Operand {
public:
  Operand() = default;
  explicit Operand(HostTensor tensor) : tensor(std::move(tensor)) {}
  fi_tensor getRuntimeTensor() const;
  fi_value getValue() const;
  const HostTensor &get() const { return tensor; }

private:
  HostTensor tensor;
};

class Kernel {
public:
  /// Compiles, makes the inputs, plans and runs once; then compares some rows
  /// with the reference, because the time of a wrong result means nothing.
  static llvm::Expected<std::unique_ptr<Kernel>> create(const Problem &problem);
  ~Kernel();

  /// Seconds of one run.
  llvm::Expected<double> run();
  /// Seconds of planning the same batch again.
  llvm::Expected<double> plan();

  const Problem &getProblem() const { return problem; }
  const HostTensor &getQuery() const { return query.get(); }
  const HostTensor &getKeys() const { return keys.get(); }
  const HostTensor &getValues() const { return values.get(); }
  const HostTensor &getOutput() const { return output.get(); }
  /// Pages in the order of requests, if paged.
  const HostTensor &getPages() const { return tables[2].get(); }

private:
  explicit Kernel(const Problem &problem) : problem(problem) {}
  llvm::Error compile();
  void makeInputs();
  std::vector<fi_value> getPlanValues() const;
  llvm::Error makePlan();
  llvm::Error check();

  Problem problem;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::unique_ptr<cpu::CompiledProgram> code;
  fi_package *package = nullptr;
  fi_plan *currentPlan = nullptr;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
  std::vector<Operand> tables;
  Operand query, keys, values, output, lse;
};

} // namespace fi::bench

#endif // FI_TOOLS_FI_BENCH_KERNEL_H
