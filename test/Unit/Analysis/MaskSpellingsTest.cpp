//===- MaskSpellingsTest.cpp - one mask, many spellings -------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Spellings of a mask have equal bounds, and these are right and, where they
// can be, tight.
//
//===----------------------------------------------------------------------===//

#include "MaskTesting.h"
#include <gtest/gtest.h>

using namespace fi;
using namespace fi::test;

namespace {

struct Spelling {
  const char *name, *attributes, *body;
};

struct MaskFamily {
  const char *name;
  /// Whether partial tiles are mixed ones, in batches whose plan data is long
  /// enough.
  bool tight;
  Visible visible;
  std::vector<Spelling> spellings;
};

int64_t floorDivide(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int64_t load(const Batch &batch, const char *name,
             std::initializer_list<int64_t> indices) {
  const PlanData &data = batch.data.at(name);
  int64_t offset = 0, d = 0;
  for (int64_t i : indices) {
    if (i < 0 || i >= data.sizes[d])
      return 0;
    offset = offset * data.sizes[d++] + i;
  }
  return data.elements[offset];
}

MaskFamily causal() {
  return {"causal",
          true,
          [](const Batch &, const Position &p) { return p.key <= p.query; },
          {{"attribute", "#fi.causal", ""},
           {"swapped", "", R"(
              %m = arith.cmpi sge, %qp, %kp : index
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %true = arith.constant true
              %h = arith.cmpi sgt, %kp, %qp : index
              %m = arith.xori %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %true = arith.constant true
              %false = arith.constant false
              %h = arith.cmpi slt, %qp, %kp : index
              %m = arith.select %h, %false, %true : i1
              fi.yield %m : i1)"},
           {"shifted", "", R"(
              %c5 = arith.constant 5 : index
              %a = arith.addi %kp, %c5 : index
              %b = arith.addi %c5, %qp : index
              %m = arith.cmpi sle, %a, %b : index
              fi.yield %m : i1)"},
           {"pieces", "", R"(
              %c5 = arith.constant 5 : index
              %b = arith.addi %qp, %c5 : index
              %x = arith.cmpi slt, %kp, %b : index
              %y = arith.cmpi sle, %kp, %qp : index
              %m = arith.andi %x, %y : i1
              fi.yield %m : i1)"},
           {"i32", "", R"(
              %k = arith.index_cast %kp : index to i32
              %q = arith.index_cast %qp : index to i32
              %d = arith.subi %q, %k : i32
              %c0 = arith.constant 0 : i32
              %m = arith.cmpi sge, %d, %c0 : i32
              fi.yield %m : i1)"}}};
}

MaskFamily windowLeft() {
  return {
      "window_left",
      true,
      [](const Batch &, const Position &p) { return p.query - 13 <= p.key; },
      {{"attribute", "#fi.window<left = 13>", ""},
       {"swapped", "", R"(
          %c = arith.constant 13 : index
          %b = arith.subi %qp, %c : index
          %m = arith.cmpi sle, %b, %kp : index
          fi.yield %m : i1)"},
       {"negated", "", R"(
          %c = arith.constant 14 : index
          %true = arith.constant true
          %d = arith.subi %qp, %kp : index
          %h = arith.cmpi sge, %d, %c : index
          %m = arith.xori %h, %true : i1
          fi.yield %m : i1)"},
       {"select", "", R"(
          %c = arith.constant 13 : index
          %true = arith.constant true
          %false = arith.constant false
          %b = arith.addi %kp, %c : index
          %h = arith.cmpi sge, %b, %qp : index
          %m = arith.select %h, %true, %false : i1
          fi.yield %m : i1)"},
       {"shifted", "", R"(
          %c = arith.constant 113 : index
          %d = arith.constant 100 : index
          %a = arith.addi %kp, %c : index
          %b = arith.addi %qp, %d : index
          %m = arith.cmpi sge, %a, %b : index
          fi.yield %m : i1)"},
       {"pieces", "", R"(
          %c = arith.constant 13 : index
          %e = arith.constant 20 : index
          %d = arith.subi %qp, %kp : index
          %x = arith.cmpi sle, %d, %c : index
          %y = arith.cmpi sle, %d, %e : index
          %m = arith.andi %x, %y : i1
          fi.yield %m : i1)"}}};
}

MaskFamily windowRight() {
  return {"window_right",
          true,
          [](const Batch &, const Position &p) { return p.key <= p.query + 5; },
          {{"attribute", "#fi.window<right = 5>", ""},
           {"swapped", "", R"(
              %c = arith.constant 5 : index
              %b = arith.addi %qp, %c : index
              %m = arith.cmpi sge, %b, %kp : index
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %c = arith.constant -5 : index
              %true = arith.constant true
              %d = arith.subi %qp, %kp : index
              %h = arith.cmpi slt, %d, %c : index
              %m = arith.xori %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %c = arith.constant 5 : index
              %k = arith.subi %kp, %c : index
              %h = arith.cmpi sgt, %k, %qp : index
              %r = scf.if %h -> i1 {
                %false = arith.constant false
                scf.yield %false : i1
              } else {
                %true = arith.constant true
                scf.yield %true : i1
              }
              fi.yield %r : i1)"},
           {"shifted", "", R"(
              %c = arith.constant 2 : index
              %d = arith.constant 8 : index
              %a = arith.addi %kp, %c : index
              %b = arith.addi %qp, %d : index
              %m = arith.cmpi slt, %a, %b : index
              fi.yield %m : i1)"},
           {"pieces", "", R"(
              %c = arith.constant 5 : index
              %two = arith.constant 2 : index
              %b = arith.addi %qp, %c : index
              %k2 = arith.muli %kp, %two : index
              %b2 = arith.muli %b, %two : index
              %x = arith.cmpi sle, %k2, %b2 : index
              %y = arith.cmpi sle, %kp, %b : index
              %m = arith.andi %x, %y : i1
              fi.yield %m : i1)"}}};
}

MaskFamily causalWindow() {
  return {"causal_window",
          true,
          [](const Batch &, const Position &p) {
            return p.query - 13 <= p.key && p.key <= p.query;
          },
          {{"attribute", "#fi.causal, #fi.window<left = 13, right = 4>", ""},
           {"both", "#fi.causal", R"(
              %c = arith.constant 13 : index
              %d = arith.subi %qp, %kp : index
              %m = arith.cmpi sge, %c, %d : index
              fi.yield %m : i1)"},
           {"unsigned", "", R"(
              %c = arith.constant 13 : index
              %d = arith.subi %qp, %kp : index
              %m = arith.cmpi ule, %d, %c : index
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %c = arith.constant 13 : index
              %true = arith.constant true
              %b = arith.subi %qp, %c : index
              %x = arith.cmpi slt, %kp, %b : index
              %y = arith.cmpi sgt, %kp, %qp : index
              %h = arith.ori %x, %y : i1
              %m = arith.xori %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %c = arith.constant 13 : index
              %false = arith.constant false
              %b = arith.subi %qp, %c : index
              %x = arith.cmpi sge, %kp, %b : index
              %y = arith.cmpi sle, %kp, %qp : index
              %m = arith.select %x, %y, %false : i1
              fi.yield %m : i1)"},
           {"shifted", "", R"(
              %c = arith.constant 13 : index
              %c9 = arith.constant 9 : index
              %c22 = arith.constant 22 : index
              %k = arith.addi %kp, %c22 : index
              %q = arith.addi %qp, %c9 : index
              %q2 = arith.addi %qp, %c22 : index
              %x = arith.cmpi sge, %k, %q : index
              %y = arith.cmpi sle, %k, %q2 : index
              %m = arith.andi %y, %x : i1
              fi.yield %m : i1)"},
           {"minmax", "", R"(
              %c = arith.constant 13 : index
              %b = arith.subi %qp, %c : index
              %lo = arith.maxsi %b, %kp : index
              %x = arith.cmpi eq, %lo, %kp : index
              %hi = arith.minsi %qp, %kp : index
              %y = arith.cmpi eq, %hi, %kp : index
              %m = arith.andi %y, %x : i1
              fi.yield %m : i1)"}}};
}

MaskFamily window() {
  return {"window",
          true,
          [](const Batch &, const Position &p) {
            return p.query - 13 <= p.key && p.key <= p.query + 5;
          },
          {{"attribute", "#fi.window<left = 13, right = 5>", ""},
           {"swapped", "", R"(
              %c = arith.constant 13 : index
              %d = arith.constant 5 : index
              %a = arith.subi %qp, %c : index
              %b = arith.addi %qp, %d : index
              %x = arith.cmpi sle, %a, %kp : index
              %y = arith.cmpi sge, %b, %kp : index
              %m = arith.andi %x, %y : i1
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %c = arith.constant 13 : index
              %d = arith.constant -5 : index
              %true = arith.constant true
              %e = arith.subi %qp, %kp : index
              %x = arith.cmpi sgt, %e, %c : index
              %y = arith.cmpi slt, %e, %d : index
              %h = arith.ori %x, %y : i1
              %m = arith.cmpi ne, %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %c = arith.constant 13 : index
              %d = arith.constant 5 : index
              %zero = arith.constant 0 : index
              %causal = arith.cmpi sle, %kp, %qp : index
              %before = arith.subi %qp, %kp : index
              %after = arith.subi %kp, %qp : index
              %distance = arith.select %causal, %before, %after : index
              %most = arith.select %causal, %c, %d : index
              %m = arith.cmpi sle, %distance, %most : index
              fi.yield %m : i1)"},
           {"shifted", "", R"(
              %c = arith.constant 13 : index
              %d = arith.constant 18 : index
              %a = arith.addi %kp, %c : index
              %b = arith.addi %qp, %d : index
              %x = arith.cmpi sge, %a, %qp : index
              %y = arith.cmpi sle, %a, %b : index
              %m = arith.andi %x, %y : i1
              fi.yield %m : i1)"},
           {"unsigned", "", R"(
              %c = arith.constant 5 : index
              %d = arith.constant 19 : index
              %a = arith.subi %qp, %kp : index
              %b = arith.addi %a, %c : index
              %m = arith.cmpi ugt, %d, %b : index
              fi.yield %m : i1)"}}};
}

MaskFamily prefix() {
  return {"prefix",
          true,
          [](const Batch &batch, const Position &p) {
            return p.key < load(batch, "pres", {p.request}) || p.key <= p.query;
          },
          {{"plain", "", R"(
              %l = fi.load %pre[%req] : tensor<?xi32>
              %n = arith.index_cast %l : i32 to index
              %x = arith.cmpi slt, %kp, %n : index
              %y = arith.cmpi sle, %kp, %qp : index
              %m = arith.ori %x, %y : i1
              fi.yield %m : i1)"},
           {"swapped", "", R"(
              %l = fi.load %pre[%req] : tensor<?xi32>
              %k = arith.index_cast %kp : index to i32
              %x = arith.cmpi sgt, %l, %k : i32
              %y = arith.cmpi sge, %qp, %kp : index
              %m = arith.ori %y, %x : i1
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %true = arith.constant true
              %l = fi.load %pre[%req] : tensor<?xi32>
              %n = arith.index_cast %l : i32 to index
              %x = arith.cmpi sge, %kp, %n : index
              %y = arith.cmpi sgt, %kp, %qp : index
              %h = arith.andi %x, %y : i1
              %m = arith.xori %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %true = arith.constant true
              %l = fi.load %pre[%req] : tensor<?xi32>
              %n = arith.index_cast %l : i32 to index
              %x = arith.cmpi slt, %kp, %n : index
              %y = arith.cmpi sle, %kp, %qp : index
              %m = arith.select %y, %true, %x : i1
              fi.yield %m : i1)"},
           {"shifted", "", R"(
              %c = arith.constant 4 : index
              %l = fi.load %pre[%req] : tensor<?xi32>
              %n = arith.index_cast %l : i32 to index
              %n4 = arith.addi %n, %c : index
              %k4 = arith.addi %kp, %c : index
              %q4 = arith.addi %qp, %c : index
              %x = arith.cmpi slt, %k4, %n4 : index
              %y = arith.cmpi sle, %k4, %q4 : index
              %m = arith.ori %x, %y : i1
              fi.yield %m : i1)"},
           {"max", "", R"(
              %one = arith.constant 1 : index
              %l = fi.load %pre[%req] : tensor<?xi32>
              %n = arith.index_cast %l : i32 to index
              %last = arith.subi %n, %one : index
              %b = arith.maxsi %last, %qp : index
              %m = arith.cmpi sle, %kp, %b : index
              fi.yield %m : i1)"}}};
}

MaskFamily chunked() {
  return {"chunked",
          true,
          [](const Batch &, const Position &p) {
            return floorDivide(p.query, 16) == floorDivide(p.key, 16);
          },
          {{"plain", "", R"(
              %c = arith.constant 16 : index
              %a = arith.floordivsi %qp, %c : index
              %b = arith.floordivsi %kp, %c : index
              %m = arith.cmpi eq, %a, %b : index
              fi.yield %m : i1)"},
           {"swapped", "", R"(
              %c = arith.constant 16 : index
              %a = arith.floordivsi %qp, %c : index
              %b = arith.floordivsi %kp, %c : index
              %x = arith.cmpi sge, %b, %a : index
              %y = arith.cmpi sge, %a, %b : index
              %m = arith.andi %x, %y : i1
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %true = arith.constant true
              %c = arith.constant 4 : index
              %a = arith.shrsi %qp, %c : index
              %b = arith.shrsi %kp, %c : index
              %h = arith.cmpi ne, %a, %b : index
              %m = arith.xori %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %true = arith.constant true
              %false = arith.constant false
              %c = arith.constant 16 : index
              %zero = arith.constant 0 : index
              %a = arith.floordivsi %qp, %c : index
              %b = arith.floordivsi %kp, %c : index
              %d = arith.subi %b, %a : index
              %h = arith.cmpi eq, %d, %zero : index
              %m = arith.select %h, %true, %false : i1
              fi.yield %m : i1)"},
           {"shifted", "", R"(
              %c = arith.constant 16 : index
              %e = arith.constant 48 : index
              %q = arith.addi %qp, %e : index
              %k = arith.addi %kp, %e : index
              %a = arith.floordivsi %q, %c : index
              %b = arith.floordivsi %k, %c : index
              %m = arith.cmpi eq, %a, %b : index
              fi.yield %m : i1)"},
           {"start", "", R"(
              %c = arith.constant 16 : index
              %a = arith.floordivsi %qp, %c : index
              %lo = arith.muli %a, %c : index
              %hi = arith.addi %lo, %c : index
              %x = arith.cmpi sge, %kp, %lo : index
              %y = arith.cmpi slt, %kp, %hi : index
              %m = arith.andi %x, %y : i1
              fi.yield %m : i1)"}}};
}

/// Necessary bounds only: no tile is full.
MaskFamily dilated() {
  return {"dilated",
          false,
          [](const Batch &, const Position &p) {
            int64_t d = p.query - p.key;
            return d % 2 == 0 && d >= 0 && d <= 20;
          },
          {{"plain", "", R"(
              %two = arith.constant 2 : index
              %zero = arith.constant 0 : index
              %w20 = arith.constant 20 : index
              %d = arith.subi %qp, %kp : index
              %r = arith.remsi %d, %two : index
              %even = arith.cmpi eq, %r, %zero : index
              %x = arith.cmpi sge, %d, %zero : index
              %y = arith.cmpi sle, %d, %w20 : index
              %xy = arith.andi %x, %y : i1
              %m = arith.andi %xy, %even : i1
              fi.yield %m : i1)"},
           {"swapped", "#fi.causal", R"(
              %two = arith.constant 2 : index
              %zero = arith.constant 0 : index
              %w20 = arith.constant -20 : index
              %d = arith.subi %kp, %qp : index
              %r = arith.remsi %d, %two : index
              %even = arith.cmpi eq, %zero, %r : index
              %y = arith.cmpi sle, %w20, %d : index
              %m = arith.andi %even, %y : i1
              fi.yield %m : i1)"},
           {"negated", "", R"(
              %true = arith.constant true
              %two = arith.constant 2 : index
              %zero = arith.constant 0 : index
              %w20 = arith.constant 20 : index
              %d = arith.subi %qp, %kp : index
              %r = arith.remsi %d, %two : index
              %odd = arith.cmpi ne, %r, %zero : index
              %far = arith.cmpi ugt, %d, %w20 : index
              %h = arith.ori %odd, %far : i1
              %m = arith.xori %h, %true : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %false = arith.constant false
              %two = arith.constant 2 : index
              %zero = arith.constant 0 : index
              %w21 = arith.constant 21 : index
              %d = arith.subi %qp, %kp : index
              %r = arith.remsi %d, %two : index
              %even = arith.cmpi eq, %r, %zero : index
              %near = arith.cmpi ult, %d, %w21 : index
              %m = arith.select %near, %even, %false : i1
              fi.yield %m : i1)"},
           {"shifted", "", R"(
              %two = arith.constant 2 : index
              %zero = arith.constant 0 : index
              %c7 = arith.constant 7 : index
              %c27 = arith.constant 27 : index
              %d = arith.subi %qp, %kp : index
              %d7 = arith.addi %d, %c7 : index
              %d8 = arith.addi %d, %two : index
              %r = arith.remsi %d8, %two : index
              %even = arith.cmpi eq, %r, %zero : index
              %x = arith.cmpi sge, %d7, %c7 : index
              %y = arith.cmpi sle, %d7, %c27 : index
              %xy = arith.andi %y, %even : i1
              %m = arith.andi %xy, %x : i1
              fi.yield %m : i1)"}}};
}

/// Documents by a table that is sorted along positions; `type` names it.
MaskFamily documents(const char *name, const std::string &capture,
                     const std::string &table, const std::string &element) {
  // The texts live as long as the tests.
  auto keep = [](std::string text) {
    static std::vector<std::unique_ptr<std::string>> kept;
    kept.push_back(std::make_unique<std::string>(std::move(text)));
    return kept.back()->c_str();
  };
  std::string loads = "%a = fi.load %" + capture + "[%req, %qp] : " + table +
                      "\n%b = fi.load %" + capture + "[%req, %kp] : " + table +
                      "\n";
  std::string argument = capture + "s";
  return {
      name,
      true,
      [argument](const Batch &batch, const Position &p) {
        return load(batch, argument.c_str(), {p.request, p.query}) ==
               load(batch, argument.c_str(), {p.request, p.key});
      },
      {{"plain", "",
        keep(loads + "%m = arith.cmpi eq, %a, %b : " + element +
             "\nfi.yield %m : i1")},
       {"swapped", "",
        keep(loads + "%m = arith.cmpi eq, %b, %a : " + element +
             "\nfi.yield %m : i1")},
       {"negated", "",
        keep(loads + "%t = arith.constant true\n%h = arith.cmpi ne, %a, %b : " +
             element + "\n%m = arith.xori %h, %t : i1\nfi.yield %m : i1")},
       {"select", "",
        keep(loads +
             "%f = arith.constant false\n%x = arith.cmpi sle, %a, %b : " +
             element + "\n%y = arith.cmpi sge, %a, %b : " + element +
             "\n%m = arith.select %x, %y, %f : i1\nfi.yield %m : i1")},
       {"shifted", "",
        keep(loads + "%c = arith.constant 9 : i64\n" +
             (element == "i64" ? std::string("%x = arith.addi %a, %c : i64\n"
                                             "%y = arith.addi %b, %c : i64\n")
                               : "%a1 = arith.extsi %a : i32 to i64\n"
                                 "%b1 = arith.extsi %b : i32 to i64\n"
                                 "%x = arith.addi %a1, %c : i64\n"
                                 "%y = arith.addi %b1, %c : i64\n") +
             "%m = arith.cmpi eq, %x, %y : i64\nfi.yield %m : i1")},
       {"pieces", "",
        keep(loads + "%x = arith.cmpi sle, %b, %a : " + element +
             "\n%y = arith.cmpi sge, %b, %a : " + element +
             "\n%m = arith.andi %x, %y : i1\nfi.yield %m : i1")}}};
}

/// Guards on heads: the first half of the heads sees all that is causal.
MaskFamily headWindows() {
  return {"head_windows",
          true,
          [](const Batch &, const Position &p) {
            return p.key <= p.query && (p.kvHead == 0 || p.query - p.key < 16);
          },
          {{"plain", "#fi.causal", R"(
              %zero = arith.constant 0 : index
              %c = arith.constant 16 : index
              %global = arith.cmpi eq, %kh, %zero : index
              %d = arith.subi %qp, %kp : index
              %near = arith.cmpi slt, %d, %c : index
              %m = arith.ori %global, %near : i1
              fi.yield %m : i1)"},
           {"select", "", R"(
              %zero = arith.constant 0 : index
              %all = arith.constant 100000 : index
              %c = arith.constant 16 : index
              %global = arith.cmpi slt, %kh, %c : index
              %first = arith.cmpi sle, %kh, %zero : index
              %both = arith.andi %first, %global : i1
              %d = arith.subi %qp, %kp : index
              %near = arith.cmpi slt, %d, %c : index
              %true = arith.constant true
              %any = arith.select %both, %true, %near : i1
              %causal = arith.cmpi sge, %d, %zero : index
              %m = arith.andi %any, %causal : i1
              fi.yield %m : i1)"},
           {"if", "#fi.causal", R"(
              %zero = arith.constant 0 : index
              %other = arith.cmpi ne, %kh, %zero : index
              %m = scf.if %other -> i1 {
                %c = arith.constant 15 : index
                %b = arith.addi %kp, %c : index
                %near = arith.cmpi sge, %b, %qp : index
                scf.yield %near : i1
              } else {
                %true = arith.constant true
                scf.yield %true : i1
              }
              fi.yield %m : i1)"}}};
}

std::vector<MaskFamily> families() {
  return {causal(),
          windowLeft(),
          windowRight(),
          window(),
          causalWindow(),
          prefix(),
          chunked(),
          dilated(),
          documents("documents_i32", "doc", "tensor<?x?xi32>", "i32"),
          documents("documents_i64", "wide", "tensor<?x?xi64>", "i64"),
          documents("documents_static", "fixed", "tensor<?x96xi32>", "i32"),
          headWindows()};
}

class MaskSpellings : public testing::TestWithParam<MaskFamily> {};

void PrintTo(const MaskFamily &family, std::ostream *os) { *os << family.name; }

TEST_P(MaskSpellings, MatchBruteForce) {
  const MaskFamily &family = GetParam();
  auto context = makeContext();
  for (bool hasOrigin : {false, true}) {
    std::optional<MaskBounds> first;
    for (const Spelling &spelling : family.spellings) {
      SCOPED_TRACE(spelling.name);
      MaskProgram program(*context, spelling.attributes, spelling.body,
                          hasOrigin);
      ASSERT_TRUE(program);
      MaskBounds bounds = program.analyze();
      SCOPED_TRACE(describe(bounds, *context));
      if (!first)
        first = bounds;
      // Of 32 bits, bounds end where positions that an origin gives leave them.
      bool isNarrow = llvm::StringRef(spelling.body).contains("index to i32");
      if (!hasOrigin || !isNarrow)
        EXPECT_EQ(bounds.toAttr(context.get()), first->toAttr(context.get()))
            << "the first spelling has " << describe(*first, *context);
      EXPECT_EQ(bounds.remarks.empty(), family.tight);

      std::mt19937 random(17);
      int64_t kinds[3] = {0, 0, 0};
      bool readsRegion = std::string(spelling.attributes).empty();
      for (int round = 0; round < 24; ++round) {
        bool isShort = round % 4 == 3;
        Batch batch = makeBatch(random, hasOrigin, isShort);
        int64_t rows = round % 3 ? 8 : 3, keys = round % 2 ? 16 : 5;
        Visible visible = family.visible;
        if (readsRegion)
          visible = [&](const Batch &b, const Position &p) {
            bool sees = program.isVisible(b, p);
            // The text says what the test says.
            EXPECT_EQ(sees, family.visible(b, p));
            return sees;
          };
        forEachTile(batch, rows, keys, visible, [&](const Tile &tile) {
          TileKind kind =
              classifyTile(bounds, tile.context, tile.keyBegin, tile.keyEnd);
          ++kinds[int(kind)];
          EXPECT_FALSE(kind == TileKind::Empty && tile.someVisible);
          EXPECT_FALSE(kind == TileKind::Full && tile.someHidden);
          // Positions before the first and after the last document read 0, so
          // that its keys lie apart.
          bool inside =
              tile.context.position.least >= 0 && !isShort && !hasOrigin;
          if (family.tight && (inside || !isShort) &&
              (inside || std::string(family.name).find("documents") ==
                             std::string::npos)) {
            EXPECT_FALSE(kind == TileKind::Partial &&
                         !(tile.someVisible && tile.someHidden));
          }
        });
        if (HasFailure())
          return;
      }
      // Each kind occurs, or nothing was tested.
      EXPECT_GT(kinds[int(TileKind::Partial)], 0);
      EXPECT_GT(kinds[int(TileKind::Empty)], 0);
      if (family.tight) {
        EXPECT_GT(kinds[int(TileKind::Full)], 0);
      } else {
        EXPECT_EQ(kinds[int(TileKind::Full)], 0);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, MaskSpellings, testing::ValuesIn(families()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

} // namespace
