//===- QuantisedViewTest.cpp - views of codes with scales -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the reference reads, appends and refuses: numbers found by hand.
//
//===----------------------------------------------------------------------===//

#include "ReferenceTesting.h"

using namespace fi;
using namespace fi::test;

namespace {

/// Two pages of 2 keys, 2 heads of dim 8; one request with 3 keys in pages 1,
/// 0. The query sees one key alone, through a mask, so that the output is its
/// value.
struct Codes {
  std::string storage = "f8E4M3FN", scales = "tensor", scaleType = "f32";
  int64_t key = 0;

  Program make() {
    return Program(R"(
!kv = !fi.paged_kv<2x2x8x!fi.scaled<)" +
                   storage + ", per = " + scales + R"(, by = f32>, NHD>
!pool = memref<?x2x2x8x)" +
                   storage + R"(>
!ix = tensor<?xi32>
!s = )" + scaleType +
                   R"(
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix, %only: index)
    run(%q: tensor<?x2x8xf32>, %k: !pool, %v: !pool, %ks: !s, %vs: !s) -> (tensor<?x2x8xf32>, tensor<?x2xf32>) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%ks, %vs : !s, !s)
      : !pool, !pool -> !kv
  %o, %l = fi.attention %q over %kv scale(1.0) normalise(#fi.softmax<base = e>) captures(%j = %only : index)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %s = arith.cmpi eq, %kp, %j : index
        fi.yield %s : i1
      } : tensor<?x2x8xf32> over !kv -> tensor<?x2x8xf32>, tensor<?x2xf32>
  fi.return %o, %l : tensor<?x2x8xf32>, tensor<?x2xf32>
})");
  }
  /// 2 everywhere, but element 0 of page p, token t, head h is 8 p + 4 t + h.
  HostTensor pool() {
    HostTensor tensor(*parseDType(storage), {2, 2, 2, 8});
    for (int64_t p : {0, 1})
      for (int64_t t : {0, 1})
        for (int64_t h : {0, 1})
          for (int64_t d = 0; d < 8; ++d)
            tensor.setFloat({p, t, h, d},
                            d ? 2 : static_cast<double>(8 * p + 4 * t + h));
    return tensor;
  }
  std::vector<HostTensor> run(const HostValue &keys, const HostValue &values) {
    HostTensor q(DType::F32, {1, 2, 8});
    for (int64_t h : {0, 1})
      q.setFloat({0, h, 0}, 1);
    return make().run({ints({0, 2}), ints({1, 0}), ints({1}),
                       HostValue::integer(key), q, pool(), pool(), keys,
                       values});
  }
};

HostTensor filled(llvm::ArrayRef<int64_t> shape,
                  llvm::function_ref<double(llvm::ArrayRef<int64_t>)> value) {
  HostTensor tensor(DType::F32, shape);
  llvm::SmallVector<int64_t, 4> index(shape.size(), 0);
  for (int64_t i = 0, n = tensor.getNumElements(); i < n; ++i) {
    tensor.setFloat(index, value(index));
    for (int64_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d])
        break;
      index[d] = 0;
    }
  }
  return tensor;
}

} // namespace

// Key 1 of the request is token 1 of page 1: codes 12 and 13.
TEST(QuantisedView, OneScaleForAll) {
  for (const char *storage : {"f8E4M3FN", "i8"}) {
    Codes codes;
    codes.storage = storage;
    codes.key = 1;
    auto results = codes.run(HostValue::number(0.5), HostValue::number(0.25));
    EXPECT_EQ(results[0].getFloat({0, 0, 0}), 12 * 0.25);
    EXPECT_EQ(results[0].getFloat({0, 1, 0}), 13 * 0.25);
    EXPECT_EQ(results[0].getFloat({0, 1, 7}), 2 * 0.25);
    EXPECT_EQ(results[1].getFloat({0, 0}), 12 * 0.5);
    EXPECT_EQ(results[1].getFloat({0, 1}), 13 * 0.5);
  }
}

TEST(QuantisedView, ScalesOfHeads) {
  Codes codes;
  codes.scales = "head";
  codes.scaleType = "tensor<2xf32>";
  codes.key = 1;
  auto results = codes.run(floats({2}, {2, 3}), floats({2}, {5, 7}));
  EXPECT_EQ(results[0].getFloat({0, 0, 0}), 12 * 5);
  EXPECT_EQ(results[0].getFloat({0, 1, 0}), 13 * 7);
  EXPECT_EQ(results[1].getFloat({0, 1}), 13 * 3);
}

// Key 2 is token 0 of page 0: codes 0 and 1.
TEST(QuantisedView, ScalesOfPagesAndTokens) {
  Codes codes;
  codes.scales = "page";
  codes.scaleType = "tensor<?x2xf32>";
  codes.key = 2;
  HostTensor pages = filled({2, 2}, [](llvm::ArrayRef<int64_t> at) {
    return 1.0 + double(at[0]) * 2 + double(at[1]);
  });
  auto results = codes.run(pages, pages);
  EXPECT_EQ(results[0].getFloat({0, 0, 1}), 2 * 1);
  EXPECT_EQ(results[0].getFloat({0, 1, 0}), 1 * 2);
  EXPECT_EQ(results[1].getFloat({0, 1}), 1 * 2);
  codes.scales = "token";
  codes.scaleType = "tensor<?x2x2xf32>";
  codes.key = 1;
  HostTensor tokens = filled({2, 2, 2}, [](llvm::ArrayRef<int64_t> at) {
    return 1.0 + double(at[0]) * 4 + double(at[1]) * 2 + double(at[2]);
  });
  results = codes.run(tokens, tokens);
  EXPECT_EQ(results[0].getFloat({0, 0, 0}), 12 * 7);
  EXPECT_EQ(results[0].getFloat({0, 1, 0}), 13 * 8);
}

TEST(QuantisedView, qnt5SizesOfScales) {
  Codes codes;
  codes.scales = "page";
  codes.scaleType = "tensor<?x2xf32>";
  HostTensor good = filled({2, 2}, [](auto) { return 1.0; });
  HostTensor bad = filled({3, 2}, [](auto) { return 1.0; });
  HostTensor q(DType::F32, {1, 2, 8});
  EXPECT_EQ(codes.make().error({ints({0, 2}), ints({1, 0}), ints({1}),
                                HostValue::integer(0), q, codes.pool(),
                                codes.pool(), good, bad}),
            "program @p: 'fi.view.paged' op expected the scales of values to "
            "have size 2 in dimension 0 like their pool, but got 3 [QNT5]");
}

// Nearest, ties to even, the largest for what is beyond, and subnormal numbers.
TEST(QuantisedView, Appends) {
  Program program(R"(
!kv = !fi.paged_kv<2x1x8x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, NHD, v = !fi.scaled<i8, per = tensor, by = f32>>
!ix = tensor<?xi32>
!new = tensor<?x1x8xf32>
fi.program @p plan(%rows: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%nk: !new, %nv: !new, %k: memref<?x2x1x8xf8E4M3FN>, %v: memref<?x2x1x8xi8>, %ks: f32, %vs: f32) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%ks, %vs : f32, f32)
      : memref<?x2x1x8xf8E4M3FN>, memref<?x2x1x8xi8> -> !kv
  fi.append %nk, %nv rows(%rows : !ix) to %kv : !new, !new to !kv
  fi.return
})");
  HostTensor k(DType::F8E4M3FN, {1, 2, 1, 8}), v(DType::I8, {1, 2, 1, 8});
  double news[] = {1, 17, 19, 1e9, -1e9, 0x1p-10, 0x1.8p-9, -300};
  HostTensor fresh(DType::F32, {1, 1, 8});
  for (int64_t d = 0; d < 8; ++d)
    fresh.setFloat({0, 0, d}, news[d]);
  program.run({ints({0, 1}), ints({0, 1}), ints({0}), ints({2}), fresh, fresh,
               k, v, HostValue::number(1), HostValue::number(2)});
  // Between 16 and 32 numbers are 2 apart; the smallest one is 2^-9.
  double keys[] = {1, 16, 20, 448, -448, 0, 0x1p-8, -288};
  int64_t values[] = {0, 8, 10, 127, -128, 0, 0, -128};
  for (int64_t d = 0; d < 8; ++d) {
    EXPECT_EQ(k.getFloat({0, 1, 0, d}), keys[d]) << d;
    EXPECT_EQ(v.getInteger({0, 1, 0, d}), values[d]) << d;
    EXPECT_EQ(k.getFloat({0, 0, 0, d}), 0);
  }
}

// The scale of the first block is 12 / 6 / 0.5 = 4, so that a step of codes is
// 2 and the codes are x / 2; that of the second, 0.03 / 6 / 0.5 = 0.01, is
// rounded to 5 * 2^-9, the nearest f8E4M3FN.
TEST(QuantisedView, AppendsBlocks) {
  Program program(R"(
!kv = !fi.ragged_kv<1x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
!ix = tensor<?xi32>
!new = tensor<?x1x32xf32>
!pool = memref<?x1x16xi8>
!s = memref<?x1x2xf8E4M3FN>
fi.program @p plan(%rows: !ix, %ip: !ix) run(%n: !new, %k: !pool, %v: !pool, %kb: !s, %vb: !s, %ks: f32, %vs: f32) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix) scales(%kb, %ks, %vb, %vs : !s, f32, !s, f32) : !pool, !pool -> !kv
  fi.append %n, %n rows(%rows : !ix) to %kv : !new, !new to !kv
  fi.return
})");
  HostTensor k(DType::I8, {2, 1, 16}), v(DType::I8, {2, 1, 16});
  HostTensor kb(DType::F8E4M3FN, {2, 1, 2}), vb(DType::F8E4M3FN, {2, 1, 2});
  // Halfway between codes 2 and 3 (5) and 1 and 1.5 (2.5): ties to even.
  double news[] = {12, -12, 5, 2.5, -1, 0.4, 7, 0};
  HostTensor fresh(DType::F32, {1, 1, 32});
  for (int64_t d = 0; d < 8; ++d)
    fresh.setFloat({0, 0, d}, news[d]);
  fresh.setFloat({0, 0, 20}, 0.03);
  fresh.setFloat({0, 0, 21}, -0.0001);
  program.run({ints({0, 1}), ints({0, 2}), fresh, k, v, kb, vb,
               HostValue::number(0.5), HostValue::number(1)});
  EXPECT_EQ(kb.getFloat({1, 0, 0}), 4);
  EXPECT_EQ(vb.getFloat({1, 0, 0}), 2);
  EXPECT_EQ(kb.getFloat({1, 0, 1}), 5 * 0x1p-9);
  double codes[] = {6, -6, 2, 1, -0.5, 0, 4, 0};
  auto codeOf = [&](const HostTensor &pool, int64_t d) {
    int64_t byte = pool.getInteger({1, 0, d / 2});
    return readFloat4(d % 2 ? byte >> 4 : byte);
  };
  for (int64_t d = 0; d < 8; ++d) {
    EXPECT_EQ(codeOf(k, d), codes[d]) << d;
    EXPECT_EQ(codeOf(v, d), codes[d]) << d;
  }
  EXPECT_EQ(codeOf(k, 20), 6);
  EXPECT_EQ(codeOf(k, 21), 0);
  EXPECT_EQ(k.getInteger({0, 0, 0}), 0);
}
