// A kernel begins while the launch in front of it ends, on targets that can.
// RUN: fi-opt %s --fi-tile-overlap-launches --split-input-file | FileCheck %s
// Again: kernels that wait already are left.
// RUN: fi-opt %s --fi-tile-overlap-launches --fi-tile-overlap-launches --split-input-file | FileCheck %s
// RUN: sed 's/sm_90a/sm_80/' %s | fi-opt --fi-tile-overlap-launches --split-input-file | FileCheck %s --check-prefix=OLD --implicit-check-not=launch

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.paged_kv<16x2x64xf16, NHD>
!k = memref<?x16x2x64xf16>
!q = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
module attributes {fi.target = #fi.target<sm_90a>} {
  // The item's range and pages are the plan's, and read in front; keys and values of those
  // pages are asked for, too.
  // CHECK-LABEL: fi_tile.kernel @decode
  // CHECK-NEXT: fi_tile.launch_next
  // CHECK: fi_tile.for_items
  // CHECK-NEXT: fi_tile.cursor
  // CHECK-NEXT: %[[KEY:.*]], %[[VALID:.*]] = fi_tile.cursor_key
  // CHECK-NEXT: %[[E:.*]] = fi_tile.locate
  // CHECK-NEXT: fi_tile.acquire
  // CHECK-NEXT: fi_tile.prefetch_kv keys %[[KV:.*]][%[[IT:.*]], %[[KEY]]] if %[[VALID]] entries(%[[E]] :
  // CHECK-NEXT: fi_tile.prefetch_kv values %[[KV]][%[[IT]], %[[KEY]]] if %[[VALID]] entries(%[[E]] :
  // CHECK-NEXT: fi_tile.await_launches
  // CHECK-NEXT: fi_tile.copy_rows
  // CHECK: }
  // CHECK-NEXT: fi_tile.await_launches
  // CHECK-NEXT: fi_tile.return
  // OLD-LABEL: fi_tile.kernel @decode
  fi_tile.kernel @decode(%q: !q, %k: !k, %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
    %c = fi_tile.channel : !chan
    %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : !k, !k -> !kv
    fi_tile.for_items %it in %w {
      %cursor = fi_tile.cursor %it step 16
      %key, %valid = fi_tile.cursor_key %cursor
      %e = fi_tile.locate %kv[%it, %key] if %valid : !kv -> !fi_tile.entries<!buf>
      %b = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %b group 1 : !q, !buf
      fi_tile.commit %c : !chan
    }
    fi_tile.return
  }

  // Each role waits by itself: who multiplies writes results.
  // CHECK-LABEL: fi_tile.kernel @roles
  // CHECK-NEXT: fi_tile.launch_next
  // CHECK: fi_tile.role @load
  // CHECK-NEXT: fi_tile.for_items
  // CHECK-NEXT: fi_tile.acquire
  // CHECK-NEXT: fi_tile.await_launches
  // CHECK-NEXT: fi_tile.copy_rows
  // CHECK: }
  // CHECK-NEXT: fi_tile.await_launches
  // CHECK-NEXT: }
  // CHECK: fi_tile.role @compute
  // CHECK-NEXT: fi_tile.for_items
  // CHECK-NEXT: fi_tile.get
  // CHECK-NEXT: fi_tile.await_launches
  // CHECK-NEXT: fi_tile.read
  // CHECK: }
  // CHECK-NEXT: fi_tile.await_launches
  // CHECK-NEXT: }
  fi_tile.kernel @roles(%q: !q, %o: !q, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
    %c = fi_tile.channel : !chan
    fi_tile.role @load warps 4 registers 40 {
      fi_tile.for_items %it in %w {
        %b = fi_tile.acquire %c : !chan
        fi_tile.copy_rows %q[%it] to %b group 1 : !q, !buf
        fi_tile.commit %c : !chan
      }
    }
    fi_tile.role @compute warps 4 registers 232 {
      fi_tile.for_items %it in %w {
        %b = fi_tile.get %c : !chan
        %x = fi_tile.read %b : !buf -> tensor<16x64xf16>
        fi_tile.release %c : !chan
        fi_tile.store_rows %x, %o[%it] group 1 : tensor<16x64xf16>, !q
      }
    }
    fi_tile.return
  }
}
