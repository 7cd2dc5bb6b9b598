//===- GPUVariants.cpp - ways of attending that GPUs are tested with ------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "GPUVariants.h"

using namespace fi;
using namespace fi::test;
using View = AttentionText::View;

void fi::test::PrintTo(const Variant &variant, std::ostream *os) {
  *os << variant.name;
}

std::string fi::test::nameOf(const testing::TestParamInfo<Variant> &info) {
  return info.param.name;
}

std::vector<Variant> fi::test::viewVariants(std::vector<Variant> more) {
  std::vector<Variant> all = {
      {"page1_nhd",
       [](AttentionText &t) {
         t.page = 1;
         t.isHND = false;
       }},
      {"any_page", [](AttentionText &t) { t.isPageDynamic = true; }},
      {"fused",
       [](AttentionText &t) {
         t.isFused = true;
         t.page = 4;
       }},
      {"two_tables", [](AttentionText &t) { t.hasTwoTables = true; }},
      {"two_tables_page1",
       [](AttentionText &t) {
         t.hasTwoTables = true;
         t.page = 1;
         t.valueDim = 32;
       }},
      {"blocks", [](AttentionText &t) { t.view = View::Bsr; }},
      {"small_blocks",
       [](AttentionText &t) {
         t.view = View::Bsr;
         t.blockRows = 5;
         t.blockColumns = 32;
         t.isHND = false;
         t.index = "i64";
       }},
      {"dense_i64",
       [](AttentionText &t) {
         t.view = View::Dense;
         t.index = "i64";
       }},
      {"ragged_nhd",
       [](AttentionText &t) {
         t.view = View::Ragged;
         t.isHND = false;
       }},
      {"ragged_hnd", [](AttentionText &t) { t.view = View::Ragged; }},
      {"origin", [](AttentionText &t) { t.hasOrigin = true; }},
      {"positions", [](AttentionText &t) { t.hasPositions = true; }},
      {"no_statistic", [](AttentionText &t) { t.hasStatistic = false; }},
      {"f32_output", [](AttentionText &t) { t.output = "f32"; }},
      {"group1",
       [](AttentionText &t) {
         t.kvHeads = 3;
         t.group = 1;
       }},
      {"group7", [](AttentionText &t) {
         t.kvHeads = 1;
         t.group = 7;
       }}};
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

Variant fi::test::dimVariant(int64_t key, int64_t value) {
  std::string name = "d" + std::to_string(key);
  if (value != key)
    name += "_" + std::to_string(value);
  return {name, [=](AttentionText &t) {
            t.keyDim = key;
            t.valueDim = value;
            t.kvHeads = 1;
          }};
}

std::vector<Variant> fi::test::clauseVariants(const std::string &schedules) {
  std::pair<const char *, std::string> clauses[] = {
      {"full", ""},
      {"window", "mask(#fi.window<left = 17, right = 3>)"},
      {"any", "mask(#fi.any<#fi.window<left = 3, right = 2>, "
              "#fi.window<right = 0>>)"},
      {"softcap", "score(#fi.softcap<30.0>) mask(#fi.causal)"},
      {"base_e", "normalise(#fi.softmax<base = e>) mask(#fi.causal)"},
      {"sum", "normalise(#fi.sum) mask(#fi.causal)"},
      {"sigmoid", "normalise(#fi.sigmoid<bias = -2.0>) mask(#fi.causal)"},
      {"dilated", maskRegion(kDilatedMask)},
      {"alternating", maskRegion(kAlternatingMask)},
      {"bias", scoreRegion("%d = arith.subi %kp, %qp : index\n"
                           "%i = arith.index_cast %d : index to i32\n"
                           "%f = arith.sitofp %i : i32 to f32\n"
                           "%m = arith.constant 0.03125 : f32\n"
                           "%b = arith.mulf %f, %m : f32\n"
                           "%t = arith.addf %s, %b : f32\nfi.yield %t : f32")}};
  std::vector<Variant> all;
  for (const auto &[name, text] : clauses)
    all.push_back({name, [whole = text + schedules](AttentionText &t) {
                     t.clauses = whole;
                   }});
  return all;
}

void fi::test::checkCaptures(AttentionText text, const std::string &schedules,
                             Case::Maker maker) {
  text.clauses =
      "captures(%sl = %slope : tensor<4xf32>, %pre = %prefix : "
      "tensor<?xi32>)\n" +
      scoreRegion("%m = fi.load %sl[%qh] : tensor<4xf32>\n"
                  "%d = arith.subi %kp, %qp : index\n"
                  "%i = arith.index_cast %d : index to i32\n"
                  "%f = arith.sitofp %i : i32 to f32\n"
                  "%b = arith.mulf %f, %m : f32\n"
                  "%t = arith.addf %s, %b : f32\nfi.yield %t : f32") +
      maskRegion("%n = fi.load %pre[%req] : tensor<?xi32>\n"
                 "%i = arith.index_cast %n : i32 to index\n"
                 "%in = arith.cmpi slt, %kp, %i : index\n"
                 "%c = arith.cmpi sle, %kp, %qp : index\n"
                 "%m = arith.ori %in, %c : i1\nfi.yield %m : i1") +
      schedules;
  text.planArguments = ", %prefix: tensor<?xi32>";
  text.runArguments = ", %slope: tensor<4xf32>";
  // An entry is missing: it reads as 0.
  Case(text.get(), smallBatch())
      .give("prefix", integers({30, 5, 2, 7, 3, 70}))
      .give("slope", floats({0.5, 0.25, 0.125, 0.0625}))
      .on(maker)
      .check(fewPlans());
}
