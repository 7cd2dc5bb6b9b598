// Products of bf16 by hardware tiles, where the target has them. K is written out,
// by steps that are all as long: 32 terms, or fewer where K is no multiple of them.
// RUN: fi-opt %s --fi-tile-to-vector --canonicalize --cse --split-input-file | FileCheck %s

#schedule = #fi.schedule<tile_rows = 32, tile_keys = 32, mr = 32, nr = 2>
module attributes {fi.target = #fi.target<cpu, vector_bits = 512, bf16_dot, amx>} {
// CHECK-LABEL: func.func @tiles
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c32 {
// CHECK: amx.tile_zero : !amx.tile<16x16xf32>
// CHECK-COUNT-2: amx.tile_load {{.*}} into !amx.tile<16x20xbf16>
// CHECK: amx.tile_load {{.*}} into !amx.tile<10x32xbf16>
// CHECK-COUNT-2: amx.tile_mulf {{.*}} : !amx.tile<16x20xbf16>, !amx.tile<10x32xbf16>, !amx.tile<16x16xf32>
// CHECK-COUNT-2: amx.tile_load {{.*}} into !amx.tile<16x20xbf16>
// CHECK: amx.tile_load {{.*}} into !amx.tile<10x32xbf16>
// CHECK-COUNT-2: amx.tile_mulf {{.*}} : !amx.tile<16x20xbf16>, !amx.tile<10x32xbf16>, !amx.tile<16x16xf32>
// CHECK-NOT: amx.tile_mulf
// CHECK-COUNT-2: amx.tile_store {{.*}}!amx.tile<16x16xf32>
// CHECK-NOT: amx
// CHECK: return
fi_tile.kernel @tiles(%q: memref<?x2x40xbf16>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %k = arith.constant dense<1.0> : tensor<32x40xbf16>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x40xbf16> -> tensor<32x40xbf16>
    %s = fi_tile.dot %a, %k transpose : tensor<32x40xbf16>, tensor<32x40xbf16> -> tensor<32x32xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<32x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}
}

// -----

// A block that is no multiple of a tile's rows is for pairs, and so is a target
// without tiles (dot.mlir).
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 32, mr = 2, nr = 2>
module attributes {fi.target = #fi.target<cpu, vector_bits = 512, bf16_dot, amx>} {
// CHECK-LABEL: func.func @few
// CHECK-NOT: amx
// CHECK: x86vector.avx512.dot
// CHECK-NOT: amx
// CHECK: return
fi_tile.kernel @few(%q: memref<?x2x32xbf16>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %k = arith.constant dense<1.0> : tensor<32x32xbf16>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xbf16> -> tensor<8x32xbf16>
    %s = fi_tile.dot %a, %k transpose : tensor<8x32xbf16>, tensor<32x32xbf16> -> tensor<8x32xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}
}

// -----

// An accumulator is scaled where a factor of the block is not 1.
#schedule = #fi.schedule<tile_rows = 32, tile_keys = 32, mr = 32, nr = 2>
module attributes {fi.target = #fi.target<cpu, vector_bits = 512, bf16_dot, amx>} {
// CHECK-LABEL: func.func @rescaled
// CHECK: scf.for %[[ROW:.*]] = %c0 to %{{.*}} step %c32 {
// CHECK-COUNT-2: arith.cmpf une, %{{.*}} : vector<16xf32>
// CHECK: %[[ANY:.*]] = vector.reduction <or>, %{{.*}} : vector<16xi1> into i1
// CHECK: scf.if %[[ANY]] {
// CHECK: arith.mulf %{{.*}} : vector<16xf32>
// CHECK: amx.tile_mulf
fi_tile.kernel @rescaled(%q: memref<?x2x32xbf16>, %f: memref<?x2xf32>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %v = arith.constant dense<1.0> : tensor<32x32xbf16>
  fi_tile.for_items %it in %work {
    %w = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xbf16> -> tensor<32x32xbf16>
    %x = fi_tile.load_rows %o[%it] group 2 : memref<?x2x32xf32> -> tensor<32x32xf32>
    %factor = fi_tile.load_rows %f[%it] group 2 : memref<?x2xf32> -> tensor<32x1xf32>
    %spread = fi_tile.broadcast %factor : tensor<32x1xf32> -> tensor<32x32xf32>
    %acc = arith.mulf %x, %spread : tensor<32x32xf32>
    %s = fi_tile.dot %w, %v acc(%acc) : tensor<32x32xbf16>, tensor<32x32xbf16> -> tensor<32x32xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<32x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}
}
