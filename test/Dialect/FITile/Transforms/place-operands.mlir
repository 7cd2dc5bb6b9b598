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

// What is computed outside of loops is laid out for each item.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2>
// CHECK-LABEL: fi_tile.kernel @constant
fi_tile.kernel @constant(%q: memref<?x2x64xf16>, %o: memref<?x2x64xf32>, %work: !fi_tile.work) schedule(#schedule) {
  // CHECK: %[[Q:.*]] = fi_tile.channel
  // CHECK-NEXT: %[[C:.*]] = fi_tile.channel
  // CHECK: %[[ONES:.*]] = arith.constant
  %ones = arith.constant dense<1.0> : tensor<64x64xf16>
  // CHECK: fi_tile.for_items
  fi_tile.for_items %it in %work {
    // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[C]]
    // CHECK-NEXT: fi_tile.write %[[ONES]] to %[[FREE]]
    // CHECK-NEXT: fi_tile.commit %[[C]]
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf16> -> tensor<64x64xf16>
    // CHECK: %[[ROWS:.*]] = fi_tile.get %[[Q]]
    // CHECK-NEXT: %[[READY:.*]] = fi_tile.get %[[C]]
    // CHECK-NEXT: fi_tile.dot %[[ROWS]], %[[READY]] :
    // CHECK-NEXT: fi_tile.release %[[C]]
    %s = fi_tile.dot %rows, %ones : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
  }
  fi_tile.return
}

// -----

// Buffers hold what is in memory: a product widens it.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
// CHECK-DAG: !buf = !fi_tile.buf<64x64xf32, #smem>
// CHECK-DAG: !buf1 = !fi_tile.buf<64x64xf16, #smem1>
// CHECK-LABEL: fi_tile.kernel @widened
fi_tile.kernel @widened(%q: memref<?x2x64xf32>, %k: !k, %o: memref<?x2x64xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    // CHECK: fi_tile.copy_rows %q{{.*}} memref<?x2x64xf32>, !buf
    // CHECK: fi_tile.copy_kv keys {{.*}} !buf1
    // CHECK: fi_tile.dot %{{.*}}, %{{.*}} transpose : !buf, !buf1 -> tensor<64x64xf32>
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf32> -> tensor<64x64xf32>
    %keys = fi_tile.load_kv keys %kv[%it, %zero] : !kv -> tensor<64x64xf32>
    %s = fi_tile.dot %rows, %keys transpose : tensor<64x64xf32>, tensor<64x64xf32> -> tensor<64x64xf32>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
  }
  fi_tile.return
}

// -----

// Others than products read the buffer that a product reads.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
// CHECK-LABEL: fi_tile.kernel @used
fi_tile.kernel @used(%q: memref<?x2x64xf16>, %k: !k, %o: memref<?x2x64xf32>, %p: memref<?x2x64xf16>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %work {
    // CHECK: %[[ROWS:.*]] = fi_tile.get
    // CHECK-NEXT: %[[TILE:.*]] = fi_tile.read %[[ROWS]] : {{.*}} -> tensor<64x64xf16>
    // CHECK: fi_tile.dot %[[ROWS]],
    // CHECK: fi_tile.store_rows %[[TILE]], %p
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf16> -> tensor<64x64xf16>
    %keys = fi_tile.load_kv keys %kv[%it, %zero] : !kv -> tensor<64x64xf16>
    %s = fi_tile.dot %rows, %keys transpose : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
    fi_tile.store_rows %rows, %p[%it] group 1 : tensor<64x64xf16>, memref<?x2x64xf16>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
  }
  fi_tile.return
}

// -----

// Transformed rows: columns are read from the buffer of the copy, and what is computed
// is written to another one, which both loops share. Rows of the query are written once.
// Tables of a value per row are loaded as they were.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xbf16>
!k = memref<?x2x64xbf16>
// CHECK-DAG: !chan = !fi_tile.chan<64x64xbf16, #smem, depth = 1>
// CHECK-DAG: !chan1 = !fi_tile.chan<32x64xbf16, #smem, depth = 1>
// CHECK-DAG: !chan2 = !fi_tile.chan<64x32xf32, #smem, depth = 1>
// CHECK-DAG: !chan3 = !fi_tile.chan<32x32xf32, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @transformed
// CHECK: %[[Q:.*]] = fi_tile.channel : !chan{{$}}
// CHECK-NEXT: %[[K:.*]] = fi_tile.channel : !chan1
// CHECK-NEXT: %[[WQ:.*]] = fi_tile.channel : !chan2
// CHECK-NEXT: %[[WK:.*]] = fi_tile.channel : !chan3
// CHECK-NOT: fi_tile.channel
fi_tile.kernel @transformed(%q: memref<?x2x64xbf16>, %g: memref<?x2xf32>, %k: !k, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %init = arith.constant dense<0.0> : tensor<64x32xf32>
  fi_tile.for_items %it in %work {
    // CHECK: %[[ROWS:.*]] = fi_tile.get %[[Q]]
    // CHECK-NEXT: %[[X:.*]] = fi_tile.read %[[ROWS]] from 1 step 2 : {{.*}} -> tensor<64x32xbf16>
    // CHECK-NEXT: %[[WX:.*]] = arith.extf %[[X]] : tensor<64x32xbf16> to tensor<64x32xf32>
    // CHECK-NEXT: fi_tile.release %[[Q]]
    // CHECK: fi_tile.load_rows %g
    // CHECK: %[[T:.*]] = arith.mulf %[[WX]]
    // CHECK-NEXT: %[[FREE:.*]] = fi_tile.acquire %[[WQ]]
    // CHECK-NEXT: fi_tile.write %[[T]] to %[[FREE]]
    // CHECK-NEXT: fi_tile.commit %[[WQ]]
    // CHECK-NEXT: %[[WROWS:.*]] = fi_tile.get %[[WQ]]
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xbf16> -> tensor<64x64xf32>
    %x = fi_tile.columns %rows from 1 step 2 : tensor<64x64xf32> -> tensor<64x32xf32>
    %gain = fi_tile.load_rows %g[%it] group 1 : memref<?x2xf32> -> tensor<64x1xf32>
    %wide = fi_tile.broadcast %gain : tensor<64x1xf32> -> tensor<64x32xf32>
    %tx = arith.mulf %x, %wide : tensor<64x32xf32>
    // CHECK: fi_tile.for_keys {{.*}} full
    // CHECK: %[[KEYS:.*]] = fi_tile.get %[[K]]
    // CHECK-NEXT: fi_tile.read %[[KEYS]] from 32 step 1
    // CHECK: fi_tile.release %[[K]]
    // CHECK: fi_tile.acquire %[[WK]]
    // CHECK-NEXT: fi_tile.write
    // CHECK-NEXT: fi_tile.commit %[[WK]]
    // CHECK-NEXT: %[[WKEYS:.*]] = fi_tile.get %[[WK]]
    // CHECK-NEXT: fi_tile.dot %[[WROWS]], %[[WKEYS]] acc
    // CHECK-NEXT: fi_tile.release %[[WK]]
    %a = fi_tile.for_keys %t in %it full step 32 iter_args(%acc = %init) -> (tensor<64x32xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x64xf32>
      %y = fi_tile.columns %keys from 32 step 1 : tensor<32x64xf32> -> tensor<32x32xf32>
      %ty = arith.addf %y, %y : tensor<32x32xf32>
      %s = fi_tile.dot %tx, %ty acc(%acc) transpose : tensor<64x32xf32>, tensor<32x32xf32> -> tensor<64x32xf32>
      fi_tile.yield %s : tensor<64x32xf32>
    }
    // CHECK: fi_tile.for_keys {{.*}} partial
    // CHECK: fi_tile.get %[[K]]
    // CHECK: fi_tile.acquire %[[WK]]
    // CHECK: fi_tile.release %[[WK]]
    // CHECK: }
    // CHECK-NEXT: fi_tile.release %[[WQ]]
    %b = fi_tile.for_keys %t in %it partial step 32 iter_args(%acc = %a) -> (tensor<64x32xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x64xf32>
      %y = fi_tile.columns %keys from 32 step 1 : tensor<32x64xf32> -> tensor<32x32xf32>
      %ty = arith.addf %y, %y : tensor<32x32xf32>
      %s = fi_tile.dot %tx, %ty acc(%acc) transpose : tensor<64x32xf32>, tensor<32x32xf32> -> tensor<64x32xf32>
      fi_tile.yield %s : tensor<64x32xf32>
    }
    fi_tile.store_rows %b, %o[%it] group 1 : tensor<64x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}

// -----

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, stages = 2>
fi_tile.kernel @carried(%q: memref<?x2x64xf16>, %o: memref<?x2x64xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %ones = arith.constant dense<1.0> : tensor<64x64xf16>
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf16> -> tensor<64x64xf16>
    %r = fi_tile.for_keys %t in %it all step 64 iter_args(%b = %ones) -> (tensor<64x64xf16>) {
      // expected-error @below {{'fi_tile.dot' op expected the second operand of a product to be loaded, or computed for the item, but got a value that a loop carries or that no item has [TILE24]}}
      %s = fi_tile.dot %rows, %b : tensor<64x64xf16>, tensor<64x64xf16> -> tensor<64x64xf32>
      %h = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
      fi_tile.yield %h : tensor<64x64xf16>
    }
  }
  fi_tile.return
}

// -----

// A table has a number for each row, which is not copied as rows are.
fi_tile.kernel @table(%x: memref<?x1xf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1, lanes = 2>) {
  %a = arith.constant dense<1.0> : tensor<1x8xf32>
  // CHECK-LABEL: fi_tile.kernel @table
  // CHECK-NOT: fi_tile.copy_rows
  // CHECK: fi_tile.load_rows
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1xf32> -> tensor<8x1xf32>
    %r = fi_tile.dot %a, %t : tensor<1x8xf32>, tensor<8x1xf32> -> tensor<1x1xf32>
  }
  fi_tile.return
}
