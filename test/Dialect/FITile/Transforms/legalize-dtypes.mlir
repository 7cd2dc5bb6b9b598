// Products of f16, and of bf16 where the target cannot multiply it, get f32 operands:
// loaded so, without a rounding, or extended.
// RUN: fi-opt %s --pass-pipeline='builtin.module(fi_tile.kernel(fi-tile-legalize-dtypes))' | FileCheck %s --check-prefixes=CHECK,WIDE
// RUN: fi-opt %s --pass-pipeline='builtin.module(fi_tile.kernel(fi-tile-legalize-dtypes{bf16-dot=true}))' | FileCheck %s --check-prefixes=CHECK,PAIRS

#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>

// CHECK-LABEL: fi_tile.kernel @bf16
fi_tile.kernel @bf16(%q: memref<?x2x32xbf16>, %k: memref<?x1x32xbf16>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : memref<?x1x32xbf16>, memref<?x1x32xbf16> -> !fi.ragged_kv<1x32xbf16>
  fi_tile.for_items %it in %work {
    // WIDE: %[[Q:.*]] = fi_tile.load_rows %q{{.*}} -> tensor<8x32xf32>
    // PAIRS: %[[Q:.*]] = fi_tile.load_rows %q{{.*}} -> tensor<8x32xbf16>
    %rows = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xbf16> -> tensor<8x32xbf16>
    fi_tile.for_keys %t in %it all step 16 {
      // WIDE: %[[K:.*]] = fi_tile.load_kv keys %{{.*}} -> tensor<16x32xf32>
      // PAIRS: %[[K:.*]] = fi_tile.load_kv keys %{{.*}} -> tensor<16x32xbf16>
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !fi.ragged_kv<1x32xbf16> -> tensor<16x32xbf16>
      // WIDE: %[[S:.*]] = fi_tile.dot %[[Q]], %[[K]] transpose : tensor<8x32xf32>, tensor<16x32xf32>
      // PAIRS: %[[S:.*]] = fi_tile.dot %[[Q]], %[[K]] transpose : tensor<8x32xbf16>, tensor<16x32xbf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<8x32xbf16>, tensor<16x32xbf16> -> tensor<8x16xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !fi.ragged_kv<1x32xbf16> -> tensor<16x32xbf16>
      // The rounding of weights goes where nothing needs it.
      // WIDE-NOT: arith.truncf
      // PAIRS: %[[W:.*]] = arith.truncf %[[S]]
      %w = arith.truncf %s : tensor<8x16xf32> to tensor<8x16xbf16>
      // WIDE: fi_tile.dot %[[S]], %{{.*}} : tensor<8x16xf32>, tensor<16x32xf32>
      // PAIRS: fi_tile.dot %[[W]], %{{.*}} : tensor<8x16xbf16>, tensor<16x32xbf16>
      %o1 = fi_tile.dot %w, %values : tensor<8x16xbf16>, tensor<16x32xbf16> -> tensor<8x32xf32>
      fi_tile.store_rows %o1, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
      fi_tile.yield
    }
  }
  fi_tile.return
}

// f16 is widened in any case. A load that something else reads keeps its type.
// CHECK-LABEL: fi_tile.kernel @f16
fi_tile.kernel @f16(%q: memref<?x2x32xf16>, %k: memref<?x1x32xf16>, %o: memref<?x2x16xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : memref<?x1x32xf16>, memref<?x1x32xf16> -> !fi.ragged_kv<1x32xf16>
  fi_tile.for_items %it in %work {
    // CHECK: %[[Q:.*]] = fi_tile.load_rows %q{{.*}} -> tensor<8x32xf16>
    %rows = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xf16> -> tensor<8x32xf16>
    fi_tile.store_rows %rows, %q[%it] group 2 : tensor<8x32xf16>, memref<?x2x32xf16>
    fi_tile.for_keys %t in %it all step 16 {
      // CHECK: %[[K:.*]] = fi_tile.load_kv keys %{{.*}} -> tensor<16x32xf32>
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !fi.ragged_kv<1x32xf16> -> tensor<16x32xf16>
      // CHECK: %[[WIDE:.*]] = arith.extf %[[Q]] : tensor<8x32xf16> to tensor<8x32xf32>
      // CHECK: fi_tile.dot %[[WIDE]], %[[K]] transpose
      %s = fi_tile.dot %rows, %keys transpose : tensor<8x32xf16>, tensor<16x32xf16> -> tensor<8x16xf32>
      fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x16xf32>, memref<?x2x16xf32>
      fi_tile.yield
    }
  }
  fi_tile.return
}

// Placed kernels read buffers, and are left as they are.
// CHECK-LABEL: fi_tile.kernel @placed
fi_tile.kernel @placed(%q: memref<?x2x64xf16>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, stages = 2>) {
  %c = fi_tile.channel : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
    // CHECK: fi_tile.dot %{{.*}}, %{{.*}} transpose : !buf, !buf
    %s = fi_tile.dot %b, %b transpose : !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>, !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>> -> tensor<64x64xf32>
  }
  fi_tile.return
}
