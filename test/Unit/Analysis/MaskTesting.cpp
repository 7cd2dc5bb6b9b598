//===- MaskTesting.cpp - masks against brute force ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MaskTesting.h"
#include "fi/InitAll.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Parser/Parser.h"
#include <gtest/gtest.h>

using namespace mlir;

namespace fi::test {

std::unique_ptr<MLIRContext> makeContext() {
  DialectRegistry registry;
  registerAllDialects(registry);
  auto context =
      std::make_unique<MLIRContext>(registry, MLIRContext::Threading::DISABLED);
  context->loadAllAvailableDialects();
  return context;
}

//===----------------------------------------------------------------------===//
// Program
//===----------------------------------------------------------------------===//

MaskProgram::MaskProgram(MLIRContext &context, StringRef attributes,
                         StringRef body, bool hasOrigin) {
  std::string text = R"(
    fi.program @mask
        plan(%docs: tensor<?x?xi32> {fi.sorted},
             %wides: tensor<?x?xi64> {fi.sorted},
             %fixeds: tensor<?x96xi32> {fi.sorted}, %looses: tensor<?x?xi32>,
             %pres: tensor<?xi32>, %ws: index, %origins: tensor<?xi32>)
        run(%q: tensor<?x4x8xf32>, %k: tensor<?x2x8xf32>,
            %v: tensor<?x2x8xf32>, %limits: tensor<?xi32>)
        -> (tensor<?x4x8xf32>) {
      %kv = fi.view.ragged %k, %v )";
  if (hasOrigin)
    text += "origin(%origins : tensor<?xi32>)";
  text += R"(: tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
      %o = fi.attention %q over %kv scale(1.0)
          captures(%doc = %docs : tensor<?x?xi32>,
                   %wide = %wides : tensor<?x?xi64>,
                   %fixed = %fixeds : tensor<?x96xi32>,
                   %loose = %looses : tensor<?x?xi32>,
                   %pre = %pres : tensor<?xi32>, %w = %ws : index,
                   %limit = %limits : tensor<?xi32>)
  )";
  if (!attributes.empty())
    text += ("mask(" + attributes + ")").str();
  if (!body.empty())
    text += ("mask(%req: index, %qh: index, %kh: index, %qp: index, "
             "%kp: index) {" +
             body + "}")
                .str();
  text += R"(: tensor<?x4x8xf32> over !fi.ragged_kv<2x8xf32>
          -> tensor<?x4x8xf32>
      fi.return %o : tensor<?x4x8xf32>
    })";
  module = parseSourceString<ModuleOp>(text, &context);
  if (module)
    module->walk([&](AttentionOp attention) { op = attention; });
}

MaskBounds MaskProgram::analyze() {
  FailureOr<MaskBounds> bounds = analyzeMask(op);
  EXPECT_TRUE(succeeded(bounds));
  return succeeded(bounds) ? *bounds : MaskBounds();
}

namespace {

int64_t floorDivide(int64_t a, int64_t b) {
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/// To the width of the type; i1 is kept as 0 or 1.
int64_t wrap(int64_t value, unsigned width) {
  if (width == 1)
    return value & 1;
  return width >= 64 ? value
                     : int64_t(uint64_t(value) << (64 - width)) >> (64 - width);
}

using Compute = std::function<int64_t(const int64_t *)>;

/// What an operation of two integers computes, or null.
Compute computeBinary(StringRef name, unsigned x, unsigned y) {
  using S = const int64_t *;
  if (name == "addi")
    return [=](S s) { return int64_t(uint64_t(s[x]) + uint64_t(s[y])); };
  if (name == "subi")
    return [=](S s) { return int64_t(uint64_t(s[x]) - uint64_t(s[y])); };
  if (name == "muli")
    return [=](S s) { return int64_t(uint64_t(s[x]) * uint64_t(s[y])); };
  if (name == "andi")
    return [=](S s) { return s[x] & s[y]; };
  if (name == "ori")
    return [=](S s) { return s[x] | s[y]; };
  if (name == "xori")
    return [=](S s) { return s[x] ^ s[y]; };
  if (name == "minsi")
    return [=](S s) { return std::min(s[x], s[y]); };
  if (name == "maxsi")
    return [=](S s) { return std::max(s[x], s[y]); };
  if (name == "floordivsi")
    return [=](S s) { return floorDivide(s[x], s[y]); };
  if (name == "ceildivsi")
    return [=](S s) { return -floorDivide(-s[x], s[y]); };
  if (name == "divsi")
    return [=](S s) { return s[x] / s[y]; };
  if (name == "remsi")
    return [=](S s) { return s[x] % s[y]; };
  if (name == "shrsi")
    return [=](S s) { return s[x] >> s[y]; };
  return nullptr;
}

} // namespace

/// Regions are pure and total, so that both sides of a branch may be computed.
void MaskProgram::prepare(Block &block) {
  for (Operation &operation : block.without_terminator()) {
    Operation *def = &operation;
    for (Region &region : def->getRegions())
      prepare(region.front());
    for (OpResult result : def->getResults()) {
      unsigned index = result.getResultNumber();
      std::vector<unsigned> x;
      for (Value operand : def->getOperands())
        x.push_back(slots.lookup(operand));
      Step step;
      step.slot = slots.size();
      step.width = result.getType().isIndex()
                       ? 64
                       : result.getType().getIntOrFloatBitWidth();
      slots[result] = step.slot;
      StringRef name = def->getName().stripDialect();
      if (auto constant = dyn_cast<arith::ConstantOp>(def)) {
        int64_t value =
            cast<IntegerAttr>(constant.getValue()).getValue().getSExtValue();
        step.compute = [=](const int64_t *) { return value; };
      } else if (auto load = dyn_cast<LoadOp>(def)) {
        std::string argument = argumentOf(load.getSource());
        step.compute = [=](const int64_t *s) -> int64_t {
          const PlanData &data = batch->data.at(argument);
          int64_t offset = 0;
          for (size_t d = 0; d < data.sizes.size(); ++d) {
            int64_t i = s[x[d + 1]];
            if (i < 0 || i >= data.sizes[d])
              return 0;
            offset = offset * data.sizes[d] + i;
          }
          return data.elements[offset];
        };
      } else if (auto choice = dyn_cast<scf::IfOp>(def)) {
        unsigned a = slots.lookup(choice.thenYield().getOperand(index));
        unsigned b = slots.lookup(choice.elseYield().getOperand(index));
        step.compute = [=](const int64_t *s) { return s[x[0]] ? s[a] : s[b]; };
      } else if (auto compare = dyn_cast<arith::CmpIOp>(def)) {
        arith::CmpIPredicate predicate = compare.getPredicate();
        // With its sign, true is -1.
        bool negate = compare.getLhs().getType().isInteger(1) &&
                      predicate >= arith::CmpIPredicate::slt &&
                      predicate <= arith::CmpIPredicate::sge;
        step.compute = [=](const int64_t *s) -> int64_t {
          return arith::applyCmpPredicate(
              predicate, llvm::APInt(64, uint64_t(negate ? -s[x[0]] : s[x[0]])),
              llvm::APInt(64, uint64_t(negate ? -s[x[1]] : s[x[1]])));
        };
      } else if (name == "select") {
        step.compute = [=](const int64_t *s) {
          return s[x[0]] ? s[x[1]] : s[x[2]];
        };
      } else if (name == "index_cast" || name == "extsi" || name == "trunci") {
        step.compute = [=](const int64_t *s) { return s[x[0]]; };
      } else if (x.size() == 2) {
        step.compute = computeBinary(name, x[0], x[1]);
      }
      if (!step.compute) {
        ADD_FAILURE() << "no interpretation of " << name.str();
        step.compute = [](const int64_t *) { return 0; };
      }
      steps.push_back(std::move(step));
    }
  }
}

std::string MaskProgram::argumentOf(Value capture) {
  Value captured =
      op.getCaptures()[cast<BlockArgument>(capture).getArgNumber() - 5];
  auto program = op->getParentOfType<ProgramOp>();
  return program.getArgumentName(cast<BlockArgument>(captured).getArgNumber());
}

bool MaskProgram::isVisible(const Batch &of, const Position &p) {
  Block &block = op.getMaskRegion().front();
  if (slots.empty()) {
    for (BlockArgument argument : block.getArguments())
      slots.insert({argument, slots.size()});
    prepare(block);
    values.resize(slots.size());
  }
  batch = &of;
  const int64_t positions[] = {p.request, p.queryHead, p.kvHead, p.query,
                               p.key};
  std::copy(std::begin(positions), std::end(positions), values.begin());
  for (BlockArgument argument : block.getArguments().drop_front(5))
    if (argument.getType().isIndex())
      values[argument.getArgNumber()] =
          of.data.at(argumentOf(argument)).elements.front();
  for (const Step &step : steps)
    values[step.slot] = wrap(step.compute(values.data()), step.width);
  return values[slots.lookup(block.getTerminator()->getOperand(0))] != 0;
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

Batch makeBatch(std::mt19937 &random, bool hasOrigin, bool isShort,
                int64_t longestKeys, int64_t longestQuery) {
  auto pick = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  Batch batch;
  int64_t requests = pick(1, 3), longest = 1;
  for (int64_t r = 0; r < requests; ++r) {
    Request request;
    request.keyLength = pick(0, longestKeys);
    request.queryLength = pick(0, 3) ? pick(0, longestQuery) : 1;
    request.origin = hasOrigin ? pick(-10, 20) : 0;
    batch.requests.push_back(request);
    longest = std::max(longest, request.origin + request.keyLength);
  }
  auto sorted = [&](int64_t rows, int64_t size, bool isSorted) {
    PlanData data;
    data.sizes = {rows, size};
    for (int64_t r = 0; r < rows; ++r) {
      int64_t value = pick(-3, 2);
      for (int64_t k = 0; k < size; ++k) {
        if (pick(0, 9) == 0)
          value += isSorted ? pick(1, 2) : pick(-2, 2);
        data.elements.push_back(value);
      }
    }
    return data;
  };
  int64_t size = isShort ? pick(1, longest) : longest;
  int64_t rows = isShort ? pick(1, requests) : requests;
  batch.data["docs"] = sorted(rows, size, true);
  batch.data["wides"] = sorted(rows, size, true);
  batch.data["fixeds"] = sorted(rows, kFixedSize, true);
  batch.data["looses"] = sorted(rows, size, false);
  batch.data["pres"] = {{rows}, {}};
  for (int64_t r = 0; r < rows; ++r)
    batch.data["pres"].elements.push_back(pick(-2, longest + 2));
  batch.data["limits"] = {{size}, {}};
  for (int64_t k = 0; k < size; ++k)
    batch.data["limits"].elements.push_back(pick(0, 3));
  batch.data["ws"] = {{}, {pick(-1, 30)}};
  return batch;
}

void forEachTile(const Batch &batch, int64_t tileRows, int64_t tileKeys,
                 const Visible &visible,
                 llvm::function_ref<void(const Tile &)> check) {
  constexpr int64_t group = kQueryHeads / kKVHeads;
  for (auto [r, request] : llvm::enumerate(batch.requests)) {
    int64_t first = request.origin + request.keyLength - request.queryLength;
    for (int64_t kvHead = 0; kvHead < kKVHeads; ++kvHead)
      for (int64_t row = 0; row < request.queryLength; row += tileRows)
        for (int64_t key = 0; key < request.keyLength; key += tileKeys) {
          int64_t lastRow = std::min(row + tileRows, request.queryLength) - 1;
          Tile tile;
          tile.context.position = {first + row, first + lastRow};
          tile.context.queryHead = {kvHead * group, kvHead * group + group - 1};
          tile.context.kvHead = {kvHead, kvHead};
          tile.context.request = r;
          tile.context.queryLength = request.queryLength;
          tile.context.keyLength = request.keyLength;
          tile.context.data = &batch.data;
          tile.keyBegin = request.origin + key;
          tile.keyEnd =
              request.origin + std::min(key + tileKeys, request.keyLength);
          tile.someVisible = tile.someHidden = false;
          for (int64_t i = row; i <= lastRow; ++i)
            for (int64_t h = 0; h < group; ++h)
              for (int64_t k = tile.keyBegin; k < tile.keyEnd; ++k) {
                bool sees = visible(batch, {int64_t(r), kvHead * group + h,
                                            kvHead, first + i, k});
                (sees ? tile.someVisible : tile.someHidden) = true;
              }
          check(tile);
        }
  }
}

std::string describe(const MaskBounds &bounds, MLIRContext &context) {
  std::string text;
  llvm::raw_string_ostream(text) << bounds.toAttr(&context);
  for (auto &[loc, remark] : bounds.remarks)
    text += "\n" + remark;
  return text;
}

} // namespace fi::test
