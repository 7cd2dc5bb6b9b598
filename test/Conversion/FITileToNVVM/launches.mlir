// Launches that overlap, and what the manifest says of them.
// RUN: fi-opt %s --fi-tile-to-nvvm | FileCheck %s

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.paged_kv<16x2x64xf16, NHD>
!k = memref<?x16x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
module attributes {fi.target = #fi.target<sm_90a>} {
  // CHECK-LABEL: llvm.func @k(
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.launch_dependents;", ""
  // A line of 128 bytes of each row is asked for by one lane.
  // CHECK-COUNT-4: "@$1 prefetch.global.L2 [$0];"
  // CHECK: llvm.inline_asm has_side_effects {{.*}}"griddepcontrol.wait;", "~{memory}"
  fi_tile.kernel @k(%k: !k, %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
    fi_tile.launch_next
    %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : !k, !k -> !kv
    fi_tile.for_items %it in %w {
      %cursor = fi_tile.cursor %it step 16
      %key, %valid = fi_tile.cursor_key %cursor
      %e = fi_tile.locate %kv[%it, %key] if %valid : !kv -> !fi_tile.entries<!buf>
      fi_tile.prefetch_kv keys %kv[%it, %key] if %valid entries(%e : !fi_tile.entries<!buf>) : !kv
      fi_tile.await_launches
    }
    fi_tile.await_launches
    fi_tile.return
  }
}
