// The loop over all tiles becomes one over full tiles, without masks and what only
// they need, and one over partial tiles that starts from its results.
// RUN: fi-opt %s --fi-tile-split-masked --split-input-file | FileCheck %s
// RUN: fi-opt %s --fi-tile-split-masked --fi-tile-split-masked --split-input-file | FileCheck %s

#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>

// CHECK-LABEL: fi_tile.kernel @masked
fi_tile.kernel @masked(%q: memref<?x2x16xf32>, %o: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 2 : memref<?x2x16xf32> -> tensor<8x16xf32>
    %begin = fi_tile.item %it[row_begin]
    %qp = fi_tile.iota %begin : tensor<8x1xindex>
    // CHECK: %[[INIT:.*]] = arith.constant dense<0.000000e+00> : tensor<8x1xf32>
    %init = arith.constant dense<0.0> : tensor<8x1xf32>
    // CHECK: %[[FULL:.*]] = fi_tile.for_keys %{{.*}} in %{{.*}} full step 16 iter_args(%[[A:.*]] = %[[INIT]]) -> (tensor<8x1xf32>) {
    // CHECK-NOT: fi_tile.mask
    // CHECK-NOT: arith.cmpi
    // CHECK-NOT: fi_tile.iota
    // CHECK: %[[MAX:.*]] = fi_tile.reduce max %{{.*}} : tensor<8x16xf32> -> tensor<8x1xf32>
    // CHECK-NEXT: arith.maxnumf %[[A]], %[[MAX]]
    // CHECK: %[[PART:.*]] = fi_tile.for_keys %{{.*}} in %{{.*}} partial step 16 iter_args(%{{.*}} = %[[FULL]]) -> (tensor<8x1xf32>) {
    // CHECK: fi_tile.mask
    // CHECK: fi_tile.store_rows %[[PART]]
    %top = fi_tile.for_keys %t in %it all step 16 iter_args(%a = %init) -> (tensor<8x1xf32>) {
      %kp = fi_tile.iota %t : tensor<1x16xindex>
      %bk = fi_tile.broadcast %kp : tensor<1x16xindex> -> tensor<8x16xindex>
      %bq = fi_tile.broadcast %qp : tensor<8x1xindex> -> tensor<8x16xindex>
      %ok = arith.cmpi sle, %bk, %bq : tensor<8x16xindex>
      %m = fi_tile.mask %rows where %ok : tensor<8x16xf32>, tensor<8x16xi1>
      %max = fi_tile.reduce max %m : tensor<8x16xf32> -> tensor<8x1xf32>
      %next = arith.maxnumf %a, %max : tensor<8x1xf32>
      fi_tile.yield %next : tensor<8x1xf32>
    }
    fi_tile.store_rows %top, %o[%it] group 2 : tensor<8x1xf32>, memref<?x2xf32>
  }
  fi_tile.return
}

// -----

// Loops over a part are left alone, and so are effects without a mask.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
// CHECK-LABEL: fi_tile.kernel @parts
// CHECK-COUNT-1: partial step 16
// CHECK-NOT: fi_tile.for_keys
fi_tile.kernel @parts(%work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    fi_tile.for_keys %t in %it partial step 16 {
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

// The first tile of all, as rotated kernels have it, is not taken apart.
// CHECK-LABEL: fi_tile.kernel @selected
fi_tile.kernel @selected(%w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>) {
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.for_keys %{{.*}} in %{{.*}} all first step 64
    // CHECK-NOT: fi_tile.for_keys
    fi_tile.for_keys %t in %it all first step 64 {
      fi_tile.yield
    }
  }
  fi_tile.return
}
