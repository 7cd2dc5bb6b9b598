// A hyperbolic tangent that may be approximate is a power of two and a reciprocal; its
// factor and the power's are one.
// RUN: fi-opt %s --fi-tile-expand-math | FileCheck %s

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @tangents
fi_tile.kernel @tangents(%x: memref<?x1x16xf32>, %d: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.5> : tensor<16x16xf32>
  fi_tile.for_items %it in %w {
    // CHECK: %[[S:.*]] = fi_tile.load_rows
    %s = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // 2 log2(e) / 2
    // CHECK: %[[F:.*]] = arith.constant dense<1.44269502>
    // CHECK: %[[X:.*]] = arith.mulf %[[S]], %[[F]]
    // CHECK: %[[P:.*]] = math.exp2 %[[X]] fastmath<afn>
    // CHECK: %[[N:.*]] = arith.subf %{{.*}}, %[[P]]
    // CHECK: %[[R:.*]] = arith.divf %{{.*}}, %[[N]] fastmath<arcp,afn>
    // CHECK: %[[Y:.*]] = arith.mulf %[[R]], %{{.*}} fastmath<reassoc,contract>
    // CHECK: %[[T:.*]] = arith.addf %[[Y]], %{{.*}} fastmath<reassoc,contract>
    %y = arith.mulf %s, %c : tensor<16x16xf32>
    %t = math.tanh %y fastmath<afn> : tensor<16x16xf32>
    // CHECK: %[[U:.*]] = math.tanh %[[T]] : tensor
    %u = math.tanh %t : tensor<16x16xf32>
    // CHECK: store_rows %[[U]]
    fi_tile.store_rows %u, %d[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}
