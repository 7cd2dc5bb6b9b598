// Kernels of few rows: what the plan says is asked for at once, and states are merged by rows.
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse | FileCheck %s

#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4>
#acc = #fi_tile.frag<mma_c, rep = [1, 16], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 1>>
#rows = #fi_tile.frag<row16, rep = [1, 1], warps = 1>
#row2 = #fi_tile.slice<1, <row16, rep = [1, 1], warps = 1>>
!kv = !fi.paged_kv<16x1x128xf16, NHD>
!k = memref<?x16x1x128xf16>
// CHECK-LABEL: llvm.func @merge
// Each thread asks for a line of the ranges, and for one of the page table.
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$1 prefetch.global.L2 [$0];", "l,b"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$1 prefetch.global.L2 [$0];", "l,b"
// CHECK: scf.for
// The fields of an item, before anything depends on one of them.
// CHECK-COUNT-4: llvm.load {{.*}} invariant
// CHECK: arith.cmpi ne
// CHECK: scf.if
// Valid rows are shared, then two of each group in turn are read.
// CHECK: nvvm.barrier0
// CHECK: nvvm.barrier0
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3>
// A lane's eight columns lie in both halves of the state's row.
// CHECK-COUNT-2: llvm.store %{{.*}} {{.*}}: vector<4xf32>, !llvm.ptr<1>
// The count releases what the CTA has stored, and acquires what others have.
// CHECK: nvvm.barrier0
// CHECK: llvm.inline_asm has_side_effects {{.*}}"atom.acq_rel.gpu.global.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"
// CHECK: nvvm.barrier0
// CHECK-NOT: llvm.fence
// CHECK: scf.for
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<1> -> vector<4xf32>
// Rows are the warp's own.
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-2: llvm.store %{{.*}} {{.*}}: vector<4xf32>, !llvm.ptr<1>
fi_tile.kernel @merge(%k: !k, %p: memref<?xi32>, %work: !fi_tile.work) schedule(#schedule) attributes {fi_tile.shared = 50000 : i64} {
  %zero = arith.constant 0 : index
  %two = arith.constant 2 : index
  %eight = arith.constant 8 : index
  %o = arith.constant dense<1.0> : tensor<16x128xf32, #acc>
  %l = arith.constant dense<1.0> : tensor<16x1xf32, #row>
  %kv = fi_tile.view %k, %k pages(%p : memref<?xi32>) : !k, !k -> !kv
  %group = fi_tile.group
  fi_tile.for_items %it in %work {
    %n = fi_tile.for_keys %t in %it all step 16 iter_args(%a = %zero) -> (index) {
      %b = arith.addi %a, %t : index
      fi_tile.yield %b : index
    }
    fi_tile.share_state %o, %l at 0 : tensor<16x128xf32, #acc>, tensor<16x1xf32, #row>
    %own = arith.muli %group, %two : index
    %count = fi_tile.item %it[row_count]
    scf.for %r = %own to %count step %eight {
      %rest = fi_tile.from_row %it[%r]
      %g, %lg = fi_tile.load_group_state %zero part %zero of 128 from %r at 0 : tensor<2x128xf32, #rows>, tensor<2x1xf32, #row2>
      fi_tile.store_state %g, %lg to %work[%rest] : tensor<2x128xf32, #rows>, tensor<2x1xf32, #row2>
    }
    %last = fi_tile.arrive_last %work[%it] at 40000
    scf.if %last {
      scf.for %r = %own to %count step %eight {
        %rest = fi_tile.from_row %it[%r]
        %s, %ls = fi_tile.load_state %work[%rest, %n] : tensor<2x128xf32, #rows>, tensor<2x1xf32, #row2>
        fi_tile.store_merged_state %s, %ls to %work[%rest, %zero] : tensor<2x128xf32, #rows>, tensor<2x1xf32, #row2>
      }
    }
  }
  fi_tile.return
}
