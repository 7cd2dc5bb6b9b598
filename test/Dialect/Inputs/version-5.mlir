#panels = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<64x64xf16, #panels>
!chan = !fi_tile.chan<64x64xf16, #panels, depth = 2>
module attributes {fi.target = #fi.target<sm_90a>} {
  fi_tile.kernel @roles(%q: memref<?x2x64xf16>, %k: !k, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 2, wgmma = 1, tma = 1, late = 1>) {
    %qc = fi_tile.channel at 0 barriers 32768 : !chan
    %kc = fi_tile.channel at 16384 barriers 32800 : !chan
    %kv = fi_tile.view %k, %k : !k, !k -> !kv
    fi_tile.role @load warps 4 registers 56 {
      fi_tile.for_items %it in %work {
        %f = fi_tile.acquire %qc : !chan
        fi_tile.copy_rows %q[%it] to %f group 1 via(tma) : memref<?x2x64xf16>, !buf
        fi_tile.commit %qc : !chan
        fi_tile.for_keys %t in %it full step 64 {
          %g = fi_tile.acquire %kc : !chan
          fi_tile.copy_kv keys %kv[%it, %t] to %g via(tma) : !kv, !buf
          fi_tile.commit %kc : !chan
          fi_tile.yield
        }
      }
    }
    fi_tile.return
  }
}
