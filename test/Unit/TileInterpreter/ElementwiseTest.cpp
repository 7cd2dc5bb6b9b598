//===- ElementwiseTest.cpp - arith and math in the level 2 interpreter ----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TileTesting.h"

using namespace fi;
using namespace fi::tile;

namespace {

class ElementwiseTest : public TileTest {
protected:
  /// Stores the result of `ops`, which compute `%r` from `%a` and `%b`, as
  /// element 0 of tiles as well as scalars, and returns it.
  std::string evaluate(const std::string &ops, const std::string &type,
                       const std::string &resultType, TileArgument a,
                       TileArgument b, HostTensor &out) {
    auto text = [&](bool tiles) {
      std::string replaced = ops;
      auto replace = [&](const std::string &from, const std::string &to) {
        for (size_t at = 0; (at = replaced.find(from, at)) != std::string::npos;
             at += to.size())
          replaced.replace(at, from.size(), to);
      };
      auto wrap = [&](const std::string &t) {
        return tiles ? "tensor<8x1x" + t + ">" : t;
      };
      replace("$T", wrap(type));
      replace("$R", wrap(resultType));
      replace("$B", wrap("i1"));
      if (tiles) {
        replace("%a", "%at");
        replace("%b", "%bt");
        replace("%r =", "%out =");
        return "%at = tensor.splat %a : " + wrap(type) +
               "\n %bt = tensor.splat %b : " + wrap(type) + "\n" + replaced;
      }
      return replaced + "\n %out = tensor.splat %r : tensor<8x1x" + resultType +
             ">";
    };
    std::string error;
    HostTensor results[2] = {HostTensor(out.getType(), {1, 1}),
                             HostTensor(out.getType(), {1, 1})};
    for (bool tiles : {false, true}) {
      if (!parse("fi_tile.kernel @f(%a: " + type + ", %b: " + type +
                 ", %o: memref<?x1x" + resultType +
                 ">, %w: !fi_tile.work) schedule(#s) {\n" + text(tiles) +
                 "\n fi_tile.for_items %it in %w {\n fi_tile.store_rows %out, "
                 "%o[%it] group 1 : tensor<8x1x" +
                 resultType + ">, memref<?x1x" + resultType +
                 ">\n }\n fi_tile.return\n}"))
        return "cannot parse: " + ops;
      TestWork work;
      work.add();
      error = run("f", {a, b, results[tiles]}, work);
    }
    EXPECT_EQ(results[0].getInteger({0, 0}), results[1].getInteger({0, 0}))
        << ops;
    out = results[0];
    return error;
  }

  int64_t integer(const std::string &ops, const std::string &type, int64_t a,
                  int64_t b, const std::string &resultType = "") {
    HostTensor out(resultType == "i1"                    ? DType::I1
                   : resultType == "i8"                  ? DType::I8
                   : resultType == "i32"                 ? DType::I32
                   : type == "i8" && resultType.empty()  ? DType::I8
                   : type == "i32" && resultType.empty() ? DType::I32
                                                         : DType::I64,
                   {1, 1});
    EXPECT_EQ(evaluate("%r = " + ops, type,
                       resultType.empty() ? type : resultType, a, b, out),
              "");
    return out.getInteger({0, 0});
  }
  double number(const std::string &ops, double a, double b = 0) {
    HostTensor out(DType::F64, {1, 1});
    EXPECT_EQ(evaluate("%r = " + ops, "f64", "f64", a, b, out), "");
    return out.getFloat({0, 0});
  }
  bool test(const std::string &ops, const std::string &type, TileArgument a,
            TileArgument b) {
    HostTensor out(DType::I1, {1, 1});
    EXPECT_EQ(evaluate("%r = " + ops, type, "i1", a, b, out), "");
    return out.getInteger({0, 0});
  }
};

TEST_F(ElementwiseTest, IntegersWrapToTheirWidth) {
  EXPECT_EQ(integer("arith.addi %a, %b : $T", "i8", 127, 1), -128);
  EXPECT_EQ(integer("arith.subi %a, %b : $T", "i8", -128, 1), 127);
  EXPECT_EQ(integer("arith.muli %a, %b : $T", "i32", 1 << 20, 1 << 12), 0);
  EXPECT_EQ(integer("arith.muli %a, %b : $T", "i64", int64_t(1) << 40, 1 << 12),
            int64_t(1) << 52);
  EXPECT_EQ(integer("arith.addi %a, %b : $T", "i64", INT64_MAX, 1), INT64_MIN);
  EXPECT_EQ(integer("arith.andi %a, %b : $T", "i8", -1, 0x5a), 0x5a);
  EXPECT_EQ(integer("arith.ori %a, %b : $T", "i8", -128, 1), -127);
  EXPECT_EQ(integer("arith.xori %a, %b : $T", "i8", -1, 1), -2);
  EXPECT_EQ(integer("arith.shli %a, %b : $T", "i8", 3, 7), -128);
  EXPECT_EQ(integer("arith.shrui %a, %b : $T", "i8", -1, 7), 1);
  EXPECT_EQ(integer("arith.shrsi %a, %b : $T", "i8", -128, 3), -16);
}

TEST_F(ElementwiseTest, Division) {
  EXPECT_EQ(integer("arith.divsi %a, %b : $T", "i32", -7, 2), -3);
  EXPECT_EQ(integer("arith.remsi %a, %b : $T", "i32", -7, 2), -1);
  EXPECT_EQ(integer("arith.floordivsi %a, %b : $T", "i32", -7, 2), -4);
  EXPECT_EQ(integer("arith.floordivsi %a, %b : $T", "i32", 7, -2), -4);
  EXPECT_EQ(integer("arith.floordivsi %a, %b : $T", "i32", -8, -2), 4);
  EXPECT_EQ(integer("arith.floordivsi %a, %b : $T", "i32", -8, 2), -4);
  EXPECT_EQ(integer("arith.ceildivsi %a, %b : $T", "i32", 8, 2), 4);
  EXPECT_EQ(integer("arith.ceildivsi %a, %b : $T", "i32", 7, 2), 4);
  EXPECT_EQ(integer("arith.ceildivsi %a, %b : $T", "i32", -7, 2), -3);
  EXPECT_EQ(integer("arith.divui %a, %b : $T", "i8", -1, 2), 127);
  EXPECT_EQ(integer("arith.remui %a, %b : $T", "i8", -1, 10), 5);
  EXPECT_EQ(integer("arith.ceildivui %a, %b : $T", "i8", 7, 2), 4);
  for (const char *op : {"divsi", "remsi", "floordivsi", "ceildivsi", "divui",
                         "remui", "ceildivui"}) {
    HostTensor out(DType::I32, {1, 1});
    EXPECT_THAT(
        evaluate(std::string("%r = arith.") + op + " %a, %b : $T", "i32", "i32",
                 int64_t(3), int64_t(0), out),
        testing::HasSubstr(
            std::string("'arith.") + op +
            "' op expected a quotient that is defined, but got 3 by 0"));
  }
  HostTensor out(DType::I8, {1, 1});
  EXPECT_THAT(evaluate("%r = arith.divsi %a, %b : $T", "i8", "i8",
                       int64_t(-128), int64_t(-1), out),
              testing::HasSubstr("but got -128 by -1"));
}

TEST_F(ElementwiseTest, MinMaxAndBits) {
  EXPECT_EQ(integer("arith.minsi %a, %b : $T", "i8", -1, 1), -1);
  EXPECT_EQ(integer("arith.minui %a, %b : $T", "i8", -1, 1), 1);
  EXPECT_EQ(integer("arith.maxsi %a, %b : $T", "i8", -1, 1), 1);
  EXPECT_EQ(integer("arith.maxui %a, %b : $T", "i8", -1, 1), -1);
  EXPECT_EQ(integer("math.absi %a : $T", "i8", -5, 0), 5);
  EXPECT_EQ(integer("math.ctpop %a : $T", "i8", -1, 0), 8);
  EXPECT_EQ(integer("math.ctlz %a : $T", "i8", 1, 0), 7);
  EXPECT_EQ(integer("math.cttz %a : $T", "i8", 0, 0), 8);
}

TEST_F(ElementwiseTest, ComparisonsOfIntegers) {
  for (int64_t a : {-1, 0, 1})
    for (int64_t b : {-1, 0, 1}) {
      uint8_t ua = a, ub = b;
      for (auto [name, expected] :
           {std::pair("eq", a == b), std::pair("ne", a != b),
            std::pair("slt", a < b), std::pair("sle", a <= b),
            std::pair("sgt", a > b), std::pair("sge", a >= b),
            std::pair("ult", ua < ub), std::pair("ule", ua <= ub),
            std::pair("ugt", ua > ub), std::pair("uge", ua >= ub)})
        EXPECT_EQ(test(std::string("arith.cmpi ") + name + ", %a, %b : $T",
                       "i8", a, b),
                  expected)
            << name << ' ' << a << ' ' << b;
    }
  // True is -1 where i1 is read as signed.
  EXPECT_TRUE(
      test("arith.cmpi slt, %a, %b : $T", "i1", int64_t(1), int64_t(0)));
  EXPECT_FALSE(
      test("arith.cmpi ult, %a, %b : $T", "i1", int64_t(1), int64_t(0)));
}

TEST_F(ElementwiseTest, ComparisonsOfFloats) {
  for (double a : {-1.0, 2.0, double(NAN)})
    for (double b : {-1.0, 2.0, double(NAN)}) {
      bool un = std::isnan(a) || std::isnan(b);
      for (auto [name, expected] :
           {std::pair("false", false), std::pair("oeq", a == b),
            std::pair("ogt", a > b), std::pair("oge", a >= b),
            std::pair("olt", a < b), std::pair("ole", a <= b),
            std::pair("one", !un && a != b), std::pair("ord", !un),
            std::pair("ueq", un || a == b), std::pair("ugt", un || a > b),
            std::pair("uge", un || a >= b), std::pair("ult", un || a < b),
            std::pair("ule", un || a <= b), std::pair("une", a != b),
            std::pair("uno", un), std::pair("true", true)})
        EXPECT_EQ(test(std::string("arith.cmpf ") + name + ", %a, %b : $T",
                       "f64", a, b),
                  expected)
            << name << ' ' << a << ' ' << b;
    }
}

TEST_F(ElementwiseTest, Casts) {
  EXPECT_EQ(integer("arith.extsi %a : $T to $R", "i8", -3, 0, "i32"), -3);
  EXPECT_EQ(integer("arith.extui %a : $T to $R", "i8", -3, 0, "i32"), 253);
  EXPECT_EQ(integer("arith.extsi %a : $T to $R", "i1", 1, 0, "i32"), -1);
  EXPECT_EQ(integer("arith.extui %a : $T to $R", "i1", 1, 0, "i32"), 1);
  EXPECT_EQ(integer("arith.trunci %a : $T to $R", "i32", 0x1ff, 0, "i8"), -1);
  EXPECT_EQ(integer("arith.index_cast %a : $T to $R", "index",
                    (int64_t(1) << 32) + 5, 0, "i32"),
            5);
  EXPECT_EQ(integer("arith.index_castui %a : $T to $R", "i8", -1, 0, "index"),
            255);
}

TEST_F(ElementwiseTest, FloatsAndIntegers) {
  HostTensor f(DType::F32, {1, 1}), i(DType::I8, {1, 1});
  auto toFloat = [&](const char *op, int64_t a) {
    EXPECT_EQ(evaluate(std::string("%r = arith.") + op + " %a : $T to $R",
                       "i64", "f32", a, int64_t(0), f),
              "");
    return f.getFloat({0, 0});
  };
  // Rounded to f32, ties to even.
  EXPECT_EQ(toFloat("sitofp", (1 << 24) + 1), 1 << 24);
  EXPECT_EQ(toFloat("sitofp", -3), -3);
  EXPECT_EQ(toFloat("uitofp", -1), std::ldexp(1, 64));
  auto toInteger = [&](const char *op, double a) {
    EXPECT_EQ(evaluate(std::string("%r = arith.") + op + " %a : $T to $R",
                       "f64", "i8", a, 0.0, i),
              "");
    return i.getInteger({0, 0});
  };
  EXPECT_EQ(toInteger("fptosi", -3.9), -3);
  EXPECT_EQ(toInteger("fptosi", 1000.0), 127);
  EXPECT_EQ(toInteger("fptosi", -1000.0), -128);
  EXPECT_EQ(toInteger("fptosi", NAN), 0);
  EXPECT_EQ(toInteger("fptoui", 255.5), -1);
  EXPECT_EQ(toInteger("fptoui", -1.0), 0);
  auto bits = [&](const char *from, const char *to, TileArgument a,
                  TileArgument zero, HostTensor out) {
    EXPECT_EQ(
        evaluate("%r = arith.bitcast %a : $T to $R", from, to, a, zero, out),
        "");
    return out;
  };
  EXPECT_EQ(bits("f32", "i32", 1.0, 0.0, HostTensor(DType::I32, {1, 1}))
                .getInteger({0, 0}),
            0x3f800000);
  EXPECT_EQ(bits("i32", "f32", int64_t(0x40490fdb), int64_t(0),
                 HostTensor(DType::F32, {1, 1}))
                .getFloat({0, 0}),
            double(3.14159274f));
  EXPECT_EQ(bits("f16", "bf16", 1.0, 0.0, HostTensor(DType::BF16, {1, 1}))
                .getFloat({0, 0}),
            std::ldexp(1, -7)); // 0x3c00
}

TEST_F(ElementwiseTest, FloatArithmetic) {
  EXPECT_EQ(number("arith.addf %a, %b : $T", 1, 0.5), 1.5);
  EXPECT_EQ(number("arith.subf %a, %b : $T", 1, 0.5), 0.5);
  EXPECT_EQ(number("arith.mulf %a, %b : $T", 3, 0.5), 1.5);
  EXPECT_EQ(number("arith.divf %a, %b : $T", 1, 0), kInf);
  EXPECT_EQ(number("arith.remf %a, %b : $T", -7, 3), -1);
  EXPECT_EQ(number("arith.negf %a : $T", 2), -2);
  EXPECT_EQ(number("arith.maxnumf %a, %b : $T", NAN, 1), 1);
  EXPECT_EQ(number("arith.minnumf %a, %b : $T", 2, NAN), 2);
  EXPECT_TRUE(std::isnan(number("arith.maximumf %a, %b : $T", NAN, 1)));
  EXPECT_TRUE(std::isnan(number("arith.minimumf %a, %b : $T", 1, NAN)));
  EXPECT_FALSE(std::signbit(number("arith.maximumf %a, %b : $T", -0.0, 0.0)));
  EXPECT_TRUE(std::signbit(number("arith.minimumf %a, %b : $T", 0.0, -0.0)));
  EXPECT_EQ(number("math.fma %a, %b, %a : $T", 2, 3), 8);
  EXPECT_EQ(number("math.powf %a, %b : $T", 2, 10), 1024);
  EXPECT_EQ(number("math.copysign %a, %b : $T", 2, -1), -2);
  EXPECT_EQ(number("math.atan2 %a, %b : $T", 0, 1), 0);
  EXPECT_TRUE(test("math.isnan %a : $T", "f64", double(NAN), 0.0));
  EXPECT_FALSE(test("math.isfinite %a : $T", "f64", kInf, 0.0));
  EXPECT_TRUE(test("math.isinf %a : $T", "f64", -kInf, 0.0));
}

TEST_F(ElementwiseTest, MathFunctions) {
  using F = double (*)(double);
  for (auto [name, f] : {std::pair<const char *, F>("exp", std::exp),
                         {"exp2", std::exp2},
                         {"expm1", std::expm1},
                         {"log", std::log},
                         {"log2", std::log2},
                         {"log10", std::log10},
                         {"log1p", std::log1p},
                         {"sqrt", std::sqrt},
                         {"cbrt", std::cbrt},
                         {"sin", std::sin},
                         {"cos", std::cos},
                         {"tan", std::tan},
                         {"tanh", std::tanh},
                         {"sinh", std::sinh},
                         {"cosh", std::cosh},
                         {"asin", std::asin},
                         {"acos", std::acos},
                         {"atan", std::atan},
                         {"erf", std::erf},
                         {"floor", std::floor},
                         {"ceil", std::ceil},
                         {"trunc", std::trunc},
                         {"absf", std::fabs},
                         {"round", std::round},
                         {"rsqrt", [](double x) { return std::pow(x, -0.5); }}})
    for (double x : {0.25, 0.5, 0.9})
      EXPECT_NEAR(number(std::string("math.") + name + " %a : $T", x), f(x),
                  1e-15)
          << name;
  EXPECT_EQ(number("math.roundeven %a : $T", 2.5), 2);
  EXPECT_EQ(number("math.exp2 %a : $T", -kInf), 0);
}

TEST_F(ElementwiseTest, SelectsAndConstants) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @f(%o: memref<?x1x4xi32>, %p: memref<?x1x4xf32>, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<[[true, false, true, false]]> : tensor<1x4xi1>
  %x = arith.constant dense<[[1, 2, 3, 4]]> : tensor<1x4xi32>
  %y = arith.constant dense<-1> : tensor<1x4xi32>
  %r = arith.select %c, %x, %y : tensor<1x4xi1>, tensor<1x4xi32>
  %no = arith.constant false
  %yes = arith.constant true
  %r1 = arith.select %yes, %r, %y : tensor<1x4xi32>
  %rb = fi_tile.broadcast %r1 : tensor<1x4xi32> -> tensor<8x4xi32>
  %f = arith.constant dense<[[0.5, 1.5, 0xFF800000, -2.0]]> : tensor<1x4xf32>
  %g = arith.constant dense<0.0> : tensor<1x4xf32>
  %s = arith.select %no, %g, %f : tensor<1x4xf32>
  %fb = fi_tile.broadcast %s : tensor<1x4xf32> -> tensor<8x4xf32>
  fi_tile.for_items %it in %w {
    fi_tile.store_rows %rb, %o[%it] group 1 : tensor<8x4xi32>, memref<?x1x4xi32>
    fi_tile.store_rows %fb, %p[%it] group 1 : tensor<8x4xf32>, memref<?x1x4xf32>
  }
  fi_tile.return
})"));
  HostTensor o = filled({1, 1, 4}, 0, DType::I32), p = filled({1, 1, 4}, 0);
  TestWork work;
  work.add();
  ASSERT_EQ(run("f", {o, p}, work), "");
  int64_t ints[] = {1, -1, 3, -1};
  double floats[] = {0.5, 1.5, -kInf, -2.0};
  for (int64_t c = 0; c < 4; ++c) {
    EXPECT_EQ(o.getInteger({0, 0, c}), ints[c]);
    EXPECT_EQ(p.getFloat({0, 0, c}), floats[c]);
  }
}

TEST_F(ElementwiseTest, ReductionsKeepLanes) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @f(%x: memref<?x1x6xi32>, %o: memref<?x1x2xi32>, %p: memref<?x1x2xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1x6xi32> -> tensor<8x6xi32>
    %max = fi_tile.reduce max %t : tensor<8x6xi32> -> tensor<8x2xi32>
    fi_tile.store_rows %max, %o[%it] group 1 : tensor<8x2xi32>, memref<?x1x2xi32>
    %f = arith.sitofp %t : tensor<8x6xi32> to tensor<8x6xf32>
    %sum = fi_tile.reduce add %f : tensor<8x6xf32> -> tensor<8x2xf32>
    fi_tile.store_rows %sum, %p[%it] group 1 : tensor<8x2xf32>, memref<?x1x2xf32>
  }
  fi_tile.return
})"));
  HostTensor x(DType::I32, {1, 1, 6}), o(DType::I32, {1, 1, 2}),
      p(DType::F32, {1, 1, 2});
  int64_t values[] = {1, -20, -300, -4, 50, -6};
  for (int64_t c = 0; c < 6; ++c)
    x.setInteger({0, 0, c}, values[c]);
  TestWork work;
  work.add();
  ASSERT_EQ(run("f", {x, o, p}, work), "");
  EXPECT_EQ(o.getInteger({0, 0, 0}), 50);
  EXPECT_EQ(o.getInteger({0, 0, 1}), -4);
  EXPECT_EQ(p.getFloat({0, 0, 0}), 1 - 300 + 50);
  EXPECT_EQ(p.getFloat({0, 0, 1}), -20 - 4 - 6);
}

} // namespace
