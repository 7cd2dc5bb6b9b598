// Products and copies: cp.async into shared memory, ldmatrix, mma.sync.
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

#scores = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#a = #fi_tile.frag<mma_a16, rep = [1, 1], warps = 1>
!chan = !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 2>
!buf = !fi_tile.buf<16x16xf16, #fi_tile.smem<pitch = 48>>
// CHECK: llvm.mlir.global external @fi_shared() {addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>
// CHECK-LABEL: llvm.func @dots
// Slot 1 of a channel at 1024 lies 16 x 48 bytes further on.
// CHECK-DAG: %[[C1792:.*]] = arith.constant 1792 : i32
// CHECK-DAG: %[[SHARED:.*]] = llvm.mlir.addressof @fi_shared
// 32 chunks for 32 lanes: one copy each, of 16 bytes.
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg
// CHECK-NOT: nvvm.cp.async
// CHECK: %[[A:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: %[[K:.*]] = nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<row>, num = 4
// CHECK: %[[S0:.*]] = nvvm.mma.sync {{.*}} C[%[[Z:.*]], %[[Z]], %[[Z]], %[[Z]]] {{.*}}m = 16, n = 8, k = 16
// CHECK: %[[S1:.*]] = nvvm.mma.sync
// The accumulator of 16 x 16 becomes a first operand in place.
// CHECK: %[[H:.*]] = arith.truncf %{{.*}} : vector<8xf32> to vector<8xf16>
// CHECK: %[[A0:.*]] = vector.shuffle %[[H]], %[[H]] [0, 1]
// CHECK: %[[A1:.*]] = vector.shuffle %[[H]], %[[H]] [2, 3]
// CHECK: %[[A2:.*]] = vector.shuffle %[[H]], %[[H]] [4, 5]
// CHECK: %[[A3:.*]] = vector.shuffle %[[H]], %[[H]] [6, 7]
// Without transposition the rows of the buffer are k: ldmatrix transposes.
// CHECK: nvvm.ldmatrix {{.*}}layout = #nvvm.mma_layout<col>, num = 4
// CHECK: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]]
// CHECK: nvvm.mma.sync A[%[[A0]], %[[A1]], %[[A2]], %[[A3]]]
// CHECK-NOT: nvvm.mma.sync
fi_tile.kernel @dots(%q: memref<?x2x16xf16>, %o: memref<?x2x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 1024 : !chan
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %work {
    %b0 = fi_tile.slot %c[%zero] : !chan
    %b1 = fi_tile.slot %c[%one] : !chan
    fi_tile.copy_rows %q[%it] to %b1 group 1 : memref<?x2x16xf16>, !buf
    %s = fi_tile.dot %b0, %b1 transpose : !buf, !buf -> tensor<16x16xf32, #scores>
    %h = arith.truncf %s : tensor<16x16xf32, #scores> to tensor<16x16xf16, #scores>
    %p = fi_tile.relayout %h : tensor<16x16xf16, #scores> -> tensor<16x16xf16, #a>
    %t = fi_tile.dot %p, %b1 acc(%s) : tensor<16x16xf16, #a>, !buf -> tensor<16x16xf32, #scores>
    fi_tile.store_rows %t, %o[%it] group 1 : tensor<16x16xf32, #scores>, memref<?x2x16xf32>
  }
  fi_tile.return
}

// -----

// Rows of 24 columns: a product reads 32, so that what is beyond is filled with zeros, by
// copies of no bytes. bf16 fragments are words. Copies happen where there is a tile.
#scores = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
!chan = !fi_tile.chan<16x24xbf16, #fi_tile.smem<pitch = 80>, depth = 1>
!buf = !fi_tile.buf<16x24xbf16, #fi_tile.smem<pitch = 80>>
!kv = !fi.paged_kv<4x2x24xbf16, HND>
!k = memref<?x2x4x24xbf16>
// CHECK-LABEL: llvm.func @padded
// CHECK: %[[VALID:.*]] = arith.cmpi slt
// CHECK: scf.if %[[VALID]]
// CHECK: arith.select %{{.*}}, %c16_i32, %c0_i32
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache =  cg, %{{.*}} :
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.ldmatrix
// CHECK: nvvm.mma.sync {{.*}}multiplicandAPtxType = #nvvm.mma_type<bf16>
// CHECK: nvvm.mma.sync
// CHECK: nvvm.mma.sync
// CHECK: nvvm.mma.sync
// CHECK-NOT: nvvm.mma.sync
fi_tile.kernel @padded(%k: !k, %pages: memref<?xi32>, %o: memref<?x2x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 0 : !chan
  %zero = arith.constant 0 : index
  %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %b = fi_tile.slot %c[%zero] : !chan
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    fi_tile.copy_kv keys %kv[%it, %key] to %b if %valid : !kv, !buf
    %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32, #scores>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<16x16xf32, #scores>, memref<?x2x16xf32>
  }
  fi_tile.return
}
