//===- ProgramTest.cpp - programs that a replay can run -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The printed program for every choice of sizes, and the sentence for each
// program that does not fit.
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Program.h"
#include "fi/InitAll.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace fi;
using namespace fi::replay;
using testing::HasSubstr;

namespace {

class ProgramTest : public testing::Test {
protected:
  ProgramTest() : context(makeRegistry()) {}

  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    return registry;
  }
  llvm::Expected<LoadedProgram> parse(llvm::StringRef text,
                                      llvm::StringRef name = {}) {
    return parseProgram(context, text, "p.mlir", name);
  }
  /// The message for the default program with a part of its text replaced.
  std::string errorWith(std::string from, std::string to) {
    ProgramOptions options;
    std::string text = printProgram(options);
    size_t at = text.find(from);
    if (at == std::string::npos)
      return "no '" + from + "' in the program";
    for (; at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
    auto loaded = parse(text);
    return loaded ? "" : llvm::toString(loaded.takeError());
  }

  mlir::MLIRContext context;
};

TEST_F(ProgramTest, PrintedProgramsSayTheirSizes) {
  for (DType type : {DType::F32, DType::F16, DType::BF16})
    for (HeadOrder order : {HeadOrder::HND, HeadOrder::NHD})
      for (int64_t dim : {8, 64, 128, 512})
        for (bool append : {true, false}) {
          ProgramOptions options;
          options.type = type;
          options.order = order;
          options.dim = dim;
          options.append = append;
          options.page = 5;
          options.queryHeads = 6;
          options.kvHeads = 2;
          auto loaded = parse(printProgram(options));
          ASSERT_TRUE(bool(loaded)) << llvm::toString(loaded.takeError());
          const Program &program = loaded->program;
          EXPECT_EQ(program.getKVType(), type);
          EXPECT_EQ(program.getQueryType(), type);
          EXPECT_EQ(program.getOutputType(), type);
          EXPECT_EQ(program.getOrder(), order);
          EXPECT_EQ(program.getPageSize(), 5);
          EXPECT_EQ(program.getQueryHeads(), 6);
          EXPECT_EQ(program.getKVHeads(), 2);
          EXPECT_EQ(program.getDim(), dim);
          EXPECT_EQ(program.hasAppend(), append);
          EXPECT_TRUE(program.hasLse());
          EXPECT_NEAR(program.getScale(), 1 / std::sqrt(double(dim)), 1e-6);
          EXPECT_EQ(program.getTokenBytes(), 2 * 2 * dim * getByteSize(type));
          auto shape = program.getPoolShape(9);
          EXPECT_EQ(shape[1], order == HeadOrder::HND ? 2 : 5);
          EXPECT_EQ(shape[2], order == HeadOrder::HND ? 5 : 2);
        }
}

TEST_F(ProgramTest, AnotherMaskIsStillAReplay) {
  EXPECT_EQ(errorWith("#fi.causal", "#fi.causal, #fi.window<left = 99>"), "");
}

TEST_F(ProgramTest, SaysWhatDoesNotFit) {
  EXPECT_THAT(errorWith("%newk", "%nk"),
              HasSubstr("but got run argument 'nk'"));
  EXPECT_THAT(errorWith("%last", "%lengths"),
              HasSubstr("but got plan argument 'lengths'"));
  EXPECT_THAT(
      errorWith("%k: !pool, %v: !pool)", "%k: !pool, %v: !pool, %sc: f32)"),
      HasSubstr("but got run argument 'sc'"));
  EXPECT_THAT(errorWith("fi.return %o, %lse : !q, !lse", "fi.return %o : !q"),
              HasSubstr("p.mlir"));
  EXPECT_THAT(errorWith("fi.program @replay", "fi.prog @replay"),
              HasSubstr("p.mlir"));
  EXPECT_THAT(errorWith("fi.paged_kv<16x8", "fi.paged_kv<?x8"),
              HasSubstr("expected a view with a known page size"));
}

TEST_F(ProgramTest, NeedsOneProgram) {
  auto none = parse("module {}");
  EXPECT_THAT(llvm::toString(none.takeError()),
              HasSubstr("p.mlir: expected a fi.program, but there is none"));
  std::string text = printProgram({});
  std::string second =
      text.substr(text.find("fi.program")).replace(11, 7, "@other");
  auto two = parse(text + second);
  EXPECT_THAT(llvm::toString(two.takeError()),
              HasSubstr("expected one program, but got 'replay' and 'other'"));
  auto chosen = parse(text + second, "other");
  EXPECT_TRUE(bool(chosen));
  auto missing = parse(text + second, "third");
  EXPECT_THAT(llvm::toString(missing.takeError()),
              HasSubstr("expected a fi.program named 'third'"));
}

} // namespace
