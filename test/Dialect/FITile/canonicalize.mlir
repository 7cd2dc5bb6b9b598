// Folds and canonical forms of level 2, each with a case that stays.
// RUN: fi-opt %s -canonicalize | FileCheck %s
// RUN: fi-opt %s -canonicalize -canonicalize | FileCheck %s

#s = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1, lanes = 2>

// CHECK-LABEL: fi_tile.kernel @broadcasts
fi_tile.kernel @broadcasts(%x: memref<?x1xf32>, %y: memref<?x1x16xf32>, %z: memref<?x1x2xf32>, %f: f32,
                           %w: !fi_tile.work) schedule(#s) {
  // CHECK-DAG: %[[C:.*]] = arith.constant dense<2.500000e-01> : tensor<8x16xf32>
  // CHECK-DAG: %[[S:.*]] = tensor.splat %f : tensor<8x16xf32>
  %c = arith.constant dense<0.25> : tensor<8x1xf32>
  %cb = fi_tile.broadcast %c : tensor<8x1xf32> -> tensor<8x16xf32>
  %s = tensor.splat %f : tensor<1x16xf32>
  %sb = fi_tile.broadcast %s : tensor<1x16xf32> -> tensor<8x16xf32>
  // Not one value: stays.
  // CHECK-DAG: %[[ROW:.*]] = arith.constant dense<{{.*}}> : tensor<1x2xf32>
  // CHECK-DAG: %[[ROWB:.*]] = fi_tile.broadcast %[[ROW]] : tensor<1x2xf32> -> tensor<8x2xf32>
  %row = arith.constant dense<[[1.0, 2.0]]> : tensor<1x2xf32>
  %rowb = fi_tile.broadcast %row : tensor<1x2xf32> -> tensor<8x2xf32>
  // CHECK: fi_tile.for_items %[[IT:.*]] in %work {
  fi_tile.for_items %it in %w {
    // CHECK-NEXT: fi_tile.store_rows %[[C]], %y
    fi_tile.store_rows %cb, %y[%it] group 1 : tensor<8x16xf32>, memref<?x1x16xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[S]], %y
    fi_tile.store_rows %sb, %y[%it] group 1 : tensor<8x16xf32>, memref<?x1x16xf32>
    // CHECK-NEXT: %[[X:.*]] = fi_tile.load_rows %x
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1xf32> -> tensor<8x1xf32>
    %same = fi_tile.broadcast %t : tensor<8x1xf32> -> tensor<8x1xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[X]], %x
    fi_tile.store_rows %same, %x[%it] group 1 : tensor<8x1xf32>, memref<?x1xf32>
    // CHECK-NEXT: %[[R:.*]] = fi_tile.dot
    %a = arith.constant dense<1.0> : tensor<1x8xf32>
    %r = fi_tile.dot %a, %t : tensor<1x8xf32>, tensor<8x1xf32> -> tensor<1x1xf32>
    %r1 = fi_tile.broadcast %r : tensor<1x1xf32> -> tensor<1x16xf32>
    // CHECK-NEXT: %[[B:.*]] = fi_tile.broadcast %[[R]] : tensor<1x1xf32> -> tensor<8x16xf32>
    %r2 = fi_tile.broadcast %r1 : tensor<1x16xf32> -> tensor<8x16xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[B]], %y
    fi_tile.store_rows %r2, %y[%it] group 1 : tensor<8x16xf32>, memref<?x1x16xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[ROWB]], %z
    fi_tile.store_rows %rowb, %z[%it] group 1 : tensor<8x2xf32>, memref<?x1x2xf32>
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @masks
fi_tile.kernel @masks(%y: memref<?x1x16xf32>, %o: memref<?x1xf32>, %w: !fi_tile.work) schedule(#s) {
  %yes = arith.constant dense<true> : tensor<8x16xi1>
  %no = arith.constant dense<false> : tensor<8x1xi1>
  %nob = fi_tile.broadcast %no : tensor<8x1xi1> -> tensor<8x16xi1>
  // CHECK-DAG: %[[INF:.*]] = arith.constant dense<0xFF800000> : tensor<8x16xf32>
  // CHECK-DAG: %[[SOME:.*]] = arith.constant dense<{{.*}}> : tensor<8x1xi1>
  %some = arith.constant dense<[[true], [false], [true], [true], [true], [true], [true], [true]]> : tensor<8x1xi1>
  // CHECK: fi_tile.for_items
  fi_tile.for_items %it in %w {
    // CHECK-NEXT: %[[X:.*]] = fi_tile.load_rows %y
    %x = fi_tile.load_rows %y[%it] group 1 : memref<?x1x16xf32> -> tensor<8x16xf32>
    %a = fi_tile.mask %x where %yes : tensor<8x16xf32>, tensor<8x16xi1>
    // CHECK-NEXT: fi_tile.store_rows %[[X]], %y
    fi_tile.store_rows %a, %y[%it] group 1 : tensor<8x16xf32>, memref<?x1x16xf32>
    %b = fi_tile.mask %x where %nob : tensor<8x16xf32>, tensor<8x16xi1>
    // CHECK-NEXT: fi_tile.store_rows %[[INF]], %y
    fi_tile.store_rows %b, %y[%it] group 1 : tensor<8x16xf32>, memref<?x1x16xf32>
    // CHECK-NEXT: %[[MAX:.*]] = fi_tile.reduce max %[[X]]
    %m = fi_tile.reduce max %x : tensor<8x16xf32> -> tensor<8x1xf32>
    %n = fi_tile.reduce add %m : tensor<8x1xf32> -> tensor<8x1xf32>
    // CHECK-NEXT: %[[C:.*]] = fi_tile.mask %[[MAX]] where %[[SOME]]
    %c = fi_tile.mask %n where %some : tensor<8x1xf32>, tensor<8x1xi1>
    // CHECK-NEXT: fi_tile.store_rows %[[C]], %o
    fi_tile.store_rows %c, %o[%it] group 1 : tensor<8x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @columns
fi_tile.kernel @columns(%y: memref<?x1x16xf32>, %z: memref<?x1x2xf32>, %w: !fi_tile.work) schedule(#s) {
  // CHECK: %[[C:.*]] = arith.constant dense<2.500000e-01> : tensor<8x2xf32>
  %c = arith.constant dense<0.25> : tensor<8x16xf32>
  %part = fi_tile.columns %c from 1 step 2 : tensor<8x16xf32> -> tensor<8x2xf32>
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.store_rows %[[C]], %z
    fi_tile.store_rows %part, %z[%it] group 1 : tensor<8x2xf32>, memref<?x1x2xf32>
    // CHECK-NEXT: %[[Y:.*]] = fi_tile.load_rows %y
    %t = fi_tile.load_rows %y[%it] group 1 : memref<?x1x16xf32> -> tensor<8x16xf32>
    %all = fi_tile.columns %t from 0 step 1 : tensor<8x16xf32> -> tensor<8x16xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[Y]], %y
    fi_tile.store_rows %all, %y[%it] group 1 : tensor<8x16xf32>, memref<?x1x16xf32>
    // Not all columns: stays.
    // CHECK-NEXT: %[[P:.*]] = fi_tile.columns %[[Y]] from 14 step 1
    %last = fi_tile.columns %t from 14 step 1 : tensor<8x16xf32> -> tensor<8x2xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[P]], %z
    fi_tile.store_rows %last, %z[%it] group 1 : tensor<8x2xf32>, memref<?x1x2xf32>
  }
  fi_tile.return
}
