// A kernel's parameters, its loop over items, tiles in registers, rows in memory.
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse --split-input-file | FileCheck %s

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 2>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 2>>
#partial = #fi_tile.partial<<mma_c, rep = [1, 1], warps = 2>>
// A pointer has a parameter, and two for each dimension; then come the scalar and the work.
// CHECK-LABEL: llvm.func @rows(
// CHECK-SAME: %arg0: !llvm.ptr<1>, %arg1: i64, %arg2: i64, %arg3: i64, %[[STRIDE:arg4]]: i64, %arg5: i64, %arg6: i64, %arg7: !llvm.ptr<1>, %arg8: i64, %arg9: i64, %arg10: i64, %arg11: i64,
// CHECK-SAME: %[[SCALE:arg12]]: i64, %[[ITEMS:arg13]]: !llvm.ptr<1>, %arg14: !llvm.ptr<1>, %arg15: !llvm.ptr<1>, %arg16: !llvm.ptr<1>, %arg17: !llvm.ptr<1>, %[[BEGIN:arg18]]: i64, %[[END:arg19]]: i64)
// CHECK-SAME: attributes {nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 64>}
// CHECK: %[[BITS:.*]] = arith.trunci %[[SCALE]] : i64 to i32
// CHECK: arith.bitcast %[[BITS]] : i32 to f32
// CHECK: %[[B:.*]] = arith.index_cast %[[BEGIN]]
// CHECK: %[[E:.*]] = arith.index_cast %[[END]]
// CHECK: nvvm.read.ptx.sreg.tid.x
// Blocks take items in turn.
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: %[[FIRST:.*]] = arith.addi %[[B]]
// CHECK: nvvm.read.ptx.sreg.nctaid.x
// CHECK: scf.for %{{.*}} = %[[FIRST]] to %[[E]] step
// CHECK: llvm.getelementptr %[[ITEMS]]
// An item without rows is surplus.
// CHECK: %[[ROWS:.*]] = arith.index_cast
// CHECK: %[[ANY:.*]] = arith.cmpi ne, %[[ROWS]], %c0
// CHECK: scf.if %[[ANY]]
// Two rows of each lane, two pairs of columns; rows past the last repeat it.
// CHECK: arith.minsi
// CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xf32>
// Elementwise arithmetic is on the 8 registers of a lane.
// CHECK: arith.mulf %{{.*}}, %{{.*}} : vector<8xf32>
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"
// Within a row: 4 registers, then the lanes of the quad.
// CHECK-COUNT-3: arith.maxnumf %{{.*}} : f32
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c1_i32
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c2_i32
// CHECK-COUNT-3: arith.maxnumf %{{.*}} : f32
// CHECK: nvvm.shfl.sync
// CHECK: nvvm.shfl.sync
// CHECK-NOT: nvvm.shfl
// One lane of a quad stores its row, if the item has it.
// CHECK: scf.if
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<1>
fi_tile.kernel @rows(%q: memref<?x2x16xf32>, %o: memref<?x2xf32>, %scale: f32, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) {
  fi_tile.for_items %it in %work {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<32x16xf32, #acc>
    %s = tensor.splat %scale : tensor<32x16xf32, #acc>
    %y = arith.mulf %x, %s : tensor<32x16xf32, #acc>
    %e = math.exp2 %y : tensor<32x16xf32, #acc>
    %m = fi_tile.reduce max %e : tensor<32x16xf32, #acc> -> tensor<32x1xf32, #row>
    fi_tile.store_rows %m, %o[%it] group 1 : tensor<32x1xf32, #row>, memref<?x2xf32>
  }
  fi_tile.return
}

// Partial sums stay in their lanes.
// CHECK-LABEL: llvm.func @partial
// CHECK-COUNT-6: arith.addf %{{.*}} : f32
// CHECK-NOT: nvvm.shfl
// CHECK: arith.mulf %{{.*}} : vector<2xf32>
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c1_i32
// CHECK: nvvm.shfl.sync  bfly %{{.*}}, %{{.*}}, %c2_i32
fi_tile.kernel @partial(%q: memref<?x2x16xf32>, %o: memref<?x2xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) {
  fi_tile.for_items %it in %work {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<32x16xf32, #acc>
    %p = fi_tile.reduce add %x : tensor<32x16xf32, #acc> -> tensor<32x4xf32, #partial>
    %d = arith.mulf %p, %p : tensor<32x4xf32, #partial>
    %s = fi_tile.reduce add %d : tensor<32x4xf32, #partial> -> tensor<32x1xf32, #row>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<32x1xf32, #row>, memref<?x2xf32>
  }
  fi_tile.return
}

// -----

// Ranges, and the keys of a range; a group of warps takes every second tile.
// CHECK-LABEL: llvm.func @keys
// CHECK-SAME: nvvm.reqntid = array<i32: 64>
// CHECK: %[[GROUP32:.*]] = arith.divui %{{.*}}, %c32_i32
// CHECK: %[[GROUP:.*]] = arith.index_castui %[[GROUP32]]
// CHECK: scf.for
// CHECK: scf.for %[[R:.*]] = %{{.*}} to %{{.*}} step %c1
// CHECK: arith.muli %[[R]], %c16
// CHECK: %[[OWN:.*]] = arith.muli %[[GROUP]], %c8
// CHECK: %[[FROM:.*]] = arith.addi %{{.*}}, %[[OWN]]
// CHECK: scf.for %{{.*}} = %[[FROM]] to %{{.*}} step %c16
#row = #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 1>>
fi_tile.kernel @keys(%o: memref<?x2xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 8, warps = 1, key_warps = 2>) {
  %zero = arith.constant dense<0.0> : tensor<16x1xf32, #row>
  %one = arith.constant dense<1.0> : tensor<16x1xf32, #row>
  fi_tile.for_items %it in %work {
    %n = fi_tile.for_keys %t in %it all step 8 iter_args(%a = %zero) -> (tensor<16x1xf32, #row>) {
      %b = arith.addf %a, %one : tensor<16x1xf32, #row>
      fi_tile.yield %b : tensor<16x1xf32, #row>
    }
    fi_tile.store_rows %n, %o[%it] group 1 : tensor<16x1xf32, #row>, memref<?x2xf32>
  }
  fi_tile.return
}

// -----

// The launch recipe goes into the manifest of a package, by the kernel's name.
// CHECK: fi_tile.package @p
// CHECK-SAME: launch = {empty_items = true, grid = "items", shared = 2048 : i64, threads = 128 : i64}, symbol = "k"
fi_tile.kernel @k(%work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 8, warps = 4>)
    attributes {fi_tile.shared = 2048 : i64} {
  fi_tile.return
}
fi_tile.package @p {bodies = [{symbol = "k"}]}

// -----

// What is copied 16 bytes at a time is aligned to them, what is stored by pairs to pairs.
// CHECK: fi_tile.package @aligned
// CHECK-SAME: arguments = [{align = 16 : i64, name = "q"}, {name = "table"}]
// CHECK-SAME: results = [{align = 8 : i64, name = "o"}, {align = 4 : i64, name = "lse"}]
#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 1>>
!chan = !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 1>
!buf = !fi_tile.buf<16x16xf16, #fi_tile.smem<pitch = 48>>
fi_tile.kernel @a(%q: memref<?x2x16xf16>, %table: memref<?xf32>, %o: memref<?x2x16xf32>, %lse: memref<?x2xf32>,
    %work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 0 : !chan
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    %b = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_rows %q[%it] to %b group 1 : memref<?x2x16xf16>, !buf
    %x = fi_tile.gather %table[%zero] : memref<?xf32>, index -> f32
    %y = tensor.splat %x : tensor<16x16xf32, #acc>
    fi_tile.store_rows %y, %o[%it] group 1 : tensor<16x16xf32, #acc>, memref<?x2x16xf32>
    %m = fi_tile.reduce max %y : tensor<16x16xf32, #acc> -> tensor<16x1xf32, #row>
    fi_tile.store_rows %m, %lse[%it] group 1 : tensor<16x1xf32, #row>, memref<?x2xf32>
  }
  fi_tile.return
}
fi_tile.package @aligned {arguments = [{name = "q"}, {name = "table"}], results = [{name = "o"}, {name = "lse"}],
    stages = [{bodies = [{symbol = "a"}], buffers = ["q", "table", "o", "lse"]}]}

// -----

// Rows over two warps: 16 bytes at once; where the last repeat is beyond the tile a
// lane reads its first columns again, and nothing of them is added or stored.
#rows = #fi_tile.frag<row32, rep = [2, 2], warps = 1, column_warps = 2>
#one = #fi_tile.slice<1, <row32, rep = [2, 1], warps = 1, column_warps = 2>>
// CHECK-LABEL: llvm.func @shared_rows
// CHECK-SAME: nvvm.reqntid = array<i32: 64>
// CHECK: scf.for
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK: %[[INSIDE:.*]] = arith.cmpi ult, %{{.*}}, %c264
// CHECK: arith.select %[[INSIDE]], %c512, %c0
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<8xbf16>
// CHECK-COUNT-8: arith.select %[[INSIDE]], %{{.*}}, %{{.*}} : f32
// A warp's part of each of two rows, then that of the others.
// CHECK-COUNT-10: nvvm.shfl.sync bfly
// CHECK: scf.if
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 4 : i64} : f32, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<3> -> vector<2xf32>
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
// CHECK: scf.if %[[INSIDE]]
// CHECK: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xbf16>, !llvm.ptr<1>
// The next item's parts come after everybody has read these.
// CHECK: nvvm.barrier0
fi_tile.kernel @shared_rows(%x: memref<?x1x776xbf16>, %y: memref<?x1x776xbf16>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 2, tile_keys = 2, warps = 2>) attributes {fi_tile.shared = 32 : i64} {
  fi_tile.for_items %it in %work {
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1x776xbf16> -> tensor<2x776xbf16, #rows>
    %f = arith.extf %t : tensor<2x776xbf16, #rows> to tensor<2x776xf32, #rows>
    %s = fi_tile.reduce add %f {fi_tile.offset = 0 : i64} : tensor<2x776xf32, #rows> -> tensor<2x1xf32, #one>
    %a = fi_tile.broadcast %s : tensor<2x1xf32, #one> -> tensor<2x776xf32, #rows>
    %h = arith.truncf %a : tensor<2x776xf32, #rows> to tensor<2x776xbf16, #rows>
    fi_tile.store_rows %h, %y[%it] group 1 : tensor<2x776xbf16, #rows>, memref<?x1x776xbf16>
  }
  fi_tile.return
}
