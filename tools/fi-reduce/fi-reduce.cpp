//===- fi-reduce.cpp - makes a failing text smaller -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Takes operations, regions and attributes out of a module of any level, many
// at once and then single ones, while the module stays valid and a script says
// that what is left is still of interest. docs/embedding.md is the manual.
//
//===----------------------------------------------------------------------===//

#include "ToolMain.h"
#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Program.h"

using namespace mlir;
using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
namespace cl = llvm::cl;

static cl::OptionCategory category("Options of fi-reduce");
static cl::opt<std::string> inputPath(cl::Positional, cl::Required,
                                      cl::desc("FILE.mlir"), cl::cat(category));
static cl::opt<std::string>
    testPath("test", cl::value_desc("program"), cl::Required, cl::cat(category),
             cl::desc("Run with the path of a text; ends with 0 while the text "
                      "is of interest"));
static cl::opt<std::string> outputPath("o", cl::value_desc("file"),
                                       cl::init("-"), cl::cat(category),
                                       cl::desc("Where the rest is written"));
static cl::opt<unsigned> limit("limit", cl::value_desc("n"), cl::init(2000),
                               cl::cat(category),
                               cl::desc("Most runs of the test (2000)"));

namespace {

/// One thing that can be taken out, named by its place: operations are counted
/// from the module on, before those inside of them.
struct Part {
  enum Kind { Op, Region, Attribute } kind;
  unsigned op;
  /// The region's number.
  unsigned region = 0;
  /// The attribute's name.
  std::string attribute = {};
};

class Reducer {
public:
  Reducer(OwningOpRef<ModuleOp> module, std::string program)
      : best(std::move(module)), program(std::move(program)) {}

  /// False if not even the whole is of interest.
  Expected<bool> run();
  ModuleOp getModule() { return *best; }
  unsigned getRuns() const { return runs; }

private:
  std::vector<Part> getParts(Part::Kind kind);
  /// Takes parts out of a copy, and keeps that if it is of interest.
  Expected<bool> attempt(ArrayRef<Part> parts);
  Expected<bool> reduce(Part::Kind kind);
  Expected<bool> isOfInterest(ModuleOp module);

  OwningOpRef<ModuleOp> best;
  std::string program;
  unsigned runs = 0;
};

} // namespace

static SmallVector<Operation *> getOps(ModuleOp module) {
  SmallVector<Operation *> ops;
  module->walk<WalkOrder::PreOrder>([&](Operation *op) { ops.push_back(op); });
  return ops;
}

std::vector<Part> Reducer::getParts(Part::Kind kind) {
  std::vector<Part> parts;
  for (auto [index, op] : llvm::enumerate(getOps(*best))) {
    unsigned number = unsigned(index);
    if (index == 0)
      continue;
    if (kind == Part::Op)
      parts.push_back({kind, number});
    if (kind == Part::Region)
      for (Region &region : op->getRegions())
        if (!region.empty())
          parts.push_back({kind, number, region.getRegionNumber()});
    if (kind == Part::Attribute)
      for (NamedAttribute attribute : op->getAttrs())
        parts.push_back({kind, number, 0, attribute.getName().str()});
  }
  return parts;
}

/// A value of the same type that is there before `result`; null if there is
/// none.
static Value findSubstitute(OpResult result) {
  Operation *op = result.getOwner();
  for (Value operand : op->getOperands())
    if (operand.getType() == result.getType())
      return operand;
  for (BlockArgument argument : op->getBlock()->getArguments())
    if (argument.getType() == result.getType())
      return argument;
  for (Operation *before = op->getPrevNode(); before;
       before = before->getPrevNode())
    for (Value value : before->getResults())
      if (value.getType() == result.getType())
        return value;
  return {};
}

/// Whether there was something to take out, and nothing needs it.
static bool takeOp(Operation *op) {
  if (op->hasTrait<OpTrait::IsTerminator>())
    return false;
  for (OpResult result : op->getResults()) {
    if (result.use_empty())
      continue;
    Value substitute = findSubstitute(result);
    if (!substitute)
      return false;
    result.replaceAllUsesWith(substitute);
  }
  op->erase();
  return true;
}

/// Some attributes have a default that printers count on.
static bool takeAttribute(Operation *op, StringRef name) {
  DictionaryAttr before = op->getAttrDictionary();
  op->removeAttr(name);
  if (op->getPropertiesStorageSize())
    op->getName().populateDefaultProperties(op->getPropertiesStorage());
  return op->getAttrDictionary() != before;
}

Expected<bool> Reducer::attempt(ArrayRef<Part> parts) {
  OwningOpRef<ModuleOp> copy = best->clone();
  SmallVector<Operation *> ops = getOps(*copy);
  bool isChanged = false;
  // From the last one on: what is inside of another goes first.
  for (const Part &part : llvm::reverse(parts)) {
    Operation *op = ops[part.op];
    if (part.kind == Part::Op)
      isChanged |= takeOp(op);
    else if (part.kind == Part::Region) {
      Region &region = op->getRegion(part.region);
      region.dropAllReferences();
      region.getBlocks().clear();
      isChanged = true;
    } else
      isChanged |= takeAttribute(op, part.attribute);
  }
  if (!isChanged || failed(verify(*copy)))
    return false;
  auto result = isOfInterest(*copy);
  if (result && *result)
    best = std::move(copy);
  return result;
}

Expected<bool> Reducer::reduce(Part::Kind kind) {
  bool isSmaller = false;
  std::vector<Part> parts = getParts(kind);
  for (size_t size = std::max<size_t>(parts.size() / 2, 1); size > 0;
       size /= 2) {
    // From the end: uses go before what they use.
    for (size_t end = parts.size(); end > 0 && runs < limit;) {
      size_t begin = end > size ? end - size : 0;
      auto isKept = attempt(ArrayRef<Part>(parts).slice(begin, end - begin));
      if (!isKept)
        return isKept;
      end = begin;
      if (*isKept) {
        isSmaller = true;
        // Numbers of operations have changed.
        parts = getParts(kind);
        end = std::min(end, parts.size());
      }
    }
  }
  return isSmaller;
}

Expected<bool> Reducer::isOfInterest(ModuleOp module) {
  llvm::SmallString<128> path;
  int descriptor;
  if (std::error_code code = llvm::sys::fs::createTemporaryFile(
          "fi-reduce", "mlir", descriptor, path))
    return createStringError("cannot make a temporary file: " + code.message());
  llvm::FileRemover remover(path);
  {
    llvm::raw_fd_ostream os(descriptor, /*shouldClose=*/true);
    module.print(os);
    os << "\n";
  }
  ++runs;
  std::string why;
  std::optional<StringRef> nothing[] = {StringRef(), StringRef(), StringRef()};
  int status = llvm::sys::ExecuteAndWait(program, {program, path}, std::nullopt,
                                         nothing, 0, 0, &why);
  if (status < 0)
    return createStringError("--test: '" + program +
                             "' could not be run: " + why);
  return status == 0;
}

Expected<bool> Reducer::run() {
  auto result = isOfInterest(*best);
  if (!result || !*result)
    return result;
  for (bool isSmaller = true; isSmaller && runs < limit;) {
    isSmaller = false;
    for (Part::Kind kind : {Part::Op, Part::Region, Part::Attribute}) {
      auto one = reduce(kind);
      if (!one)
        return one;
      isSmaller |= *one;
    }
  }
  return true;
}

static Error runTool() {
  DialectRegistry registry;
  fi::registerAllDialects(registry);
  MLIRContext context(registry, MLIRContext::Threading::DISABLED);
  auto buffer = fi::readFile(inputPath);
  if (!buffer)
    return buffer.takeError();
  if (Error error = fi::checkNesting((*buffer)->getBuffer(), inputPath))
    return error;
  auto module =
      parseSourceString<ModuleOp>((*buffer)->getBuffer(), &context, inputPath);
  if (!module)
    return createStringError("'" + inputPath +
                             "' is not a valid program; expected one that "
                             "parses and verifies");
  auto program = llvm::sys::findProgramByName(testPath);
  if (!program)
    return createStringError("--test: '" + testPath + "' is no program: " +
                             program.getError().message());
  // Invalid candidates are many, and of no interest.
  context.getDiagEngine().registerHandler([](Diagnostic &) {});
  Reducer reducer(std::move(module), *program);
  auto result = reducer.run();
  if (!result)
    return result.takeError();
  if (!*result)
    return createStringError("--test: expected '" + testPath +
                             "' to end with 0 on the whole of '" + inputPath +
                             "', but it did not");
  llvm::errs() << "fi-reduce: " << getOps(reducer.getModule()).size() - 1
               << " operations left after " << reducer.getRuns() << " runs\n";
  return fi::writeFile(outputPath, [&](llvm::raw_ostream &os) {
    reducer.getModule().print(os);
    os << "\n";
  });
}

int main(int argc, char **argv) {
  // Removes its temporary file when it is interrupted.
  llvm::InitLLVM init(argc, argv);
  return fi::runToolMain(
      argc, argv,
      {"fi-reduce", category,
       "fi-reduce: makes a text smaller that is of interest\n"},
      runTool);
}
