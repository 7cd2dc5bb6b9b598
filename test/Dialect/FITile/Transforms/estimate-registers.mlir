// Registers that a lane keeps alive: accumulators and scores as they overlap, what can be
// computed again costs nothing; and a warning where tiles alone are too many.
// RUN: fi-opt %s --fi-tile-estimate-registers=remarks=true --split-input-file --verify-diagnostics | FileCheck %s
// RUN: not fi-opt %s --fi-tile-estimate-registers=limit=64 --split-input-file 2>&1 | FileCheck %s --check-prefix=LIMIT

#acc = #fi_tile.frag<mma_c, rep = [1, 8], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 1>>
!m = memref<?x1x64xf32>
// Of each lane: 32 registers for a tile of 16 x 64, 2 for a value of each row. The product
// takes the place of %a; the row that it is multiplied with is kept for the second one.
// CHECK: fi_tile.kernel @elements
// CHECK-SAME: fi_tile.registers = 72 : i64
// LIMIT-NOT: warning
// expected-remark @below {{needs about 72 registers of a lane, 34 of them for tiles}}
fi_tile.kernel @elements(%x: !m, %o: !m, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %half = arith.constant dense<0.5> : tensor<16x64xf32, #acc>
  fi_tile.for_items %it in %w {
    %a = fi_tile.load_rows %x[%it] group 1 : !m -> tensor<16x64xf32, #acc>
    %b = arith.mulf %a, %half : tensor<16x64xf32, #acc>
    // expected-note @below {{2 registers for 'tensor<16x1xf32}}
    %s = fi_tile.reduce max %b : tensor<16x64xf32, #acc> -> tensor<16x1xf32, #row>
    %t = fi_tile.broadcast %s : tensor<16x1xf32, #row> -> tensor<16x64xf32, #acc>
    // expected-note @below {{32 registers for 'tensor<16x64xf32}}
    %c = arith.mulf %b, %t : tensor<16x64xf32, #acc>
    %d = arith.subf %c, %t : tensor<16x64xf32, #acc>
    fi_tile.store_rows %d, %o[%it] group 1 : tensor<16x64xf32, #acc>, !m
  }
  fi_tile.return
}

// -----

// An accumulator of 16 x 128 in a loop, scores of 16 x 64, and weights of 16 bits that take
// half of the scores' place: 64 + 32 registers.
#acc = #fi_tile.frag<mma_c, rep = [1, 16], warps = 1>
#scores = #fi_tile.frag<mma_c, rep = [1, 8], warps = 1>
#weights = #fi_tile.frag<mma_a16, rep = [1, 4], warps = 1>
#smem = #fi_tile.smem<pitch = 256, swizzle = 128>
!chan = !fi_tile.chan<64x128xf16, #smem, depth = 1>
!q = !fi_tile.chan<16x128xf16, #smem, depth = 1>
!m = memref<?x1x128xf32>
// CHECK: fi_tile.kernel @loop
// LIMIT: warning: expected tiles that fit into 64 registers of a lane, but 96 are in use at once, 32 too many: the rest will spill; take fewer rows or keys of a tile for a warp [SCH6]
// LIMIT: note: 64 registers for 'tensor<16x128xf32
// LIMIT: note: 32 registers for 'tensor<16x64xf32
// expected-remark @below {{of them for tiles}}
fi_tile.kernel @loop(%o: !m, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 64, warps = 1>) {
  %qc = fi_tile.channel : !q
  %kc = fi_tile.channel : !chan
  %zero = arith.constant dense<0.0> : tensor<16x128xf32, #acc>
  fi_tile.for_items %it in %w {
    %q = fi_tile.get %qc : !q
    %r = fi_tile.for_keys %t in %it all step 64 iter_args(
        // expected-note @below {{64 registers for 'tensor<16x128xf32}}
        %a = %zero) -> (tensor<16x128xf32, #acc>) {
      %k = fi_tile.get %kc : !chan
      // expected-note @below {{32 registers for 'tensor<16x64xf32}}
      %s = fi_tile.dot %q, %k transpose : !fi_tile.buf<16x128xf16, #smem>, !fi_tile.buf<64x128xf16, #smem> -> tensor<16x64xf32, #scores>
      %p = math.exp2 %s : tensor<16x64xf32, #scores>
      %h = arith.truncf %p : tensor<16x64xf32, #scores> to tensor<16x64xf16, #scores>
      %l = fi_tile.relayout %h : tensor<16x64xf16, #scores> -> tensor<16x64xf16, #weights>
      %n = fi_tile.dot %l, %k acc(%a) : tensor<16x64xf16, #weights>, !fi_tile.buf<64x128xf16, #smem> -> tensor<16x128xf32, #acc>
      fi_tile.release %kc : !chan
      fi_tile.yield %n : tensor<16x128xf32, #acc>
    }
    fi_tile.store_rows %r, %o[%it] group 1 : tensor<16x128xf32, #acc>, !m
  }
  fi_tile.return
}

// -----

// A thread's share of the registers of a multiprocessor, where a CTA has many threads.
#acc = #fi_tile.frag<mma_c, rep = [1, 32], warps = 32>
!m = memref<?x1x256xf32>
module attributes {fi.target = #fi.target<sm_80>} {
// expected-warning @below {{expected tiles that fit into 64 registers of a lane, its share of the 65536 of sm_80 for 1024 threads, but 128 are in use at once, 64 too many}}
// expected-remark @below {{registers of a lane of 64, 128 of them for tiles}}
fi_tile.kernel @many(%x: !m, %o: !m, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 512, tile_keys = 16, warps = 32>) {
  fi_tile.for_items %it in %w {
    // expected-note @below {{128 registers for 'tensor<512x256xf32}}
    %a = fi_tile.load_rows %x[%it] group 1 : !m -> tensor<512x256xf32, #acc>
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<512x256xf32, #acc>, !m
  }
  fi_tile.return
}
}

// -----

fi_tile.kernel @logical(%x: memref<?x1x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{expected tiles with layouts: run fi-tile-assign-layouts first}}
    %a = fi_tile.load_rows %x[%it] group 1 : memref<?x1x64xf32> -> tensor<16x64xf32>
  }
  fi_tile.return
}
