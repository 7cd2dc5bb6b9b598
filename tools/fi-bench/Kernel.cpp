//===- Kernel.cpp - a compiled attention with its data --------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Kernel.h"
#include "fi/InitAll.h"
#include "fi/Interpreter/Reference.h"
#include "fi/Interpreter/Tolerance.h"
#include "fi/Support/Random.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

using namespace llvm;

namespace fi::bench {
namespace {

using Clock = std::chrono::steady_clock;

double getSeconds(Clock::time_point from) {
  return std::chrono::duration<double>(Clock::now() - from).count();
}

Error check(fi_status status) {
  if (status == FI_OK)
    return Error::success();
  return createStringError(inconvertibleErrorCode(), fi_last_error());
}

HostTensor makeTable(const std::vector<int32_t> &values) {
  HostTensor table(DType::I32, {int64_t(values.size())});
  std::copy(values.begin(), values.end(),
            static_cast<int32_t *>(table.getData()));
  return table;
}

} // namespace

mlir::MLIRContext &getContext() {
  static mlir::MLIRContext *context = [] {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    cpu::registerCompiler(registry);
    return new mlir::MLIRContext(registry);
  }();
  return *context;
}

Expected<mlir::OwningOpRef<mlir::ModuleOp>> parseModule(StringRef text) {
  std::string message = "the program does not parse";
  mlir::ScopedDiagnosticHandler handler(&getContext(),
                                        [&](mlir::Diagnostic &diagnostic) {
                                          message = diagnostic.str();
                                          return mlir::success();
                                        });
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &getContext());
  if (!module)
    return createStringError(inconvertibleErrorCode(), message);
  return module;
}

std::string Problem::printProgram() const {
  StringRef type = getName(this->type);
  std::string view, pool, made, planned = "%qo: !ix, %indptr: !ix";
  if (paged) {
    view = formatv("!fi.paged_kv<{0}x{1}x{2}x{3}, {4}>", page, kvHeads, dim,
                   type, stringifyHeadOrder(order))
               .str();
    pool = order == HeadOrder::HND
               ? formatv("tensor<?x{0}x{1}x{2}x{3}>", kvHeads, page, dim, type)
                     .str()
               : formatv("tensor<?x{1}x{0}x{2}x{3}>", kvHeads, page, dim, type)
                     .str();
    planned += ", %pages: !ix, %last: !ix";
    made = "fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, "
           "!ix)";
  } else {
    view = formatv("!fi.ragged_kv<{0}x{1}x{2}>", kvHeads, dim, type).str();
    pool = formatv("tensor<?x{0}x{1}x{2}>", kvHeads, dim, type).str();
    made = "fi.view.ragged %k, %v indptr(%indptr : !ix)";
  }
  std::string masks = mask == Mask::Full ? "" : " mask(#fi.causal)";
  if (mask == Mask::Window)
    masks =
        formatv(" mask(#fi.causal, #fi.window<left = {0}>)", window - 1).str();
  std::string attributes =
      vectorBits == 0
          ? ""
          : formatv(" attributes {{fi.target = #fi.target<cpu, vector_bits = "
                    "{0}>}",
                    vectorBits)
                .str();
  std::string text = "!kv = " + view + "\n!pool = " + pool + "\n";
  text += "!ix = tensor<?xi32>\n";
  text += formatv("!q = tensor<?x{0}x{1}x{2}>\n!lse = tensor<?x{0}xf32>\n",
                  queryHeads, dim, type);
  text += "module" + attributes + " {\n";
  text += "fi.program @attention plan(" + planned +
          ") run(%q: !q, %k: !pool, %v: !pool) -> (!q, !lse) {\n";
  text += "  %kv = " + made + " : !pool, !pool -> !kv\n";
  text += formatv("  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv "
                  "scale({0:e6})",
                  1 / std::sqrt(double(dim)));
  text += masks + " : !q over !kv -> !q, !lse\n";
  text += "  fi.return %o, %lse : !q, !lse\n}\n}\n";
  return text;
}

int64_t Problem::getVisiblePairs() const {
  int64_t pairs = 0;
  for (int64_t row = 0; row < rows; ++row) {
    int64_t position = keys - rows + row;
    int64_t end = mask == Mask::Full ? keys : position + 1;
    int64_t begin =
        mask == Mask::Window ? std::max<int64_t>(0, position + 1 - window) : 0;
    pairs += std::max<int64_t>(0, end - begin);
  }
  return requests * pairs;
}

fi_tensor Operand::getRuntimeTensor() const {
  int32_t type = tensor.getType() == DType::F32    ? FI_F32
                 : tensor.getType() == DType::F16  ? FI_F16
                 : tensor.getType() == DType::BF16 ? FI_BF16
                                                   : FI_I32;
  return {tensor.getData(), type, int32_t(tensor.getRank()),
          tensor.getShape().data(), tensor.getStrides().data()};
}

fi_value Operand::getValue() const {
  fi_value value = {};
  value.kind = FI_VALUE_TENSOR;
  value.as.tensor = getRuntimeTensor();
  return value;
}

Kernel::~Kernel() {
  fi_plan_destroy(currentPlan);
  fi_package_release(package);
  std::free(workspace);
}

Expected<std::unique_ptr<Kernel>> Kernel::create(const Problem &problem) {
  std::unique_ptr<Kernel> kernel(new Kernel(problem));
  if (Error error = kernel->compile())
    return std::move(error);
  kernel->makeInputs();
  if (Error error = kernel->makePlan())
    return std::move(error);
  Expected<double> seconds = kernel->run();
  if (!seconds)
    return seconds.takeError();
  if (Error error = kernel->check())
    return std::move(error);
  return kernel;
}

Error Kernel::compile() {
  auto parsed = parseModule(problem.printProgram());
  if (!parsed)
    return parsed.takeError();
  module = std::move(*parsed);
  auto made = cpu::CompiledProgram::compile(*module, "");
  if (!made)
    return made.takeError();
  code = std::move(*made);
  StringRef manifest = code->getManifest();
  return bench::check(fi_package_from_memory(
      manifest.data(), manifest.size(), cpu::CompiledProgram::lookupCallback,
      code.get(), &package));
}

void Kernel::makeInputs() {
  int64_t tokens = problem.requests * problem.keys;
  std::vector<int32_t> rows = {0}, indptr = {0};
  int64_t perRequest = problem.paged
                           ? (problem.keys + problem.page - 1) / problem.page
                           : problem.keys;
  for (int64_t r = 0; r < problem.requests; ++r) {
    rows.push_back(rows.back() + problem.rows);
    indptr.push_back(indptr.back() + perRequest);
  }
  tables = {Operand(makeTable(rows)), Operand(makeTable(indptr))};
  SmallVector<int64_t, 4> pool = {tokens, problem.kvHeads, problem.dim};
  if (problem.paged) {
    // A pool in which requests have come and gone: pages in no order.
    int64_t count = problem.requests * perRequest;
    std::vector<int32_t> pages(count);
    for (int64_t i = 0; i < count; ++i)
      pages[i] = i;
    Random random(7);
    for (int64_t i = count; i > 1; --i)
      std::swap(pages[i - 1], pages[random.below(i)]);
    std::vector<int32_t> last(problem.requests,
                              (problem.keys - 1) % problem.page + 1);
    tables.push_back(Operand(makeTable(pages)));
    tables.push_back(Operand(makeTable(last)));
    pool = {count, problem.kvHeads, problem.page, problem.dim};
    if (problem.order == HeadOrder::NHD)
      std::swap(pool[1], pool[2]);
  }
  int64_t queries[] = {problem.requests * problem.rows, problem.queryHeads,
                       problem.dim};
  query = Operand(HostTensor(problem.type, queries));
  output = Operand(HostTensor(problem.type, queries));
  lse = Operand(HostTensor(DType::F32, {queries[0], queries[1]}));
  keys = Operand(HostTensor(problem.type, pool));
  values = Operand(HostTensor(problem.type, pool));
  fillNormal(query.get(), 1);
  fillNormal(keys.get(), 2);
  fillNormal(values.get(), 3);
}

std::vector<fi_value> Kernel::getPlanValues() const {
  std::vector<fi_value> list;
  for (const Operand &table : tables)
    list.push_back(table.getValue());
  return list;
}

Error Kernel::makePlan() {
  fi_plan_options options = {};
  options.struct_size = sizeof(options);
  options.workers = problem.workers;
  std::vector<fi_value> list = getPlanValues();
  if (Error error = bench::check(fi_plan_create(
          package, list.data(), list.size(), &options, &currentPlan)))
    return error;
  workspaceBytes = fi_plan_workspace_bytes(currentPlan);
  size_t rounded = (workspaceBytes + FI_WORKSPACE_ALIGNMENT) /
                   FI_WORKSPACE_ALIGNMENT * FI_WORKSPACE_ALIGNMENT;
  workspace = std::aligned_alloc(FI_WORKSPACE_ALIGNMENT, rounded);
  if (!workspace)
    return createStringError(inconvertibleErrorCode(),
                             "out of memory for the workspace");
  return Error::success();
}

Expected<double> Kernel::plan() {
  std::vector<fi_value> list = getPlanValues();
  Clock::time_point start = Clock::now();
  fi_status status =
      fi_plan_update(currentPlan, list.data(), list.size(), nullptr);
  double seconds = getSeconds(start);
  if (Error error = bench::check(status))
    return std::move(error);
  return seconds;
}

Expected<double> Kernel::run() {
  fi_value arguments[] = {query.getValue(), keys.getValue(), values.getValue()};
  fi_tensor results[] = {output.getRuntimeTensor(), lse.getRuntimeTensor()};
  Clock::time_point start = Clock::now();
  fi_status status = fi_run(currentPlan, 0, arguments, 3, results, 2, workspace,
                            workspaceBytes);
  double seconds = getSeconds(start);
  if (Error error = bench::check(status))
    return std::move(error);
  return seconds;
}

Error Kernel::check() {
  ReferenceOptions options;
  int64_t rows = query.get().getSize(0);
  options.onlyRows.emplace();
  Random random(11);
  for (int64_t row : {int64_t(0), rows - 1, int64_t(random.below(rows))})
    options.onlyRows->push_back(
        {row, int64_t(random.below(problem.queryHeads))});
  std::vector<HostValue> arguments;
  for (const Operand &table : tables)
    arguments.push_back(table.get());
  for (const Operand *operand : {&query, &keys, &values})
    arguments.push_back(operand->get());
  auto program = *module->getOps<ProgramOp>().begin();
  auto expected = interpretProgram(program, arguments, options);
  if (!expected)
    return expected.takeError();
  ErrorTerms terms;
  terms.in = terms.out = problem.type;
  terms.dim = problem.dim;
  terms.keys = problem.keys;
  terms.maxScore = 3 * std::sqrt(double(problem.dim)); // |q| |k| / sqrt(dim)
  terms.maxValue = 6;                                  // of normal numbers
  terms.independent = true;
  double tolerance = outputTolerance(terms);
  for (auto [row, head] : *options.onlyRows)
    for (int64_t d = 0; d < problem.dim; ++d) {
      double got = output.get().getFloat({row, head, d});
      double want = (*expected)[0].getFloat({row, head, d});
      if (!(std::fabs(got - want) <= tolerance))
        return createStringError(
            inconvertibleErrorCode(),
            formatv("row {0}, head {1}, element {2}: expected {3:e9} as the "
                    "reference has it, but got {4:e9}; the tolerance is {5:e2}",
                    row, head, d, want, got, tolerance));
    }
  return Error::success();
}

} // namespace fi::bench
