// Copies of a role become tensor copies where a tensor map can say what they read; others
// are left to the threads, and a remark says why.
// RUN: fi-opt %s --fi-tile-tensor-copies=remarks --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1, tma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!kv = !fi.ragged_kv<2x128xf16>
!k = memref<?x2x128xf16>
!paged = !fi.paged_kv<8x2x128xf16, NHD>
!pool = memref<?x8x2x128xf16>
!rows = !fi_tile.buf<64x128xf16, #smem>
!buf = !fi_tile.buf<16x128xf16, #keys>
!qchan = !fi_tile.chan<64x128xf16, #smem, depth = 1>
!chan = !fi_tile.chan<16x128xf16, #keys, depth = 1>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi_tile.kernel @boxes
fi_tile.kernel @boxes(%q: memref<?x4x128xf16>, %k: !k, %p: !pool, %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#schedule) {
  %qc = fi_tile.channel : !qchan
  %kc = fi_tile.channel : !chan
  %pc = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %paged = fi_tile.view %p, %p pages(%pages : memref<?xi32>) : !pool, !pool -> !paged
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %qc : !qchan
      // Rows of whole tokens of two heads.
      // CHECK: fi_tile.copy_rows %{{.*}} group 2 via(tma)
      fi_tile.copy_rows %q[%it] to %f group 2 : memref<?x4x128xf16>, !rows
      fi_tile.commit %qc : !qchan
      fi_tile.for_keys %t in %it full step 16 {
        %g = fi_tile.acquire %kc : !chan
        // CHECK: fi_tile.copy_kv keys %{{.*}} via(tma)
        fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
        fi_tile.commit %kc : !chan
        %h = fi_tile.acquire %pc : !chan
        // Two boxes of a page each.
        // CHECK: fi_tile.copy_kv values %{{.*}} via(tma)
        fi_tile.copy_kv values %paged[%it, %t] to %h : !paged, !buf
        fi_tile.commit %pc : !chan
        fi_tile.yield
      }
    }
  }
  fi_tile.return
}
}

// -----

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1, tma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#wide = #fi_tile.smem<pitch = 256, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!four = !fi.paged_kv<4x2x64xf16, NHD>
!any = !fi.paged_kv<?x2x64xf16, NHD>
!pool4 = memref<?x4x2x64xf16>
!pool = memref<?x?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #smem>
!wbuf = !fi_tile.buf<16x128xf16, #wide>
!qchan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
!wchan = !fi_tile.chan<16x128xf16, #wide, depth = 1>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi_tile.kernel @threads
// CHECK-NOT: via
fi_tile.kernel @threads(%q: memref<?x6x64xf16>, %r: memref<?x2x128xf16>, %k: !k, %p4: !pool4, %p: !pool, %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#schedule) {
  %qc = fi_tile.channel : !qchan
  %wc = fi_tile.channel : !wchan
  %kc = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %four = fi_tile.view %p4, %p4 pages(%pages : memref<?xi32>) : !pool4, !pool4 -> !four
  %any = fi_tile.view %p, %p pages(%pages : memref<?xi32>) : !pool, !pool -> !any
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %qc : !qchan
      // expected-remark @below {{is left to threads: 'fi_tile.copy_rows' op expected with 'via(tma)' rows of at most 256 whole tokens of at most 256 heads, but got 64 rows of groups of 3 [TILE41]}}
      fi_tile.copy_rows %q[%it] to %f group 3 : memref<?x6x64xf16>, !rows
      fi_tile.commit %qc : !qchan
      %e = fi_tile.acquire %wc : !wchan
      // expected-remark @below {{is left to threads: 'fi_tile.copy_rows' op expected with 'via(tma)' a buffer of a multiple of 8 rows of whole chunks of 16 bytes, in panels of 128 bytes with a swizzle of 128, but got '!fi_tile.buf<16x128xf16, #fi_tile.smem<pitch = 256, swizzle = 128>>' [TILE41]}}
      fi_tile.copy_rows %r[%it] to %e group 1 : memref<?x2x128xf16>, !wbuf
      fi_tile.commit %wc : !wchan
      fi_tile.for_keys %t in %it full step 16 {
        %g = fi_tile.acquire %kc : !chan
        // expected-remark @below {{is left to threads: 'fi_tile.copy_kv' op expected with 'via(tma)' all keys of a tile of a loop over keys, in pages of a known multiple of 8 or without pages, at most 256 in each, of pools of at most 5 dimensions, but got boxes of 4 of '!fi.paged_kv<4x2x64xf16, NHD>' [TILE41]}}
        fi_tile.copy_kv keys %four[%it, %t] to %g : !four, !buf
        // expected-remark @below {{but got boxes of 0 of '!fi.paged_kv<?x2x64xf16, NHD>'}}
        fi_tile.copy_kv keys %any[%it, %t] to %g : !any, !buf
        %sixteen = arith.constant 16 : index
        %next = arith.addi %t, %sixteen : index
        // expected-remark @below {{but got boxes of 0 of '!fi.ragged_kv<2x64xf16>'}}
        fi_tile.copy_kv keys %kv[%it, %next] to %g : !kv, !buf
        fi_tile.commit %kc : !chan
        fi_tile.yield
      }
    }
  }
  fi_tile.return
}
}

// -----

// Without 'tma' nothing changes.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!rows = !fi_tile.buf<64x64xf16, #smem>
!qchan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi_tile.kernel @off
// CHECK-NOT: via
fi_tile.kernel @off(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#schedule) {
  %qc = fi_tile.channel : !qchan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %qc : !qchan
      fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
      fi_tile.commit %qc : !qchan
    }
  }
  fi_tile.return
}
}

// -----

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1, tma = 1>
module attributes {fi.target = #fi.target<sm_80>} {
// expected-error @below {{'fi_tile.kernel' op expected a target with tensor copies for 'tma' in the schedule, but sm_80 has none [SCH10]}}
fi_tile.kernel @old(%w: !fi_tile.work) schedule(#schedule) {
  fi_tile.return
}
}
