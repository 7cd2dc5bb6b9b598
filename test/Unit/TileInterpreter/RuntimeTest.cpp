//===- RuntimeTest.cpp - the runtime runs interpreted kernels -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A package in memory whose kernels are level 2 text: the runtime plans a
// batch, splits its keys and merges them, and the result must not depend on the
// plan.
//
//===----------------------------------------------------------------------===//

#include "AttentionKernels.h"
#include "TileTesting.h"
#include "fi-runtime/fi_runtime.h"

using namespace fi;
using namespace fi::tile;

namespace {

constexpr const char *kManifest = R"({
  "manifest": 1, "abi": 1, "compiler": "test", "program": "interpreted",
  "target": {"kind": "cpu", "cpu": "none", "vector_bits": 0},
  "arguments": [
    {"name": "qo", "group": "plan", "kind": "tensor", "dtype": "i32", "shape": [null]},
    {"name": "indptr", "group": "plan", "kind": "tensor", "dtype": "i32", "shape": [null]},
    {"name": "pages", "group": "plan", "kind": "tensor", "dtype": "i32", "shape": [null]},
    {"name": "last", "group": "plan", "kind": "tensor", "dtype": "i32", "shape": [null]},
    {"name": "q", "group": "run", "kind": "tensor", "dtype": "f32", "shape": [null, 6, 16]},
    {"name": "k", "group": "run", "kind": "pool", "dtype": "f32", "shape": [null, 2, 4, 16]},
    {"name": "v", "group": "run", "kind": "pool", "dtype": "f32", "shape": [null, 2, 4, 16]},
    {"name": "sinks", "group": "run", "kind": "tensor", "dtype": "f32", "shape": [null, 6]}
  ],
  "results": [
    {"name": "o", "dtype": "f32", "shape": [null, 6, 16], "rows_of": "q"},
    {"name": "lse", "dtype": "f32", "shape": [null, 6], "rows_of": "q"}
  ],
  "temporaries": [],
  "stages": [{
    "op": "attention", "name": "attention0", "query": "q", "rows": "qo", "positions": null,
    "view": {"kind": "paged", "keys": "k", "values": "v", "order": "HND", "page": 4, "heads": 2,
             "indptr": "indptr", "pages": "pages", "last": "last", "lengths": null, "origin": null},
    "heads": {"q": 6, "kv": 2}, "dims": {"qk": 16, "vo": 16},
    "outputs": {"o": "o", "lse": "lse"},
    "buffers": ["q", "k", "v", "pages", "o", "lse"],
    "bodies": [{"symbol": "attention", "tile_rows": 8, "tile_keys": 16, "max_rows": null,
                "scratch": 0, "cost": {"item": 1, "tile": 1, "tile_row": 1}}],
    "merge": {"symbol": "merge", "tile_rows": 8, "scratch": 0, "cost": {"item": 1, "slot_row": 1}},
    "split": {"policy": "balanced"},
    "mask": {"terms": [{"lo": [], "hi": [["q"]], "exact": true}]}
  }]
})";

const std::string kMerge = makeMerge(/*sink=*/false, /*attentionBuffers=*/true);

struct PackageDeleter {
  void operator()(fi_package *package) { fi_package_release(package); }
};
struct PlanDeleter {
  void operator()(fi_plan *plan) { fi_plan_destroy(plan); }
};

fi_value value(const HostTensor &tensor) {
  fi_value result = {};
  result.kind = FI_VALUE_TENSOR;
  result.as.tensor = {tensor.getData(),
                      tensor.getType() == DType::F32 ? FI_F32 : FI_I32,
                      static_cast<int32_t>(tensor.getRank()),
                      tensor.getShape().data(), tensor.getStrides().data()};
  return result;
}

class InterpretedRuntimeTest : public TileTest {
protected:
  void SetUp() override {
    makeKernels(makeAttention(Style::Split) + kMerge);
    q = HostTensor(DType::F32, {9, 6, 16});
    k = HostTensor(DType::F32, {12, 2, 4, 16});
    v = HostTensor(DType::F32, {12, 2, 4, 16});
    sinks = HostTensor(DType::F32, {9, 6});
    fillNormal(q, 1);
    fillNormal(k, 2);
    fillNormal(v, 3);
    // Requests of 1, 0, 7 rows over 23, 9 and 7 keys, and a row of padding.
    rows = integers({0, 1, 1, 8});
    indptr = integers({1, 7, 10, 12});
    pages = integers({9, 0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11});
    last = integers({3, 1, 3});
    o = filled({9, 6, 16}, -7);
    lse = filled({9, 6}, -7);
  }

  void makeKernels(const std::string &text) {
    kernels.reset();
    ASSERT_TRUE(parse(text));
    llvm::Expected<std::unique_ptr<InterpretedKernels>> made =
        InterpretedKernels::create(*module);
    ASSERT_TRUE(static_cast<bool>(made));
    kernels = std::move(*made);
  }

  void open() {
    fi_package *opened = nullptr;
    ASSERT_EQ(fi_package_from_memory(kManifest, strlen(kManifest),
                                     InterpretedKernels::lookupSymbol,
                                     kernels.get(), &opened),
              FI_OK)
        << fi_last_error();
    package.reset(opened);
  }

  void plan(int32_t workers, int32_t policy = FI_SPLIT_NONE) {
    fi_value values[] = {value(rows), value(indptr), value(pages), value(last)};
    fi_plan_options options = {};
    options.struct_size = sizeof(options);
    options.workers = workers;
    options.rows = 9;
    options.split_policy = policy;
    options.split_keys = policy == FI_SPLIT_FIXED ? 16 : 0;
    fi_plan *made = nullptr;
    ASSERT_EQ(fi_plan_create(package.get(), values, 4, &options, &made), FI_OK)
        << fi_last_error();
    planned.reset(made);
  }

  std::string execute() {
    fi_value values[] = {value(q), value(k), value(v), value(sinks)};
    fi_tensor results[] = {value(o).as.tensor, value(lse).as.tensor};
    size_t bytes = fi_plan_workspace_bytes(planned.get());
    HostTensor workspace(DType::I8, {static_cast<int64_t>(bytes)});
    EXPECT_EQ(fi_run(planned.get(), 0, values, 4, results, 2,
                     workspace.getData(), bytes),
              FI_OK)
        << fi_last_error();
    return llvm::toString(kernels->takeError());
  }

  /// log2 of the sum of exponentials of a row's scores.
  double expectedLse(int64_t row, int64_t head, int64_t firstPage,
                     int64_t keys) {
    double sum = 0;
    for (int64_t key = 0; key < keys; ++key) {
      double s = 0;
      for (int64_t d = 0; d < 16; ++d)
        s += q.getFloat({row, head, d}) *
             k.getFloat({pages.getInteger({firstPage + key / 4}), head / 3,
                         key % 4, d});
      sum += std::exp(s / 4);
    }
    return std::log2(sum);
  }

  std::unique_ptr<InterpretedKernels> kernels;
  std::unique_ptr<fi_package, PackageDeleter> package;
  std::unique_ptr<fi_plan, PlanDeleter> planned;
  HostTensor q, k, v, sinks, rows, indptr, pages, last, o, lse;
};

TEST_F(InterpretedRuntimeTest, PlansAndRuns) {
  open();
  for (int32_t policy : {FI_SPLIT_NONE, FI_SPLIT_FIXED}) {
    fillConstant(o, -7);
    fillConstant(lse, -7);
    plan(/*workers=*/3, policy);
    // Twice, as two layers would: states may be written again once merged.
    ASSERT_EQ(execute(), "");
    ASSERT_EQ(execute(), "");
    for (int64_t h = 0; h < 6; ++h) {
      EXPECT_NEAR(lse.getFloat({0, h}), expectedLse(0, h, 1, 23), 2e-6);
      for (int64_t i = 0; i < 7; ++i)
        EXPECT_NEAR(lse.getFloat({1 + i, h}), expectedLse(1 + i, h, 10, 1 + i),
                    2e-6);
      // Padding is an empty state.
      EXPECT_EQ(lse.getFloat({8, h}), -kInf);
      EXPECT_EQ(o.getFloat({8, h, 3}), 0);
    }
    // The first row of a request sees one key, so its output is that value.
    for (int64_t d = 0; d < 16; ++d)
      EXPECT_NEAR(o.getFloat({1, 4, d}), v.getFloat({10, 1, 0, d}), 1e-6);
  }
}

TEST_F(InterpretedRuntimeTest, SplitsAreMerged) {
  open();
  plan(/*workers=*/4, FI_SPLIT_NONE);
  ASSERT_EQ(execute(), "");
  HostTensor whole = o;
  o = filled({9, 6, 16}, -7);
  plan(/*workers=*/4, FI_SPLIT_FIXED);
  char *text = nullptr;
  ASSERT_EQ(fi_plan_explain(planned.get(), &text), FI_OK);
  EXPECT_THAT(text, testing::HasSubstr("state slots")); // it was split
  fi_string_free(text);
  ASSERT_EQ(execute(), "");
  for (int64_t r = 0; r < 9; ++r)
    for (int64_t h = 0; h < 6; ++h)
      for (int64_t d = 0; d < 16; ++d)
        EXPECT_NEAR(o.getFloat({r, h, d}), whole.getFloat({r, h, d}), 1e-6);
}

TEST_F(InterpretedRuntimeTest, ReportsTheFirstError) {
  // A kernel that loads beyond the keys.
  std::string text = makeAttention(Style::Split) + kMerge;
  size_t at = text.find("keys %kv[%it, %t]");
  ASSERT_NE(at, std::string::npos);
  makeKernels(text.replace(at, 17, "keys %kv[%it, %kvlen]"));
  open();
  plan(/*workers=*/2);
  EXPECT_THAT(execute(),
              testing::ContainsRegex("kernel.mlir:[0-9]+:[0-9]+: "
                                     "'fi_tile.load_kv' op expected first key "
                                     "of the tile to be below"));
  // Asked once, the error is gone.
  EXPECT_EQ(llvm::toString(kernels->takeError()), "");
}

TEST_F(InterpretedRuntimeTest, Symbols) {
  EXPECT_NE(kernels->lookup("attention"), nullptr);
  EXPECT_EQ(kernels->lookup("attention2"), nullptr);
  auto *version = static_cast<int32_t *>(
      InterpretedKernels::lookupSymbol(kernels.get(), FI_ABI_VERSION_SYMBOL));
  ASSERT_NE(version, nullptr);
  EXPECT_EQ(*version, FI_ABI_VERSION);
}

TEST_F(InterpretedRuntimeTest, TrampolinesAreGivenBack) {
  // Two kernels a module; the fixture has taken two.
  std::vector<std::unique_ptr<InterpretedKernels>> taken;
  for (unsigned i = 2; i < InterpretedKernels::kMaxKernels; i += 2) {
    llvm::Expected<std::unique_ptr<InterpretedKernels>> made =
        InterpretedKernels::create(*module);
    ASSERT_TRUE(static_cast<bool>(made)) << llvm::toString(made.takeError());
    EXPECT_NE((*made)->lookup("attention"), kernels->lookup("attention"));
    taken.push_back(std::move(*made));
  }
  EXPECT_THAT(
      llvm::toString(InterpretedKernels::create(*module).takeError()),
      testing::HasSubstr("'fi_tile.kernel' op expected at most 64 interpreted "
                         "kernels at a time"));
  taken.pop_back();
  llvm::Expected<std::unique_ptr<InterpretedKernels>> made =
      InterpretedKernels::create(*module);
  EXPECT_TRUE(static_cast<bool>(made));
}

TEST_F(InterpretedRuntimeTest, DecodesScalarsAndStrides) {
  ASSERT_TRUE(parse(R"(
fi_tile.kernel @f(%x: f32, %i: i8, %o: memref<?x?xf32>, %w: !fi_tile.work) schedule(#s) {
  %j = arith.sitofp %i : i8 to f32
  %y = arith.addf %x, %j : f32
  %t = tensor.splat %y : tensor<8x1xf32>
  fi_tile.for_items %it in %w {
    fi_tile.store_rows %t, %o[%it] group 1 : tensor<8x1xf32>, memref<?x?xf32>
  }
  fi_tile.return
}
fi_tile.kernel @half(%x: f16, %w: !fi_tile.work) schedule(#s) {
  fi_tile.return
})"));
  EXPECT_THAT(
      llvm::toString(InterpretedKernels::create(*module).takeError()),
      testing::HasSubstr("expected float scalars of f32, which the kernel ABI "
                         "can pass, but got f16"));
  kernel("half").erase();
  llvm::Expected<std::unique_ptr<InterpretedKernels>> made =
      InterpretedKernels::create(*module);
  ASSERT_TRUE(static_cast<bool>(made));
  std::vector<float> memory(20, -1.0f);
  float x = 0.25f;
  int64_t params[7] = {};
  memcpy(&params[0], &x, sizeof(x));
  params[1] = -100;
  params[2] = reinterpret_cast<int64_t>(memory.data());
  params[3] = 3; // sizes
  params[4] = 2;
  params[5] = 5; // strides
  params[6] = 2;
  TestWork work;
  fi_item &item = work.add();
  item.kv_head = 1;
  item.row_count = 3;
  item.q_len = 3;
  fi_work launched = work.get();
  (*made)->lookup("f")(params, &launched, 0, 1, nullptr);
  ASSERT_EQ(llvm::toString((*made)->takeError()), "");
  for (int64_t i = 0; i < 20; ++i)
    EXPECT_EQ(memory[i], i == 2 || i == 7 || i == 12 ? -99.75f : -1.0f) << i;
}

} // namespace
