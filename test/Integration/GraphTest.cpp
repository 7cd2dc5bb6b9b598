//===- GraphTest.cpp - compiled kernels in graph-safe and checked plans ---===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches of compiled kernels are kept, as a graph does, and done again in the
// emulator after updates of their plan: the bits are those of a fresh plan.
// Kernels of a module with `fi.checked` tell of page indices that are wrong.
//
//===----------------------------------------------------------------------===//

#include "IntegrationTesting.h"
#include "fi-emulator/fi_emulator_driver.h"
#include "fi-runtime/fi_runtime.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "mlir/Parser/Parser.h"
#include <random>

using namespace fi;
using namespace fi::test;

namespace {

constexpr int64_t kRows = 24, kHeads = 4, kKVHeads = 2, kDim = 64, kPage = 16,
                  kPoolPages = 40;

struct Lengths {
  std::vector<int32_t> rows, keys;
};

/// Launches through its table are kept while `isKeeping`.
class KeepingDriver {
public:
  KeepingDriver()
      : emulator(fi_emulator_driver("sm_80", "check,sms=6")), table(*emulator) {
    active = this;
    table.launch = [](void *self, void *function,
                      const fi_driver_launch *launch) {
      const char *params = static_cast<const char *>(launch->params);
      if (active->isKeeping) {
        active->kept.push_back(
            {function, *launch, {params, params + launch->param_bytes}});
        return 0;
      }
      return active->emulator->launch(self, function, launch);
    };
  }
  ~KeepingDriver() { fi_emulator_driver_destroy(emulator); }

  std::string replay() {
    for (Kept &one : kept) {
      one.launch.params = one.params.data();
      if (emulator->launch(emulator->self, one.function, &one.launch))
        return emulator->last_error(emulator->self);
    }
    return "";
  }

  struct Kept {
    void *function;
    fi_driver_launch launch;
    std::vector<char> params;
  };
  const fi_driver *emulator;
  fi_driver table;
  bool isKeeping = false;
  std::vector<Kept> kept;
  static KeepingDriver *active;
};
KeepingDriver *KeepingDriver::active = nullptr;

class CompiledGraph : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_TRUE(driver.emulator) << fi_emu_last_error();
    ASSERT_EQ(fi_device_open(&driver.table, 0, &device), FI_OK);
  }
  void TearDown() override {
    fi_plan_destroy(plan);
    fi_package_release(package);
    fi_device_release(device);
    for (void *memory : allocated)
      driver.emulator->memory_free(driver.emulator->self, memory);
  }

  void compile(bool isChecked) {
    AttentionText text;
    text.target = "#fi.target<sm_80>";
    text.query = text.keys = text.values = text.output = "f16";
    text.clauses = "mask(#fi.causal)";
    mlir::ParserConfig config(&getContext());
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text.get(), config);
    ASSERT_TRUE(module);
    if (isChecked)
      (*module)->setAttr(kCheckedAttr, mlir::UnitAttr::get(&getContext()));
    gpu::CompileOptions options;
    options.assemble = false;
    auto compiled = gpu::compileForGPU(*module, "", options);
    ASSERT_TRUE(bool(compiled)) << llvm::toString(compiled.takeError());
    EXPECT_EQ(compiled->manifest.find("\"faults\"") != std::string::npos,
              isChecked);
    fi_code code = {FI_DRIVER_PTX, compiled->ptx.c_str(), compiled->ptx.size()};
    ASSERT_EQ(fi_package_from_code(compiled->manifest.data(),
                                   compiled->manifest.size(), &code, 1,
                                   &package),
              FI_OK)
        << fi_last_error();
    // Small random numbers in f16: 0x2800 ... 0x3bff and their negatives.
    std::mt19937 random(1);
    auto tensor = [&](fi_dtype type, std::vector<int64_t> shape, bool fill) {
      int64_t bytes = type == FI_F16 ? 2 : 4;
      for (int64_t size : shape)
        bytes *= size;
      void *memory = nullptr;
      EXPECT_EQ(
          driver.emulator->memory_alloc(driver.emulator->self, bytes, &memory),
          0);
      allocated.push_back(memory);
      std::vector<uint16_t> data(bytes / 2);
      for (uint16_t &x : data)
        x = fill ? uint16_t(0x2800 + random() % 0x1400) | (random() % 2 << 15)
                 : 0xffff;
      driver.emulator->copy_to_device(driver.emulator->self, memory,
                                      data.data(), bytes, nullptr);
      shapes.push_back(std::make_unique<std::vector<int64_t>>(shape));
      return fi_tensor{memory, type, int32_t(shape.size()),
                       shapes.back()->data(), nullptr};
    };
    auto value = [](fi_tensor of) {
      fi_value made = {};
      made.kind = FI_VALUE_TENSOR;
      made.as.tensor = of;
      return made;
    };
    values = {value(tensor(FI_F16, {kRows, kHeads, kDim}, true)),
              value(tensor(FI_F16, {kPoolPages, kKVHeads, kPage, kDim}, true)),
              value(tensor(FI_F16, {kPoolPages, kKVHeads, kPage, kDim}, true))};
    results = {tensor(FI_F16, {kRows, kHeads, kDim}, false),
               tensor(FI_F32, {kRows, kHeads}, false)};
  }

  /// The tables of a batch, which stay with the test.
  std::vector<fi_value> tablesOf(const Lengths &batch) {
    std::vector<int32_t> qo = {0}, indptr = {0}, last;
    pages.clear();
    for (size_t r = 0; r < batch.rows.size(); ++r) {
      qo.push_back(qo.back() + batch.rows[r]);
      int32_t count = (batch.keys[r] + kPage - 1) / kPage;
      indptr.push_back(indptr.back() + count);
      last.push_back(batch.keys[r] ? (batch.keys[r] - 1) % kPage + 1 : 0);
      for (int32_t i = 0; i < count; ++i)
        pages.push_back((int32_t(pages.size()) * 7 + 3) % kPoolPages);
    }
    std::vector<fi_value> all;
    for (const std::vector<int32_t> &one : {qo, indptr, pages, last}) {
      kept.push_back(std::make_unique<std::vector<int32_t>>(one));
      kept.back()->reserve(1);
      shapes.push_back(std::make_unique<std::vector<int64_t>>(
          std::vector<int64_t>{int64_t(one.size())}));
      fi_value value = {};
      value.kind = FI_VALUE_TENSOR;
      value.as.tensor = {kept.back()->data(), FI_I32, 1, shapes.back()->data(),
                         nullptr};
      all.push_back(value);
    }
    return all;
  }

  fi_plan *make(const Lengths &batch, bool isGraphSafe, int32_t policy) {
    std::vector<fi_value> tables = tablesOf(batch);
    fi_plan_options options = {};
    options.struct_size = sizeof(options);
    options.device = device;
    options.rows = kRows;
    options.graph_safe = isGraphSafe;
    options.split_policy = policy;
    options.split_keys = 64;
    fi_plan *made = nullptr;
    EXPECT_EQ(fi_plan_create(package, tables.data(), int32_t(tables.size()),
                             &options, &made),
              FI_OK)
        << fi_last_error();
    return made;
  }

  fi_status run(fi_plan *of) {
    size_t bytes = fi_plan_workspace_bytes(of);
    if (bytes > workspaceBytes || !workspace) {
      driver.emulator->memory_alloc(driver.emulator->self, bytes + 1,
                                    &workspace);
      allocated.push_back(workspace);
      workspaceBytes = bytes;
    }
    return fi_run_device(of, 0, values.data(), int32_t(values.size()),
                         results.data(), 2, workspace, workspaceBytes, nullptr);
  }

  /// The bits of both results, and garbage in their place.
  std::vector<char> take() {
    std::vector<char> all;
    for (const fi_tensor &result : results) {
      size_t bytes = result.dtype == FI_F16 ? 2 : 4;
      for (int32_t d = 0; d < result.rank; ++d)
        bytes *= result.shape[d];
      std::vector<char> one(bytes), garbage(bytes, char(0xff));
      driver.emulator->copy_to_host(driver.emulator->self, one.data(),
                                    result.data, bytes, nullptr);
      driver.emulator->copy_to_device(driver.emulator->self, result.data,
                                      garbage.data(), bytes, nullptr);
      all.insert(all.end(), one.begin(), one.end());
    }
    return all;
  }

  /// The plan's copy of the page table on the device, found among the
  /// parameters of a launch. The emulator's memory is the host's.
  int32_t *findPages() {
    for (const KeepingDriver::Kept &launch : driver.kept)
      for (size_t at = 0; at + 8 <= launch.params.size(); at += 8) {
        int32_t *pointer;
        std::memcpy(&pointer, launch.params.data() + at, 8);
        fi_driver_pointer info = {};
        driver.emulator->pointer_info(driver.emulator->self, pointer, &info);
        if (info.memory == FI_DRIVER_DEVICE &&
            std::equal(pages.begin(), pages.end(), pointer))
          return pointer;
      }
    return nullptr;
  }

  KeepingDriver driver;
  fi_device *device = nullptr;
  fi_package *package = nullptr;
  fi_plan *plan = nullptr;
  std::vector<fi_value> values;
  std::vector<fi_tensor> results;
  std::vector<int32_t> pages;
  std::vector<std::unique_ptr<std::vector<int64_t>>> shapes;
  std::vector<std::unique_ptr<std::vector<int32_t>>> kept;
  std::vector<void *> allocated;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
};

TEST_F(CompiledGraph, ReplaysGiveTheBitsOfFreshPlans) {
  for (bool isChecked : {false, true}) {
    SCOPED_TRACE(isChecked);
    fi_package_release(package);
    package = nullptr;
    compile(isChecked);
    for (int32_t policy : {FI_SPLIT_FIXED, FI_SPLIT_NONE}) {
      Lengths first = {{1, 1, 17, 1, 1}, {90, 20, 130, 1, 48}};
      plan = make(first, true, policy);
      ASSERT_TRUE(plan);
      driver.kept.clear();
      driver.isKeeping = true;
      ASSERT_EQ(run(plan), FI_OK) << fi_last_error();
      driver.isKeeping = false;
      for (const Lengths &batch :
           {first, Lengths{{1}, {280}}, Lengths{{}, {}},
            Lengths{{1, 0, 1, 4}, {33, 100, 0, 64}}, first}) {
        std::vector<fi_value> tables = tablesOf(batch);
        ASSERT_EQ(fi_plan_update(plan, tables.data(), int32_t(tables.size()),
                                 nullptr),
                  FI_OK)
            << fi_last_error();
        take();
        ASSERT_EQ(driver.replay(), "");
        std::vector<char> replayed = take();
        fi_plan *fresh = make(batch, false, policy);
        ASSERT_TRUE(fresh);
        ASSERT_EQ(run(fresh), FI_OK) << fi_last_error();
        EXPECT_TRUE(take() == replayed)
            << batch.rows.size() << " requests, policy " << policy;
        EXPECT_EQ(fi_plan_check(fresh), FI_OK) << fi_last_error();
        fi_plan_destroy(fresh);
      }
      EXPECT_EQ(fi_plan_check(plan), FI_OK) << fi_last_error();
      fi_plan_destroy(plan);
      plan = nullptr;
    }
  }
}

/// A page index that goes wrong on the device: found by a checked kernel, and
/// by the emulator where kernels do not check.
TEST_F(CompiledGraph, WrongPagesNameTheRequest) {
  for (bool isChecked : {true, false}) {
    SCOPED_TRACE(isChecked);
    fi_package_release(package);
    package = nullptr;
    compile(isChecked);
    plan = make({{1, 1, 1}, {40, 50, 60}}, false, FI_SPLIT_NONE);
    ASSERT_TRUE(plan);
    driver.kept.clear();
    driver.isKeeping = true;
    ASSERT_EQ(run(plan), FI_OK) << fi_last_error();
    driver.isKeeping = false;
    int32_t *table = findPages();
    ASSERT_TRUE(table);
    table[4] = 1 << 20; // of request 1, which has the entries 3 ... 6
    fi_status status = run(plan);
    if (isChecked) {
      EXPECT_EQ(status, FI_OK) << fi_last_error();
      status = fi_plan_check(plan);
    }
    EXPECT_EQ(status, FI_DEVICE_ERROR);
    std::string said = fi_last_error();
    EXPECT_NE(said.find("generation 1 of the plan: kernel '"),
              std::string::npos)
        << said;
    EXPECT_NE(said.find("request 1, KV head "), std::string::npos) << said;
    EXPECT_NE(said.find(isChecked
                            ? "expected page indices from 0 below 40, the "
                              "pages of its pool, but the table on the device "
                              "had 1048576"
                            : "out-of-bounds access"),
              std::string::npos)
        << said;
    fi_plan_destroy(plan);
    plan = nullptr;
  }
}

} // namespace
