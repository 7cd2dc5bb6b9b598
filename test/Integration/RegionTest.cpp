//===- RegionTest.cpp - every operation that a region may hold ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Operations of math, arith and index in score and mask regions, on values of
// every shape: of one row, of one key, of both, of neither.
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "fi/Target/CPU/CPUCompiler.h"

using namespace fi;
using namespace fi::test;

namespace {

std::vector<Request> fewRequests() { return {{1, 37}, {5, 5}, {40, 70}}; }

llvm::ArrayRef<Planned> onePlan() {
  static const Planned plans[] = {{2}};
  return plans;
}

/// %a in (0, 1], from %from; then %f from the operations; its contribution is
/// small, so that scores stay ordinary.
std::string withUnit(const std::string &from, const std::string &operations) {
  return "%one = arith.constant 1.0 : f32\n%abs = math.absf " + from +
         " : f32\n%den = arith.addf %abs, %one : f32\n"
         "%a = arith.divf %one, %den : f32\n" +
         operations +
         "\n%small = arith.constant 0.0625 : f32\n"
         "%part = arith.mulf %f, %small : f32\n"
         "%t = arith.addf %s, %part : f32\nfi.yield %t : f32";
}

/// Runs one region on values of each shape.
void check(const std::string &operations, llvm::ArrayRef<const char *> from) {
  for (const char *source : from) {
    SCOPED_TRACE(testing::Message() << operations << " of " << source);
    AttentionText text;
    text.keyDim = text.valueDim = 16;
    text.hasStatistic = false;
    std::string value = source, prefix;
    if (value != "%s" && value != "%c") {
      prefix = "%int = arith.index_cast " + value +
               " : index to i32\n%x = arith.sitofp %int : i32 to f32\n";
      value = "%x";
    }
    text.clauses = "captures(%c = %cap : f32)\n" +
                   scoreRegion(prefix + withUnit(value, operations)) +
                   " mask(#fi.causal)";
    text.runArguments = ", %cap: f32";
    Case(text.get(), fewRequests())
        .giveNumber("cap", 0.75)
        .setOptLevel(0)
        .check(onePlan());
  }
}

struct Named {
  const char *name, *operations;
};

class MathTest : public testing::TestWithParam<Named> {};

TEST_P(MathTest, OfScores) { check(GetParam().operations, {"%s"}); }
TEST_P(MathTest, OfACapture) { check(GetParam().operations, {"%c"}); }

INSTANTIATE_TEST_SUITE_P(
    Functions, MathTest,
    testing::Values(
        Named{"acos", "%f = math.acos %a : f32"},
        Named{"acosh",
              "%b = arith.addf %a, %one : f32\n%f = math.acosh %b : f32"},
        Named{"asin", "%f = math.asin %a : f32"},
        Named{"asinh", "%f = math.asinh %a : f32"},
        Named{"atan", "%f = math.atan %a : f32"},
        Named{"atan2", "%f = math.atan2 %a, %den : f32"},
        Named{"atanh",
              "%h = arith.constant 0.5 : f32\n"
              "%b = arith.mulf %a, %h : f32\n%f = math.atanh %b : f32"},
        Named{"cbrt", "%f = math.cbrt %a : f32"},
        Named{"ceil", "%f = math.ceil %den : f32"},
        Named{"copysign", "%f = math.copysign %a, %s : f32"},
        Named{"cos", "%f = math.cos %a : f32"},
        Named{"cosh", "%f = math.cosh %a : f32"},
        Named{"erf", "%f = math.erf %a : f32"},
        Named{"erfc", "%f = math.erfc %a : f32"},
        Named{"exp", "%f = math.exp %a : f32"},
        Named{"exp2", "%f = math.exp2 %a : f32"},
        Named{"expm1", "%f = math.expm1 %a : f32"},
        Named{"floor", "%f = math.floor %den : f32"},
        Named{"fma", "%f = math.fma %a, %a, %one : f32"},
        Named{"fpowi", "%e = arith.constant 3 : i32\n"
                       "%f = math.fpowi %a, %e : f32, i32"},
        Named{"log", "%f = math.log %a : f32"},
        Named{"log10", "%f = math.log10 %a : f32"},
        Named{"log1p", "%f = math.log1p %a : f32"},
        Named{"log2", "%f = math.log2 %a : f32"},
        Named{"powf", "%e = arith.constant 1.5 : f32\n"
                      "%f = math.powf %a, %e : f32"},
        Named{"round", "%f = math.round %den : f32"},
        Named{"roundeven", "%f = math.roundeven %den : f32"},
        Named{"rsqrt", "%f = math.rsqrt %a : f32"},
        Named{"sin", "%f = math.sin %a : f32"},
        Named{"sinh", "%f = math.sinh %a : f32"},
        Named{"sqrt", "%f = math.sqrt %a : f32"},
        Named{"tan", "%f = math.tan %a : f32"},
        Named{"tanh", "%f = math.tanh %a : f32"},
        Named{"trunc", "%f = math.trunc %den : f32"},
        Named{
            "integers",
            "%i = arith.fptosi %den : f32 to i32\n%b = math.absi %i : i32\n"
            "%d = math.ctlz %b : i32\n%e = math.cttz %b : i32\n"
            "%g = math.ctpop %b : i32\n%h = arith.addi %d, %e : i32\n"
            "%j = arith.addi %h, %g : i32\n%k = arith.constant 31 : i32\n"
            "%l = arith.andi %j, %k : i32\n%f = arith.sitofp %l : i32 to f32"}),
    [](const auto &info) { return info.param.name; });

class ArithTest : public testing::TestWithParam<Named> {};

TEST_P(ArithTest, OfEveryShape) {
  check(GetParam().operations, {"%s", "%qp", "%kp", "%req", "%c"});
}

// Several operations a region, to compile less.
INSTANTIATE_TEST_SUITE_P(
    Operations, ArithTest,
    testing::Values(
        Named{"floats",
              "%n = arith.negf %a : f32\n%b = arith.maximumf %n, %s : f32\n"
              "%d = arith.minimumf %b, %one : f32\n"
              "%e = arith.maxnumf %d, %n : f32\n%g = arith.minnumf %e, %one : "
              "f32\n"
              "%r = arith.remf %den, %one : f32\n%f = arith.subf %g, %r : f32"},
        Named{"comparisons",
              "%p = arith.cmpf olt, %a, %s : f32\n%q = arith.cmpf une, %a, "
              "%one : "
              "f32\n%u = arith.xori %p, %q : i1\n%v = arith.cmpf ord, %a, %s : "
              "f32\n"
              "%w = arith.andi %u, %v : i1\n%f = arith.uitofp %w : i1 to f32"},
        Named{"double", "%x1 = arith.extf %a : f32 to f64\n"
                        "%y1 = arith.mulf %x1, %x1 : f64\n"
                        "%z1 = math.sqrt %y1 : f64\n"
                        "%f = arith.truncf %z1 : f64 to f32"},
        Named{"bits", "%b = arith.bitcast %a : f32 to i32\n"
                      "%m = arith.constant 0xffff0000 : i32\n"
                      "%d = arith.andi %b, %m : i32\n"
                      "%e = arith.bitcast %d : i32 to f32\n"
                      "%f = arith.subf %a, %e : f32"},
        Named{
            "divisions",
            "%i = arith.index_cast %qp : index to i32\n"
            "%k = arith.index_cast %kp : index to i32\n"
            "%five = arith.constant 5 : i32\n%m7 = arith.constant -7 : i32\n"
            "%b = arith.floordivsi %i, %m7 : i32\n"
            "%d = arith.ceildivsi %k, %m7 : i32\n"
            "%e = arith.ceildivui %k, %five : i32\n"
            "%g = arith.remsi %i, %m7 : i32\n%h = arith.divui %k, %five : i32\n"
            "%j = arith.addi %b, %d : i32\n%l = arith.subi %e, %g : i32\n"
            "%n = arith.addi %j, %l : i32\n%o = arith.subi %n, %h : i32\n"
            "%v = arith.sitofp %o : i32 to f32\n%f = arith.mulf %v, %a : f32"},
        Named{
            "dynamic_divisions",
            "%i = arith.index_cast %qp : index to i64\n"
            "%k = arith.index_cast %kp : index to i64\n"
            "%one64 = arith.constant 1 : i64\n%k1 = arith.addi %k, %one64 : "
            "i64\n"
            "%b = arith.floordivsi %i, %k1 : i64\n"
            "%d = arith.remui %k, %k1 : i64\n%e = arith.divsi %i, %k1 : i64\n"
            "%g = arith.addi %b, %e : i64\n%h = arith.subi %g, %d : i64\n"
            "%v = arith.sitofp %h : i64 to f32\n%f = arith.mulf %v, %a : f32"},
        // Key 0 is a divisor in range; it counts as 1 (REG4).
        Named{
            "divisions_by_0",
            "%i = arith.index_cast %qp : index to i64\n"
            "%k = arith.index_cast %kp : index to i64\n"
            "%b = arith.floordivsi %i, %k : i64\n"
            "%d = arith.remui %i, %k : i64\n%e = arith.divsi %i, %k : i64\n"
            "%l = arith.constant -9223372036854775808 : i64\n"
            "%m = arith.subi %k, %i : i64\n%n = arith.remsi %l, %m : i64\n"
            "%g = arith.addi %b, %e : i64\n%h = arith.subi %g, %d : i64\n"
            "%u = arith.constant 127 : i64\n%w = arith.andi %n, %u : i64\n"
            "%o = arith.addi %h, %w : i64\n"
            "%v = arith.sitofp %o : i64 to f32\n%f = arith.mulf %v, %a : f32"},
        Named{
            "widths",
            "%i = arith.index_cast %kp : index to i64\n"
            "%b = arith.trunci %i : i64 to i8\n%d = arith.extsi %b : i8 to "
            "i16\n"
            "%three = arith.constant 3 : i16\n%e = arith.muli %d, %three : "
            "i16\n"
            "%g = arith.extui %e : i16 to i32\n%m = arith.constant 127 : i32\n"
            "%h = arith.andi %g, %m : i32\n%j = arith.uitofp %h : i32 to f32\n"
            "%n = arith.trunci %i : i64 to i4\n%o = arith.extui %n : i4 to "
            "i32\n"
            "%p = arith.sitofp %o : i32 to f32\n%f = arith.subf %j, %p : f32"},
        Named{
            "extremes",
            "%i = arith.index_cast %kp : index to i32\n"
            "%j = arith.index_cast %qp : index to i32\n"
            "%b = arith.maxsi %i, %j : i32\n%d = arith.minsi %i, %j : i32\n"
            "%e = arith.maxui %i, %j : i32\n%g = arith.minui %i, %j : i32\n"
            "%h = arith.subi %b, %d : i32\n%k = arith.subi %e, %g : i32\n"
            "%l = arith.addi %h, %k : i32\n%v = arith.sitofp %l : i32 to f32\n"
            "%f = arith.mulf %v, %a : f32"},
        Named{"shifts",
              "%i = arith.index_cast %kp : index to i64\n"
              "%c5 = arith.constant 5 : i64\n%c3 = arith.constant 3 : i64\n"
              "%b = arith.shli %i, %c5 : i64\n%d = arith.shrui %b, %c3 : i64\n"
              "%n = arith.constant -1 : i64\n%e = arith.xori %d, %n : i64\n"
              "%g = arith.shrsi %e, %c5 : i64\n%h = arith.ori %g, %c3 : i64\n"
              "%f = arith.sitofp %h : i64 to f32"},
        Named{"index", "%c3 = index.constant 3\n%b = index.mul %kp, %c3\n"
                       "%d = index.sub %b, %qp\n%e = index.ceildivs %d, %c3\n"
                       "%g = index.floordivs %d, %c3\n%h = index.rems %d, %c3\n"
                       "%i = index.maxs %e, %g\n%j = index.add %i, %h\n"
                       "%k = index.shrs %j, %c3\n%l = index.xor %k, %c3\n"
                       "%m = index.casts %l : index to i32\n"
                       "%f = arith.sitofp %m : i32 to f32"},
        Named{"casts",
              "%i = arith.fptosi %den : f32 to i32\n"
              "%u = arith.fptoui %den : f32 to i64\n"
              "%x1 = arith.index_cast %i : i32 to index\n"
              "%y1 = arith.index_castui %u : i64 to index\n"
              "%z1 = arith.subi %x1, %y1 : index\n"
              "%w = arith.index_cast %z1 : index to i64\n"
              "%v = arith.sitofp %w : i64 to f32\n"
              "%h = arith.truncf %a : f32 to f16\n%g = arith.extf %h : f16 to "
              "f32\n"
              "%d = arith.subf %a, %g : f32\n%f = arith.addf %v, %d : f32"},
        Named{"branches",
              "%c3 = arith.constant 3 : index\n"
              "%m = arith.cmpi sgt, %kp, %c3 : index\n"
              "%n:2 = scf.if %m -> (f32, index) {\n"
              "%p = arith.cmpf ogt, %s, %a : f32\n"
              "%v = scf.if %p -> f32 {\n%b = arith.negf %a : f32\n"
              "scf.yield %b : f32\n} else {\nscf.yield %one : f32\n}\n"
              "scf.yield %v, %qp : f32, index\n} else {\n"
              "scf.yield %a, %kp : f32, index\n}\n"
              "%i = arith.index_cast %n#1 : index to i32\n"
              "%j = arith.sitofp %i : i32 to f32\n%f = arith.addf %n#0, %j : "
              "f32"}),
    [](const auto &info) { return info.param.name; });

//===----------------------------------------------------------------------===//
// Divisors that nobody guards
//===----------------------------------------------------------------------===//

/// A quotient without a value is an error in the reference; on the CPU it is
/// some number, and no request is lost by it.
TEST(DivisorTest, WithoutAValueDoesNotTrap) {
  for (const char *operation :
       {"arith.divsi", "arith.remsi", "arith.divui", "arith.remui",
        "arith.floordivsi", "arith.ceildivsi", "arith.ceildivui"})
    for (const char *element : {"i32", "i64"})
      for (const char *by : {"%kp", "%req"}) {
        SCOPED_TRACE(testing::Message() << operation << " " << element << by);
        std::string e = element;
        AttentionText text;
        text.keyDim = text.valueDim = 16;
        text.hasStatistic = false;
        std::string type = "tensor<?x" + e + ">";
        text.clauses =
            "captures(%n = %num : " + type + ", %d = %den : " + type + ")\n" +
            scoreRegion("%x = fi.load %n[" + std::string(by) + "] : " + type +
                        "\n%y = fi.load %d[" + by + "] : " + type +
                        "\n%z = " + operation + " %x, %y : " + e +
                        "\n%zero = arith.constant 0 : " + e +
                        "\n%u = arith.muli %z, %zero : " + e +
                        "\n%f = arith.sitofp %u : " + e +
                        " to f32\n%t = arith.addf %s, %f : f32\n"
                        "fi.yield %t : f32");
        text.planArguments = ", %num: " + type + ", %den: " + type;
        DType dtype = e == "i32" ? DType::I32 : DType::I64;
        int64_t least = e == "i32" ? INT32_MIN : INT64_MIN;
        Case test(text.get(), {{3, 20}, {1, 4}});
        test.setOptLevel(0)
            .give("num", integers({7, least, least, 5}, dtype))
            .give("den", integers({0, -1, 0, 2}, dtype));
        EXPECT_EQ(test.runOnCPU({2}).size(), 1u);
      }
}

/// A choice between elements of narrow floats, one of them 0 behind the end of
/// the table, where the host has no instructions that narrow to their type.
TEST(NarrowTest, LoadsOfNarrowFloats) {
  for (const char *target : {"#fi.target<cpu, vector_bits = 128>",
                             "#fi.target<cpu, vector_bits = 256>",
                             "#fi.target<cpu, vector_bits = 512>"})
    for (const char *element : {"bf16", "f16"}) {
      std::string e = element;
      SCOPED_TRACE(target + (" " + e));
      if (llvm::StringRef(target).contains("512") &&
          cpu::getHostTarget(&getContext()).getVectorBits() < 512)
        continue;
      AttentionText text;
      text.target = target;
      text.keyDim = text.valueDim = 16;
      text.clauses = "captures(%c = %bias : tensor<4x?x" + e + ">)\n" +
                     scoreRegion("%b = fi.load %c[%qh, %kp] : tensor<4x?x" + e +
                                 ">\n%w = arith.extf %b : " + e +
                                 " to f32\n%t = arith.addf %s, %w : f32\n"
                                 "fi.yield %t : f32");
      text.runArguments = ", %bias: tensor<4x?x" + e + ">";
      HostTensor bias(e == "bf16" ? DType::BF16 : DType::F16, {4, 20});
      for (int64_t h = 0; h < 4; ++h)
        for (int64_t k = 0; k < 20; ++k)
          bias.setFloat({h, k}, double((h * 31 + k * 7) % 9 - 4) / 4);
      for (unsigned level : {0u, 2u})
        Case(text.get(), fewRequests())
            .give("bias", bias)
            .setOptLevel(level)
            .check(onePlan());
    }
}

} // namespace
