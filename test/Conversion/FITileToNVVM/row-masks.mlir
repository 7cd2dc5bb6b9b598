// What a row sees is a range of columns: a lane computes its ends once a row, and compares
// constants with them; bits of words are moved once a row.
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 2], warps = 1>>
#col = #fi_tile.slice<0, <mma_c, rep = [1, 2], warps = 1>>
// CHECK-LABEL: llvm.func @window
// A distance for each of two rows, of which both ends are, and one for the length.
// CHECK-COUNT-3: llvm.intr.ssub.sat
// CHECK-NOT: llvm.intr.ssub.sat
// The nearer end of two.
// CHECK-COUNT-2: arith.minsi %{{.*}} : i32
// CHECK-COUNT-8: setp.ge.and.s32 $0, $2, $3, t;
// CHECK-NOT: setp
// CHECK-NOT: arith.cmpi {{.*}} vector
fi_tile.kernel @window(%q: memref<?x1x16xf32>, %o: memref<?x1x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %work {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32, #acc>
    %n = fi_tile.item %it[kv_len]
    %p = fi_tile.item %it[kv_origin]
    %k = fi_tile.iota %p : tensor<1x16xindex, #col>
    %r = fi_tile.iota %n : tensor<16x1xindex, #row>
    %end = tensor.splat %n : tensor<1x16xindex, #col>
    %in = arith.cmpi slt, %k, %end : tensor<1x16xindex, #col>
    %a = fi_tile.broadcast %in : tensor<1x16xi1, #col> -> tensor<16x16xi1, #acc>
    %kk = fi_tile.broadcast %k : tensor<1x16xindex, #col> -> tensor<16x16xindex, #acc>
    %rr = fi_tile.broadcast %r : tensor<16x1xindex, #row> -> tensor<16x16xindex, #acc>
    %b = arith.cmpi sle, %kk, %rr : tensor<16x16xindex, #acc>
    %c = arith.cmpi slt, %rr, %kk : tensor<16x16xindex, #acc>
    %ab = arith.andi %a, %b : tensor<16x16xi1, #acc>
    %abc = arith.andi %ab, %c : tensor<16x16xi1, #acc>
    %m = fi_tile.mask %x where %abc : tensor<16x16xf32, #acc>, tensor<16x16xi1, #acc>
    fi_tile.store_rows %m, %o[%it] group 1 : tensor<16x16xf32, #acc>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 2], warps = 1>>
#col = #fi_tile.slice<0, <mma_c, rep = [1, 2], warps = 1>>
// CHECK-LABEL: llvm.func @bits
// Two words for each of two rows.
// CHECK-COUNT-2: llvm.intr.fshr
// CHECK-NOT: llvm.intr.fshr
// CHECK-COUNT-8: and.b32 t, $1, $2; setp.ne.b32 $0, t, 0;
// CHECK-NOT: setp
fi_tile.kernel @bits(%words: memref<?xi32>, %q: memref<?x1x16xf32>, %o: memref<?x1x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %work {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32, #acc>
    %n = fi_tile.item %it[kv_len]
    %k = fi_tile.iota %n : tensor<1x16xindex, #col>
    %r = fi_tile.iota %n : tensor<16x1xindex, #row>
    %kk = fi_tile.broadcast %k : tensor<1x16xindex, #col> -> tensor<16x16xindex, #acc>
    %rr = fi_tile.broadcast %r : tensor<16x1xindex, #row> -> tensor<16x16xindex, #acc>
    %i = arith.addi %kk, %rr : tensor<16x16xindex, #acc>
    %b = fi_tile.gather %words[%i] bits : memref<?xi32>, tensor<16x16xindex, #acc> -> tensor<16x16xi1, #acc>
    %m = fi_tile.mask %x where %b : tensor<16x16xf32, #acc>, tensor<16x16xi1, #acc>
    fi_tile.store_rows %m, %o[%it] group 1 : tensor<16x16xf32, #acc>, memref<?x1x16xf32>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 2], warps = 1>>
#col = #fi_tile.slice<0, <mma_c, rep = [1, 2], warps = 1>>
// A distance is converted once a row, and the rest added.
// CHECK-LABEL: llvm.func @distances
// CHECK: arith.sitofp %{{.*}} : i32 to f32
// CHECK-COUNT-3: arith.addf %{{.*}}, %{{.*}} : f32
// CHECK: arith.sitofp %{{.*}} : i32 to f32
// CHECK-NOT: arith.sitofp
fi_tile.kernel @distances(%o: memref<?x1x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %work {
    %n = fi_tile.item %it[kv_len]
    %k = fi_tile.iota %n : tensor<1x16xindex, #col>
    %r = fi_tile.iota %n : tensor<16x1xindex, #row>
    %kk = fi_tile.broadcast %k : tensor<1x16xindex, #col> -> tensor<16x16xindex, #acc>
    %rr = fi_tile.broadcast %r : tensor<16x1xindex, #row> -> tensor<16x16xindex, #acc>
    %d = arith.subi %kk, %rr : tensor<16x16xindex, #acc>
    %i = arith.index_cast %d : tensor<16x16xindex, #acc> to tensor<16x16xi32, #acc>
    %f = arith.sitofp %i : tensor<16x16xi32, #acc> to tensor<16x16xf32, #acc>
    fi_tile.store_rows %f, %o[%it] group 1 : tensor<16x16xf32, #acc>, memref<?x1x16xf32>
  }
  fi_tile.return
}
