//===- Program.cpp - the program that a replay runs -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Replay/Program.h"
#include "fi/Support/File.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/SourceMgr.h"
#include <cmath>

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::inconvertibleErrorCode;

namespace fi::replay {
namespace {

Error makeError(const llvm::Twine &message) {
  return createStringError(inconvertibleErrorCode(), message);
}

template <typename T> std::string print(const T &value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

bool isPlanRole(Role role) { return role <= Role::LastPage; }

} // namespace

std::string printProgram(const ProgramOptions &options) {
  StringRef type = getName(options.type);
  std::string pool = options.order == HeadOrder::HND
                         ? llvm::formatv("?x{0}x{1}x{2}x{3}", options.kvHeads,
                                         options.page, options.dim, type)
                               .str()
                         : llvm::formatv("?x{1}x{0}x{2}x{3}", options.kvHeads,
                                         options.page, options.dim, type)
                               .str();
  std::string text;
  llvm::raw_string_ostream os(text);
  os << llvm::formatv("!kv   = !fi.paged_kv<{0}x{1}x{2}x{3}, {4}>\n",
                      options.page, options.kvHeads, options.dim, type,
                      stringifyHeadOrder(options.order));
  os << "!pool = memref<" << pool << ">\n";
  os << "!ix   = tensor<?xi32>\n";
  os << llvm::formatv("!q    = tensor<?x{0}x{1}x{2}>\n", options.queryHeads,
                      options.dim, type);
  if (options.append)
    os << llvm::formatv("!new  = tensor<?x{0}x{1}x{2}>\n", options.kvHeads,
                        options.dim, type);
  os << llvm::formatv("!lse  = tensor<?x{0}xf32>\n\n", options.queryHeads);
  os << "fi.program @replay\n"
        "    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)\n"
        "    run(%q: !q, "
     << (options.append ? "%newk: !new, %newv: !new, " : "")
     << "%k: !pool, %v: !pool) -> (!q, !lse) {\n"
        "  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, "
        "!ix, !ix)\n"
        "      : !pool, !pool -> !kv\n";
  if (options.append)
    os << "  fi.append %newk, %newv rows(%qo : !ix) to %kv : !new, !new to "
          "!kv\n";
  os << llvm::formatv("  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv "
                      "scale({0:e6})\n",
                      1.0 / std::sqrt(double(options.dim)))
     << "      mask(#fi.causal) : !q over !kv -> !q, !lse\n"
        "  fi.return %o, %lse : !q, !lse\n"
        "}\n";
  return text;
}

llvm::StringRef getName(Role role) {
  static constexpr llvm::StringLiteral names[kRoles] = {
      "qo", "indptr", "pages", "last", "q", "newk", "newv", "k", "v"};
  return names[unsigned(role)];
}

Expected<Program> Program::create(ProgramOp op) {
  Program program;
  program.op = op;
  program.arguments.fill(-1);
  std::string where = "program '" + op.getName().str() + "': ";
  ArrayRef<Type> types = op.getArgumentTypes();
  for (auto [i, type] : llvm::enumerate(types)) {
    std::string name = op.getArgumentName(i);
    bool known = false;
    for (unsigned role = 0; role < kRoles; ++role)
      if (name == replay::getName(Role(role)) &&
          isPlanRole(Role(role)) == op.isPlanArgument(i)) {
        program.arguments[role] = i;
        known = true;
      }
    if (!known)
      return makeError(where +
                       "expected arguments as a replay has them, plan(qo, "
                       "indptr, pages, last) and run(q, newk, newv, k, v), but "
                       "got " +
                       (op.isPlanArgument(i) ? "plan" : "run") + " argument '" +
                       name + "'");
  }
  bool appends = program.getArgument(Role::NewKeys) >= 0 ||
                 program.getArgument(Role::NewValues) >= 0;
  for (unsigned role = 0; role < kRoles; ++role)
    if (program.arguments[role] < 0 &&
        (appends ||
         (Role(role) != Role::NewKeys && Role(role) != Role::NewValues)))
      return makeError(where + "expected an argument '" +
                       replay::getName(Role(role)) +
                       "', but there is none; a replay gives plan(qo, indptr, "
                       "pages, last) and run(q, newk, newv, k, v)");

  PagedKVType view;
  for (PagedViewOp made : op.getBody().getOps<PagedViewOp>()) {
    if (view && view != made.getType())
      return makeError(where + "expected one type of paged view, but got " +
                       print(Type(view)) + " and " + print(made.getType()));
    view = made.getType();
  }
  if (!view)
    return makeError(where + "expected a fi.view.paged, but there is none");
  if (view.getDense() || view.getFused() || view.getTwoTables() ||
      view.getIndex().isInteger(64) ||
      view.getElement() != view.getValueElement() ||
      view.getDim() != view.getValueDimension() || view.getPage() <= 0)
    return makeError(where +
                     "expected a view with a known page size, separate pools "
                     "of one element type and head dim, and one 32-bit table "
                     "by indptr, but got " +
                     print(Type(view)));
  program.page = view.getPage();
  program.kvHeads = view.getHeads();
  program.dim = view.getDim();
  program.order = view.getOrder();
  program.kvType = *getDType(view.getElement());
  program.scale = 1 / std::sqrt(double(program.dim));
  for (AttentionOp attention : op.getBody().getOps<AttentionOp>())
    if (FloatAttr scale = attention.getScaleAttr())
      program.scale = scale.getValueAsDouble();

  for (Role role : {Role::Rows, Role::Indptr, Role::Pages, Role::LastPage}) {
    auto type = dyn_cast<ShapedType>(types[program.getArgument(role)]);
    if (!type || !type.hasRank() || type.getRank() != 1 ||
        !type.getElementType().isInteger(32) || !type.isDynamicDim(0))
      return makeError(where + "expected plan argument '" +
                       replay::getName(role) +
                       "' to be a tensor<?xi32>, but got " +
                       print(types[program.getArgument(role)]));
  }
  // Row tensors: [rows, heads, dim] with rows open.
  auto checkRows = [&](StringRef name, Type type, int64_t heads,
                       std::optional<DType> &element) -> Error {
    auto rows = dyn_cast<ShapedType>(type);
    if (rows && rows.hasRank() && rows.getRank() == 3 && rows.isDynamicDim(0) &&
        !rows.isDynamicDim(1) && (heads == 0 || rows.getDimSize(1) == heads) &&
        rows.getDimSize(2) == program.dim)
      element = getDType(rows.getElementType());
    if (element && isFloat(*element))
      return Error::success();
    return makeError(where + "expected '" + name +
                     "' to be a float tensor of [rows, heads, " +
                     llvm::Twine(program.dim) + "], but got " + print(type));
  };
  std::optional<DType> queryType, newType, outputType;
  Type query = types[program.getArgument(Role::Query)];
  if (Error error = checkRows("q", query, 0, queryType))
    return std::move(error);
  program.queryType = *queryType;
  program.queryHeads = cast<ShapedType>(query).getDimSize(1);
  if (appends)
    for (Role role : {Role::NewKeys, Role::NewValues}) {
      newType.reset();
      if (Error error =
              checkRows(replay::getName(role), types[program.getArgument(role)],
                        program.kvHeads, newType))
        return std::move(error);
      if (*newType != program.kvType)
        return makeError(where + "expected '" + replay::getName(role) +
                         "' to have the element type of the view, " +
                         fi::getName(program.kvType) + ", but got " +
                         fi::getName(*newType));
    }
  ArrayRef<Type> results = op.getResultTypes();
  if (results.empty() || results.size() > 2)
    return makeError(where +
                     "expected results (output) or (output, lse), but "
                     "got " +
                     llvm::Twine(results.size()));
  if (Error error =
          checkRows("result 0", results[0], program.queryHeads, outputType))
    return std::move(error);
  program.outputType = *outputType;
  program.lse = results.size() == 2;
  if (program.lse) {
    auto lse = dyn_cast<RankedTensorType>(results[1]);
    if (!lse || lse.getRank() != 2 || !lse.getElementType().isF32() ||
        lse.getDimSize(1) != program.queryHeads)
      return makeError(
          where + "expected result 1 to be the f32 lse of [rows, " +
          llvm::Twine(program.queryHeads) + "], but got " + print(results[1]));
  }
  return program;
}

std::array<int64_t, 4> Program::getPoolShape(int64_t pages) const {
  if (order == HeadOrder::HND)
    return {pages, kvHeads, page, dim};
  return {pages, page, kvHeads, dim};
}

std::string Program::describe() const {
  std::string types = fi::getName(kvType).str();
  if (queryType != kvType)
    types += " KV, " + fi::getName(queryType).str() + " query";
  return llvm::formatv("{0}, {1}/{2} heads x {3}, page {4} {5}, {6}", types,
                       queryHeads, kvHeads, dim, page,
                       stringifyHeadOrder(order),
                       hasAppend() ? "append and attention in one program"
                                   : "attention; pages filled by the host")
      .str();
}

Expected<LoadedProgram> parseProgram(MLIRContext &context, StringRef text,
                                     StringRef file, StringRef name) {
  if (llvm::Error error = checkNesting(text, file))
    return std::move(error);
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) {
    if (message.empty() ||
        diagnostic.getSeverity() == DiagnosticSeverity::Error)
      message = print(diagnostic.getLocation()) + ": " + diagnostic.str();
    return success();
  });
  llvm::SourceMgr sources;
  sources.AddNewSourceBuffer(llvm::MemoryBuffer::getMemBufferCopy(text, file),
                             llvm::SMLoc());
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(sources, ParserConfig(&context));
  if (!module)
    return makeError(message.empty() ? file + ": not a program" : message);
  ProgramOp found;
  for (ProgramOp op : module->getOps<ProgramOp>()) {
    if (!name.empty() && op.getName() != name)
      continue;
    if (found)
      return makeError(file + ": expected one program, but got '" +
                       found.getName() + "' and '" + op.getName() +
                       "'; choose one by name");
    found = op;
  }
  if (!found)
    return makeError(
        file + ": expected a fi.program" +
        (name.empty() ? llvm::Twine() : " named '" + llvm::Twine(name) + "'") +
        ", but there is none");
  Expected<Program> program = Program::create(found);
  if (!program)
    return program.takeError();
  return LoadedProgram{std::move(module), *program};
}

} // namespace fi::replay
