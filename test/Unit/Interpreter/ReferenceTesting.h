//===- ReferenceTesting.h - programs and tensors for tests ------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses a program from text and runs it in the reference interpreter.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_INTERPRETER_REFERENCETESTING_H
#define FI_TEST_UNIT_INTERPRETER_REFERENCETESTING_H

#include "fi/Interpreter/Reference.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>
#include <random>

namespace fi::test {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline HostTensor floats(llvm::ArrayRef<int64_t> shape,
                         llvm::ArrayRef<double> values,
                         DType type = DType::F32) {
  HostTensor tensor(type, shape);
  EXPECT_EQ(tensor.getNumElements(), static_cast<int64_t>(values.size()));
  char *at = static_cast<char *>(tensor.getData());
  for (double value : values) {
    writeFloat(at, type, value);
    at += getByteSize(type);
  }
  return tensor;
}

inline HostTensor ints(llvm::ArrayRef<int64_t> values,
                       DType type = DType::I32) {
  HostTensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.setInteger({static_cast<int64_t>(i)}, values[i]);
  return tensor;
}

inline HostTensor filled(llvm::ArrayRef<int64_t> shape, double value,
                         DType type = DType::F32) {
  HostTensor tensor(type, shape);
  return floats(shape, std::vector<double>(tensor.getNumElements(), value),
                type);
}

inline HostTensor random(llvm::ArrayRef<int64_t> shape, unsigned seed,
                         DType type = DType::F32) {
  std::mt19937 generator(seed);
  HostTensor tensor(type, shape);
  std::vector<double> values(tensor.getNumElements());
  // Not std::normal_distribution, which differs between libraries.
  for (double &value : values)
    value = (static_cast<double>(generator()) / 4294967296.0 - 0.5) * 4;
  return floats(shape, values, type);
}

/// A module with one program.
class Program {
public:
  explicit Program(const std::string &text) {
    mlir::DialectRegistry registry;
    registry
        .insert<FIDialect, mlir::arith::ArithDialect, mlir::index::IndexDialect,
                mlir::math::MathDialect, mlir::memref::MemRefDialect,
                mlir::scf::SCFDialect, mlir::tensor::TensorDialect>();
    context.appendDialectRegistry(registry);
    module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    EXPECT_TRUE(module) << text;
    if (module)
      program = *module->getOps<ProgramOp>().begin();
  }

  std::vector<HostTensor> run(llvm::ArrayRef<HostValue> arguments,
                              const ReferenceOptions &options = {}) {
    auto results = interpretProgram(program, arguments, options);
    if (results)
      return *results;
    ADD_FAILURE() << llvm::toString(results.takeError());
    return std::vector<HostTensor>(program.getResultTypes().size());
  }

  /// The message of a run that must fail.
  std::string error(llvm::ArrayRef<HostValue> arguments,
                    const ReferenceOptions &options = {}) {
    auto results = interpretProgram(program, arguments, options);
    if (!results)
      return llvm::toString(results.takeError());
    ADD_FAILURE() << "expected an error";
    return "";
  }

  ProgramOp program;

private:
  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// All elements in order.
inline std::vector<double> elements(const HostTensor &tensor) {
  std::vector<double> values;
  const char *at = static_cast<const char *>(tensor.getData());
  EXPECT_TRUE(tensor.isContiguous());
  for (int64_t i = 0; i < tensor.getNumElements(); ++i)
    values.push_back(
        readFloat(at + i * getByteSize(tensor.getType()), tensor.getType()));
  return values;
}

/// Equal up to `tolerance`, with -inf and NaN equal to themselves.
inline void expectNear(const HostTensor &got, const HostTensor &wanted,
                       double tolerance) {
  ASSERT_EQ(got.getShape(), wanted.getShape());
  std::vector<double> a = elements(got), b = elements(wanted);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i])))
      continue;
    ASSERT_NEAR(a[i], b[i], tolerance) << "element " << i;
  }
}

inline std::vector<int64_t> integers(const HostTensor &tensor) {
  std::vector<int64_t> values;
  for (double value : elements(tensor))
    values.push_back(static_cast<int64_t>(value));
  return values;
}

/// Attention over contiguous keys [keys, heads, dim] of one request, written
/// apart from the interpreter: output [rows, heads, dim], base-2 statistic.
struct Dense {
  HostTensor output, statistic;
};

inline Dense dense(const HostTensor &q, const HostTensor &k,
                   const HostTensor &v, double scale,
                   llvm::function_ref<bool(int64_t, int64_t)> visible) {
  int64_t rows = q.getSize(0), heads = q.getSize(1), keys = k.getSize(0);
  int64_t group = heads / k.getSize(1), dim = v.getSize(2);
  Dense result = {HostTensor(DType::F32, {rows, heads, dim}),
                  HostTensor(DType::F32, {rows, heads})};
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t head = 0; head < heads; ++head) {
      long double sum = 0, top = -kInf;
      std::vector<long double> out(dim), score(keys);
      for (int64_t key = 0; key < keys; ++key) {
        for (int64_t d = 0; d < q.getSize(2); ++d)
          score[key] += static_cast<long double>(q.getFloat({row, head, d})) *
                        k.getFloat({key, head / group, d});
        score[key] *= scale;
        if (visible(row, key) && score[key] > top)
          top = score[key];
      }
      for (int64_t key = 0; key < keys; ++key) {
        if (!visible(row, key))
          continue;
        long double weight = std::exp(score[key] - top);
        sum += weight;
        for (int64_t d = 0; d < dim; ++d)
          out[d] += weight * v.getFloat({key, head / group, d});
      }
      for (int64_t d = 0; d < dim; ++d)
        result.output.setFloat(
            {row, head, d}, sum == 0 ? 0 : static_cast<double>(out[d] / sum));
      result.statistic.setFloat(
          {row, head}, sum == 0 ? -kInf
                                : static_cast<double>((top + std::log(sum)) /
                                                      std::log(2.0L)));
    }
  return result;
}

} // namespace fi::test

#endif // FI_TEST_UNIT_INTERPRETER_REFERENCETESTING_H
