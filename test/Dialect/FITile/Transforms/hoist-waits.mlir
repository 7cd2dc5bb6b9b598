// Few rows a tile: values are waited for, and the next ones are started, right behind the
// product of queries and keys.
// RUN: fi-opt %s --fi-tile-hoist-waits --split-input-file | FileCheck %s
// RUN: fi-opt %s --fi-tile-hoist-waits=max-rows=8 --split-input-file | FileCheck %s --check-prefix=MANY

#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// CHECK-LABEL: fi_tile.kernel @ahead
// MANY-LABEL: fi_tile.kernel @ahead
fi_tile.kernel @ahead(%k: !k, %v: !k, %w: !fi_tile.work) schedule(#schedule) {
  // CHECK: %[[K:.*]] = fi_tile.channel
  // CHECK: %[[V:.*]] = fi_tile.channel
  // MANY: fi_tile.channel
  // MANY: %[[V:.*]] = fi_tile.channel
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %c = fi_tile.cursor %it step 16
    // CHECK: fi_tile.for_keys
    // MANY: fi_tile.for_keys
    %r:2 = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero, %ahead = %c) -> (tensor<16x64xf32>, !fi_tile.cursor) {
      %b = fi_tile.get %kc : !chan
      %q = fi_tile.read %b : !buf -> tensor<16x64xf16>
      %s = fi_tile.dot %q, %b transpose : tensor<16x64xf16>, !buf -> tensor<16x16xf32>
      // CHECK: fi_tile.release %[[K]]
      // CHECK-NEXT: %[[B:.*]] = fi_tile.get %[[V]]
      // CHECK-NEXT: fi_tile.cursor_key
      // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[V]]
      // CHECK-NEXT: fi_tile.copy_kv values {{.*}} to %[[FREE]]
      // CHECK-NEXT: fi_tile.commit %[[V]]
      // CHECK-NEXT: math.exp2
      // CHECK-NEXT: fi_tile.dot %{{.*}}, %[[B]]
      // MANY: math.exp2
      // MANY-NEXT: fi_tile.get %[[V]]
      fi_tile.release %kc : !chan
      %p = math.exp2 %s : tensor<16x16xf32>
      %d = fi_tile.get %vc : !chan
      %key, %valid = fi_tile.cursor_key %ahead
      %f = fi_tile.acquire %vc : !chan
      fi_tile.copy_kv values %kv[%it, %key] to %f if %valid : !kv, !buf
      fi_tile.commit %vc : !chan
      %o = fi_tile.dot %p, %d acc(%acc) : tensor<16x16xf32>, !buf -> tensor<16x64xf32>
      fi_tile.release %vc : !chan
      %next = fi_tile.advance %ahead step 16
      fi_tile.yield %o, %next : tensor<16x64xf32>, !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

// With one buffer the copy was started right before the wait, which stays behind it.
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @one
fi_tile.kernel @one(%k: !k, %v: !k, %w: !fi_tile.work) schedule(#schedule) {
  %vc = fi_tile.channel : !chan
  %zero = arith.constant dense<0.0> : tensor<16x64xf32>
  %p = arith.constant dense<1.0> : tensor<16x16xf32>
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %r = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<16x64xf32>) {
      %f = fi_tile.acquire %vc : !chan
      fi_tile.copy_kv values %kv[%it, %t] to %f : !kv, !buf
      fi_tile.commit %vc : !chan
      // CHECK: math.exp2
      // CHECK-NEXT: fi_tile.get
      %e = math.exp2 %p : tensor<16x16xf32>
      %d = fi_tile.get %vc : !chan
      %o = fi_tile.dot %e, %d acc(%acc) : tensor<16x16xf32>, !buf -> tensor<16x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %o : tensor<16x64xf32>
    }
  }
  fi_tile.return
}
