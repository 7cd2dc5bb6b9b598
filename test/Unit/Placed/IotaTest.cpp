//===- IotaTest.cpp - coordinates through layouts, in the emulator --------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels write coordinates through one layout and read them through another;
// whatever lies where nobody expects it comes out as another number. Everything
// is exact.
//
//===----------------------------------------------------------------------===//

#include "PlacedTesting.h"
#include "fi/Dialect/FITile/Transforms/Passes.h"

using namespace fi;
using namespace fi::tile;

namespace {

struct Shape {
  int64_t warps, repRows, keys, keyDim, valueDim;
  const char *type;
};

std::ostream &operator<<(std::ostream &os, const Shape &shape) {
  return os << shape.warps << " warps x " << shape.repRows * 16 << " rows, "
            << shape.keys << " keys, " << shape.keyDim << " to "
            << shape.valueDim << " " << shape.type;
}

/// Replaces each `$name` of a list.
std::string
fill(std::string text,
     std::initializer_list<std::pair<const char *, std::string>> replacements) {
  for (const auto &[name, value] : replacements)
    for (size_t at; (at = text.find(name)) != std::string::npos;)
      text.replace(at, std::string(name).size(), value);
  return text;
}

class IotaTest : public PlacedTest,
                 public ::testing::WithParamInterface<Shape> {
protected:
  int64_t rows() const { return GetParam().warps * GetParam().repRows * 16; }
  std::string frag(const char *atom, int64_t columns) {
    return fill("#fi_tile.frag<$atom, rep = [$rows, $columns], warps = $warps>",
                {{"$atom", atom},
                 {"$rows", std::to_string(GetParam().repRows)},
                 {"$columns", std::to_string(columns)},
                 {"$warps", std::to_string(GetParam().warps)}});
  }
  /// The type of a channel of one buffer, without its name.
  std::string buffer(int64_t bufferRows, int64_t columns) {
    mlir::Type element = GetParam().type == std::string("f16")
                             ? mlir::Type(mlir::Float16Type::get(&context))
                             : mlir::Type(mlir::BFloat16Type::get(&context));
    return std::to_string(bufferRows) + "x" + std::to_string(columns) + "x" +
           GetParam().type + ", " +
           print(getSmemLayout(&context, columns, element));
  }
  bool place() {
    return runPasses([](mlir::OpPassManager &pm) {
      pm.nest<KernelOp>().addPass(createFITileAllocate());
    });
  }
};

// Registers to memory: iota over rows and columns, broadcast, and stored.
TEST_P(IotaTest, Registers) {
  const Shape &shape = GetParam();
  std::string text = fill(
      R"(
#acc = $acc
#row = #fi_tile.slice<1, $acc>
#column = #fi_tile.slice<0, $acc>
#partial = #fi_tile.partial<$acc>
fi_tile.kernel @coordinates(%o: memref<?x1x$Cxf32>, %top: memref<?x1xf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = $R, tile_keys = 8, warps = $W>) {
  %zero = arith.constant 0 : index
  %c = arith.constant dense<$C> : tensor<$Rx$Cxindex, #acc>
  fi_tile.for_items %it in %w {
    %r0 = fi_tile.iota %zero : tensor<$Rx1xindex, #row>
    %c0 = fi_tile.iota %zero : tensor<1x$Cxindex, #column>
    %r1 = fi_tile.broadcast %r0 : tensor<$Rx1xindex, #row> -> tensor<$Rx$Cxindex, #acc>
    %c1 = fi_tile.broadcast %c0 : tensor<1x$Cxindex, #column> -> tensor<$Rx$Cxindex, #acc>
    %r2 = arith.muli %r1, %c : tensor<$Rx$Cxindex, #acc>
    %n = arith.addi %r2, %c1 : tensor<$Rx$Cxindex, #acc>
    %i = arith.index_cast %n : tensor<$Rx$Cxindex, #acc> to tensor<$Rx$Cxi32, #acc>
    %f = arith.sitofp %i : tensor<$Rx$Cxi32, #acc> to tensor<$Rx$Cxf32, #acc>
    fi_tile.store_rows %f, %o[%it] group 1 : tensor<$Rx$Cxf32, #acc>, memref<?x1x$Cxf32>
    %p = fi_tile.reduce max %f : tensor<$Rx$Cxf32, #acc> -> tensor<$Rx4xf32, #partial>
    %m = fi_tile.reduce max %p : tensor<$Rx4xf32, #partial> -> tensor<$Rx1xf32, #row>
    fi_tile.store_rows %m, %top[%it] group 1 : tensor<$Rx1xf32, #row>, memref<?x1xf32>
  }
  fi_tile.return
})",
      {{"$acc", frag("mma_c", shape.keyDim / 8)},
       {"$R", std::to_string(rows())},
       {"$C", std::to_string(shape.keyDim)},
       {"$W", std::to_string(shape.warps)}});
  ASSERT_TRUE(parse(text)) << text;
  ASSERT_TRUE(place());
  ASSERT_EQ(compile(), "");
  // The last rows are not the item's, and stay.
  int64_t valid = rows() - 3;
  HostTensor out = filled({rows(), 1, shape.keyDim}, -1);
  HostTensor top = filled({rows(), 1}, -1);
  TestWork work;
  work.add().row_count = valid;
  ASSERT_EQ(launch("coordinates", {out, top}, work), "");
  for (int64_t r = 0; r < rows(); ++r) {
    for (int64_t c = 0; c < shape.keyDim; ++c)
      ASSERT_EQ(out.getFloat({r, 0, c}), r < valid ? r * shape.keyDim + c : -1)
          << r << ", " << c;
    ASSERT_EQ(top.getFloat({r, 0}), r < valid ? (r + 1) * shape.keyDim - 1 : -1)
        << r;
  }
}

// Memory to shared memory to both kinds of operands: each element of the
// second product is one coordinate of the keys, chosen by ones in the others.
TEST_P(IotaTest, Products) {
  const Shape &shape = GetParam();
  std::string text = fill(
      R"(
!xc = !fi_tile.chan<$xbuf, depth = 1>
!xb = !fi_tile.buf<$xbuf>
!kc = !fi_tile.chan<$kbuf, depth = 1>
!kb = !fi_tile.buf<$kbuf>
!vc = !fi_tile.chan<$vbuf, depth = 1>
!vb = !fi_tile.buf<$vbuf>
!kv = !fi.ragged_kv<1x$Cx$T, vo = $D>
#s = $scores
#a = $first
#o = $out
fi_tile.kernel @products(%x: memref<?x1x$Cx$T>, %k: memref<?x1x$Cx$T>, %v: memref<?x1x$Dx$T>,
                         %so: memref<?x1x$Nxf32>, %o: memref<?x1x$Dxf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = $R, tile_keys = $N, warps = $W>) {
  %xc = fi_tile.channel : !xc
  %kc = fi_tile.channel : !kc
  %vc = fi_tile.channel : !vc
  %zero = arith.constant 0 : index
  %kv = fi_tile.view %k, %v : memref<?x1x$Cx$T>, memref<?x1x$Dx$T> -> !kv
  fi_tile.for_items %it in %w {
    %xf = fi_tile.acquire %xc : !xc
    fi_tile.copy_rows %x[%it] to %xf group 1 : memref<?x1x$Cx$T>, !xb
    fi_tile.commit %xc : !xc
    %kf = fi_tile.acquire %kc : !kc
    fi_tile.copy_kv keys %kv[%it, %zero] to %kf : !kv, !kb
    fi_tile.commit %kc : !kc
    %vf = fi_tile.acquire %vc : !vc
    fi_tile.copy_kv values %kv[%it, %zero] to %vf : !kv, !vb
    fi_tile.commit %vc : !vc
    %xt = fi_tile.get %xc : !xc
    %kt = fi_tile.get %kc : !kc
    %s = fi_tile.dot %xt, %kt transpose : !xb, !kb -> tensor<$Rx$Nxf32, #s>
    fi_tile.release %kc : !kc
    fi_tile.release %xc : !xc
    fi_tile.store_rows %s, %so[%it] group 1 : tensor<$Rx$Nxf32, #s>, memref<?x1x$Nxf32>
    %h = arith.truncf %s : tensor<$Rx$Nxf32, #s> to tensor<$Rx$Nx$T, #s>
    %p = fi_tile.relayout %h : tensor<$Rx$Nx$T, #s> -> tensor<$Rx$Nx$T, #a>
    %vt = fi_tile.get %vc : !vc
    %t = fi_tile.dot %p, %vt : tensor<$Rx$Nx$T, #a>, !vb -> tensor<$Rx$Dxf32, #o>
    fi_tile.release %vc : !vc
    fi_tile.store_rows %t, %o[%it] group 1 : tensor<$Rx$Dxf32, #o>, memref<?x1x$Dxf32>
  }
  fi_tile.return
})",
      {{"$xbuf", buffer(rows(), shape.keyDim)},
       {"$kbuf", buffer(shape.keys, shape.keyDim)},
       {"$vbuf", buffer(shape.keys, shape.valueDim)},
       {"$scores", frag("mma_c", shape.keys / 8)},
       {"$first", frag("mma_a16", shape.keys / 16)},
       {"$out", frag("mma_c", shape.valueDim / 8)},
       {"$R", std::to_string(rows())},
       {"$C", std::to_string(shape.keyDim)},
       {"$D", std::to_string(shape.valueDim)},
       {"$N", std::to_string(shape.keys)},
       {"$W", std::to_string(shape.warps)},
       {"$T", shape.type}});
  ASSERT_TRUE(parse(text)) << text;
  ASSERT_TRUE(place());
  ASSERT_EQ(compile(), "");
  DType type = shape.type == std::string("f16") ? DType::F16 : DType::BF16;
  // What the type holds exactly, and no power of two.
  int64_t modulus = type == DType::F16 ? 2039 : 251;
  auto coordinate = [&](int64_t key, int64_t c) {
    return (key * shape.keyDim + c) % modulus + 1;
  };
  HostTensor x = filled({rows(), 1, shape.keyDim}, 0, type);
  HostTensor k = filled({shape.keys, 1, shape.keyDim}, 0, type);
  HostTensor v = filled({shape.keys, 1, shape.valueDim}, 0, type);
  for (int64_t r = 0; r < rows(); ++r)
    x.setFloat({r, 0, 5 * r % shape.keyDim}, 1);
  for (int64_t n = 0; n < shape.keys; ++n)
    for (int64_t c = 0; c < shape.keyDim; ++c)
      k.setFloat({n, 0, c}, coordinate(n, c));
  for (int64_t d = 0; d < shape.valueDim; ++d)
    v.setFloat({3 * d % shape.keys, 0, d}, 1);
  HostTensor scores = filled({rows(), 1, shape.keys}, -1);
  HostTensor out = filled({rows(), 1, shape.valueDim}, -1);
  TestWork work;
  fi_item &item = work.add();
  item.row_count = rows();
  item.kv_len = shape.keys;
  ASSERT_EQ(launch("products", {x, k, v, scores, out}, work), "");
  for (int64_t r = 0; r < rows(); ++r) {
    for (int64_t n = 0; n < shape.keys; ++n)
      ASSERT_EQ(scores.getFloat({r, 0, n}), coordinate(n, 5 * r % shape.keyDim))
          << r << ", " << n;
    for (int64_t d = 0; d < shape.valueDim; ++d)
      ASSERT_EQ(out.getFloat({r, 0, d}),
                coordinate(3 * d % shape.keys, 5 * r % shape.keyDim))
          << r << ", " << d;
  }
}

// Swizzled and padded rows, tails of 8 columns, one fragment and several, sizes
// that are no powers of two.
INSTANTIATE_TEST_SUITE_P(Shapes, IotaTest,
                         ::testing::Values(Shape{1, 1, 16, 16, 16, "f16"},
                                           Shape{1, 1, 16, 8, 8, "bf16"},
                                           Shape{2, 1, 32, 24, 40, "f16"},
                                           Shape{4, 1, 32, 64, 64, "f16"},
                                           Shape{4, 2, 64, 128, 128, "bf16"},
                                           Shape{1, 2, 48, 72, 80, "f16"},
                                           Shape{3, 1, 80, 96, 192, "bf16"},
                                           Shape{2, 1, 16, 256, 512, "f16"},
                                           Shape{8, 1, 32, 120, 64, "f16"}));

} // namespace
