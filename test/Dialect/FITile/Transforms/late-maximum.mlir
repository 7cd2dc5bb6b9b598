// With `late` in the schedule weights are computed with the subtrahend that stood before
// their tile; where their sums are too large, in a branch once more.
// RUN: fi-opt %s --split-input-file --pass-pipeline='builtin.module(fi_tile.kernel(fi-tile-skip-rescale,fi-tile-lazy-maximum,fi-tile-late-maximum))' | FileCheck %s

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, late = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @online
fi_tile.kernel @online(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  %nil = arith.constant dense<0.0> : tensor<16x1xf32>
  %nothing = arith.constant dense<0.0> : tensor<16x4xf32>
  %eight = arith.constant dense<8.0> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
    %r:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero, %m = %none, %l = %nothing) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>) {
      // CHECK: %[[S:.*]] = fi_tile.dot
      // Nothing of the branch before the weights is left.
      // CHECK-NEXT: %[[SPREAD:.*]] = fi_tile.broadcast %[[M]] : tensor<16x1xf32> -> tensor<16x16xf32>
      // CHECK-NEXT: %[[Y:.*]] = arith.subf %[[S]], %[[SPREAD]]
      // CHECK: %[[W:.*]] = math.exp2 %[[Y]]
      // CHECK: %[[SUM:.*]] = fi_tile.reduce add %[[W]] : tensor<16x16xf32> -> tensor<16x4xf32>
      // CHECK: %[[MOST:.*]] = arith.constant dense<2.560000e+02> : tensor<16x4xf32>
      // CHECK: %[[OVER:.*]] = arith.cmpf ugt, %[[SUM]], %[[MOST]]
      // CHECK: %[[ANY:.*]] = fi_tile.any %[[OVER]]
      // CHECK: %[[N:.*]]:4 = scf.if %[[ANY]] -> (tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x16xf32>, tensor<16x4xf32>)
      // CHECK:   %[[OWN:.*]] = fi_tile.reduce max %[[S]] : tensor<16x16xf32> -> tensor<16x4xf32>
      // CHECK:   %[[MAX:.*]] = fi_tile.reduce max %[[OWN]] : tensor<16x4xf32> -> tensor<16x1xf32>
      // CHECK:   %[[STANDS:.*]] = arith.cmpf ole, %[[MAX]], %[[M]]
      // CHECK:   %[[NEXT:.*]] = arith.select %[[STANDS]], %[[M]], %[[MAX]]
      // CHECK:   %[[FACTOR:.*]] = math.exp2 %{{.*}} : tensor<16x1xf32>
      // CHECK:   %[[W2:.*]] = math.exp2 %{{.*}} : tensor<16x16xf32>
      // CHECK:   %[[SUM2:.*]] = fi_tile.reduce add %[[W2]]
      // CHECK:   scf.yield %[[NEXT]], %[[FACTOR]], %[[W2]], %[[SUM2]]
      // CHECK: else
      // CHECK:   %[[ONE:.*]] = arith.constant dense<1.000000e+00>
      // CHECK:   scf.yield %[[M]], %[[ONE]], %[[W]], %[[SUM]]
      // CHECK: %[[KEPT:.*]] = arith.mulf %[[L]], %{{.*}}
      // CHECK: %[[L2:.*]] = arith.addf %[[KEPT]], %[[N]]#3
      // CHECK: scf.if %[[ANY]] -> (tensor<16x16xf32>)
      // CHECK: fi_tile.dot %[[N]]#2
      // CHECK: fi_tile.yield %{{.*}}, %[[N]]#0, %[[L2]]
      %s = fi_tile.dot %p, %p transpose : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %x1 = fi_tile.reduce max %s : tensor<16x16xf32> -> tensor<16x1xf32>
      %limit = arith.addf %m, %eight : tensor<16x1xf32>
      %k = arith.cmpf ole, %x1, %limit : tensor<16x1xf32>
      %n = arith.select %k, %m, %x1 : tensor<16x1xi1>, tensor<16x1xf32>
      %e = arith.cmpf oeq, %n, %none : tensor<16x1xf32>
      %f = arith.select %e, %nil, %n : tensor<16x1xi1>, tensor<16x1xf32>
      %d = arith.subf %m, %f : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %fb = fi_tile.broadcast %f : tensor<16x1xf32> -> tensor<16x16xf32>
      %y = arith.subf %s, %fb : tensor<16x16xf32>
      %weights = math.exp2 %y : tensor<16x16xf32>
      %cl = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x4xf32>
      %l1 = arith.mulf %l, %cl : tensor<16x4xf32>
      %sum = fi_tile.reduce add %weights : tensor<16x16xf32> -> tensor<16x4xf32>
      %l2 = arith.addf %l1, %sum : tensor<16x4xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %o = fi_tile.dot %weights, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n, %l2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

// Of scores that are scaled.
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, late = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @scaled
fi_tile.kernel @scaled(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  %nil = arith.constant dense<0.0> : tensor<16x1xf32>
  %nothing = arith.constant dense<0.0> : tensor<16x4xf32>
  %half = arith.constant dense<0.5> : tensor<16x1xf32>
  %eight = arith.constant dense<8.0> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
    %r:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero, %m = %none, %l = %nothing) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>) {
      // CHECK: %[[S:.*]] = fi_tile.dot
      // CHECK-NEXT: fi_tile.broadcast %[[M]] : tensor<16x1xf32> -> tensor<16x16xf32>
      // CHECK: scf.if %{{.*}} -> (tensor<16x1xf32>, tensor<16x1xf32>, tensor<16x16xf32>, tensor<16x4xf32>)
      // CHECK:   %[[MAX:.*]] = fi_tile.reduce max %{{.*}} : tensor<16x4xf32> -> tensor<16x1xf32>
      // CHECK:   %[[SCALED:.*]] = arith.mulf %[[MAX]]
      // CHECK:   arith.cmpf ole, %[[SCALED]], %[[M]]
      %s = fi_tile.dot %p, %p transpose : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %x1 = fi_tile.reduce max %s : tensor<16x16xf32> -> tensor<16x1xf32>
      %x2 = arith.mulf %x1, %half : tensor<16x1xf32>
      %limit = arith.addf %m, %eight : tensor<16x1xf32>
      %k = arith.cmpf ole, %x2, %limit : tensor<16x1xf32>
      %n = arith.select %k, %m, %x2 : tensor<16x1xi1>, tensor<16x1xf32>
      %e = arith.cmpf oeq, %n, %none : tensor<16x1xf32>
      %f = arith.select %e, %nil, %n : tensor<16x1xi1>, tensor<16x1xf32>
      %d = arith.subf %m, %f : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %fb = fi_tile.broadcast %f : tensor<16x1xf32> -> tensor<16x16xf32>
      %y = arith.subf %s, %fb : tensor<16x16xf32>
      %weights = math.exp2 %y : tensor<16x16xf32>
      %cl = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x4xf32>
      %l1 = arith.mulf %l, %cl : tensor<16x4xf32>
      %sum = fi_tile.reduce add %weights : tensor<16x16xf32> -> tensor<16x4xf32>
      %l2 = arith.addf %l1, %sum : tensor<16x4xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %o = fi_tile.dot %weights, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n, %l2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

// Without it maxima come first.
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @early
fi_tile.kernel @early(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  %nil = arith.constant dense<0.0> : tensor<16x1xf32>
  %nothing = arith.constant dense<0.0> : tensor<16x4xf32>
  %eight = arith.constant dense<8.0> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
    %r:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero, %m = %none, %l = %nothing) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>) {
      // CHECK: fi_tile.reduce max %{{.*}} : tensor<16x16xf32> -> tensor<16x4xf32>
      // CHECK: scf.if %{{.*}} -> (tensor<16x1xf32>, tensor<16x1xf32>)
      // CHECK: math.exp2 %{{.*}} : tensor<16x16xf32>
      %s = fi_tile.dot %p, %p transpose : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %x1 = fi_tile.reduce max %s : tensor<16x16xf32> -> tensor<16x1xf32>
      %limit = arith.addf %m, %eight : tensor<16x1xf32>
      %k = arith.cmpf ole, %x1, %limit : tensor<16x1xf32>
      %n = arith.select %k, %m, %x1 : tensor<16x1xi1>, tensor<16x1xf32>
      %e = arith.cmpf oeq, %n, %none : tensor<16x1xf32>
      %f = arith.select %e, %nil, %n : tensor<16x1xi1>, tensor<16x1xf32>
      %d = arith.subf %m, %f : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %fb = fi_tile.broadcast %f : tensor<16x1xf32> -> tensor<16x16xf32>
      %y = arith.subf %s, %fb : tensor<16x16xf32>
      %weights = math.exp2 %y : tensor<16x16xf32>
      %cl = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x4xf32>
      %l1 = arith.mulf %l, %cl : tensor<16x4xf32>
      %sum = fi_tile.reduce add %weights : tensor<16x16xf32> -> tensor<16x4xf32>
      %l2 = arith.addf %l1, %sum : tensor<16x4xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %o = fi_tile.dot %weights, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n, %l2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

// Nothing stands before the first tile.
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, late = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @first
fi_tile.kernel @first(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  %nil = arith.constant dense<0.0> : tensor<16x1xf32>
  %nothing = arith.constant dense<0.0> : tensor<16x4xf32>
  %eight = arith.constant dense<8.0> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
    %r:3 = fi_tile.for_keys %t in %it all first step 16 iter_args(%acc = %zero, %m = %none, %l = %nothing) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>) {
      // CHECK: fi_tile.reduce max %{{.*}} : tensor<16x16xf32> -> tensor<16x4xf32>
      // CHECK: scf.if %{{.*}} -> (tensor<16x1xf32>, tensor<16x1xf32>)
      // CHECK: math.exp2 %{{.*}} : tensor<16x16xf32>
      %s = fi_tile.dot %p, %p transpose : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %x1 = fi_tile.reduce max %s : tensor<16x16xf32> -> tensor<16x1xf32>
      %limit = arith.addf %m, %eight : tensor<16x1xf32>
      %k = arith.cmpf ole, %x1, %limit : tensor<16x1xf32>
      %n = arith.select %k, %m, %x1 : tensor<16x1xi1>, tensor<16x1xf32>
      %e = arith.cmpf oeq, %n, %none : tensor<16x1xf32>
      %f = arith.select %e, %nil, %n : tensor<16x1xi1>, tensor<16x1xf32>
      %d = arith.subf %m, %f : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %fb = fi_tile.broadcast %f : tensor<16x1xf32> -> tensor<16x16xf32>
      %y = arith.subf %s, %fb : tensor<16x16xf32>
      %weights = math.exp2 %y : tensor<16x16xf32>
      %cl = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x4xf32>
      %l1 = arith.mulf %l, %cl : tensor<16x4xf32>
      %sum = fi_tile.reduce add %weights : tensor<16x16xf32> -> tensor<16x4xf32>
      %l2 = arith.addf %l1, %sum : tensor<16x4xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %o = fi_tile.dot %weights, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n, %l2 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

// The factor of sums is needed before the weights.
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, late = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @needed
fi_tile.kernel @needed(%x: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0xFF800000> : tensor<16x1xf32>
  %nil = arith.constant dense<0.0> : tensor<16x1xf32>
  %nothing = arith.constant dense<0.0> : tensor<16x4xf32>
  %eight = arith.constant dense<8.0> : tensor<16x1xf32>
  fi_tile.for_items %it in %w {
    %p = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}})
    %r:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %zero, %m = %none, %l = %nothing) -> (tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>) {
      // CHECK: fi_tile.reduce max %{{.*}} : tensor<16x16xf32> -> tensor<16x4xf32>
      // CHECK: scf.if %{{.*}} -> (tensor<16x1xf32>, tensor<16x1xf32>)
      // CHECK: math.exp2 %{{.*}} : tensor<16x16xf32>
      %s = fi_tile.dot %p, %p transpose : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      %x1 = fi_tile.reduce max %s : tensor<16x16xf32> -> tensor<16x1xf32>
      %limit = arith.addf %m, %eight : tensor<16x1xf32>
      %k = arith.cmpf ole, %x1, %limit : tensor<16x1xf32>
      %n = arith.select %k, %m, %x1 : tensor<16x1xi1>, tensor<16x1xf32>
      %e = arith.cmpf oeq, %n, %none : tensor<16x1xf32>
      %f = arith.select %e, %nil, %n : tensor<16x1xi1>, tensor<16x1xf32>
      %d = arith.subf %m, %f : tensor<16x1xf32>
      %c = math.exp2 %d : tensor<16x1xf32>
      %early = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x4xf32>
      %l3 = arith.mulf %l, %early : tensor<16x4xf32>
      %fb = fi_tile.broadcast %f : tensor<16x1xf32> -> tensor<16x16xf32>
      %y = arith.subf %s, %fb : tensor<16x16xf32>
      %weights = math.exp2 %y : tensor<16x16xf32>
      %cl = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x4xf32>
      %l1 = arith.mulf %l, %cl : tensor<16x4xf32>
      %sum = fi_tile.reduce add %weights : tensor<16x16xf32> -> tensor<16x4xf32>
      %l2 = arith.addf %l1, %sum : tensor<16x4xf32>
      %b = fi_tile.broadcast %c : tensor<16x1xf32> -> tensor<16x16xf32>
      %a = arith.mulf %acc, %b : tensor<16x16xf32>
      %o = fi_tile.dot %weights, %p acc(%a) : tensor<16x16xf32>, tensor<16x16xf32> -> tensor<16x16xf32>
      fi_tile.yield %o, %n, %l3 : tensor<16x16xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    }
    fi_tile.store_rows %r#0, %x[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}
