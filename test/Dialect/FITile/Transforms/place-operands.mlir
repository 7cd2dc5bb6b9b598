// What products read from memory goes through channels: one per operand, one for both
// loops over an item's keys, waited for before the first product that reads it.
// RUN: fi-opt %s --fi-tile-place-operands --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x72xf16>
!k = memref<?x2x72xf16>
// CHECK-DAG: #smem = #fi_tile.smem<pitch = 176>
// CHECK-DAG: !chan = !fi_tile.chan<64x72xf16, #smem, depth = 1>
// CHECK-DAG: !chan1 = !fi_tile.chan<32x72xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @both
// The pitch of rows of 72 columns is one of 80, padded to an odd number of chunks.
// CHECK: %[[Q:.*]] = fi_tile.channel : !chan{{$}}
// CHECK-NEXT: %[[K:.*]] = fi_tile.channel : !chan1
// CHECK-NEXT: %[[V:.*]] = fi_tile.channel : !chan1
// CHECK-NOT: fi_tile.channel
fi_tile.kernel @both(%q: memref<?x2x72xf16>, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    // CHECK: %[[FREE:.*]] = fi_tile.acquire %[[Q]] : !chan
    // CHECK-NEXT: fi_tile.copy_rows %q[%[[IT:.*]]] to %[[FREE]] group 1
    // CHECK-NEXT: fi_tile.commit %[[Q]]
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x72xf16> -> tensor<64x72xf16>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    // CHECK: %[[ROWS:.*]] = fi_tile.get %[[Q]]
    // CHECK-NEXT: fi_tile.for_keys %[[T:.*]] in %[[IT]] full
    // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[K]]
    // CHECK-NEXT: fi_tile.copy_kv keys %{{.*}}[%[[IT]], %[[T]]] to %[[FREE]]
    // CHECK-NEXT: fi_tile.commit %[[K]]
    // CHECK-NEXT: %[[KEYS:.*]] = fi_tile.get %[[K]]
    // CHECK-NEXT: %[[S:.*]] = fi_tile.dot %[[ROWS]], %[[KEYS]] transpose
    // CHECK-NEXT: fi_tile.release %[[K]]
    // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[V]]
    // CHECK-NEXT: fi_tile.copy_kv values
    // CHECK-NEXT: fi_tile.commit %[[V]]
    // The copy of the values is under way during what does not need them.
    // CHECK-NEXT: arith.truncf
    // CHECK-NEXT: %[[VALUES:.*]] = fi_tile.get %[[V]]
    // CHECK-NEXT: fi_tile.dot %{{.*}}, %[[VALUES]] acc
    // CHECK-NEXT: fi_tile.release %[[V]]
    %a = fi_tile.for_keys %t in %it full step 32 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf16>, tensor<32x72xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    // CHECK: fi_tile.for_keys %{{.*}} partial
    // CHECK-NEXT: fi_tile.acquire %[[K]]
    // CHECK: fi_tile.dot %[[ROWS]], %{{.*}} transpose
    // CHECK: fi_tile.acquire %[[V]]
    // CHECK: fi_tile.release %[[V]]
    // CHECK: }
    // CHECK-NEXT: fi_tile.release %[[Q]]
    %b = fi_tile.for_keys %t in %it partial step 32 iter_args(%acc = %a) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf16>, tensor<32x72xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %b, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}

// -----

// What no product reads stays a load.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2>
// CHECK-LABEL: fi_tile.kernel @rows
// CHECK-NOT: fi_tile.channel
// CHECK: fi_tile.load_rows
fi_tile.kernel @rows(%q: memref<?x2x64xf16>, %o: memref<?x2x64xf16>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf16> -> tensor<64x64xf16>
    fi_tile.store_rows %rows, %o[%it] group 1 : tensor<64x64xf16>, memref<?x2x64xf16>
  }
  fi_tile.return
}

// -----

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2>
fi_tile.kernel @computed(%q: memref<?x2x64xf16>, %o: memref<?x2x64xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %ones = arith.constant dense<1.0> : tensor<64x64xf16>
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf16> -> tensor<64x64xf16>
    // expected-error @below {{'fi_tile.dot' op expected the second operand of a product to be keys or values as they lie in memory, but got a tile that is computed [TILE24]}}
    %s = fi_tile.dot %rows, %ones : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
  }
  fi_tile.return
}

// -----

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
fi_tile.kernel @widened(%q: memref<?x2x64xf32>, %k: !k, %o: memref<?x2x64xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf32> -> tensor<64x64xf32>
    // expected-error @below {{'fi_tile.load_kv' op expected operands of products to be loaded in their type in memory, 'f16', but got 'f32' [TILE24]}}
    %keys = fi_tile.load_kv keys %kv[%it, %zero] : !kv -> tensor<64x64xf32>
    %s = fi_tile.dot %rows, %keys transpose : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
  }
  fi_tile.return
}

// -----

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
fi_tile.kernel @used(%q: memref<?x2x64xf16>, %k: !k, %o: memref<?x2x64xf32>, %p: memref<?x2x64xf16>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    // expected-error @below {{'fi_tile.load_rows' op expected a tile that only products read, but got a use by fi_tile.store_rows [TILE24]}}
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf16> -> tensor<64x64xf16>
    %keys = fi_tile.load_kv keys %kv[%it, %zero] : !kv -> tensor<64x64xf16>
    %s = fi_tile.dot %rows, %keys transpose : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    fi_tile.store_rows %rows, %p[%it] group 1 : tensor<64x64xf16>, memref<?x2x64xf16>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
  }
  fi_tile.return
}
