// Kernels of a module that asks for checks: page indices, and what CTAs are at
// work on, go into a log (docs/abi.md).
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse | FileCheck %s

#pair = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
!kv = !fi.paged_kv<8x2x16xf32, HND>

// CHECK-LABEL: llvm.func @keys(
// CHECK-SAME: %[[POOL:arg0]]: !llvm.ptr<1>, %[[PAGES:arg1]]: i64
// CHECK-SAME: %[[LOG:[a-z0-9]+]]: !llvm.ptr<1>) attributes
// The first thread of a CTA tells the log of the item, and of its end.
// CHECK: scf.for %[[ITEM:.*]] =
// CHECK: %[[MARK:.*]] = arith.addi %{{.*}}, %c1_i32
// CHECK: %[[WORDS:.*]] = llvm.getelementptr %[[LOG]][32]
// CHECK: %[[WORD:.*]] = llvm.getelementptr %[[WORDS]]
// CHECK: llvm.store volatile %[[MARK]], %[[WORD]] {{.*}}: i32
// An index outside of the pool is written once, and page 0 is read.
// CHECK: %[[WIDE:.*]] = arith.extsi %[[ENTRY:.*]] : i32 to i64
// CHECK: %[[OUTSIDE:.*]] = arith.cmpi uge, %[[WIDE]], %[[PAGES]]
// CHECK: scf.if %[[OUTSIDE]]
// CHECK: llvm.atomicrmw add %{{.*}}, %c1_i32 monotonic
// CHECK: llvm.store volatile
// CHECK: llvm.fence acq_rel
// CHECK: llvm.store volatile %c1_i32, %[[LOG]]
// CHECK: arith.select %[[OUTSIDE]], %c0_i32, %[[ENTRY]]
// CHECK: nvvm.barrier0
// CHECK: llvm.store volatile %c0_i32
// CHECK: launch = {empty_items = true, faults = true, grid = "items"
module attributes {fi.checked} {
  fi_tile.kernel @keys(%k: memref<?x2x8x16xf32>, %pages: memref<?xi32>, %o: memref<?x2x16xf32>, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
    %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : memref<?x2x8x16xf32>, memref<?x2x8x16xf32> -> !kv
    %zero = arith.constant 0 : index
    fi_tile.for_items %it in %work {
      %t = fi_tile.load_kv keys %kv[%it, %zero] : !kv -> tensor<16x16xf32, #pair>
      fi_tile.store_rows %t, %o[%it] group 1 : tensor<16x16xf32, #pair>, memref<?x2x16xf32>
    }
    fi_tile.return
  }
  fi_tile.package @p {bodies = [{symbol = "keys"}]}
}
