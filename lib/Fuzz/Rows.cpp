//===- Rows.cpp - random programs of rows alone ---------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gates, rotary embeddings, codes and bits: one op, or codes and the way back.
//
//===----------------------------------------------------------------------===//

#include "Draft.h"

using namespace fi;
using namespace fi::fuzz;

namespace {

class RowsWriter {
public:
  explicit RowsWriter(Draft &draft) : draft(draft) {}

  void gate();
  void rope();
  void codes();
  void bits();
  void segments();

private:
  std::string type(llvm::ArrayRef<int64_t> sizes, const std::string &element) {
    std::string text = isInMemory ? "memref<?x" : "tensor<?x";
    for (int64_t size : sizes)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }
  std::vector<int64_t> shape(llvm::ArrayRef<int64_t> sizes) {
    std::vector<int64_t> whole = {draft.rows};
    whole.insert(whole.end(), sizes.begin(), sizes.end());
    return whole;
  }
  std::string element(const std::string &name) {
    static const char *const elements[] = {"f32", "bf16", "f16"};
    return draft.pick(name, elements);
  }
  void drawRows(llvm::ArrayRef<int64_t> dims) {
    static const int64_t rows[] = {1, 0, 3, 17, 64, 65, 70};
    draft.rows = draft.pick("rows.count", rows);
    heads = draft.heads();
    dim = dims[draft.choose("rows.dim", static_cast<int64_t>(dims.size()))];
    isInMemory = draft.flag("rows.memory", 4);
  }
  /// A result, or a destination in its place.
  struct Place {
    std::string name, type;
  };
  Place place(const std::string &name, llvm::ArrayRef<int64_t> sizes,
              const std::string &element, llvm::json::Value old) {
    std::string text = type(sizes, element);
    if (isInMemory)
      return {draft.run(name, text, std::move(old)), text};
    return {draft.fresh(name), text};
  }
  /// Scales that all rows share.
  Place sharedScales(const std::string &name, int64_t count) {
    std::string text =
        (isInMemory ? "memref<" : "tensor<") + std::to_string(count) + "xf32>";
    if (isInMemory)
      return {draft.run(
                  name, text,
                  llvm::json::Object{{"fill", 1}, {"shape", toJson({count})}}),
              text};
    return {draft.fresh(name), text};
  }
  /// Adds an op whose results are these.
  void add(const std::string &op, const std::string &from,
           llvm::ArrayRef<Place> places) {
    std::string names, types;
    for (const Place &one : places) {
      names += (names.empty() ? "" : ", ") + one.name;
      types += (types.empty() ? "" : ", ") + one.type;
    }
    if (isInMemory)
      return draft.add(op + " outs(" + names + " : " + types + ") : " + from);
    draft.add(names + " = " + op + " : " + from + " -> " + types);
    for (const Place &one : places)
      draft.result(one.name, one.type);
  }

  Draft &draft;
  int64_t heads = 1, dim = 8;
  bool isInMemory = false;
};

} // namespace

void RowsWriter::gate() {
  static const char *const kinds[] = {"silu", "gelu", "gelu_tanh"};
  drawRows({8, 24, 64, 136, 264, 1000});
  std::string x = type({heads, 2 * dim}, element("gate.input"));
  std::string input =
      draft.run("x", x, drawQueries(draft, "x", shape({heads, 2 * dim})));
  Place y = place("y", {heads, dim}, element("gate.output"),
                  normal(1, shape({heads, dim})));
  add("fi.gated " + input + " act(" + draft.pick("gate.act", kinds) + ")", x,
      {y});
}

void RowsWriter::rope() {
  static const char *const scalings[] = {
      "#fi.rotary<10000.0>", "#fi.rotary<10000.0, #fi.linear<factor = 4.0>>",
      "#fi.rotary<500000.0, #fi.llama3<factor = 8.0, low = 1.0, high = 4.0, "
      "context = 8192>>",
      "#fi.rotary<10000.0, #fi.yarn<factor = 4.0, fast = 32.0, slow = 1.0, "
      "context = 4096>>"};
  static const int64_t positions[] = {60, 5000, int64_t(1) << 20,
                                      (int64_t(1) << 31) - 1};
  drawRows({16, 32, 64, 80, 128, 264});
  std::string x = type({heads, dim}, element("rope.input"));
  std::string input =
      draft.run("x", x, drawQueries(draft, "x", shape({heads, dim})));
  std::vector<int64_t> at;
  int64_t most = draft.pick("rope.position", positions);
  for (int64_t i = 0; i < draft.rows; ++i)
    at.push_back((i * 48271 + 11) % most);
  std::string index = draft.indexTensor();
  std::string op =
      "fi.rope " + input + " at(" +
      (draft.flag("rope.planned") ? draft.plan("pos", index, toJson(at))
                                  : draft.run("pos", index, toJson(at))) +
      " : " + index + ") pair<" +
      (draft.flag("rope.interleaved") ? "interleaved>" : "half>");
  if (dim % 16 != 0 || draft.flag("rope.dims", 3))
    op += " dims(" + std::to_string(dim >= 64 ? 32 : 16) + ")";
  op += std::string(" transform(") + draft.pick("rope.scaling", scalings) + ")";
  bool isInPlace = isInMemory && draft.flag("rope.in_place");
  Place y = isInPlace ? Place{input, x}
                      : place("y", {heads, dim}, element("rope.output"),
                              normal(1, shape({heads, dim})));
  add(op, x, {y});
}

void RowsWriter::codes() {
  static const char *const storages[] = {"f8E4M3FN", "f8E5M2", "i8", "nvfp4",
                                         "mxfp4"};
  static const char *const shared[] = {"tensor", "head", "token", "group"};
  drawRows({32, 64, 128, 160, 320, 1024});
  std::string storage = draft.pick("codes.storage", storages);
  bool isNV = storage == "nvfp4", hasBlocks = isNV || storage == "mxfp4";
  std::string per =
      hasBlocks ? (isNV && draft.flag("codes.heads") ? "head" : "tensor")
                : draft.pick("codes.per", shared);
  bool isOfRows = per == "token" || per == "group";
  bool makes = hasBlocks || draft.flag("codes.computed");
  bool takes = hasBlocks ? isNV : !makes;
  int64_t span = isNV ? 16 : hasBlocks ? 32 : per == "group" ? 32 : 0;
  std::string scheme =
      isNV ? "!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN" +
                 std::string(per == "head" ? ", per = head>" : ">")
      : hasBlocks
          ? "!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>"
          : "!fi.scaled<" + storage +
                ", per = " + (per == "group" ? "token" : per) + ", by = f32>";
  std::string clauses = "(" + scheme + ")";
  if (per == "group")
    clauses += " group(" + std::to_string(span) + ")";
  std::string x = type({heads, dim}, element("codes.input"));
  std::string input =
      draft.run("x", x, drawQueries(draft, "x", shape({heads, dim})));
  // Scales of rows, given or made.
  std::vector<int64_t> sizes = {heads};
  if (span)
    sizes.push_back(dim / span);
  // One that all rows share, or each head.
  bool areShared = makes && !hasBlocks && !isOfRows;
  int64_t shares = per == "head" ? heads : 1;
  std::string given, givenType;
  double low = storage == "i8" ? 0.011 : 0.0031;
  if (takes) {
    llvm::json::Object scales{
        {"random", "uniform"}, {"low", low}, {"high", 4 * low}};
    if (!hasBlocks && isOfRows) {
      givenType = type(sizes, "f32");
      scales["shape"] = toJson(shape(sizes));
      given = draft.run("n", givenType, std::move(scales));
    } else if (per == "head") {
      givenType = "tensor<" + std::to_string(heads) + "xf32>";
      given = draft.run("n", givenType, std::move(scales));
    } else {
      givenType = "f32";
      given = draft.run("n", givenType, low);
    }
  }
  int64_t stored = hasBlocks ? dim / 2 : dim;
  std::vector<Place> places = {
      place("c", {heads, stored}, hasBlocks ? "i8" : storage,
            llvm::json::Object{{"fill", 0},
                               {"shape", toJson(shape({heads, stored}))}})};
  if (areShared)
    places.push_back(sharedScales("s", shares));
  else if (makes)
    places.push_back(place(
        "s", sizes,
        isNV        ? "f8E4M3FN"
        : hasBlocks ? "f8E8M0FNU"
                    : "f32",
        llvm::json::Object{{"fill", 1}, {"shape", toJson(shape(sizes))}}));
  add("fi.quantise " + input + " to" + clauses +
          (takes ? " scales(" + given + " : " + givenType + ")" : ""),
      x, places);
  if (!draft.flag("codes.back"))
    return;
  std::string scales = makes ? places[1].name : given,
              types = makes ? places[1].type : givenType;
  if (makes && takes) {
    scales += ", " + given;
    types += ", " + givenType;
  }
  add("fi.dequantise " + places[0].name + " from" + clauses + " scales(" +
          scales + " : " + types + ")",
      places[0].type,
      {place("z", {heads, dim}, element("codes.output"),
             normal(1, shape({heads, dim})))});
}

void RowsWriter::segments() {
  static const int64_t most[] = {1, 9, 64, 400};
  std::string truth = draft.flag("bits.bytes") ? "i8" : "i1";
  isInMemory = draft.flag("rows.memory", 4);
  int64_t longest = draft.pick("segments.longest", most);
  std::vector<int64_t> from = {draft.choose("segments.first", 20)}, to = {0};
  for (int64_t i = 0, n = draft.choose("segments.count", 40); i < n; ++i) {
    int64_t length = (i * 48271 + 11) % (longest + 1);
    from.push_back(from.back() + length);
    to.push_back(to.back() + (length + 7) / 8);
  }
  // What is behind the last segment is nobody's.
  int64_t elements = from.back() + draft.choose("segments.behind", 70);
  int64_t bytes = to.back() + draft.choose("segments.rest", 70);
  auto flat = [&](const std::string &element) {
    return (isInMemory ? "memref<?x" : "tensor<?x") + element + ">";
  };
  std::string x = flat(truth), table = draft.indexTensor();
  std::string input =
      draft.run("x", x,
                llvm::json::Object{{"random", "uniform"},
                                   {"low", truth == "i8" ? -1 : 0},
                                   {"high", 1},
                                   {"shape", toJson({elements})}});
  bool isPlanned = draft.flag("segments.planned");
  auto give = [&](const std::string &name, llvm::ArrayRef<int64_t> entries) {
    return isPlanned ? draft.plan(name, table, toJson(entries))
                     : draft.run(name, table, toJson(entries));
  };
  std::string op = "fi.segment_pack_bits " + input + " from(" +
                   give("from", from) + " : " + table + ") to(" +
                   give("to", to) + " : " + table + ")";
  if (!isInMemory)
    op += " bytes(" + draft.plan("n", "index", bytes) + ")";
  op += draft.flag("bits.big") ? " order(big)" : " order(little)";
  Place y = {isInMemory
                 ? draft.run("y", flat("i8"),
                             llvm::json::Object{{"fill", 0},
                                                {"shape", toJson({bytes})}})
                 : draft.fresh("y"),
             flat("i8")};
  add(op, x, {y});
}

void RowsWriter::bits() {
  if (draft.flag("bits.segments"))
    return segments();
  drawRows({64, 128, 192, 576});
  std::string truth = draft.flag("bits.bytes") ? "i8" : "i1";
  std::string x = type({heads, dim}, truth);
  std::string input =
      draft.run("x", x,
                llvm::json::Object{{"random", "uniform"},
                                   {"low", truth == "i8" ? -1 : 0},
                                   {"high", 1},
                                   {"shape", toJson(shape({heads, dim}))}});
  Place y = place("y", {heads, dim / 8}, "i8",
                  llvm::json::Object{
                      {"fill", 0}, {"shape", toJson(shape({heads, dim / 8}))}});
  add("fi.pack_bits " + input + " order(" +
          (draft.flag("bits.big") ? "big)" : "little)"),
      x, {y});
}

void fi::fuzz::makeRows(Draft &draft, int64_t kind) {
  RowsWriter writer(draft);
  switch (kind) {
  case 1:
    return writer.gate();
  case 2:
    return writer.rope();
  case 3:
    return writer.codes();
  default:
    return writer.bits();
  }
}
