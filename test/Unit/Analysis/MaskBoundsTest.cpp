//===- MaskBoundsTest.cpp - limits of the analysis of masks ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is not analysed says so; arithmetic that wraps, and text of any size, do
// no harm.
//
//===----------------------------------------------------------------------===//

#include "MaskTesting.h"
#include "fi/Analysis/MaskEvaluator.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace fi;
using namespace fi::test;
using testing::HasSubstr;

namespace {

class MaskBoundsTest : public testing::Test {
protected:
  MaskBounds analyze(llvm::StringRef body, llvm::StringRef attributes = "") {
    MaskProgram program(*context, attributes, body);
    EXPECT_TRUE(program);
    return program ? program.analyze() : MaskBounds();
  }

  std::string text(const MaskBounds &bounds) {
    std::string result;
    llvm::raw_string_ostream(result) << bounds.toAttr(context.get());
    return result;
  }

  std::string onlyRemark(const MaskBounds &bounds) {
    EXPECT_EQ(bounds.remarks.size(), 1u);
    return bounds.remarks.empty() ? "" : bounds.remarks.front().second;
  }

  std::unique_ptr<mlir::MLIRContext> context = makeContext();
};

constexpr const char *kUnbounded = "[{exact = false, hi = [], lo = []}]";

TEST_F(MaskBoundsTest, NoMaskHasNoBounds) {
  MaskProgram program(*context, "", "");
  ASSERT_TRUE(program);
  EXPECT_TRUE(mlir::failed(analyzeMask(program.getOp())));
}

TEST_F(MaskBoundsTest, AnalysisLeavesTheOpAlone) {
  MaskProgram program(*context, "#fi.causal", R"(
    %m = arith.cmpi ne, %kp, %qp : index
    fi.yield %m : i1)");
  ASSERT_TRUE(program);
  std::string before, after;
  llvm::raw_string_ostream(before) << *program.getOp();
  (void)program.analyze();
  llvm::raw_string_ostream(after) << *program.getOp();
  EXPECT_EQ(before, after);
}

TEST_F(MaskBoundsTest, ConstantMasks) {
  EXPECT_EQ(text(analyze(R"(
    %m = arith.cmpi eq, %kp, %kp : index
    fi.yield %m : i1)")),
            "[{exact = true, hi = [], lo = []}]");
  EXPECT_EQ(text(analyze(R"(
    %m = arith.cmpi slt, %kp, %kp : index
    fi.yield %m : i1)",
                         "#fi.causal")),
            "[]");
}

TEST_F(MaskBoundsTest, TwoTermsForInequality) {
  EXPECT_EQ(text(analyze(R"(
    %m = arith.cmpi ne, %kp, %qp : index
    fi.yield %m : i1)")),
            "[{exact = true, hi = [[\"add\", [\"q\"], [\"const\", -1]]], lo = "
            "[]}, {exact = true, hi = [], lo = [[\"add\", [\"q\"], [\"const\", "
            "1]]]}]");
}

// 2^63 - 1 beyond the query wraps: the kernel sees no key that a bound which
// did not wrap would promise.
TEST_F(MaskBoundsTest, ArithmeticThatWrapsIsNotBounded) {
  MaskBounds bounds = analyze(R"(
    %c = arith.constant 9223372036854775807 : index
    %b = arith.addi %qp, %c : index
    %m = arith.cmpi sle, %kp, %b : index
    fi.yield %m : i1)");
  EXPECT_EQ(text(bounds), kUnbounded);
  EXPECT_THAT(onlyRemark(bounds), HasSubstr("64 bits may overflow"));
  bounds = analyze(R"(
    %l = fi.load %pre[%req] : tensor<?xi32>
    %k = arith.index_cast %kp : index to i32
    %d = arith.subi %k, %l : i32
    %zero = arith.constant 0 : i32
    %m = arith.cmpi slt, %d, %zero : i32
    fi.yield %m : i1)");
  EXPECT_EQ(text(bounds), kUnbounded);
  EXPECT_THAT(onlyRemark(bounds), HasSubstr("32 bits may overflow"));
  // Stated not to wrap.
  bounds = analyze(R"(
    %l = fi.load %pre[%req] : tensor<?xi32>
    %k = arith.index_cast %kp : index to i32
    %d = arith.subi %k, %l overflow<nsw> : i32
    %zero = arith.constant 0 : i32
    %m = arith.cmpi slt, %d, %zero : i32
    fi.yield %m : i1)");
  EXPECT_EQ(text(bounds), "[{exact = true, hi = [[\"add\", [\"load\", "
                          "\"pres\", [\"request\"]], [\"const\", -1]]], lo = "
                          "[]}]");
}

// 32 bits hold positions that follow from lengths. Those that an origin gives
// they hold below 2^29, and beyond no tile is skipped or taken for full.
TEST_F(MaskBoundsTest, PositionsFarFromZeroDoNotFit32Bits) {
  constexpr const char *body = R"(
    %k = arith.index_cast %kp : index to i32
    %end = arith.constant 100 : i32
    %m = arith.cmpi slt, %k, %end : i32
    fi.yield %m : i1)";
  EXPECT_EQ(text(analyze(body)),
            "[{exact = true, hi = [[\"const\", 99]], lo = []}]");
  MaskProgram program(*context, "", body, /*hasOrigin=*/true);
  ASSERT_TRUE(program);
  MaskBounds bounds = program.analyze();
  EXPECT_THAT(bounds.remarks, testing::IsEmpty());
  auto classify = [&](int64_t first) {
    MaskContext where;
    where.position = {first + 63, first + 63};
    where.keyLength = 64;
    where.queryLength = 1;
    return classifyTile(bounds, where, first, first + 64);
  };
  constexpr int64_t kFar = int64_t(1) << 31;
  EXPECT_EQ(classify(0), TileKind::Full);
  EXPECT_EQ(classify(64), TileKind::Partial);
  EXPECT_EQ(classify(128), TileKind::Empty);
  for (int64_t first : {kFar - 64, kFar, 2 * kFar + 50, kFar * kFar / 4,
                        -kFar - 64, -kFar * kFar / 4})
    EXPECT_EQ(classify(first), TileKind::Partial) << first;
}

// What 64 bits hold far from zero has no other bounds there.
TEST_F(MaskBoundsTest, PositionsFarFromZeroFit64Bits) {
  MaskProgram program(*context, "", R"(
    %end = arith.constant 100 : index
    %m = arith.cmpi slt, %kp, %end : index
    fi.yield %m : i1)",
                      /*hasOrigin=*/true);
  ASSERT_TRUE(program);
  EXPECT_EQ(text(program.analyze()),
            "[{exact = true, hi = [[\"const\", 99]], lo = []}]");
}

TEST_F(MaskBoundsTest, RunArgumentsCannotSkipTiles) {
  MaskBounds bounds = analyze(R"(
    %l = fi.load %limit[%kp] : tensor<?xi32>
    %zero = arith.constant 0 : i32
    %m = arith.cmpi ne, %l, %zero : i32
    fi.yield %m : i1)",
                              "#fi.causal");
  EXPECT_EQ(text(bounds), "[{exact = false, hi = [[\"q\"]], lo = []}]");
  EXPECT_THAT(onlyRemark(bounds), HasSubstr("run argument 'limits'"));
}

TEST_F(MaskBoundsTest, SortednessMustBePromised) {
  MaskBounds bounds = analyze(R"(
    %a = fi.load %loose[%req, %qp] : tensor<?x?xi32>
    %b = fi.load %loose[%req, %kp] : tensor<?x?xi32>
    %m = arith.cmpi eq, %a, %b : i32
    fi.yield %m : i1)",
                              "#fi.causal");
  EXPECT_EQ(text(bounds), "[{exact = false, hi = [[\"q\"]], lo = []}]");
  EXPECT_THAT(onlyRemark(bounds),
              HasSubstr("'looses' is not marked {fi.sorted}"));
}

// Too many terms become one that all have in common.
TEST_F(MaskBoundsTest, TermsAreLimited) {
  std::string body = "%c0 = arith.constant -7 : index\n"
                     "%m0 = arith.cmpi eq, %kp, %c0 : index\n";
  for (int i = 1; i <= 40; ++i) {
    std::string n = std::to_string(i), last = std::to_string(i - 1);
    body += "%c" + n + " = arith.constant " + std::to_string(3 * i) +
            " : index\n%e" + n + " = arith.cmpi eq, %kp, %c" + n +
            " : index\n%m" + n + " = arith.ori %m" + last + ", %e" + n +
            " : i1\n";
  }
  MaskBounds bounds = analyze(body + "fi.yield %m40 : i1");
  EXPECT_EQ(
      text(bounds),
      "[{exact = false, hi = [[\"const\", 120]], lo = [[\"const\", 3]]}]");
}

// Chains longer than any mask: a remark, neither a crash nor a long wait.
TEST_F(MaskBoundsTest, LargeRegions) {
  for (const char *step :
       {"arith.addi %x, %kp : index", "arith.floordivsi %x, %c : index",
        "arith.maxsi %x, %kp : index", "arith.remsi %x, %c : index"}) {
    std::string body = "%c = arith.constant 3 : index\n"
                       "%x0 = arith.addi %qp, %c : index\n";
    for (int i = 1; i <= 3000; ++i) {
      std::string line = step;
      line.replace(line.find("%x"), 2, "%x" + std::to_string(i - 1));
      body += "%x" + std::to_string(i) + " = " + line + "\n";
    }
    body += "%m = arith.cmpi slt, %kp, %x3000 : index\nfi.yield %m : i1";
    MaskBounds bounds = analyze(body);
    EXPECT_EQ(text(bounds), kUnbounded) << step;
    EXPECT_FALSE(bounds.remarks.empty()) << step;
  }
  std::string body = "%m0 = arith.cmpi slt, %kp, %qp : index\n";
  for (int i = 1; i <= 3000; ++i) {
    std::string n = std::to_string(i), last = std::to_string(i - 1);
    body += "%c" + n + " = arith.constant " + std::to_string(7 * i % 1000) +
            " : index\n%y" + n + " = arith.addi %qp, %c" + n + " : index\n%e" +
            n + " = arith.cmpi slt, %kp, %y" + n + " : index\n%m" + n +
            " = arith.xori %m" + last + ", %e" + n + " : i1\n";
  }
  MaskBounds bounds = analyze(body + "fi.yield %m3000 : i1");
  EXPECT_EQ(bounds.terms.size(), 1u);
  EXPECT_FALSE(bounds.remarks.empty());
}

TEST_F(MaskBoundsTest, AttributesOfAnotherFormAreRefused) {
  for (const char *wrong :
       {"[1]", "[{lo = [], hi = []}]", "[{lo = [], hi = [], exact = 1}]",
        "[{lo = [], hi = [[]], exact = true}]",
        "[{lo = [[\"k\"]], hi = [], exact = true}]",
        "[{lo = [[\"q\", [\"q\"]]], hi = [], exact = true}]",
        "[{lo = [[\"add\", [\"q\"]]], hi = [], exact = true}]",
        "[{lo = [[\"const\", \"1\"]], hi = [], exact = true}]",
        "[{lo = [[\"load\", \"x\"]], hi = [], exact = true}]",
        "[{lo = [[\"add\", [\"q\"], 1]], hi = [], exact = true}]",
        "[{lo = [], hi = [], exact = true, more = 1}]"}) {
    auto attr = mlir::dyn_cast_or_null<mlir::ArrayAttr>(
        mlir::parseAttribute(wrong, context.get()));
    ASSERT_TRUE(attr) << wrong;
    EXPECT_TRUE(mlir::failed(MaskBounds::fromAttr(attr))) << wrong;
  }
}

} // namespace
