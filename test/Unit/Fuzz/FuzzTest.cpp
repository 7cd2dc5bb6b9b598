//===- FuzzTest.cpp - random programs and their reduction -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Fuzz/Check.h"
#include "fi/InitAll.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <csignal>
#include <unistd.h>

using namespace fi;
using namespace fi::fuzz;
using testing::HasSubstr;

namespace {

const mlir::DialectRegistry &getRegistry() {
  static const mlir::DialectRegistry *registry = [] {
    setenv("FI_CACHE_DIR", "", /*overwrite=*/1);
    auto *made = new mlir::DialectRegistry;
    registerAllDialects(*made);
    cpu::registerCompiler(*made);
    return made;
  }();
  return *registry;
}

Finding check(const RandomProgram &program, llvm::StringRef backend) {
  mlir::MLIRContext context(getRegistry(),
                            mlir::MLIRContext::Threading::DISABLED);
  return checkProgram(program, backend, context);
}

TEST(Choices, comeAgain) {
  Choices first(7), second(7);
  for (int i = 0; i < 20; ++i) {
    std::string name = "choice" + std::to_string(i);
    int64_t value = first.choose(name, 10);
    EXPECT_LT(value, 10);
    // Another order, and others between them.
    second.choose("other" + std::to_string(i), 3);
    EXPECT_EQ(second.choose(name, 10), value);
    EXPECT_EQ(second.choose(name, 10), value);
  }
  EXPECT_NE(Choices(8).choose("choice3", 1 << 30), first.choose("c", 1 << 30));
}

TEST(Choices, areGiven) {
  Given given;
  ASSERT_TRUE(parseGiven("mask[0]=3,a/1.leaf=2", given));
  Choices choices(given);
  EXPECT_EQ(choices.choose("mask[0]", 5), 3);
  EXPECT_EQ(choices.choose("a/1.leaf", 2), 1) << "the last of two";
  EXPECT_EQ(choices.choose("absent", 9), 0);
  EXPECT_EQ(choices.rarely("absent", 1, 9), 0);
  EXPECT_EQ(choices.getText(), "mask[0]=3,a/1.leaf=1");
  Given wrong;
  EXPECT_FALSE(parseGiven("mask", wrong));
  EXPECT_FALSE(parseGiven("mask=-1", wrong));
  EXPECT_FALSE(parseGiven("=1", wrong));
}

TEST(Programs, comeAgainFromSeedsAndFromChoices) {
  for (uint64_t seed = 1; seed < 60; ++seed)
    for (Family family : {Family::CPU, Family::GPU}) {
      Choices first(seed), second(seed);
      RandomProgram a = makeProgram(first, family),
                    b = makeProgram(second, family);
      EXPECT_EQ(a.text, b.text);
      EXPECT_EQ(a.batch, b.batch);
      Given given;
      ASSERT_TRUE(parseGiven(first.getText(), given));
      Choices third(given);
      RandomProgram c = makeProgram(third, family);
      EXPECT_EQ(a.text, c.text);
      EXPECT_EQ(a.batch, c.batch);
      EXPECT_EQ(a.plans.size(), c.plans.size());
    }
}

TEST(Programs, haveEveryAxis) {
  std::string all;
  for (uint64_t seed = 1; seed < 400; ++seed) {
    Choices choices(seed);
    RandomProgram program = makeProgram(choices, Family::CPU);
    all += program.text + program.batch;
  }
  for (const char *part : {"fi.view.paged",
                           "fi.view.ragged",
                           "table = dense",
                           "fused",
                           "HND",
                           "index = i64",
                           "vo = ",
                           "v = ",
                           "origin(",
                           "at(",
                           "segments(",
                           "sink(",
                           "#fi.sigmoid",
                           "#fi.sum",
                           "base = e",
                           "pair<half>",
                           "interleaved",
                           "captures(",
                           "#fi.softcap",
                           "#fi.window",
                           "#fi.any",
                           "#fi.causal",
                           "split(",
                           "outs(",
                           "fi.merge ",
                           "fi.empty",
                           "fi.append",
                           "fi.finalize",
                           "fi.merge_segments",
                           "scf.if",
                           "fi.rms_norm",
                           "fi.layer_norm",
                           "fi.sorted",
                           "schedules(",
                           "x?x",
                           "\"requests\": []",
                           "floordivsi",
                           "index.cmp"})
    EXPECT_THAT(all, HasSubstr(part));
}

TEST(Programs, areLegalAndAgreeWithLevel2) {
  // More of them, and on other backends, by the fuzz entries of ctest.
  for (uint64_t seed = 1; seed < 6; ++seed) {
    Choices choices(seed);
    Finding finding = check(makeProgram(choices, Family::CPU), "level2");
    EXPECT_FALSE(finding) << finding.kind << ": " << finding.message;
  }
}

TEST(Checking, seesWhatIsWrong) {
  Choices choices{Given()};
  RandomProgram program = makeProgram(choices, Family::CPU);
  EXPECT_FALSE(check(program, "cpu"));
  EXPECT_EQ(check(program, "none").kind, "compile");
  RandomProgram broken = program;
  broken.text.replace(broken.text.find("scale("), 6, "skale(");
  EXPECT_EQ(check(broken, "cpu").kind, "parse");
  broken = program;
  broken.batch.replace(broken.batch.find("\"qo\": [0,1]"), 11, "\"qo\": [0,5]");
  Finding finding = check(broken, "cpu");
  EXPECT_EQ(finding.kind, "reference");
  EXPECT_THAT(finding.message, HasSubstr("BAT"));
  broken = program;
  broken.plans[0].split = "fixed:0";
  EXPECT_EQ(check(broken, "cpu").kind, "plan");
}

TEST(Isolation, reportsCrashesAndHangs) {
  Child child = isolate(
      [](auto report) {
        report("a");
        report("b c");
      },
      30);
  EXPECT_THAT(child.lines, testing::ElementsAre("a", "b c"));
  EXPECT_EQ(child.end, "");
  child = isolate(
      [](auto report) {
        report("a");
        raise(SIGSEGV);
      },
      30);
  EXPECT_THAT(child.lines, testing::ElementsAre("a"));
  EXPECT_EQ(child.end, "crash");
  child = isolate([](auto) { pause(); }, 0.2);
  EXPECT_EQ(child.end, "hang");
  child = isolate([](auto) { _exit(3); }, 30);
  EXPECT_EQ(child.end, "crash");
  EXPECT_EQ(child.message, "exit code 3");
}

/// Reduces the first program that has all parts, and says what stays.
std::string reduceTo(std::vector<std::string> parts, Family family) {
  auto hasAll = [&](const RandomProgram &program) {
    std::string all = program.text + program.batch;
    return llvm::all_of(parts, [&](const std::string &part) {
      return all.find(part) != std::string::npos;
    });
  };
  for (uint64_t seed = 1; seed < 3000; ++seed) {
    Choices choices(seed);
    if (!hasAll(makeProgram(choices, family)))
      continue;
    Given given = reduce(choices.getGiven(), family, hasAll, 2000);
    Choices simple(given);
    EXPECT_TRUE(hasAll(makeProgram(simple, family)));
    return simple.getText();
  }
  return "none";
}

TEST(Reducing, keepsWhatMatters) {
  EXPECT_EQ(reduceTo({"#fi.softcap"}, Family::CPU), "score=1");
  EXPECT_EQ(reduceTo({"HND, fused"}, Family::CPU), "view=1,hnd=1,fused=1");
  EXPECT_EQ(reduceTo({"fi.append", "index = i64"}, Family::GPU),
            "program=3,index=1");
  // One of two attentions.
  EXPECT_EQ(
      reduceTo({"x2x16xf16", "#fi.softcap<2.0>"}, Family::CPU).find("program="),
      std::string::npos);
  // An element of a list, wherever it stood, and what it is within.
  EXPECT_EQ(reduceTo({"\"kv_len\": 65"}, Family::CPU), "request[0].keys=14");
  EXPECT_EQ(
      reduceTo({"mask(#fi.window<right = 4611686018427387904"}, Family::CPU),
      "mask.count=1,mask[0]=3,mask[0].right=7");
  // An operation in a tree moves up to its root.
  EXPECT_EQ(reduceTo({"arith.floordivsi"}, Family::CPU).find("mask:/0/0/0"),
            std::string::npos);
}

} // namespace
