// Copies run stages - 1 tiles ahead: a cursor goes through the loops over an item's keys.
// RUN: fi-opt %s --fi-tile-pipeline --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 3>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK: !chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK: !chan1 = !fi_tile.chan<16x64xf16, #smem, depth = 3>
// CHECK-LABEL: fi_tile.kernel @two
fi_tile.kernel @two(%q: memref<?x2x64xf16>, %k: !k, %w: !fi_tile.work) schedule(#schedule) {
  // CHECK: %[[Q:.*]] = fi_tile.channel : !chan{{$}}
  %qc = fi_tile.channel : !chan
  // CHECK: %[[K:.*]] = fi_tile.channel : !chan1
  %kc = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %qc : !chan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !buf
    fi_tile.commit %qc : !chan
    // The first two tiles start before anything is waited for.
    // CHECK: fi_tile.commit %[[Q]]
    // CHECK-NEXT: %[[C0:.*]] = fi_tile.cursor %[[IT:.*]] step 16
    // CHECK-NEXT: %[[KEY:.*]], %[[VALID:.*]] = fi_tile.cursor_key %[[C0]]
    // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[K]]
    // CHECK-NEXT: fi_tile.copy_kv keys %{{.*}}[%[[IT]], %[[KEY]]] to %[[FREE]] if %[[VALID]]
    // CHECK-NEXT: fi_tile.commit %[[K]]
    // CHECK-NEXT: %[[C1:.*]] = fi_tile.advance %[[C0]] step 16
    // CHECK-NEXT: fi_tile.cursor_key %[[C1]]
    // CHECK: fi_tile.commit %[[K]]
    // CHECK-NEXT: %[[C2:.*]] = fi_tile.advance %[[C1]] step 16
    // CHECK-NEXT: fi_tile.get %[[Q]]
    %rows = fi_tile.get %qc : !chan
    // CHECK-NEXT: %[[R:.*]] = fi_tile.for_keys %{{.*}} full step 16 iter_args(%[[C:.*]] = %[[C2]]) -> (!fi_tile.cursor) {
    // CHECK-NEXT: %[[B:.*]] = fi_tile.get %[[K]]
    // CHECK-NEXT: %[[KEY:.*]], %[[VALID:.*]] = fi_tile.cursor_key %[[C]]
    // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[K]]
    // CHECK-NEXT: fi_tile.copy_kv keys %{{.*}}[%[[IT]], %[[KEY]]] to %[[FREE]] if %[[VALID]]
    // CHECK-NEXT: fi_tile.commit %[[K]]
    // CHECK-NEXT: fi_tile.dot %{{.*}}, %[[B]]
    // CHECK-NEXT: fi_tile.release %[[K]]
    // CHECK-NEXT: %[[NEXT:.*]] = fi_tile.advance %[[C]] step 16
    // CHECK-NEXT: fi_tile.yield %[[NEXT]]
    fi_tile.for_keys %t in %it full step 16 {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %rows, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield
    }
    // CHECK: fi_tile.for_keys %{{.*}} partial step 16 iter_args(%{{.*}} = %[[R]]) -> (!fi_tile.cursor) {
    // CHECK-NOT: %t] to
    // CHECK: fi_tile.yield
    fi_tile.for_keys %t in %it partial step 16 {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %rows, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield
    }
    fi_tile.release %qc : !chan
  }
  fi_tile.return
}

// -----

// With few rows, a page table is asked before the rows of the query are copied, for
// all tiles that are begun there.
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 2, stages = 3>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.paged_kv<16x2x64xf16, NHD>
!k = memref<?x16x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @few
fi_tile.kernel @few(%q: memref<?x2x64xf16>, %k: !k, %p: memref<?xi32>, %w: !fi_tile.work) schedule(#schedule) {
  %qc = fi_tile.channel : !chan
  %kc = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k pages(%p : memref<?xi32>) : !k, !k -> !kv
  // CHECK: fi_tile.for_items
  fi_tile.for_items %it in %w {
    // CHECK-NEXT: %[[C0:.*]] = fi_tile.cursor
    // CHECK-NEXT: %{{.*}}, %{{.*}} = fi_tile.cursor_key %[[C0]]
    // CHECK-NEXT: %[[E0:.*]] = fi_tile.locate
    // CHECK-NEXT: %[[C1:.*]] = fi_tile.advance %[[C0]]
    // CHECK-NEXT: %{{.*}}, %{{.*}} = fi_tile.cursor_key %[[C1]]
    // CHECK-NEXT: %[[E1:.*]] = fi_tile.locate
    // CHECK: fi_tile.copy_rows
    // CHECK: fi_tile.copy_kv {{.*}} entries(%[[E0]]
    // CHECK: fi_tile.copy_kv {{.*}} entries(%[[E1]]
    // CHECK: fi_tile.get
    %f = fi_tile.acquire %qc : !chan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !buf
    fi_tile.commit %qc : !chan
    %rows = fi_tile.get %qc : !chan
    fi_tile.for_keys %t in %it full step 16 {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %rows, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield
    }
    fi_tile.release %qc : !chan
  }
  fi_tile.return
}

// -----

// With one stage nothing runs ahead.
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @one
// CHECK-NOT: fi_tile.cursor
fi_tile.kernel @one(%k: !k, %w: !fi_tile.work) schedule(#schedule) {
  %kc = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    fi_tile.for_keys %t in %it full step 16 {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      fi_tile.release %kc : !chan
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

// Loops that copy different things are left alone, with a remark.
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @unlike
// CHECK-NOT: fi_tile.cursor
fi_tile.kernel @unlike(%k: !k, %w: !fi_tile.work) schedule(#schedule) {
  %kc = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    // expected-remark @below {{the loops over keys copy through different channels: their copies are not started ahead}}
    fi_tile.for_keys %t in %it full step 16 {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      fi_tile.release %kc : !chan
      fi_tile.yield
    }
    fi_tile.for_keys %t in %it partial step 16 {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv values %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      fi_tile.release %kc : !chan
      fi_tile.yield
    }
  }
  fi_tile.return
}
