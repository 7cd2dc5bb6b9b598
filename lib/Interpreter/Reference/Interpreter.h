//===- Interpreter.h - the reference interpreter ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What each value of a program stands for, and how ops are executed.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_INTERPRETER_REFERENCE_INTERPRETER_H
#define FI_LIB_INTERPRETER_REFERENCE_INTERPRETER_H

#include "ReferenceImpl.h"
#include "fi/Dialect/FI/IR/FICompanions.h"

namespace fi::reference {

class Interpreter {
public:
  Interpreter(ProgramOp program, const ReferenceOptions &options)
      : program(program), options(options) {}

  bool bind(llvm::ArrayRef<HostValue> arguments);
  bool run();

  std::vector<HostTensor> results;
  std::string text;

private:
  bool execute(mlir::Operation *op);
  bool execute(AttentionOp op);
  bool execute(EmptyOp op);
  bool execute(MergeOp op);
  bool execute(MergeSegmentsOp op);
  bool execute(FinalizeOp op);
  bool execute(SegmentsOp op);
  bool execute(AppendOp op);
  bool executeNorm(const NormParts &norm);
  bool appendRow(AppendOp op, const ViewValue &view, bool ofValues,
                 RegionFunction &region, int64_t request, int64_t head,
                 int64_t key, std::vector<double> &row);
  HostTensor *toleranceOf(AppendOp op, KVPart part, const HostTensor &pool);
  bool execute(GatedOp op);
  bool execute(RopeOp op);
  bool execute(QuantiseOp op);
  bool execute(DequantiseOp op);
  bool execute(PackBitsOp op);
  bool execute(SegmentPackBitsOp op);
  bool executeDim(mlir::Operation *op, mlir::Value source, mlir::Value index);
  std::vector<Capture> capturesOf(mlir::ValueRange values);
  /// The rows that a companion takes.
  Rows rowsOf(mlir::Value value);
  /// Makes a result of as many rows as `rows`, or takes the destination that
  /// stands in its place.
  bool makeRows(CompanionOpInterface op, unsigned index, const HostTensor &rows,
                Rows &result);
  bool setRows(CompanionOpInterface op, unsigned index, const Rows &rows);
  /// Whether an operand has the rows of the input.
  bool checkRows(mlir::Operation *op, llvm::StringRef name,
                 const HostTensor &operand, const HostTensor &input);

  std::vector<HostTensor> tensorsOf(mlir::ValueRange values) {
    std::vector<HostTensor> result;
    for (mlir::Value value : values)
      result.push_back(tensors.find(value)->second);
    return result;
  }
  std::optional<HostTensor> tensorOf(mlir::Value value) {
    if (!value)
      return std::nullopt;
    return tensors.find(value)->second;
  }
  std::array<Scales, 2> scalesOf(KVViewTypeInterface view,
                                 mlir::ValueRange operands);
  bool makeNormaliser(mlir::Operation *op, NormaliserAttrInterface kind,
                      std::unique_ptr<Normaliser> &normaliser);
  bool mergeStates(mlir::Operation *op, NormaliserAttrInterface kind,
                   llvm::ArrayRef<StateValue> parts, StateValue &result);
  bool storeResults(mlir::Operation *op, const StateValue &state,
                    mlir::ValueRange results, mlir::ValueRange outs);

  ProgramOp program;
  const ReferenceOptions &options;
  llvm::DenseMap<mlir::Value, HostTensor> tensors;
  /// Of what companions compute, if they are asked for.
  llvm::DenseMap<mlir::Value, HostTensor> tolerances;
  llvm::DenseMap<mlir::Value, ViewValue> views;
  /// One state, or one for each slot.
  llvm::DenseMap<mlir::Value, std::vector<StateValue>> states;
  llvm::DenseMap<mlir::Value, SegmentsValue> segments;
  ScalarEvaluator scalars;
};

} // namespace fi::reference

#endif // FI_LIB_INTERPRETER_REFERENCE_INTERPRETER_H
