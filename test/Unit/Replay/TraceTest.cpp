//===- TraceTest.cpp - reading traces -------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Traces that are read, and the sentence for each that is not.
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Trace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace fi::replay;
using testing::HasSubstr;

namespace {

std::vector<TraceRequest> parse(llvm::StringRef text) {
  auto trace = parseTrace(text, "t.csv");
  if (!trace) {
    ADD_FAILURE() << llvm::toString(trace.takeError());
    return {};
  }
  return *trace;
}

std::string parseError(llvm::StringRef text) {
  auto trace = parseTrace(text, "t.csv");
  if (trace)
    return "";
  return llvm::toString(trace.takeError());
}

const std::string header = "TIMESTAMP,ContextTokens,GeneratedTokens\n";

TEST(Trace, ReadsTheAzureFormat) {
  auto trace = parse(header + "2023-11-16 18:15:46.6805900,374,44\r\n"
                              "2023-11-16 18:15:50.9951690,396,109\n");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[0].arrival, 0);
  EXPECT_EQ(trace[0].promptTokens, 374);
  EXPECT_EQ(trace[0].generatedTokens, 44);
  EXPECT_NEAR(trace[1].arrival, 4.314579, 1e-5);
  EXPECT_EQ(trace[1].getComputedTokens(), 396 + 108);
}

TEST(Trace, CountsDaysAcrossMonthsAndLeapDays) {
  auto trace = parse(header + "2024-02-28 23:59:59,1,1\n"
                              "2024-02-29T00:00:01,1,1\n"
                              "2024-03-01 00:00:01,1,1\n"
                              "2025-03-01 00:00:01,1,1\n");
  ASSERT_EQ(trace.size(), 4u);
  EXPECT_EQ(trace[1].arrival, 2);
  EXPECT_EQ(trace[2].arrival, 2 + 86400);
  EXPECT_EQ(trace[3].arrival, 2 + 86400 + 365 * 86400.0);
}

TEST(Trace, FindsColumnsByTitleAndReadsPlainSeconds) {
  auto trace =
      parse("\xef\xbb\xbfmodel,GeneratedTokens,contexttokens,Timestamp\n"
            "a,2,7,0.5\n\n"
            "b,0,8,1.75");
  ASSERT_EQ(trace.size(), 2u);
  EXPECT_EQ(trace[1].arrival, 1.25);
  EXPECT_EQ(trace[1].promptTokens, 8);
  EXPECT_EQ(trace[1].getComputedTokens(), 8);
}

TEST(Trace, SaysWhatIsWrong) {
  EXPECT_THAT(parseError(""), HasSubstr("but got an empty file"));
  EXPECT_THAT(parseError(header), HasSubstr("but got the header alone"));
  EXPECT_THAT(parseError("a,b\n1,2\n"),
              HasSubstr("t.csv:1: expected the columns TIMESTAMP"));
  EXPECT_THAT(parseError("TIMESTAMP,ContextTokens,GeneratedTokens,TIMESTAMP\n"),
              HasSubstr("column 'TIMESTAMP' appears twice"));
  EXPECT_THAT(parseError(header + "1,2\n"),
              HasSubstr("t.csv:2: expected 3 columns as in the header"));
  for (const char *tokens : {"0", "-4", "1e3", "", "99999999999999999999"})
    EXPECT_THAT(parseError(header + "1," + tokens + ",2\n"),
                HasSubstr("expected ContextTokens to be an integer in 1 ... "
                          "16777216, but got '" +
                          std::string(tokens) + "'"));
  EXPECT_THAT(parseError(header + "1,2,-1\n"),
              HasSubstr("expected GeneratedTokens to be an integer in 0"));
  for (const char *time : {"now", "2023-13-01 00:00:00", "2023-11-16", "nan",
                           "2023-11-16 18:15:99", "2023-11-16 18:15"})
    EXPECT_THAT(parseError(header + time + ",1,1\n"),
                HasSubstr("expected TIMESTAMP to be seconds or"));
  EXPECT_THAT(parseError(header + "2,1,1\n1,1,1\n"),
              HasSubstr("t.csv:3: expected time stamps that do not fall"));
}

TEST(Trace, AnyBytesAreReadOrRefused) {
  // Every prefix and every single-byte change of a good trace.
  std::string good = header + "2023-11-16 18:15:46.68,374,44\n5,1,2\n";
  for (size_t i = 0; i < good.size(); ++i) {
    (void)parseError(good.substr(0, i));
    for (char byte : {'\0', ',', '\n', '-', '9', '\xff'}) {
      std::string changed = good;
      changed[i] = byte;
      auto trace = parseTrace(changed, "t.csv");
      if (!trace) {
        EXPECT_FALSE(llvm::toString(trace.takeError()).empty());
        continue;
      }
      for (const TraceRequest &request : *trace)
        EXPECT_GE(request.promptTokens, 1);
    }
  }
}

TEST(Trace, MissingFile) {
  auto trace = readTrace("no/such/trace.csv");
  ASSERT_FALSE(bool(trace));
  EXPECT_THAT(llvm::toString(trace.takeError()),
              HasSubstr("cannot read the trace 'no/such/trace.csv': "));
}

} // namespace
