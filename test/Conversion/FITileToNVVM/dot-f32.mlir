// Products in f32: tf32 in parts. What f16 and bf16 hold is exact there.
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

// Both of 16 bits, of different types: words of two, widened; one product each.
#scores = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
!x = !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 1>
!xb = !fi_tile.buf<16x16xf16, #fi_tile.smem<pitch = 48>>
!y = !fi_tile.chan<16x16xbf16, #fi_tile.smem<pitch = 48>, depth = 1>
!yb = !fi_tile.buf<16x16xbf16, #fi_tile.smem<pitch = 48>>
// CHECK-LABEL: llvm.func @exact
// CHECK: %[[A:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: llvm.bitcast %{{.*}} : i32 to vector<2xf16>
// CHECK: arith.extf %{{.*}} : vector<2xf16> to vector<2xf32>
// CHECK: nvvm.ldmatrix
// CHECK: llvm.bitcast %{{.*}} : i32 to vector<2xbf16>
// CHECK: arith.extf %{{.*}} : vector<2xbf16> to vector<2xf32>
// CHECK-NOT: nvvm.convert.float.to.tf32
// Two blocks of columns by two of k.
// CHECK-COUNT-4: nvvm.mma.sync {{.*}}tf32{{.*}}m = 16, n = 8, k = 8
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
fi_tile.kernel @exact(%o: memref<?x2x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 0 : !x
  %d = fi_tile.channel at 1024 : !y
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    %a = fi_tile.slot %c[%zero] : !x
    %b = fi_tile.slot %d[%zero] : !y
    %s = fi_tile.dot %a, %b transpose : !xb, !yb -> tensor<16x16xf32, #scores>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<16x16xf32, #scores>, memref<?x2x16xf32>
  }
  fi_tile.return
}

// -----

// Both of f32, and a rest of 4 columns: high and low parts, three products for each block.
// The accumulator is a first operand as it lies; without transposition rows are k.
#scores = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#out = #fi_tile.frag<mma_c, rep = [1, 1], warps = 1>
!x = !fi_tile.chan<16x12xf32, #fi_tile.smem<pitch = 80>, depth = 1>
!xb = !fi_tile.buf<16x12xf32, #fi_tile.smem<pitch = 80>>
!v = !fi_tile.chan<16x8xf32, #fi_tile.smem<pitch = 80>, depth = 1>
!vb = !fi_tile.buf<16x8xf32, #fi_tile.smem<pitch = 80>>
// CHECK-LABEL: llvm.func @split
// The largest number of tf32 bounds what is rounded.
// CHECK-DAG: %[[MOST:.*]] = arith.constant 3.40116213E+38 : f32
// CHECK: %[[A:.*]] = llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: %[[X:.*]] = vector.extract %[[A]][0]
// CHECK: %[[M:.*]] = arith.maxnumf %[[X]]
// CHECK: %[[I:.*]] = arith.minnumf %[[M]], %[[MOST]]
// CHECK: %[[HIGH:.*]] = nvvm.convert.float.to.tf32 %[[I]] {rnd = #nvvm.fp_rnd_mode<rna>}
// CHECK: %[[H:.*]] = arith.bitcast %[[HIGH]] : i32 to f32
// CHECK: %[[L:.*]] = arith.subf %[[X]], %[[H]]
// CHECK: %[[LOW:.*]] = nvvm.convert.float.to.tf32 %[[L]]
// CHECK: nvvm.mma.sync A[%[[LOW]], {{.*}} k = 8
// CHECK: nvvm.mma.sync A[%[[HIGH]], {{.*}} k = 8
// CHECK: nvvm.mma.sync A[%[[HIGH]], {{.*}} k = 8
// The rest: one element a lane.
// CHECK: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> f32
// CHECK-COUNT-3: nvvm.mma.sync {{.*}} k = 4
// The next block of keys.
// CHECK-COUNT-3: nvvm.mma.sync {{.*}} k = 8
// CHECK-COUNT-3: nvvm.mma.sync {{.*}} k = 4
// Two blocks of keys are k.
// CHECK-COUNT-6: nvvm.mma.sync {{.*}} k = 8
// CHECK-NOT: nvvm.mma.sync
// CHECK: llvm.return
fi_tile.kernel @split(%o: memref<?x2x8xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 0 : !x
  %d = fi_tile.channel at 2048 : !v
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    %a = fi_tile.slot %c[%zero] : !x
    %v = fi_tile.slot %d[%zero] : !v
    %s = fi_tile.dot %a, %a transpose : !xb, !xb -> tensor<16x16xf32, #scores>
    %t = fi_tile.dot %s, %v : tensor<16x16xf32, #scores>, !vb -> tensor<16x8xf32, #out>
    fi_tile.store_rows %t, %o[%it] group 1 : tensor<16x8xf32, #out>, memref<?x2x8xf32>
  }
  fi_tile.return
}

// -----

// Reads by pairs where columns are neighbours, one by one where they are not; what one
// warp of two holds is written by that one. Columns that a lane has stay there.
#tile = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#half = #fi_tile.frag<mma_c, rep = [1, 1], warps = 1>
!x = !fi_tile.chan<16x16xbf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
!xb = !fi_tile.buf<16x16xbf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
!y = !fi_tile.chan<16x8xbf16, #fi_tile.smem<pitch = 48>, depth = 1>
!yb = !fi_tile.buf<16x8xbf16, #fi_tile.smem<pitch = 48>>
// CHECK-LABEL: llvm.func @buffers
// CHECK: %[[WARP:.*]] = arith.index_castui %{{.*}} : i32 to index
// Rows 0 and 8 of two blocks.
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<3> -> vector<2xbf16>
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<3> -> bf16
// CHECK-NOT: llvm.load
// CHECK: %[[SECOND:.*]] = vector.shuffle {{.*}} [4, 5, 6, 7] : vector<8xbf16>
// CHECK: arith.addf
// CHECK: scf.if
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xbf16>, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: }
fi_tile.kernel @buffers(%work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) {
  %c = fi_tile.channel at 0 : !x
  %d = fi_tile.channel at 2048 : !y
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    %a = fi_tile.slot %c[%zero] : !x
    %b = fi_tile.slot %d[%zero] : !y
    %t = fi_tile.read %a : !xb -> tensor<16x16xbf16, #tile>
    %odd = fi_tile.read %a from 1 step 2 : !xb -> tensor<16x8xbf16, #half>
    %second = fi_tile.columns %t from 8 step 1 : tensor<16x16xbf16, #tile> -> tensor<16x8xbf16, #half>
    %sum = arith.addf %odd, %second : tensor<16x8xbf16, #half>
    fi_tile.write %sum to %b : tensor<16x8xbf16, #half>, !yb
  }
  fi_tile.return
}
