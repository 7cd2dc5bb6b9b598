//===- Regions.cpp - operations of random regions -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Masks are any expression of integers, which all backends must agree on
// exactly. Scores are continuous in the score and do not amplify its error, so
// that the numeric contract holds for them; what is not continuous in them
// depends on integers.
//
//===----------------------------------------------------------------------===//

#include "Draft.h"
#include "llvm/ADT/StringExtras.h"
#include <algorithm>

using namespace fi;
using namespace fi::fuzz;

namespace {

class RegionWriter {
public:
  RegionWriter(Draft &draft, Captures &captures, bool isTransform = false)
      : draft(draft), captures(captures), isTransform(isTransform) {}

  std::string integer(const std::string &path, int depth);
  std::string boolean(const std::string &path, int depth);
  std::string real(const std::string &path, int depth);
  void pair(const std::string &path);

  /// An operation; returns its result.
  std::string op(const std::string &text) {
    std::string name = "%t" + std::to_string(counter++);
    out += "      " + name + " = " + text + "\n";
    return name;
  }
  void end(const std::string &text) { out += "      " + text + "\n"; }
  std::string take() { return std::move(out); }

private:
  std::string constant(int64_t value, const std::string &type = "index") {
    return op("arith.constant " + std::to_string(value) + " : " + type);
  }
  std::string number(const char *value) {
    return op(std::string("arith.constant ") + value + " : f32");
  }
  std::string leaf(const std::string &path);
  /// -7 to 7 as f32.
  std::string smallFloat(const std::string &integer);
  /// Both branches of a condition, as scf.if.
  template <typename Make>
  std::string branch(const std::string &condition, const std::string &type,
                     Make make);
  /// The name of a captured value in the region.
  std::string capture(const std::string &name, const std::string &type,
                      llvm::json::Value value, bool isPlan);
  std::string requestTable();
  std::string positionTable();
  std::string bits();
  std::string headTable();
  std::string row(const std::string &table, const std::string &index,
                  const std::string &type) {
    return op("fi.load " + table + "[" + index + "] : " + type);
  }
  std::string head() const { return isTransform ? "%head" : "%qh"; }

  Draft &draft;
  Captures &captures;
  bool isTransform;
  std::string out;
  int counter = 0;
};

//===----------------------------------------------------------------------===//
// Captures
//===----------------------------------------------------------------------===//

std::string RegionWriter::capture(const std::string &name,
                                  const std::string &type,
                                  llvm::json::Value value, bool isPlan) {
  // Attentions have captures of their own; '.' ends the scope of one.
  std::string base = draft.scope + name;
  std::replace(base.begin(), base.end(), '.', '_');
  // An attribute of the argument is no part of the type.
  std::string plain = type.substr(0, type.find(" {"));
  std::string from = isPlan ? draft.plan(base, type, std::move(value))
                            : draft.run(base, type, std::move(value));
  std::string clause = "%c_" + name + " = " + from + " : " + plain;
  if (!llvm::is_contained(captures.clauses, clause))
    captures.clauses.push_back(clause);
  return "%c_" + name;
}

static std::string tableElement(Draft &draft, const std::string &name) {
  static const char *const elements[] = {"i32", "i64", "i32", "i8", "index"};
  return draft.pick(name, elements);
}

std::string RegionWriter::requestTable() {
  std::string element = tableElement(draft, "table.element");
  // An entry is missing: it reads as 0.
  int64_t missing = draft.rarely("table.missing", 3, 2);
  llvm::json::Array values;
  for (int64_t r = 0; r + missing < captures.requests; ++r)
    values.push_back((r * 29 + 7) % 61);
  std::string type = "tensor<?x" + element + ">";
  std::string value = op(
      "fi.load " +
      capture("table", type, std::move(values), !draft.flag("table.run", 3)) +
      "[%req] : " + type);
  return element == "index"
             ? value
             : op("arith.index_cast " + value + " : " + element + " to index");
}

std::string RegionWriter::positionTable() {
  // Documents of 1 to 20 tokens, in order or in any.
  bool isSorted = !draft.flag("document.any");
  bool isMarked = isSorted && draft.flag("document.sorted");
  std::vector<std::vector<int64_t>> table;
  for (int64_t r = 0; r < captures.requests; ++r) {
    std::vector<int64_t> &ids = table.emplace_back();
    for (int64_t k = 0, id = r % 2, left = 3; k < captures.positions;
         ++k, --left) {
      if (left == 0) {
        ++id;
        left = 1 + (id * 17 + r * 5) % 20;
      }
      ids.push_back(isSorted ? id : (k * 7 + r) % 5);
    }
  }
  std::string type = "tensor<?x?xi32>";
  bool isPlan = isMarked || !draft.flag("document.run", 3);
  return capture("document", type + (isMarked ? " {fi.sorted}" : ""),
                 toJson(table, captures.positions), isPlan);
}

std::string RegionWriter::bits() {
  std::vector<std::vector<int64_t>> table;
  for (int64_t r = 0; r < captures.requests; ++r) {
    table.emplace_back();
    for (int64_t k = 0; k < captures.positions; ++k)
      table.back().push_back((r * 7 + k * k) % 3 != 0);
  }
  return capture("bits", "tensor<?x?xi1>", toJson(table, captures.positions),
                 !draft.flag("bits.run", 3));
}

std::string RegionWriter::headTable() {
  std::string type = "tensor<" + std::to_string(draft.heads()) + "xf32>";
  return capture("slope", type, normal(1, {}), false);
}

//===----------------------------------------------------------------------===//
// Integers and conditions
//===----------------------------------------------------------------------===//

std::string RegionWriter::leaf(const std::string &path) {
  static const int64_t constants[] = {0, 1, 2, 3, 8, 17, 64, -1, -5};
  switch (draft.choose(path + ".leaf", isTransform ? 5 : 11)) {
  case 0:
    return isTransform ? "%pos" : "%kp";
  case 1:
    return isTransform ? "%pair" : "%qp";
  case 2:
    return constant(draft.pick(path + ".constant", constants));
  case 3:
    return "%req";
  case 4:
    return head();
  case 5:
    return "%kh";
  case 6:
    return requestTable();
  case 7: {
    std::string value = row(positionTable(), "%req, %kp", "tensor<?x?xi32>");
    return op("arith.index_cast " + value + " : i32 to index");
  }
  case 8: {
    std::string value = row(positionTable(), "%req, %qp", "tensor<?x?xi32>");
    return op("arith.index_cast " + value + " : i32 to index");
  }
  case 9:
    return capture("width", "index", 9, !draft.flag("width.run", 3));
  default:
    return op("arith.subi %qp, %kp : index");
  }
}

std::string RegionWriter::integer(const std::string &path, int depth) {
  static const char *const binary[] = {
      "arith.addi",      "arith.subi",       "arith.muli",      "arith.maxsi",
      "arith.minsi",     "arith.divsi",      "arith.remsi",     "arith.divui",
      "arith.remui",     "arith.floordivsi", "arith.ceildivsi", "arith.andi",
      "arith.ori",       "arith.xori",       "arith.ceildivui", "arith.maxui",
      "arith.minui",     "index.add",        "index.sub",       "index.maxs",
      "index.floordivs", "index.rems",       "index.divu",      "index.mins"};
  static const char *const narrow[] = {
      "arith.addi",  "arith.subi",       "arith.muli",     "arith.maxsi",
      "arith.divsi", "arith.remsi",      "arith.divui",    "arith.remui",
      "arith.andi",  "arith.floordivsi", "arith.ceildivsi"};
  int64_t kind = depth > 0 ? draft.choose(path + "/op", 7) : 0;
  switch (kind) {
  case 1:
  case 2: {
    std::string name = draft.pick(path + "/binary", binary);
    std::string a = integer(path + "/0", depth - 1),
                b = integer(path + "/1", depth - 1);
    bool isIndex = name[0] == 'i';
    return op(name + " " + a + ", " + b + (isIndex ? "" : " : index"));
  }
  case 3: {
    std::string c = boolean(path + "/0", depth - 1),
                a = integer(path + "/1", depth - 1),
                b = integer(path + "/2", depth - 1);
    return op("arith.select " + c + ", " + a + ", " + b + " : index");
  }
  case 4: { // In 32 bits, where it may wrap.
    std::string name = draft.pick(path + "/narrow", narrow);
    std::string a = op("arith.index_cast " + integer(path + "/0", depth - 1) +
                       " : index to i32"),
                b = op("arith.index_cast " + integer(path + "/1", depth - 1) +
                       " : index to i32");
    std::string value = op(name + " " + a + ", " + b + " : i32");
    return op(std::string(draft.flag(path + "/unsigned", 3)
                              ? "arith.index_castui "
                              : "arith.index_cast ") +
              value + " : i32 to index");
  }
  case 5: {
    static const char *const shifts[] = {"arith.shrsi", "arith.shrui",
                                         "arith.shli"};
    static const int64_t by[] = {0, 1, 3, 31, 32, 63};
    std::string a = integer(path + "/0", depth - 1);
    std::string name = draft.pick(path + "/shift", shifts);
    return op(name + " " + a + ", " + constant(draft.pick(path + "/by", by)) +
              " : index");
  }
  case 6: {
    std::string condition = boolean(path + "/0", depth - 1);
    return branch(condition, "index", [&](bool isElse) {
      return integer(path + (isElse ? "/2" : "/1"), depth - 1);
    });
  }
  default:
    return leaf(path);
  }
}

template <typename Make>
std::string RegionWriter::branch(const std::string &condition,
                                 const std::string &type, Make make) {
  std::string name = "%t" + std::to_string(counter++);
  out += "      " + name + " = scf.if " + condition + " -> (" + type + ") {\n";
  std::string value = make(false);
  out += "      scf.yield " + value + " : " + type + "\n      } else {\n";
  value = make(true);
  out += "      scf.yield " + value + " : " + type + "\n      }\n";
  return name;
}

std::string RegionWriter::boolean(const std::string &path, int depth) {
  static const char *const predicates[] = {"sge", "sle", "sgt", "slt", "eq",
                                           "ne",  "ult", "ule", "ugt", "uge"};
  auto two = [&](const char *name) {
    std::string a = boolean(path + "/0", depth - 1),
                b = boolean(path + "/1", depth - 1);
    return op(std::string(name) + " " + a + ", " + b + " : i1");
  };
  switch (depth > 0 ? draft.choose(path + "/test", 10) : 0) {
  case 1:
    return two("arith.andi");
  case 2:
    return two("arith.ori");
  case 3: {
    std::string a = boolean(path + "/0", depth - 1);
    std::string yes = op("arith.constant true");
    return op("arith.xori " + a + ", " + yes + " : i1");
  }
  case 4: {
    std::string c = boolean(path + "/0", depth - 1),
                a = boolean(path + "/1", depth - 1),
                b = boolean(path + "/2", depth - 1);
    return op("arith.select " + c + ", " + a + ", " + b + " : i1");
  }
  case 5: {
    std::string condition = boolean(path + "/0", depth - 1);
    return branch(condition, "i1", [&](bool isElse) {
      return boolean(path + (isElse ? "/2" : "/1"), depth - 1);
    });
  }
  case 6:
    if (isTransform)
      return op("arith.constant true");
    return row(bits(), draft.flag(path + "/qp") ? "%req, %qp" : "%req, %kp",
               "tensor<?x?xi1>");
  case 7:
    return two("arith.xori");
  case 8: {
    std::string a = op("arith.index_cast " + integer(path + "/0", depth - 1) +
                       " : index to i32"),
                b = op("arith.index_cast " + integer(path + "/1", depth - 1) +
                       " : index to i32");
    return op(std::string("arith.cmpi ") +
              draft.pick(path + "/predicate", predicates) + ", " + a + ", " +
              b + " : i32");
  }
  case 9:
    return op(std::string("arith.constant ") +
              (draft.flag(path + "/false") ? "false" : "true"));
  default: {
    std::string predicate = draft.pick(path + "/predicate", predicates);
    std::string a = integer(path + "/0", depth - 1),
                b = integer(path + "/1", depth - 1);
    if (draft.flag(path + "/index", 4))
      return op("index.cmp " + predicate + "(" + a + ", " + b + ")");
    return op("arith.cmpi " + predicate + ", " + a + ", " + b + " : index");
  }
  }
}

//===----------------------------------------------------------------------===//
// Scores
//===----------------------------------------------------------------------===//

std::string RegionWriter::smallFloat(const std::string &value) {
  std::string small =
      op("arith.remsi " + value + ", " + constant(8) + " : index");
  std::string narrow = op("arith.index_cast " + small + " : index to i32");
  return op("arith.sitofp " + narrow + " : i32 to f32");
}

std::string RegionWriter::real(const std::string &path, int depth) {
  static const char *const factors[] = {"0.5", "-1.0", "1.0", "0.0", "-0.25"};
  static const char *const terms[] = {"0.5", "-1.0", "2.0"};
  switch (depth > 0 ? draft.choose(path + "/real", 14) : 0) {
  case 1: {
    std::string a = real(path + "/0", depth - 1);
    return op("arith.mulf " + a + ", " +
              number(draft.pick(path + "/factor", factors)) + " : f32");
  }
  case 2: {
    std::string a = real(path + "/0", depth - 1);
    return op(std::string(draft.flag(path + "/minus") ? "arith.subf "
                                                      : "arith.addf ") +
              a + ", " + number(draft.pick(path + "/term", terms)) + " : f32");
  }
  case 3: { // A bias by distance or by anything else.
    std::string a = real(path + "/0", depth - 1);
    std::string slope =
        row(headTable(), "%qh",
            "tensor<" + std::to_string(draft.heads()) + "xf32>");
    std::string by = smallFloat(integer(path + "/1", depth - 1));
    return op("arith.addf " + a + ", " +
              op("arith.mulf " + slope + ", " + by + " : f32") + " : f32");
  }
  case 4: { // A bias in a table, whose end may be passed.
    static const char *const elements[] = {"f32", "bf16", "f16"};
    std::string element = draft.pick("bias.element", elements);
    std::string heads = std::to_string(draft.heads());
    std::string type = "tensor<" + heads + "x?x" + element + ">";
    std::string a = real(path + "/0", depth - 1);
    std::string table =
        capture("bias", type, normal(1, {draft.heads(), 50}), false);
    std::string value =
        row(table, "%qh, " + integer(path + "/1", depth - 1), type);
    if (element != "f32")
      value = op("arith.extf " + value + " : " + element + " to f32");
    return op("arith.addf " + a + ", " + value + " : f32");
  }
  case 5: {
    std::string t = op("math.tanh " + real(path + "/0", depth - 1) + " : f32");
    return op("arith.mulf " + t + ", " + number("0.5") + " : f32");
  }
  case 6: {
    static const char *const bounds[] = {"arith.minimumf", "arith.maximumf",
                                         "arith.minnumf", "arith.maxnumf"};
    std::string a = real(path + "/0", depth - 1);
    std::string name = draft.pick(path + "/bound", bounds);
    return op(name + " " + a + ", " +
              number(draft.pick(path + "/term", terms)) + " : f32");
  }
  case 7: {
    std::string c = boolean(path + "/2", depth - 1),
                a = real(path + "/0", depth - 1),
                b = real(path + "/1", depth - 1);
    return op("arith.select " + c + ", " + a + ", " + b + " : f32");
  }
  case 8: {
    std::string a = real(path + "/0", depth - 1),
                b = real(path + "/1", depth - 1);
    std::string sum = op("arith.addf " + a + ", " + b + " : f32");
    return op("arith.mulf " + sum + ", " + number("0.5") + " : f32");
  }
  case 9:
    return op((draft.flag(path + "/abs") ? "math.absf " : "arith.negf ") +
              real(path + "/0", depth - 1) + " : f32");
  case 10: {
    std::string condition = boolean(path + "/2", depth - 1);
    return branch(condition, "f32", [&](bool isElse) {
      return real(path + (isElse ? "/1" : "/0"), depth - 1);
    });
  }
  case 11: { // Functions of 1 + |x| that grow more slowly than x.
    static const char *const functions[] = {"math.sqrt", "math.rsqrt",
                                            "math.log", "math.log2"};
    std::string a = op("math.absf " + real(path + "/0", depth - 1) + " : f32");
    std::string more = op("arith.addf " + a + ", " + number("1.0") + " : f32");
    std::string name = draft.pick(path + "/function", functions);
    std::string value = op(name + " " + more + " : f32");
    return op("arith.mulf " + value + ", " + number("0.5") + " : f32");
  }
  case 12: { // Functions of -|x| below 1.
    static const char *const functions[] = {"math.exp", "math.exp2",
                                            "math.sin", "math.cos",
                                            "math.erf", "math.atan"};
    std::string a = op("math.absf " + real(path + "/0", depth - 1) + " : f32");
    std::string minus = op("arith.negf " + a + " : f32");
    std::string name = draft.pick(path + "/function", functions);
    std::string value = op(name + " " + minus + " : f32");
    return op("arith.mulf " + value + ", " + number("0.5") + " : f32");
  }
  case 13: {
    std::string a = real(path + "/0", depth - 1);
    return op("math.fma " + a + ", " + number("0.5") + ", " + number("1.0") +
              " : f32");
  }
  default:
    return "%s";
  }
}

//===----------------------------------------------------------------------===//
// Transforms
//===----------------------------------------------------------------------===//

void RegionWriter::pair(const std::string &path) {
  std::string a = "%x", b = "%y";
  switch (draft.choose(path + ".pair", 7)) {
  case 1: { // Rotated by pos * 2^-pair.
    std::string i = op("arith.index_cast %pair : index to i32");
    std::string f = op("arith.sitofp " + i + " : i32 to f32");
    std::string minus = op("arith.negf " + f + " : f32");
    std::string rate = op("math.exp2 " + minus + " : f32");
    std::string p = op("arith.index_cast %pos : index to i32");
    std::string pf = op("arith.sitofp " + p + " : i32 to f32");
    std::string angle = op("arith.mulf " + pf + ", " + rate + " : f32");
    std::string c = op("math.cos " + angle + " : f32"),
                s = op("math.sin " + angle + " : f32");
    std::string xc = op("arith.mulf %x, " + c + " : f32"),
                ys = op("arith.mulf %y, " + s + " : f32"),
                xs = op("arith.mulf %x, " + s + " : f32"),
                yc = op("arith.mulf %y, " + c + " : f32");
    a = op("arith.subf " + xc + ", " + ys + " : f32");
    b = op("arith.addf " + xs + ", " + yc + " : f32");
    break;
  }
  case 2: // A quarter turn.
    a = op("arith.negf %y : f32");
    b = "%x";
    break;
  case 3: { // A gain for each head.
    std::string type = "tensor<" + std::to_string(draft.heads()) + "xf32>";
    std::string gain = row(headTable(), "%head", type);
    a = op("arith.mulf %x, " + gain + " : f32");
    b = op("arith.mulf %y, " + gain + " : f32");
    break;
  }
  case 4: { // Where a condition of integers holds.
    std::string condition = boolean(path, 2);
    std::string name = "%u" + std::to_string(counter++);
    out += "      " + name + ":2 = scf.if " + condition +
           " -> (f32, f32) {\n      " + name + "n = arith.negf %y : f32\n" +
           "      scf.yield " + name + "n, %x : f32, f32\n      } else {\n" +
           "      scf.yield %x, %y : f32, f32\n      }\n";
    a = name + "#0";
    b = name + "#1";
    break;
  }
  case 5: { // A table of cosines and sines by position; zeros behind its end.
    std::string type = "tensor<?x?xf32>";
    std::string table = capture("cosines", type, normal(0.7, {60, 8}), false);
    std::string c = row(table, "%pos, %pair", type);
    a = op("arith.mulf %x, " + c + " : f32");
    b = op("arith.mulf %y, " + c + " : f32");
    break;
  }
  case 6: { // Of nothing that it is given but integers.
    std::string f = smallFloat(integer(path, 2));
    a = op("arith.mulf " + f + ", " + number("0.125") + " : f32");
    b = number("0.5");
    break;
  }
  default:
    break;
  }
  end("fi.yield " + a + ", " + b + " : f32, f32");
}

} // namespace

std::string fi::fuzz::drawScoreRegion(Draft &draft, Captures &captures) {
  RegionWriter writer(draft, captures);
  std::string value = writer.real("score:", 3);
  if (draft.flag("score.hides", 5)) {
    std::string condition = writer.boolean("score.hides:", 2);
    std::string none = writer.op("arith.constant 0xFF800000 : f32");
    value = writer.op("arith.select " + condition + ", " + value + ", " + none +
                      " : f32");
  }
  writer.end("fi.yield " + value + " : f32");
  return writer.take();
}

std::string fi::fuzz::drawMaskRegion(Draft &draft, Captures &captures) {
  RegionWriter writer(draft, captures);
  std::string value = writer.boolean("mask:", 3);
  writer.end("fi.yield " + value + " : i1");
  return writer.take();
}

std::string fi::fuzz::drawTransforms(Draft &draft, Captures &captures) {
  int64_t sides = draft.rarely("transform", 4, 4);
  if (sides == 0)
    return "";
  std::string text = draft.flag("pair") ? "pair<interleaved> " : "pair<half> ";
  for (bool isKey : {false, true}) {
    if (!(sides & (isKey ? 2 : 1)))
      continue;
    std::string name = isKey ? "key" : "query";
    RegionWriter writer(draft, captures, /*isTransform=*/true);
    writer.pair("transform." + name);
    text += name +
            "(%x: f32, %y: f32, %pair: index, %req: index, %head: index, "
            "%pos: index) {\n" +
            writer.take() + "    } ";
  }
  return text;
}
