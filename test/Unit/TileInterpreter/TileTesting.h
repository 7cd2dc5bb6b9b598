//===- TileTesting.h - kernels as text for tests ----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses level 2 text and runs it on tensors and hand-made work.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_TILEINTERPRETER_TILETESTING_H
#define FI_TEST_UNIT_TILEINTERPRETER_TILETESTING_H

#include "fi/InitAll.h"
#include "fi/Interpreter/TileInterpreter.h"
#include "fi/Support/Random.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

namespace fi::tile {

constexpr double kInf = std::numeric_limits<double>::infinity();

/// Items with their ranges and states.
struct TestWork {
  std::vector<fi_item> items;
  std::vector<fi_key_range> ranges;
  std::vector<float> outputs, statistics;

  /// One item of a single row, to be changed.
  fi_item &add() {
    fi_item item = {};
    item.row_count = 1;
    item.slot = -1;
    item.slot_count = 1;
    item.q_len = 1;
    items.push_back(item);
    return items.back();
  }
  /// Ranges for the last item: full ones, then partial ones.
  void addRanges(std::vector<fi_key_range> full,
                 std::vector<fi_key_range> partial) {
    items.back().range_begin = ranges.size();
    items.back().full_ranges = full.size();
    items.back().partial_ranges = partial.size();
    ranges.insert(ranges.end(), full.begin(), full.end());
    ranges.insert(ranges.end(), partial.begin(), partial.end());
  }
  void addSlots(int64_t count, int64_t rows, int64_t dim) {
    outputs.assign(count * rows * dim, NAN);
    statistics.assign(count * rows, NAN);
  }
  fi_work get() {
    return {items.data(), ranges.data(),
            outputs.empty() ? nullptr : outputs.data(),
            statistics.empty() ? nullptr : statistics.data()};
  }
};

class TileTest : public ::testing::Test {
protected:
  TileTest() {
    mlir::DialectRegistry registry;
    registerAllDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// Text whose first line declares `#s`, a schedule of 8 rows and 16 keys.
  bool parse(const std::string &text) {
    module = mlir::parseSourceString<mlir::ModuleOp>(
        "#s = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1, "
        "lanes = 2>\n" +
            text,
        &context, "kernel.mlir");
    return static_cast<bool>(module);
  }

  KernelOp kernel(llvm::StringRef name) {
    return module->lookupSymbol<KernelOp>(name);
  }

  /// "" or the error.
  std::string run(llvm::StringRef name, std::vector<TileArgument> arguments,
                  TestWork &work, StateSlots *slots = nullptr) {
    return llvm::toString(interpretKernel(kernel(name), arguments, work.get(),
                                          0, work.items.size(), slots));
  }

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A tensor of f32 filled with a value.
inline HostTensor filled(llvm::ArrayRef<int64_t> shape, double value,
                         DType type = DType::F32) {
  HostTensor tensor(type, shape);
  fillConstant(tensor, value);
  return tensor;
}

inline HostTensor integers(llvm::ArrayRef<int64_t> values,
                           DType type = DType::I32) {
  HostTensor tensor(type, {static_cast<int64_t>(values.size())});
  for (size_t i = 0; i < values.size(); ++i)
    tensor.setInteger({static_cast<int64_t>(i)}, values[i]);
  return tensor;
}

} // namespace fi::tile

#endif // FI_TEST_UNIT_TILEINTERPRETER_TILETESTING_H
