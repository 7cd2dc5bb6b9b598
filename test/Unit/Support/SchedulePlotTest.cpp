//===- SchedulePlotTest.cpp - pictures of schedules -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/SchedulePlot.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace fi;
using testing::HasSubstr;
using testing::Not;

namespace {

std::string item(int phase, int request, double cost, bool isMerge = false) {
  return "{\"phase\":" + std::to_string(phase) +
         ",\"stage\":0,\"merge\":" + (isMerge ? "true" : "false") +
         ",\"request\":" + std::to_string(request) +
         ",\"kv_head\":1,\"row_begin\":0,\"row_count\":16,\"slots\":2,"
         "\"cost\":" +
         std::to_string(cost) +
         ",\"ranges\":[{\"begin\":0,\"end\":64,\"full\":true},{\"begin\":64,"
         "\"end\":70,\"full\":false}]}";
}

std::string schedule(std::vector<std::string> workers) {
  std::string text =
      R"({"program":"a<b","stages":[{"name":"attention0","op":"attention"}],)"
      R"("workers":[)";
  for (size_t i = 0; i < workers.size(); ++i)
    text += (i ? "," : "") + ("{\"items\":[" + workers[i] + "]}");
  return text + "]}";
}

std::string plot(std::string json) {
  auto picture = plotSchedule(json);
  return picture ? *picture : "error: " + llvm::toString(picture.takeError());
}

TEST(SchedulePlot, DrawsLanesItemsAndLegend) {
  std::string picture = plot(schedule(
      {item(0, 0, 300) + "," + item(1, 0, 20, true), item(0, -1, 100)}));
  EXPECT_THAT(picture, HasSubstr("a&lt;b"));
  EXPECT_THAT(picture, HasSubstr("3 items on 2 workers"));
  EXPECT_THAT(picture, HasSubstr("R0 h1 rows 0-15 keys 0-69"));
  EXPECT_THAT(
      picture,
      HasSubstr("keys 0 to 69 (64 in full tiles, 6 masked or partial)"));
  EXPECT_THAT(picture, HasSubstr("merge of 2 pieces"));
  EXPECT_THAT(picture, HasSubstr("padding</text>"));
  EXPECT_THAT(picture, HasSubstr("100 %"));
  // Of 320 units, worker 1 is busy for 100.
  EXPECT_THAT(picture, HasSubstr("31 %"));
  EXPECT_THAT(picture, Not(HasSubstr("nan")));
}

TEST(SchedulePlot, EmptySchedulesAreDrawn) {
  EXPECT_THAT(plot(schedule({})), HasSubstr("0 items on 0 workers"));
  EXPECT_THAT(plot(schedule({"", ""})), HasSubstr("</svg>"));
  EXPECT_THAT(plot(schedule({item(0, 0, 0)})), Not(HasSubstr("nan")));
}

TEST(SchedulePlot, MalformedIsASentence) {
  EXPECT_THAT(plot("{"), HasSubstr("error: 'schedule' is not JSON"));
  EXPECT_THAT(plot("[]"), HasSubstr("error: schedule: expected an object"));
  EXPECT_THAT(plot(R"({"workers": [1]})"), HasSubstr("error: "));
  EXPECT_THAT(plot(schedule({item(0, 0, -1)})),
              HasSubstr("a cost of at least"));
}

TEST(SchedulePlot, ManyNarrowItemsBecomeFew) {
  std::string items = item(0, 0, 1e9);
  for (int i = 0; i < 5000; ++i)
    items += "," + item(0, 1, 1);
  EXPECT_LT(plot(schedule({items})).size(), 20000u);
}

} // namespace
