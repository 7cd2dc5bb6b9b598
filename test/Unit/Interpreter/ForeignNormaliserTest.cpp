//===- ForeignNormaliserTest.cpp - a normaliser of another dialect --------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What #fi.softmax cannot show: an attribute of another dialect becomes a
// normaliser by an external model, and one that can be neither merged nor sunk
// is refused wherever merging or a sink is asked for.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"
#include "mlir/IR/Diagnostics.h"
#include "gmock/gmock.h"

using namespace mlir;
using namespace fi;
using testing::HasSubstr;

namespace {

/// `unit` as a normaliser.
struct Rigid : NormaliserAttrInterface::ExternalModel<Rigid, UnitAttr> {
  bool canMerge(Attribute) const { return false; }
  bool canSink(Attribute) const { return false; }
  SmallVector<Type> getRunningTypes(Attribute, MLIRContext *, int64_t,
                                    int64_t) const {
    return {};
  }
  SmallVector<Value> buildInit(Attribute, OpBuilder &, Location, int64_t,
                               int64_t) const {
    return {};
  }
  NormaliserUpdate buildUpdate(Attribute, TileArithmetic &, Value scores,
                               ValueRange) const {
    return {scores, Value(), {}};
  }
  std::pair<Value, Value> buildFinalize(Attribute, TileArithmetic &, ValueRange,
                                        Value) const {
    return {};
  }
  MergeWeights buildMerge(Attribute, TileArithmetic &, Value, Value) const {
    return {};
  }
  std::pair<Value, Value> buildSink(Attribute, TileArithmetic &, Value,
                                    Value) const {
    return {};
  }
  double getEmptyStatistic(Attribute) const { return 0; }
};

class ForeignNormaliser : public testing::Test {
protected:
  ForeignNormaliser() {
    context.loadDialect<FIDialect>();
    UnitAttr::attachInterface<Rigid>(context);
  }

  /// The first error of a program with this body.
  std::string error(const std::string &body) {
    std::string message;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
      if (message.empty())
        message = diagnostic.str();
    });
    module = parseSourceString<ModuleOp>(
        R"(
!t = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!st = !fi.state<?x1x8xf32, unit>
fi.program @p run(%q: !t, %n: index, %sink: tensor<1xf32>) {
  %kv = fi.view.ragged %q, %q : !t, !t -> !kv
)" + body + "\nfi.return\n}",
        &context);
    return message;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

} // namespace

TEST_F(ForeignNormaliser, verifiesAndIsNotInterpreted) {
  EXPECT_EQ(error("%s = fi.attention %q over %kv scale(1.0) normalise(unit) : "
                  "!t over !kv -> !st"),
            "");
  ASSERT_TRUE(module);
  ProgramOp program = *module->getOps<ProgramOp>().begin();
  llvm::Expected<std::vector<HostTensor>> results = interpretProgram(
      program, {test::random({1, 1, 8}, 1), HostValue::integer(0),
                test::floats({1}, {0})});
  ASSERT_FALSE(results);
  EXPECT_EQ(llvm::toString(results.takeError()),
            "program @p: 'fi.attention' op expected a normaliser that the "
            "reference interpreter knows, but got unit [NRM2]");
}

TEST_F(ForeignNormaliser, isRefusedWhereItCannotBeMerged) {
  EXPECT_THAT(
      error("%a = fi.empty rows(%n) : !st\n"
            "%m = fi.merge %a, %a : !st"),
      HasSubstr("expected a normaliser that can be merged, but got unit "
                "[MRG1]"));
  EXPECT_THAT(
      error("%s = fi.attention %q over %kv scale(1.0) normalise(unit) "
            "split(#fi.split<balanced>) : !t over !kv -> !st"),
      HasSubstr("expected a normaliser that can be merged where keys are "
                "split, but got unit [ATT18]"));
  EXPECT_THAT(
      error("%g = fi.segments over %kv split(#fi.split<balanced>) : !kv\n"
            "%s = fi.attention %q over %kv segments(%g) scale(1.0) "
            "normalise(unit) : !t over !kv -> "
            "!fi.state<?x1x8xf32, unit, segmented>"),
      HasSubstr("expected a normaliser that can be merged for a "
                "segmented state, but got unit [ST4]"));
}

TEST_F(ForeignNormaliser, isRefusedWhereItTakesNoSink) {
  EXPECT_THAT(error("%o = fi.attention %q over %kv scale(1.0) "
                    "sink(%sink : tensor<1xf32>) normalise(unit) : "
                    "!t over !kv -> !t"),
              HasSubstr("expected a normaliser that takes a sink, but got unit "
                        "[ATT10]"));
  EXPECT_THAT(
      error("%a = fi.empty rows(%n) : !st\n"
            "%o = fi.finalize %a sink(%sink : tensor<1xf32>) : !st -> !t"),
      HasSubstr("expected a normaliser that takes a sink, but got unit "
                "[FIN2]"));
}

/// The text cannot say this.
TEST(Masks, anyOfNothingIsRefused) {
  MLIRContext context;
  context.loadDialect<FIDialect>();
  std::string message;
  ScopedDiagnosticHandler handler(
      &context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  EXPECT_FALSE(AnyAttr::getChecked(
      [&] { return mlir::emitError(UnknownLoc::get(&context)); }, &context,
      ArrayRef<Attribute>()));
  EXPECT_EQ(message, "expected at least 1 mask in #fi.any [MSK3]");
}
