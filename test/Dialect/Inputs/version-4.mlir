#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #smem>
!qchan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
module attributes {fi.target = #fi.target<sm_90a>} {
  fi_tile.kernel @roles(%q: memref<?x2x64xf16>, %k: !k, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
    %qc = fi_tile.channel at 0 barriers 16384 : !qchan
    %kc = fi_tile.channel at 8192 barriers 16400 : !chan
    %kv = fi_tile.view %k, %k : !k, !k -> !kv
    fi_tile.role @load warps 4 registers 56 {
      fi_tile.for_items %it in %work {
        %f = fi_tile.acquire %qc : !qchan
        fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
        fi_tile.commit %qc : !qchan
        fi_tile.for_keys %t in %it all first step 16 {
          %g = fi_tile.acquire %kc : !chan
          fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
          fi_tile.commit %kc : !chan
          fi_tile.yield
        }
      }
    }
    fi_tile.return
  }
}
