// RUN: fi-opt %s --fi-tile-to-nvvm | FileCheck %s

// Columns that are a lane's own are registers; others are asked of the lanes of the row
// that hold them: of each register that is one of some lane, once.

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#few = #fi_tile.frag<mma_c, rep = [1, 1], warps = 1>
// CHECK-LABEL: @columns
module attributes {fi.target = #fi.target<sm_80>} {
fi_tile.kernel @columns(%q: memref<?x2x16xf32>, %o: memref<?x2x8xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<16x16xf32, #acc>
    // CHECK-NOT: nvvm.shfl
    // CHECK: vector.shuffle %[[X:.*]], %[[X]] [4, 5, 6, 7] : vector<8xf32>, vector<8xf32>
    %y = fi_tile.columns %x from 8 step 1 : tensor<16x16xf32, #acc> -> tensor<16x8xf32, #few>
    fi_tile.store_rows %y, %o[%it] group 1 : tensor<16x8xf32, #few>, memref<?x2x8xf32>
    // CHECK-COUNT-8: nvvm.shfl.sync idx
    // CHECK-NOT: nvvm.shfl
    %z = fi_tile.columns %x from 1 step 2 : tensor<16x16xf32, #acc> -> tensor<16x8xf32, #few>
    fi_tile.store_rows %z, %o[%it] group 1 : tensor<16x8xf32, #few>, memref<?x2x8xf32>
  }
  fi_tile.return
}
}
