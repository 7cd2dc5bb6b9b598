//===- FakePackage.h - A package whose kernels count keys ------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Attention programs for tests of the runtime: the manifest is written from a
// few numbers, and the "kernels" count the keys that each row sees instead of
// attending to them. A row's result must then be what a naive loop over the
// mask counts, through splits, states and merges. The kernels also check what
// the ABI promises them.
//
//===----------------------------------------------------------------------===//
#ifndef FI_TEST_UNIT_RUNTIME_FAKEPACKAGE_H
#define FI_TEST_UNIT_RUNTIME_FAKEPACKAGE_H

#include "fi-runtime/fi_runtime.h"
#include "fi/ABI/KernelABI.h"

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace fi::test {

using json = nlohmann::json;

/// A query-key pair, as a mask sees it.
struct Pair {
  int64_t request, queryHead, kvHead, queryPosition, keyPosition;
  int64_t queryLength, keyLength;
};

struct FakeBody {
  int64_t tileRows = 16, tileKeys = 16;
  int64_t maxRows = -1; // -1: null
  int64_t scratch = 256;
  double item = 100, tile = 100, tileRow = 10;
};

enum class FakeView { Paged, Dense, Ragged };

/// The program: what its manifest says.
struct FakeProgram {
  int64_t kvHeads = 2, group = 2, vo = 4;
  FakeView view = FakeView::Paged;
  bool headsFirst = true;
  int64_t page = 4;
  bool wideTables = false; // i64
  bool positions = false, origin = false;
  bool twoTables = false; // pages of values apart
  /// Of a block-sparse view, which is ragged: the tables row_indptr and columns
  /// are extra arguments.
  int64_t blockRows = 0, blockColumns = 0;
  std::vector<FakeBody> bodies = {FakeBody()};
  bool merge = true;
  json split = nullptr;
  json mask = nullptr;
  json extraArguments = json::array();

  json manifest() const;
};

/// What the kernels work with; its address is their first parameter.
struct Recorder {
  const FakeProgram *program = nullptr;
  std::function<bool(const Pair &)> visible;
  const std::vector<int64_t> *positions = nullptr; // per row
  /// Per row, query head and key: times that a piece has covered it.
  std::vector<uint8_t> covered;
  bool cover = true; // false: leave `covered` empty, for plans that only plan
  int64_t maxKeys = 0;
  bool recordItems = false;
  int32_t spin = 0; // busy work per item

  std::mutex mutex;
  struct Seen {
    int body;
    bool merge;
    fi_item item;
    std::vector<fi_key_range> ranges;
  };
  std::vector<Seen> items;
  std::vector<std::string> violations;

  void violation(const std::string &text);
};

/// Opens the program with the counting kernels; null on failure.
fi_package *openFake(const json &manifest);
/// Finds the counting kernels by name: body0 ... body3, merge0 ... merge3.
void *findFakeKernel(void *context, const char *symbol);

/// A batch for a FakeProgram, with the memory behind its arguments.
struct FakeBatch {
  std::vector<int64_t> queryLengths, keyLengths; // per request
  int64_t leadingRows = 0, trailingRows = 0;
  int64_t pageOffset = 0;   // first entry of the page table in use
  int64_t surplusPages = 0; // entries after the last in use
  std::vector<int64_t> origins, positions;
  /// Per request and block of rows: the blocks of keys that it sees.
  std::vector<std::vector<std::vector<int64_t>>> blocks;
  /// Values of extra plan arguments, in order.
  struct Extra {
    bool scalar = false;
    int64_t value = 0;
    std::vector<int64_t> data, shape;
  };
  std::vector<Extra> extras;
  int64_t poolPages = 0; // set by bind()

  int64_t rows() const;
  /// Builds plan values, run values and results for the program.
  void bind(const FakeProgram &program, Recorder &recorder);

  std::vector<fi_value> plan, run;
  std::vector<fi_tensor> results;
  std::vector<float> output, lse;
  std::vector<float> query;

  // For tests that spoil a table: integer arguments by name.
  fi_value &planValue(const std::string &name);
  void set(const std::string &name, size_t index, int64_t value);

private:
  struct Memory {
    std::string name;
    std::vector<int32_t> narrow;
    std::vector<int64_t> wide;
    std::vector<int64_t> shape;
  };
  std::vector<std::unique_ptr<Memory>> memory;
  std::vector<std::string> planNames;
  std::vector<std::unique_ptr<std::vector<int64_t>>> shapes;
  std::vector<float> pool;
  fi_value integers(const std::string &name, const std::vector<int64_t> &data,
                    std::vector<int64_t> shape, bool wide);
  fi_tensor floats(float *data, std::vector<int64_t> shape);
};

/// Aligned memory of exactly the plan's size, with a guard after it.
class Workspace {
public:
  explicit Workspace(size_t bytes);
  ~Workspace() { std::free(block); }
  void *data() { return block; }
  size_t size() const { return bytes; }
  bool guardIntact() const;

private:
  size_t bytes;
  char *block;
};

struct PlanDeleter {
  void operator()(fi_plan *plan) const { fi_plan_destroy(plan); }
};
struct PackageDeleter {
  void operator()(fi_package *package) const { fi_package_release(package); }
};
using PlanPtr = std::unique_ptr<fi_plan, PlanDeleter>;
using PackagePtr = std::unique_ptr<fi_package, PackageDeleter>;

inline fi_plan_options defaultOptions(int32_t workers) {
  fi_plan_options options = {};
  options.struct_size = sizeof(options);
  options.workers = workers;
  return options;
}

/// Plans; on failure null, and the status in `status`.
PlanPtr planBatch(fi_package *package, const FakeBatch &batch,
                  const fi_plan_options &options, fi_status *status = nullptr);

/// Runs a batch in a workspace of exact size.
fi_status runBatch(fi_plan *plan, FakeBatch &batch);

/// Counts what every row should see by a naive loop and compares. Returns a
/// sentence on the first difference, else "".
std::string compareCounts(const FakeProgram &program, const FakeBatch &batch,
                          const Recorder &recorder);

} // namespace fi::test

#endif // FI_TEST_UNIT_RUNTIME_FAKEPACKAGE_H
