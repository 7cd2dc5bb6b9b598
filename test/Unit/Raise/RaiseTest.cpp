//===- RaiseTest.cpp - raised attention computes the same -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each function of raise-attention.mlir, raise-scores.mlir and
// raise-splats.mlir, the forms that are raised (test/Conversion/LinalgToFI), is
// evaluated as it stands, and once more after fi-raise-attention and
// fi-outline-programs, where a backend runs the program. Arguments with open
// sizes say in `test.shape` what they are here. FI_RAISE_FORMS=FILE takes the
// functions of another file.
//
//===----------------------------------------------------------------------===//

#include "TensorEvaluator.h"
#include "fi/Conversion/Passes.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FI/Transforms/Passes.h"
#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <cmath>
#include <cstdlib>
#include <random>

using namespace mlir;
using namespace fi;
using namespace fi::test;

namespace {

class RaiseTest : public ::testing::Test {
protected:
  RaiseTest() : context(makeRegistry()) { context.loadDialect<FIDialect>(); }

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerAllDialects(registry);
    cpu::registerCompiler(registry);
    gpu::registerCompiler(registry);
    return registry;
  }

  static Numbers makeArgument(func::FuncOp function, unsigned number,
                              std::mt19937 &random);
  void check(func::FuncOp function, ArrayRef<const char *> backends);

  MLIRContext context;
};

} // namespace

Numbers RaiseTest::makeArgument(func::FuncOp function, unsigned number,
                                std::mt19937 &random) {
  Numbers result;
  Type type = function.getArgumentTypes()[number];
  int64_t count = 1;
  if (auto shaped = dyn_cast<ShapedType>(type)) {
    result.shape.assign(shaped.getShape().begin(), shaped.getShape().end());
    if (auto shape =
            function.getArgAttrOfType<DenseI64ArrayAttr>(number, "test.shape"))
      result.shape.assign(shape.asArrayRef().begin(), shape.asArrayRef().end());
  }
  for (int64_t size : result.shape)
    count *= size;
  Type element = getElementTypeOrSelf(type);
  for (int64_t i = 0; i < count; ++i) {
    double value = random() / 2147483648.0 - 1;
    if (element.isInteger(1)) {
      // The first key of each row is visible.
      value = i % result.shape.back() == 0 || value > 0;
    } else {
      // As exact as the operand of a kernel.
      char stored[8];
      writeFloat(stored, *getDType(element), value);
      value = readFloat(stored, *getDType(element));
    }
    result.data.push_back(value);
  }
  return result;
}

void RaiseTest::check(func::FuncOp function, ArrayRef<const char *> backends) {
  std::mt19937 random(7);
  std::vector<Numbers> arguments;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    arguments.push_back(makeArgument(function, i, random));
  Numbers expected = TensorEvaluator("").evaluate(function, arguments);

  auto module = function->getParentOfType<ModuleOp>();
  PassManager pm(&context, ModuleOp::getOperationName());
  pm.addPass(createFIRaiseAttention());
  ASSERT_TRUE(succeeded(pm.run(module)));
  unsigned attentions = 0, exponentials = 0;
  function.walk([&](Operation *op) {
    attentions += isa<AttentionOp>(op);
    exponentials += op->getName().getStringRef().starts_with("math.exp") ||
                    isa<linalg::SoftmaxOp>(op);
  });
  EXPECT_EQ(attentions, 1u);
  EXPECT_EQ(exponentials, 0u);
  PassManager outline(&context, ModuleOp::getOperationName());
  outline.addPass(createFIOutlineProgramsPass());
  ASSERT_TRUE(succeeded(outline.run(module)));
  function.walk(
      [](AttentionOp op) { ADD_FAILURE() << "left in the function"; });

  Type element = getElementTypeOrSelf(function.getResultTypes()[0]);
  bool isHalf = element.isBF16() || element.isF16();
  for (Type type : function.getArgumentTypes())
    isHalf |= getElementTypeOrSelf(type).isBF16() ||
              getElementTypeOrSelf(type).isF16();
  // Weights of narrow values are rounded to their type, and so is the result.
  double tolerance = isHalf ? 1.0 / 64 : 1e-5;
  for (const char *backend : backends) {
    SCOPED_TRACE(backend);
    Numbers actual = TensorEvaluator(backend).evaluate(function, arguments);
    ASSERT_EQ(actual.shape, expected.shape);
    double largest = 0;
    for (size_t i = 0; i < expected.data.size(); ++i) {
      double error = std::fabs(actual.data[i] - expected.data[i]);
      largest = std::isnan(error) ? INFINITY : std::max(largest, error);
    }
    EXPECT_LE(largest, tolerance);
  }
}

TEST_F(RaiseTest, ComputesTheSame) {
  std::string text;
  SmallVector<std::string, 3> files = {
      std::string(FI_RAISE_FORMS) + "raise-attention.mlir",
      std::string(FI_RAISE_FORMS) + "raise-scores.mlir",
      std::string(FI_RAISE_FORMS) + "raise-splats.mlir"};
  const char *others = std::getenv("FI_RAISE_FORMS");
  if (others)
    files = {others};
  for (const std::string &file : files) {
    auto buffer = readFile(file);
    ASSERT_TRUE(bool(buffer));
    text += (*buffer)->getBuffer().str() + "// -----\n";
  }
  unsigned count = 0;
  SmallVector<StringRef> parts;
  StringRef(text).split(parts, "// -----\n");
  for (StringRef part : parts) {
    auto module = parseSourceString<ModuleOp>(part, &context);
    ASSERT_TRUE(module);
    for (auto function : module->getOps<func::FuncOp>()) {
      SCOPED_TRACE(function.getName().str());
      SmallVector<const char *, 3> backends = {"cpu", "reference"};
      // Code for a GPU takes the longest.
      if (count++ % 4 == 1)
        backends.push_back("emulated:sm_80");
      check(function, backends);
    }
  }
  // As many as there are forms in the files.
  if (!others)
    EXPECT_EQ(count, 18u);
}
