//===- IntegrationTesting.cpp - backends side by side in tests ------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "fi/InitAll.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cmath>
#include <cstdlib>
#include <cstring>

using namespace fi;
using namespace fi::test;

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

std::string AttentionText::get() const {
  auto number = [](int64_t value) { return std::to_string(value); };
  int64_t queryHeads = kvHeads * group;
  bool isPaged = view == View::Paged || view == View::Dense;
  bool isDense = view == View::Dense;
  bool isLatent = tailDim > 0;
  int64_t keyDim = isLatent ? valueDim + tailDim : this->keyDim;
  // Aliases need not be used, so all of them may stand here.
  std::string ix = "tensor<?x" + index + ">";
  auto rows = [&](int64_t dim) {
    return "tensor<?x" + number(queryHeads) + "x" + number(dim) + "x" + query +
           ">";
  };
  std::string q = rows(isQuerySplit ? valueDim : keyDim), r = rows(tailDim);
  std::string o = "tensor<?x" + number(queryHeads) + "x" + number(valueDim) +
                  "x" + output + ">";
  std::string lse = "tensor<?x" + number(queryHeads) + "xf32>";
  std::string pageText = isPageDynamic ? "?" : number(page);
  auto pool = [&](int64_t dim, const std::string &element) {
    // Two codes of 4 bits to a byte.
    std::string end = element == "f4E2M1FN"
                          ? "x" + number(dim / 2) + "xi8>"
                          : "x" + number(dim) + "x" + element + ">";
    if (isLatent)
      return "memref<?x" + pageText + end;
    if (!isPaged)
      return (isHND ? "tensor<" + number(kvHeads) + "x?"
                    : "tensor<?x" + number(kvHeads)) +
             end;
    std::string token = isHND ? "x" + number(kvHeads) + "x" + pageText
                              : "x" + pageText + "x" + number(kvHeads);
    return (isFused ? "memref<?x2" : "memref<?") + token + end;
  };
  std::string options;
  if (!isLatent && valueDim != keyDim)
    options += ", vo = " + number(valueDim);
  auto scheme = [](const std::string &element, const std::string &scales) {
    if (scales.empty())
      return element;
    if (scales == "mxfp4")
      return "!fi.block_scaled<" + element + ", 32, f8E8M0FNU>";
    if (llvm::StringRef(scales).starts_with("nvfp4"))
      return "!fi.block_scaled<" + element + ", 16, f8E4M3FN" +
             (scales == "nvfp4_head" ? ", per = head>" : ">");
    return "!fi.scaled<" + element + ", per = " + scales + ", by = f32>";
  };
  std::string keyScheme = scheme(keys, keyScales);
  if (!isLatent && scheme(values, valueScales) != keyScheme)
    options += ", v = " + scheme(values, valueScales);
  if (index != "i32")
    options += ", index = " + index;
  if (isDense)
    options += ", table = dense";
  if (isFused)
    options += ", fused";
  if (hasTwoTables)
    options += ", two_tables";
  if (view == View::Bsr)
    options += ", rows = " + number(blockRows);
  std::string order = isHND ? "HND" : "NHD";
  std::string size = number(kvHeads) + "x" + number(keyDim) + "x" + keyScheme +
                     ", " + order + options + ">";
  std::string type =
      isLatent ? "!fi.latent_kv<" + number(valueDim) + "+" + number(tailDim) +
                     "x" + keyScheme + ", page = " + pageText + options + ">"
      : view == View::Bsr ? "!fi.bsr_kv<" + number(blockColumns) + "x" + size
      : isPaged           ? "!fi.paged_kv<" + pageText + "x" + size
                          : "!fi.ragged_kv<" + size;

  std::vector<std::string> plan;
  if (view != View::Contiguous)
    plan.push_back("%qo: " + ix);
  std::string tables, pools = "%k, %v", poolTypes;
  switch (view) {
  case View::Paged:
  case View::Dense: {
    std::string table = isDense ? "tensor<?x?x" + index + ">" : ix;
    std::vector<std::pair<std::string, std::string>> all;
    if (!isDense)
      all.push_back({"%indptr", ix});
    all.push_back({"%pages", table});
    if (hasTwoTables)
      all.push_back({"%value_pages", table});
    all.push_back({isDense ? "%lengths" : "%last", ix});
    std::vector<std::string> names, types;
    for (auto &[name, tableType] : all) {
      plan.push_back(name + ": " + tableType);
      names.push_back(name);
      types.push_back(tableType);
    }
    tables = " tables(" + llvm::join(names, ", ") + " : " +
             llvm::join(types, ", ") + ")";
    break;
  }
  case View::Bsr:
    llvm::append_range(plan, std::vector<std::string>{"%indptr: " + ix,
                                                      "%row_indptr: " + ix,
                                                      "%columns: " + ix});
    tables = " indptr(%indptr : " + ix +
             ") blocks(%row_indptr, %columns : " + ix + ", " + ix + ")";
    break;
  case View::Ragged:
    plan.push_back("%indptr: " + ix);
    tables = " indptr(%indptr : " + ix + ")";
    break;
  case View::Contiguous:
    break;
  }
  std::string origin;
  if (hasOrigin) {
    plan.push_back("%origin: " + ix);
    origin = " origin(%origin : " + ix + ")";
  }
  if (hasPositions)
    plan.push_back("%pos: " + ix);
  poolTypes = pool(isLatent ? valueDim : keyDim, keys);
  std::string run =
      "%q: " + q + (isQuerySplit ? ", %r: " + r : "") + ", %k: " + poolTypes;
  if (isFused) {
    pools = "%k";
  } else {
    std::string second =
        isLatent ? pool(tailDim, keys) : pool(valueDim, values);
    run += ", %v: " + second;
    poolTypes += ", " + second;
  }
  std::string scaleNames, scaleTypes;
  for (auto [name, scales] :
       {std::pair("ks", keyScales), std::pair("vs", valueScales)}) {
    if (scales.empty())
      continue;
    std::string heads = number(kvHeads), shape = "?x" + heads;
    auto add = [&](const std::string &name, const std::string &type) {
      run += ", %" + name + ": " + type;
      scaleNames += (scaleNames.empty() ? "%" : ", %") + name;
      scaleTypes += (scaleTypes.empty() ? "" : ", ") + type;
    };
    bool isMX = scales == "mxfp4";
    if (isMX || llvm::StringRef(scales).starts_with("nvfp4")) {
      bool isKeys = name[0] == 'k';
      std::string codes = pool((isKeys ? keyDim : valueDim) / (isMX ? 32 : 16),
                               isMX ? "f8E8M0FNU" : "f8E4M3FN");
      // Without the parts of a fused pool.
      if (isFused)
        codes.erase(codes.find("x2"), 2);
      add(isKeys ? "kb" : "vb", codes);
      if (!isMX)
        add(name, scales == "nvfp4" ? "f32" : "tensor<" + heads + "xf32>");
      continue;
    }
    if (scales == "token" && isLatent)
      shape = "?x" + pageText;
    else if (scales == "token" && isPaged)
      shape =
          isHND ? "?x" + heads + "x" + pageText : "?x" + pageText + "x" + heads;
    else if (scales == "token" && isHND)
      shape = heads + "x?";
    else if (scales == "head")
      shape = heads;
    add(name, scales == "tensor" ? "f32" : "tensor<" + shape + "xf32>");
  }
  std::string clause = scaleNames.empty()
                           ? ""
                           : " scales(" + scaleNames + " : " + scaleTypes + ")";
  std::string planText = llvm::join(plan, ", ") + planArguments;
  if (plan.empty() && !planArguments.empty())
    planText = planArguments.substr(2);
  std::string results = o + (hasStatistic ? ", " + lse : "");

  std::string result;
  llvm::raw_string_ostream os(result);
  os << "module"
     << (target.empty() ? "" : " attributes {fi.target = " + target + "}")
     << " {\n  fi.program @p";
  if (!planText.empty())
    os << " plan(" << planText << ")";
  os << "\n      run(" << run << runArguments << ")\n      -> (" << results
     << ") {\n    %view = fi.view."
     << (isLatent            ? "latent "
         : view == View::Bsr ? "bsr "
         : isPaged           ? "paged "
                             : "ragged ")
     << pools << tables << clause << origin << "\n        : " << poolTypes
     << " -> " << type << "\n    %o" << (hasStatistic ? ", %lse" : "")
     << " = fi.attention %q" << (isQuerySplit ? ", %r" : "")
     << (view == View::Contiguous ? "" : " rows(%qo : " + ix + ")")
     << " over %view" << (hasPositions ? " at(%pos : " + ix + ")" : "")
     << " scale(";
  if (scale.empty())
    os << llvm::format("%.9e", 1 / std::sqrt(double(keyDim)));
  else
    os << scale;
  os << ")\n        " << clauses << "\n        : " << q
     << (isQuerySplit ? ", " + r : "") << " over " << type << " -> " << results
     << "\n    fi.return %o" << (hasStatistic ? ", %lse" : "") << " : "
     << results << "\n  }\n}\n";
  return result;
}

std::string fi::test::scoreRegion(const std::string &operations) {
  return "score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, "
         "%kp: index) {\n" +
         operations + "\n}";
}

std::string fi::test::maskRegion(const std::string &operations) {
  return "mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) "
         "{\n" +
         operations + "\n}";
}

const char *const fi::test::kDilatedMask =
    "%d = arith.subi %qp, %kp : index\n%c = arith.constant 3 : index\n"
    "%r = arith.remsi %d, %c : index\n%z = arith.constant 0 : index\n"
    "%a = arith.cmpi eq, %r, %z : index\n%w = arith.constant 90 : index\n"
    "%near = arith.cmpi sle, %d, %w : index\n"
    "%m = arith.andi %a, %near : i1\nfi.yield %m : i1";

const char *const fi::test::kAlternatingMask =
    "%two = arith.constant 2 : index\n%odd = arith.remui %req, %two : index\n"
    "%z = arith.constant 0 : index\n%even = arith.cmpi eq, %odd, %z : index\n"
    "%m = scf.if %even -> i1 {\n%a = arith.cmpi sle, %kp, %qp : index\n"
    "scf.yield %a : i1\n} else {\n%w = arith.constant 9 : index\n"
    "%e = arith.addi %kp, %w : index\n%b = arith.cmpi sge, %e, %qp : index\n"
    "scf.yield %b : i1\n}\nfi.yield %m : i1";

//===----------------------------------------------------------------------===//
// Batches and plans
//===----------------------------------------------------------------------===//

std::ostream &fi::test::operator<<(std::ostream &os, const Planned &planned) {
  os << planned.workers << " workers, ";
  switch (planned.split) {
  case SplitChoice::Default:
    return os << "default split";
  case SplitChoice::Balanced:
    return os << "balanced split";
  case SplitChoice::Fixed:
    return os << "fixed split of " << planned.keys << " keys";
  case SplitChoice::None:
    return os << "no split";
  }
  return os;
}

llvm::ArrayRef<Planned> fi::test::everyPlan() {
  static const Planned plans[] = {
      {1, SplitChoice::None},      {2},
      {5, SplitChoice::Balanced},  {16, SplitChoice::Balanced},
      {2, SplitChoice::Fixed, 64}, {3, SplitChoice::Fixed, 128}};
  return plans;
}

llvm::ArrayRef<Planned> fi::test::fewPlans() {
  static const Planned plans[] = {{3, SplitChoice::None},
                                  {4, SplitChoice::Fixed, 64}};
  return plans;
}

std::vector<Request> fi::test::smallBatch() {
  return {{1, 37}, {5, 5}, {23, 70}, {0, 20}, {4, 0}, {9, 4}, {1, 100}};
}

std::vector<Request> fi::test::mixedBatch() {
  return {{1, 1}, {1, 37},   {5, 5}, {3, 130}, {0, 20},
          {4, 0}, {40, 150}, {9, 4}, {0, 0},   {1, 200}};
}

mlir::MLIRContext &fi::test::getContext() {
  static mlir::MLIRContext *context = [] {
    // What is tested here is compiled here.
    setenv("FI_CACHE_DIR", "", /*overwrite=*/1);
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    cpu::registerCompiler(registry);
    gpu::registerCompiler(registry);
    return new mlir::MLIRContext(registry);
  }();
  return *context;
}

HostTensor fi::test::integers(llvm::ArrayRef<int64_t> values, DType type) {
  HostTensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.setInteger({static_cast<int64_t>(i)}, values[i]);
  return tensor;
}

HostTensor fi::test::floats(llvm::ArrayRef<double> values, DType type) {
  HostTensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.setFloat({static_cast<int64_t>(i)}, values[i]);
  return tensor;
}

bool fi::test::hasEqualBits(const HostTensor &a, const HostTensor &b) {
  return a.getShape() == b.getShape() && a.isContiguous() && b.isContiguous() &&
         std::memcmp(a.getData(), b.getData(),
                     a.getNumElements() * getByteSize(a.getType())) == 0;
}

//===----------------------------------------------------------------------===//
// Case
//===----------------------------------------------------------------------===//

Case::Case(const std::string &text, std::vector<Request> requests,
           uint64_t seed)
    : text(text) {
  batch.seed = seed;
  batch.hasRequests = true;
  for (Request request : requests)
    batch.requests.push_back({request.rows, request.keys});
}

Case::~Case() = default;

Case &fi::test::giveCascade(Case &test) {
  return test.give("all", integers({0, 12}))
      .give("qo", integers({0, 4, 5, 11, 12}))
      .give("pi", integers({0, 12}))
      .give("pp", integers({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}))
      .give("pl", integers({2}))
      .give("si", integers({0, 2, 2, 6, 7}))
      .give("sp", integers({20, 13, 19, 14, 18, 15, 12}))
      .give("sl", integers({1, 8, 6, 1}))
      .give("first", integers({90, 90, 90, 90}));
}

Case &Case::give(const std::string &name, const HostTensor &tensor) {
  NamedTensor named;
  named.name = name;
  named.tensor = tensor;
  inputOptions.tensors.push_back(named);
  return *this;
}

Case &Case::giveNumber(const std::string &name, double value) {
  return give(name, floats({value}));
}

Case &Case::giveInteger(const std::string &name, int64_t value) {
  return give(name, integers({value}, DType::I64));
}

Case &Case::adjust(
    std::function<void(const Signature &, std::vector<HostValue> &)> with) {
  change = std::move(with);
  return *this;
}

/// Reports an error as a failure of the test.
static bool report(llvm::Error error, const std::string &what) {
  ADD_FAILURE() << what << ": " << llvm::toString(std::move(error));
  return false;
}

bool Case::prepare() {
  if (prepared)
    return good;
  prepared = true;
  good = false;
  mlir::ParserConfig config(&getContext());
  module = mlir::parseSourceString<mlir::ModuleOp>(text, config);
  if (!module) {
    ADD_FAILURE() << "does not parse:\n" << text;
    return false;
  }
  auto made = Executor::create("reference", *module, "", {});
  if (!made)
    return report(made.takeError(), "reference");
  reference = std::move(*made);
  auto values = makeInputs(reference->getSignature(), batch, inputOptions);
  if (!values)
    return report(values.takeError(), "inputs");
  inputs = std::move(*values);
  if (change)
    change(reference->getSignature(), inputs);
  return good = true;
}

bool Case::compile() {
  if (cpu)
    return true;
  ExecutorOptions options;
  options.optLevel = optLevel;
  auto made =
      maker ? maker(*module) : Executor::create("cpu", *module, "", options);
  if (!made) {
    good = false;
    ADD_FAILURE() << "compiling: " << llvm::toString(made.takeError()) << "\n"
                  << text;
    return false;
  }
  cpu = std::move(*made);
  return true;
}

bool Case::execute(Executor &executor, llvm::ArrayRef<HostValue> arguments,
                   std::vector<HostTensor> &results, const std::string &what) {
  auto made = executor.allocateResults(arguments);
  if (!made)
    return report(made.takeError(), what);
  results = std::move(*made);
  // What is not written must show.
  for (HostTensor &result : results)
    std::memset(result.getData(), 0xff,
                result.getNumElements() * getByteSize(result.getType()));
  if (llvm::Error error = executor.runOnHost(arguments, results))
    return report(std::move(error), what);
  return true;
}

std::vector<HostTensor> Case::runReference() {
  std::vector<HostTensor> results;
  if (!prepare())
    return results;
  std::vector<HostValue> arguments =
      takeArguments(reference->getSignature(), inputs);
  execute(*reference, arguments, results, "reference");
  return results;
}

std::vector<HostTensor> Case::runOnCPU(Planned planned) {
  std::vector<HostTensor> results;
  if (!prepare() || !compile())
    return results;
  cpu->setPlanOptions(planned.workers, planned.split, planned.keys);
  std::vector<HostValue> arguments = takeArguments(cpu->getSignature(), inputs);
  if (llvm::Error error = cpu->plan(arguments))
    report(std::move(error), "plan");
  else
    execute(*cpu, arguments, results, "cpu");
  return results;
}

std::string Case::getSchedule(Planned planned) {
  if (!prepare() || !compile())
    return "";
  cpu->setPlanOptions(planned.workers, planned.split, planned.keys);
  if (llvm::Error error = cpu->plan(inputs)) {
    report(std::move(error), "plan");
    return "";
  }
  auto json = cpu->getScheduleJson();
  if (json)
    return *json;
  report(json.takeError(), "schedule");
  return "";
}

std::string Case::getError(Planned planned) {
  if (!prepare())
    return "";
  // The error repeats what is said here.
  mlir::ScopedDiagnosticHandler quiet(
      &getContext(), [](mlir::Diagnostic &) { return mlir::success(); });
  auto made = maker ? maker(*module) : Executor::create("cpu", *module, "", {});
  if (!made)
    return llvm::toString(made.takeError());
  cpu = std::move(*made);
  cpu->setPlanOptions(planned.workers, planned.split, planned.keys);
  std::vector<HostValue> arguments = takeArguments(cpu->getSignature(), inputs);
  if (llvm::Error error = cpu->plan(arguments))
    return llvm::toString(std::move(error));
  auto results = cpu->allocateResults(arguments);
  if (!results)
    return llvm::toString(results.takeError());
  if (llvm::Error error = cpu->runOnHost(arguments, *results))
    return llvm::toString(std::move(error));
  ADD_FAILURE() << "expected an error";
  return "";
}

bool Case::runExpected(BackendRun &expected) {
  expected.backend = "reference";
  expected.arguments = takeArguments(reference->getSignature(), inputs);
  if (!execute(*reference, expected.arguments, expected.results, "reference"))
    return false;
  expected.visibleKeys.assign(reference->getVisibleKeys().begin(),
                              reference->getVisibleKeys().end());
  expected.transformedScores = reference->getTransformedScores().vec();
  expected.weightedSums = reference->getWeightedSums().vec();
  expected.queries = reference->getQueries().vec();
  expected.tolerances = reference->getTolerances().vec();
  expected.argumentTolerances = reference->getArgumentTolerances().vec();
  return true;
}

bool Case::agrees(std::vector<HostTensor> results) {
  BackendRun expected, got;
  if (!prepare() || !runExpected(expected))
    return false;
  got.arguments = expected.arguments;
  got.results = std::move(results);
  CompareOptions options;
  options.independent = independent;
  return llvm::all_of(
      compareRuns(reference->getSignature(), got, expected, options),
      [](const Comparison &one) { return one.passed(); });
}

void Case::check(llvm::ArrayRef<Planned> plans) {
  BackendRun expected;
  if (!prepare() || !compile() || !runExpected(expected))
    return;
  const Signature &signature = reference->getSignature();
  CompareOptions options;
  options.independent = independent;
  for (const Planned &planned : plans) {
    testing::Message where;
    where << planned;
    SCOPED_TRACE(where);
    cpu->setPlanOptions(planned.workers, planned.split, planned.keys);
    BackendRun got;
    got.backend = "cpu";
    got.arguments = takeArguments(signature, inputs);
    if (llvm::Error error = cpu->plan(got.arguments)) {
      report(std::move(error), "plan");
      return;
    }
    if (!execute(*cpu, got.arguments, got.results, "cpu"))
      return;
    bool passed = true;
    for (const Comparison &one :
         compareRuns(signature, got, expected, options)) {
      passed &= one.passed();
      EXPECT_TRUE(one.passed())
          << one.name << ": " << one.failed << " of " << one.compared
          << " differ, worst ["
          << llvm::join(
                 llvm::map_range(one.worst,
                                 [](int64_t i) { return std::to_string(i); }),
                 ", ")
          << "]: got " << one.got << ", expected " << one.expected
          << ", difference " << one.error << ", allowed " << one.tolerance;
    }
    if (!passed) {
      ADD_FAILURE() << text;
      return;
    }
    std::vector<HostValue> again = takeArguments(signature, inputs);
    std::vector<HostTensor> results;
    if (!execute(*cpu, again, results, "cpu again"))
      return;
    for (auto [first, second] : llvm::zip(got.results, results))
      EXPECT_TRUE(hasEqualBits(first, second)) << "the second run differs";
  }
}
