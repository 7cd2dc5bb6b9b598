// Maxima of rows, subtrahends and factors are computed where a lane's own maximum says
// that one may move.
// RUN: fi-opt %s --split-input-file --pass-pipeline='builtin.module(fi_tile.kernel(fi-tile-skip-rescale,fi-tile-lazy-maximum))' | FileCheck %s

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @online
fi_tile.kernel @online(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  %nil = arith.constant dense<0.0> : tensor<16x1xf32>
  %eight = arith.constant dense<8.0> : tensor<16x1xf32>
  %scale = arith.constant dense<0.5> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}})
    %r:2 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero, %m = %none) -> (tensor<16x16xf32>, tensor<16x1xf32>) {
      // CHECK: %[[S:.*]] = fi_tile.dot
      // CHECK: %[[LIMIT:.*]] = arith.addf %[[M]]
      // CHECK: %[[OWN:.*]] = fi_tile.reduce max %[[S]] : tensor<16x16xf32> -> tensor<16x4xf32>
      // CHECK: %[[SCALED:.*]] = arith.mulf %[[OWN]], %{{.*}} : tensor<16x4xf32>
      // CHECK: %[[LIMITS:.*]] = fi_tile.broadcast %[[LIMIT]]
      // CHECK: %[[OVER:.*]] = arith.cmpf ugt, %[[SCALED]], %[[LIMITS]]
      // CHECK: %[[ANY:.*]] = fi_tile.any %[[OVER]]
      // CHECK: %[[N:.*]]:2 = scf.if %[[ANY]] -> (tensor<16x1xf32>, tensor<16x1xf32>)
      // CHECK:   %[[MAX:.*]] = fi_tile.reduce max %[[OWN]] : tensor<16x4xf32> -> tensor<16x1xf32>
      // CHECK:   %[[T:.*]] = arith.mulf %[[MAX]]
      // CHECK:   %[[KEEP:.*]] = arith.cmpf ole, %[[T]], %[[LIMIT]]
      // CHECK:   %[[NEXT:.*]] = arith.select %[[KEEP]], %[[M]], %[[T]]
      // CHECK:   %[[FACTOR:.*]] = math.exp2
      // CHECK:   scf.yield %[[NEXT]], %[[FACTOR]]
      // CHECK: else
      // CHECK:   %[[ONE:.*]] = arith.constant dense<1.000000e+00>
      // CHECK:   scf.yield %[[M]], %[[ONE]]
      // CHECK-NOT: fi_tile.any
      // CHECK: scf.if %[[ANY]] -> (tensor<16x16xf32>)
      // CHECK:   fi_tile.broadcast %[[N]]#1
      // CHECK: fi_tile.yield %{{.*}}, %[[N]]#0
      %s = fi_tile.dot %p, %p transpose : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %x1 = fi_tile.reduce max %s : tensor<16x16xf32> -> tensor<16x1xf32>
      %x2 = arith.mulf %x1, %scale : tensor<16x1xf32>
      %limit = arith.addf %m, %eight : tensor<16x1xf32>
      %k = arith.cmpf ole, %x2, %limit : tensor<16x1xf32>
      %n = arith.select %k, %m, %x2 : tensor<16x1xi1>, tensor<16x1xf32>
      %e = arith.cmpf oeq, %n, %none : tensor<16x1xf32>
      %f = arith.select %e, %nil, %n : tensor<16x1xi1>, tensor<16x1xf32>
      %d = arith.subf %m, %f : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %fb = fi_tile.broadcast %f : tensor<16x1xf32> -> tensor<16x16xf32>
      %y = arith.subf %s, %fb : tensor<16x16xf32>
      %o = fi_tile.dot %y, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n : tensor<16x16xf32>, tensor<16x1xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

// A subtrahend that always moves is left as it is.
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @always
fi_tile.kernel @always(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    %r:2 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero, %m = %none) -> (tensor<16x16xf32>, tensor<16x1xf32>) {
      // CHECK: fi_tile.reduce max %{{.*}} : tensor<16x16xf32> -> tensor<16x1xf32>
      // CHECK-NOT: tensor<16x4xf32>
      %x1 = fi_tile.reduce max %p : tensor<16x16xf32> -> tensor<16x1xf32>
      %n = arith.maximumf %m, %x1 : tensor<16x1xf32>
      %d = arith.subf %m, %n : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %o = fi_tile.dot %p, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n : tensor<16x16xf32>, tensor<16x1xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}
