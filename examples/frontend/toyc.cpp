//===- toyc.cpp - a small compiler that embeds fi -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads functions of the toy dialect, lets fi compile them, and runs one beside
// the toy dialect's own definition; or prints the module after any stage.
//
//===----------------------------------------------------------------------===//

#include "Batch.h"
#include "Toy.h"
#include "fi/Execution/Executor.h"
#include "fi/InitAll.h"
#include "fi/Pipelines/Pipelines.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "fi/Target/SMTable.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CommandLine.h"
#include <cmath>

using llvm::createStringError;
using llvm::Error;
using llvm::Expected;
using llvm::StringRef;
namespace cl = llvm::cl;

static cl::OptionCategory category("Options of toyc");
static cl::opt<std::string> input(cl::Positional, cl::Required,
                                  cl::desc("FILE.mlir"), cl::cat(category));
static cl::opt<std::string>
    until("until", cl::value_desc("stage"), cl::cat(category),
          cl::desc("Print the module after a stage instead of running it: toy, "
                   "fi, prepared, fi_tile, and vector and llvm, or placed and "
                   "nvvm of a GPU"));
static cl::opt<std::string> target("target", cl::value_desc("cpu|sm_80|..."),
                                   cl::init("cpu"), cl::cat(category),
                                   cl::desc("What --until compiles for"));
static cl::opt<std::string>
    backend("backend", cl::value_desc("name"), cl::init("cpu"),
            cl::cat(category),
            cl::desc("What runs: cpu, cuda, emulated:sm_80, reference"));
static cl::list<int64_t> queries("queries", cl::CommaSeparated,
                                 cl::desc("Rows of each sequence"),
                                 cl::cat(category));
static cl::list<int64_t> keys("keys", cl::CommaSeparated,
                              cl::desc("Keys of each sequence"),
                              cl::cat(category));

/// The toy compiler's pipeline: its own pass, then as many of fi's stages as
/// are asked for. Passes of one's own may stand between any two.
static Error compileUntil(mlir::ModuleOp module, StringRef last) {
  mlir::MLIRContext *context = module.getContext();
  fi::TargetAttr attr = fi::cpu::getHostTarget(context);
  if (target != "cpu") {
    auto chip = fi::sm::find(target);
    if (!chip)
      return createStringError("--target: " + llvm::toString(chip.takeError()));
    attr = fi::TargetAttr::get(context, **chip);
  }
  module->setAttr(fi::kTargetAttr, attr);

  mlir::PassManager pm(context, mlir::ModuleOp::getOperationName());
  std::string known = "toy, fi";
  bool isFound = last == "toy";
  if (!isFound)
    pm.addPass(toy::createToyToFIPass());
  isFound |= last == "fi";
  for (const fi::Stage &stage : fi::getStages(attr)) {
    // Here `fi` is what toy-to-fi has made.
    StringRef name = stage.name == "fi" ? StringRef("prepared") : stage.name;
    known += (", " + name).str();
    if (isFound)
      continue;
    stage.build(pm);
    isFound = last == name;
  }
  if (!isFound)
    return createStringError("--until=" + last + ": expected " + known);
  if (mlir::failed(pm.run(module)))
    return createStringError("compiling failed");
  return Error::success();
}

/// Compiles for a backend, plans the batch, runs it, and compares.
static Expected<bool> execute(mlir::ModuleOp module) {
  auto functions = module.getOps<mlir::func::FuncOp>();
  if (!llvm::hasSingleElement(functions))
    return createStringError("expected a module with one function");
  std::vector<int64_t> rowsOf(queries.begin(), queries.end());
  std::vector<int64_t> keysOf(keys.begin(), keys.end());
  if (rowsOf.empty() && keysOf.empty()) {
    rowsOf = {5, 1, 0, 70};
    keysOf = {5, 300, 12, 70};
  }
  if (rowsOf.size() != keysOf.size())
    return createStringError("--queries and --keys: expected as many numbers");
  auto batch = toy::makeBatch(*functions.begin(), rowsOf, keysOf);
  if (!batch)
    return batch.takeError();

  // Only the toy compiler's own pass: the executor does the rest.
  mlir::PassManager pm(module.getContext(), mlir::ModuleOp::getOperationName());
  pm.addPass(toy::createToyToFIPass());
  if (mlir::failed(pm.run(module)))
    return createStringError("compiling failed");
  auto executor = fi::Executor::create(backend, module, /*name=*/"", {});
  if (!executor)
    return executor.takeError();
  // A program's arguments have names; toy-to-fi has numbered them.
  std::vector<fi::HostValue> arguments;
  for (const fi::ArgumentInfo &info : (*executor)->getSignature().arguments) {
    unsigned number = 0;
    StringRef(info.name).drop_front(3).getAsInteger(10, number);
    arguments.push_back(batch->arguments[number]);
  }
  auto results = (*executor)->allocateResults(arguments);
  if (!results)
    return results.takeError();
  if (Error error = (*executor)->plan(arguments))
    return error;
  if (Error error = (*executor)->runOnHost(arguments, *results))
    return error;

  const fi::HostTensor &result = results->front();
  size_t count = size_t(result.getNumElements());
  if (count != batch->expected.size())
    return createStringError("the result has another size");
  // Weights and values are rounded to the elements' type once each.
  double tolerance = result.getType() == fi::DType::F32   ? 1e-5
                     : result.getType() == fi::DType::F16 ? 2e-3
                                                          : 1.6e-2;
  double largest = 0;
  int64_t bytes = fi::getByteSize(result.getType());
  for (size_t i = 0; i < count; ++i) {
    double value =
        fi::readFloat(static_cast<char *>(result.getData()) + i * size_t(bytes),
                      result.getType());
    double error = std::abs(value - batch->expected[i]);
    largest = std::isnan(error) ? INFINITY : std::max(largest, error);
  }
  bool isRight = largest <= tolerance;
  llvm::outs() << (*executor)->describe() << ": largest error " << largest
               << ", tolerance " << tolerance << "\n"
               << (isRight ? "PASS: " : "FAIL: ") << count
               << (isRight ? " elements agree\n" : " elements compared\n");
  return isRight;
}

static Expected<bool> runTool() {
  mlir::DialectRegistry registry;
  registry.insert<toy::ToyDialect>();
  fi::registerAllDialects(registry);
  fi::cpu::registerCompiler(registry);
  fi::gpu::registerCompiler(registry);
  mlir::MLIRContext context(registry);
  context.loadDialect<fi::FIDialect>();
  auto module = mlir::parseSourceFile<mlir::ModuleOp>(input, &context);
  if (!module)
    return createStringError("'" + input + "' is not a valid program");
  if (until.empty())
    return execute(*module);
  if (Error error = compileUntil(*module, until))
    return error;
  module->print(llvm::outs());
  return true;
}

int main(int argc, char **argv) {
  cl::HideUnrelatedOptions(category);
  cl::ParseCommandLineOptions(argc, argv, "toyc: a compiler that embeds fi\n");
  auto isRight = runTool();
  if (!isRight) {
    llvm::errs() << "toyc: error: " << llvm::toString(isRight.takeError())
                 << "\n";
    return 1;
  }
  return *isRight ? 0 : 1;
}
