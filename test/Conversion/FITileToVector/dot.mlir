// Products: a register block of mr rows by nr vectors, over k.
// RUN: fi-opt %s --fi-tile-to-vector --canonicalize --cse --split-input-file | FileCheck %s

// Keys are transposed by halves into panels of nr vectors; the block has 4 x 1
// accumulators.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// CHECK-LABEL: func.func @transposed(%arg0: !llvm.ptr, %arg1: !llvm.ptr, %arg2: i64, %arg3: i64, %arg4: !llvm.ptr) {
// CHECK-DAG: %[[A:.*]] = memref.view {{.*}} to memref<8x32xf32>
// CHECK-DAG: %[[PANEL:.*]] = memref.view {{.*}} to memref<2x32x8xf32>
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 2, 3, 8, 9, 10, 11]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 1, 8, 9, 4, 5, 12, 13]
// CHECK: vector.shuffle %{{.*}}, %{{.*}} [0, 8, 2, 10, 4, 12, 6, 14]
// CHECK: %[[C:.*]]:4 = scf.for %[[K:.*]] = %c0 to %c32 step %c1 iter_args({{.*}}) -> (vector<8xf32>, vector<8xf32>, vector<8xf32>, vector<8xf32>) {
// CHECK: %[[B:.*]] = vector.load %[[PANEL]]
// CHECK-COUNT-4: vector.fma %{{.*}}, %[[B]], %{{.*}} : vector<8xf32>
// CHECK-NOT: vector.fma
// CHECK: scf.yield
fi_tile.kernel @transposed(%q: memref<?x2x32xf32>, %o: memref<?x2x16xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %k = arith.constant dense<1.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xf32> -> tensor<8x32xf32>
    %s = fi_tile.dot %a, %k transpose : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x16xf32>, memref<?x2x16xf32>
  }
  fi_tile.return
}
}

// -----

// Pairs of bf16 in one instruction: half as many steps.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 32, mr = 2, nr = 2>
module attributes {fi.target = #fi.target<cpu, vector_bits = 512, bf16_dot>} {
// CHECK-LABEL: func.func @pairs
// CHECK: %[[PANEL:.*]] = memref.view {{.*}} to memref<1x16x32xi32>
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c1 iter_args
// CHECK-COUNT-4: x86vector.avx512.dot
// CHECK-NOT: x86vector
// CHECK: scf.yield
fi_tile.kernel @pairs(%q: memref<?x2x32xbf16>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
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

// The rescaling of an accumulator belongs to its product: the block starts from
// x * factor, in place.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 8, mr = 2, nr = 2>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// CHECK-LABEL: func.func @rescaled
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c2 {
// CHECK: %[[F:.*]] = vector.broadcast %{{.*}} : f32 to vector<8xf32>
// CHECK: %[[X:.*]] = vector.load %[[ACC:.*]][%[[R:[^,]*]], %{{.*}}] : memref<8x16xf32>
// CHECK: arith.mulf %[[X]], %[[F]]
// CHECK: scf.for {{.*}} iter_args
// CHECK: scf.yield
// CHECK: vector.store %{{.*}}, %[[ACC]][%[[R]], %{{.*}}] : memref<8x16xf32>
fi_tile.kernel @rescaled(%q: memref<?x2x8xf32>, %f: memref<?x2xf32>, %o: memref<?x2x16xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %v = arith.constant dense<1.0> : tensor<8x16xf32>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x8xf32> -> tensor<8x8xf32>
    %factor = fi_tile.load_rows %f[%it] group 2 : memref<?x2xf32> -> tensor<8x1xf32>
    %old = fi_tile.load_rows %o[%it] group 2 : memref<?x2x16xf32> -> tensor<8x16xf32>
    %spread = fi_tile.broadcast %factor : tensor<8x1xf32> -> tensor<8x16xf32>
    %acc = arith.mulf %old, %spread : tensor<8x16xf32>
    %s = fi_tile.dot %a, %v acc(%acc) : tensor<8x8xf32>, tensor<8x16xf32> -> tensor<8x16xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x16xf32>, memref<?x2x16xf32>
  }
  fi_tile.return
}
}
