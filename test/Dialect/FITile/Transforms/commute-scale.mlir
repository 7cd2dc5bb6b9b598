// A positive constant factor moves behind masks and maxima; what is left of it may be
// contracted with the difference.
// RUN: fi-opt %s --fi-tile-commute-scale | FileCheck %s

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @positive
// CHECK-SAME: %[[X:.*]]: memref
fi_tile.kernel @positive(%x: memref<?x1x16xf32>, %o: memref<?x1xf32>, %d: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.5> : tensor<16x16xf32>
  fi_tile.for_items %it in %w {
    // CHECK: %[[S:.*]] = fi_tile.load_rows
    %s = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: %[[M:.*]] = fi_tile.mask %[[S]]
    // CHECK: %[[Y:.*]] = arith.mulf %[[M]], %{{.*}} fastmath<contract> : tensor<16x16xf32>
    // CHECK: %[[TOP:.*]] = fi_tile.reduce max %[[M]]
    // CHECK: %[[N:.*]] = arith.mulf %[[TOP]], %{{.*}} : tensor<16x1xf32>
    %t = arith.cmpf ogt, %s, %c : tensor<16x16xf32>
    %y = arith.mulf %s, %c : tensor<16x16xf32>
    %m = fi_tile.mask %y where %t : tensor<16x16xf32>, tensor<16x16xi1>
    %n = fi_tile.reduce max %m : tensor<16x16xf32> -> tensor<16x1xf32>
    %b = fi_tile.broadcast %n : tensor<16x1xf32> -> tensor<16x16xf32>
    // CHECK: arith.subf %[[Y]], %{{.*}} fastmath<contract>
    %e = arith.subf %m, %b : tensor<16x16xf32>
    fi_tile.store_rows %e, %d[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
    fi_tile.store_rows %n, %o[%it] group 1 : tensor<16x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
}

// A negative factor turns the order around, and infinity times 0 is no number.
// CHECK-LABEL: fi_tile.kernel @others
fi_tile.kernel @others(%x: memref<?x1x16xf32>, %o: memref<?x1xf32>, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<-0.5> : tensor<16x16xf32>
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  fi_tile.for_items %it in %w {
    %s = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    // CHECK: %[[A:.*]] = arith.mulf
    // CHECK: fi_tile.reduce max %[[A]]
    %y = arith.mulf %s, %c : tensor<16x16xf32>
    %n = fi_tile.reduce max %y : tensor<16x16xf32> -> tensor<16x1xf32>
    // CHECK: %[[B:.*]] = arith.mulf
    // CHECK: fi_tile.reduce max %[[B]]
    %u = arith.mulf %s, %z : tensor<16x16xf32>
    %k = fi_tile.reduce max %u : tensor<16x16xf32> -> tensor<16x1xf32>
    fi_tile.store_rows %n, %o[%it] group 1 : tensor<16x1xf32>, memref<?x1xf32>
    fi_tile.store_rows %k, %o[%it] group 1 : tensor<16x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
}

// A term that may be added later goes behind mask, maximum and factor, to the subtrahend;
// factors become one if one is a power of two.
// CHECK-LABEL: fi_tile.kernel @terms
fi_tile.kernel @terms(%x: memref<?x1x16xf32>, %o: memref<?x1xf32>, %d: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %two = arith.constant dense<2.0> : tensor<16x16xf32>
  %three = arith.constant dense<3.0> : tensor<16x16xf32>
  fi_tile.for_items %it in %w {
    // CHECK: %[[S:.*]] = fi_tile.load_rows
    %s = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    %v = arith.cmpf ogt, %s, %two : tensor<16x16xf32>
    // CHECK: %[[M:.*]] = fi_tile.mask %[[S]]
    // CHECK: %[[Y:.*]] = arith.mulf %[[M]], %[[SIX:.*]] fastmath<contract>
    // CHECK: %[[TOP:.*]] = fi_tile.reduce max %[[M]]
    // CHECK: %[[N:.*]] = arith.mulf %[[TOP]]
    // CHECK: %[[R:.*]] = arith.addf %[[N]], %[[THREE:.*]] fastmath<reassoc,contract> : tensor<16x1xf32>
    // CHECK: %[[L:.*]] = arith.subf %[[R]], %[[THREE]] : tensor<16x1xf32>
    // CHECK: %[[B:.*]] = fi_tile.broadcast %[[L]]
    // CHECK: arith.subf %[[Y]], %[[B]] fastmath<contract>
    %a = arith.mulf %s, %two : tensor<16x16xf32>
    %t = arith.addf %a, %three fastmath<reassoc> : tensor<16x16xf32>
    %y = arith.mulf %t, %three : tensor<16x16xf32>
    %m = fi_tile.mask %y where %v : tensor<16x16xf32>, tensor<16x16xi1>
    %n = fi_tile.reduce max %m : tensor<16x16xf32> -> tensor<16x1xf32>
    %b = fi_tile.broadcast %n : tensor<16x1xf32> -> tensor<16x16xf32>
    %e = arith.subf %m, %b : tensor<16x16xf32>
    // Without the flag it stays where it is.
    // CHECK: %[[K:.*]] = arith.addf %[[S]], %{{.*}} : tensor<16x16xf32>
    // CHECK: fi_tile.reduce max %[[K]]
    %k = arith.addf %s, %three : tensor<16x16xf32>
    %p = fi_tile.reduce max %k : tensor<16x16xf32> -> tensor<16x1xf32>
    fi_tile.store_rows %e, %d[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
    fi_tile.store_rows %n, %o[%it] group 1 : tensor<16x1xf32>, memref<?x1xf32>
    fi_tile.store_rows %p, %o[%it] group 1 : tensor<16x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
}
