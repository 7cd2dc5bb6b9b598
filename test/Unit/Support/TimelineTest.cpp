//===- TimelineTest.cpp - tables and pictures of timelines ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Timeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace fi;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string thread(int number, const char *role, int cta, int warp, double from,
                   double to) {
  return "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":3,\"tid\":" +
         std::to_string(number) + ",\"args\":{\"name\":\"a, CTA " +
         std::to_string(cta) + "\",\"kernel\":\"a<b\",\"role\":\"" + role +
         "\",\"launch\":0,\"cta\":" + std::to_string(cta) +
         ",\"warp\":" + std::to_string(warp) +
         ",\"from\":" + std::to_string(from) + ",\"to\":" + std::to_string(to) +
         "}}";
}

std::string span(int number, const char *name, double from, double length,
                 const char *category = "phase") {
  return std::string(",{\"name\":\"") + name +
         "\",\"ph\":\"X\",\"pid\":3,\"tid\":" + std::to_string(number) +
         ",\"cat\":\"" + category + "\",\"ts\":" + std::to_string(from) +
         ",\"dur\":" + std::to_string(length) + "}";
}

std::string trace(const std::string &events, int dropped = 0) {
  return "{\"otherData\":{\"program\":\"p\",\"device\":\"d\",\"marks\":7,"
         "\"dropped\":" +
         std::to_string(dropped) + "},\"traceEvents\":[" + events + "]}";
}

std::string table(const std::string &json) {
  auto text = summarizeTimeline(json);
  return text ? *text : "error: " + llvm::toString(text.takeError());
}
std::string picture(const std::string &json) {
  auto text = plotTimeline(json);
  return text ? *text : "error: " + llvm::toString(text.takeError());
}

TEST(Timeline, SharesAreOfTheTimeOfARolesWarps) {
  std::string events =
      thread(1, "load", 0, 0, 0, 10) + span(1, "copying", 0, 8) + "," +
      thread(2, "compute", 0, 0, 0, 10) + span(2, "item 0", 0, 10, "item") +
      span(2, "prologue", 0, 1) + span(2, "full tiles", 1, 6) + "," +
      thread(3, "compute", 0, 1, 0, 10) + span(3, "prologue", 0, 3) +
      span(3, "full tiles", 3, 4);
  std::string text = table(trace(events));
  EXPECT_THAT(text, HasSubstr("timeline of 'p' on d: 7 marks of 3 warps on 1 "
                              "multiprocessor, 10.00 us\n"));
  EXPECT_THAT(text, HasSubstr("a<b, load: 1 warp, 10.00 us each\n"));
  EXPECT_THAT(text,
              HasSubstr("copying                 80.0 %         1 times,     "
                        "8.000 us\n    (between phases)        20.0 %\n"));
  EXPECT_THAT(text, HasSubstr("a<b, compute: 2 warps, 10.00 us each\n"));
  EXPECT_THAT(text,
              HasSubstr("prologue                20.0 %         2 times"));
  EXPECT_THAT(text,
              HasSubstr("full tiles              50.0 %         2 times"));
  EXPECT_THAT(text, HasSubstr("(between phases)        30.0 %"));
  EXPECT_THAT(text, Not(HasSubstr("DID NOT FIT")));
  EXPECT_THAT(table(trace(events, 5)),
              HasSubstr("5 MARKS DID NOT FIT into the log"));
}

/// A row for the first warp of each role; CTAs of a multiprocessor that come
/// one after another share rows, and those side by side have their own.
TEST(Timeline, PicturesHaveRowsOfMultiprocessors) {
  auto rows = [](const std::string &svg) {
    size_t count = 0;
    for (size_t at = 0; (at = svg.find("class=\"lane\"", at)) != svg.npos; ++at)
      ++count;
    return count;
  };
  std::string first = thread(1, "", 0, 0, 0, 10) + span(1, "x<y", 0, 8) +
                      span(1, "request 1", 0, 8, "item") +
                      ",{\"name\":\"now\",\"ph\":\"i\",\"pid\":3,\"tid\":1,"
                      "\"cat\":\"moment\",\"ts\":4.0}";
  std::string svg = picture(trace(first + "," + thread(2, "", 1, 0, 10, 20) +
                                  "," + thread(3, "", 1, 1, 10, 20)));
  EXPECT_EQ(rows(svg), 1u);
  EXPECT_THAT(svg, HasSubstr("x&lt;y"));
  EXPECT_THAT(svg, HasSubstr("<title>request 1</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>now</title>"));
  EXPECT_THAT(svg, HasSubstr("SM 3"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_EQ(rows(picture(trace(first + "," + thread(2, "", 1, 0, 5, 20)))), 2u);
  EXPECT_EQ(rows(picture(trace(first + "," + thread(2, "r", 1, 0, 10, 20)))),
            2u);
}

TEST(Timeline, EmptyOnesAreTold) {
  EXPECT_THAT(table(trace("")), HasSubstr("0.00 us"));
  EXPECT_THAT(picture(trace("")), HasSubstr("</svg>"));
  EXPECT_THAT(picture(trace(thread(1, "", 0, 0, 0, 0))), Not(HasSubstr("nan")));
}

TEST(Timeline, MalformedIsASentence) {
  for (auto *tell : {&table, &picture}) {
    EXPECT_THAT((*tell)("{"), HasSubstr("error: 'timeline' is not JSON"));
    EXPECT_EQ((*tell)("[]"),
              "error: timeline: expected an object with an array "
              "'traceEvents'");
    EXPECT_EQ((*tell)(trace("1")),
              "error: timeline: expected events that are objects");
    EXPECT_EQ(
        (*tell)(trace("{\"name\":\"x\",\"ph\":\"X\",\"tid\":1,\"ts\":1e308,"
                      "\"dur\":1e308}")),
        "error: timeline: expected times that are finite");
  }
}

} // namespace
