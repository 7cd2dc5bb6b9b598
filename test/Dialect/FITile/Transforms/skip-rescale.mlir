// The accumulator is multiplied only where a factor of the warp's rows is not 1.
// RUN: fi-opt %s --fi-tile-skip-rescale | FileCheck %s

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @rescale
fi_tile.kernel @rescale(%x: memref<?x1x16xf32>, %f: memref<?x1xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    %factor = fi_tile.load_rows %f[%it] group 1 : memref<?x1xf32> -> tensor<16x1xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}})
    %r = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero) -> (tensor<16x16xf32>) {
      // CHECK: %[[DIFFERS:.*]] = arith.cmpf une, %[[F:.*]], %{{.*}} : tensor<16x1xf32>
      // CHECK: %[[ANY:.*]] = fi_tile.any %[[DIFFERS]]
      // CHECK: %[[SCALED:.*]] = scf.if %[[ANY]]
      // CHECK:   %[[B:.*]] = fi_tile.broadcast %[[F]]
      // CHECK:   arith.mulf %[[ACC]], %[[B]]
      // CHECK: else
      // CHECK:   scf.yield %[[ACC]]
      // CHECK: fi_tile.dot %{{.*}}, %{{.*}} acc(%[[SCALED]])
      %b = fi_tile.broadcast %factor : tensor<16x1xf32> -> tensor<16x16xf32>
      %scaled = arith.mulf %acc, %b : tensor<16x16xf32>
      %d = fi_tile.dot %p, %p acc(%scaled) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %d : tensor<16x16xf32>
    }
    fi_tile.store_rows %r, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}
