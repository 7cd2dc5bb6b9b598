// With warps that load, a kernel becomes two roles: one has the copies and what says where
// they go, and the other everything else.
// RUN: fi-opt %s --fi-tile-split-roles --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #smem>
!qchan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
module attributes {fi.target = #fi.target<sm_90a>} {
// Channels of tiles of keys get a buffer for each stage, that of the queries a second one for
// the next item's.
// CHECK-DAG: !chan = !fi_tile.chan<64x64xf16, #smem, depth = 2>
// CHECK-DAG: !chan1 = !fi_tile.chan<16x64xf16, #smem, depth = 3>
// CHECK-LABEL: fi_tile.kernel @both
fi_tile.kernel @both(%q: memref<?x2x64xf16>, %k: !k, %o: memref<?x2x16xf32>, %w: !fi_tile.work) schedule(#schedule) {
  // CHECK: %[[Q:.*]] = fi_tile.channel : !chan{{$}}
  // CHECK-NEXT: %[[K:.*]] = fi_tile.channel : !chan1
  %qc = fi_tile.channel : !qchan
  %kc = fi_tile.channel : !chan
  // CHECK: %[[KV:.*]] = fi_tile.view
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  // CHECK-NOT: fi_tile.for_items
  // CHECK: fi_tile.role @load warps 4 registers 240 {
  // CHECK-NEXT: fi_tile.for_items %[[IT:.*]] in %work {
  // CHECK-NEXT: %[[F:.*]] = fi_tile.acquire %[[Q]]
  // CHECK-NEXT: fi_tile.copy_rows %q[%[[IT]]] to %[[F]] group 1
  // CHECK-NEXT: fi_tile.commit %[[Q]]
  // CHECK-NEXT: fi_tile.for_keys %[[T:.*]] in %[[IT]] full step 16 {
  // What decides where copies go is in both roles.
  // CHECK-NEXT: %[[G:.*]] = fi_tile.acquire %[[K]]
  // CHECK-NEXT: %[[SIXTEEN:.*]] = arith.constant 16
  // CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[T]], %[[SIXTEEN]]
  // CHECK-NEXT: fi_tile.copy_kv keys %[[KV]][%[[IT]], %[[NEXT]]] to %[[G]]
  // CHECK-NEXT: fi_tile.commit %[[K]]
  // CHECK-NEXT: fi_tile.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: fi_tile.for_keys %{{.*}} in %[[IT]] partial step 16 {
  // CHECK-NEXT: fi_tile.acquire
  // CHECK-NEXT: fi_tile.copy_kv
  // CHECK-NEXT: fi_tile.commit
  // CHECK-NEXT: fi_tile.yield
  // CHECK-NOT: fi_tile.get
  // As many warps as copy: each could have 256 registers, and setmaxnreg gives up to 240.
  // CHECK: fi_tile.role @compute warps 4 registers 240 {
  // CHECK-NEXT: fi_tile.for_items
  // CHECK-NOT: fi_tile.acquire
  // CHECK-NOT: fi_tile.copy
  // CHECK-NOT: fi_tile.commit
  // CHECK: %[[ROWS:.*]] = fi_tile.get %[[Q]]
  // CHECK-NEXT: %[[A:.*]] = fi_tile.for_keys %{{.*}} full step 16 iter_args(
  // CHECK: %[[B:.*]] = fi_tile.get %[[K]]
  // CHECK-NEXT: fi_tile.dot %[[ROWS]], %[[B]]
  // CHECK-NEXT: fi_tile.release %[[K]]
  // CHECK: fi_tile.for_keys %{{.*}} partial step 16 iter_args(%{{.*}} = %[[A]])
  // CHECK: fi_tile.store_rows
  // CHECK: fi_tile.release %[[Q]]
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x16xf32>
    %f = fi_tile.acquire %qc : !qchan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
    fi_tile.commit %qc : !qchan
    %rows = fi_tile.get %qc : !qchan
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%s = %zero) -> (tensor<64x16xf32>) {
      %sixteen = arith.constant 16 : index
      %next = arith.addi %t, %sixteen : index
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %next] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      %d = fi_tile.dot %rows, %b acc(%s) transpose : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield %d : tensor<64x16xf32>
    }
    %c = fi_tile.for_keys %t in %it partial step 16 iter_args(%s = %a) -> (tensor<64x16xf32>) {
      %g = fi_tile.acquire %kc : !chan
      fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %kc : !chan
      %b = fi_tile.get %kc : !chan
      %d = fi_tile.dot %rows, %b acc(%s) transpose : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield %d : tensor<64x16xf32>
    }
    fi_tile.store_rows %c, %o[%it] group 1 : tensor<64x16xf32>, memref<?x2x16xf32>
    fi_tile.release %qc : !qchan
  }
  fi_tile.return
}

// A kernel without copies stays as it is, and so does one whose warps copy for themselves.
// CHECK-LABEL: fi_tile.kernel @without
// CHECK-NOT: fi_tile.role
// CHECK: fi_tile.return
fi_tile.kernel @without(%o: memref<?x2x16xf32>, %w: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x16xf32>
    fi_tile.store_rows %zero, %o[%it] group 1 : tensor<64x16xf32>, memref<?x2x16xf32>
  }
  fi_tile.return
}
// CHECK-LABEL: fi_tile.kernel @themselves
// CHECK-NOT: fi_tile.role
// CHECK: fi_tile.return
fi_tile.kernel @themselves(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, stages = 1>) {
  %qc = fi_tile.channel : !qchan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %qc : !qchan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
    fi_tile.commit %qc : !qchan
    %rows = fi_tile.get %qc : !qchan
    fi_tile.release %qc : !qchan
  }
  fi_tile.return
}
}

// -----

// 12 warps share what four of 32 registers leave: 65536 / 32 - 4 * 32 registers, 160 each.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!rows = !fi_tile.buf<64x64xf16, #smem>
!qchan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi_tile.kernel @twelve
// CHECK: fi_tile.role @load warps 4 registers 32 {
// CHECK: fi_tile.role @compute warps 12 registers 160 {
fi_tile.kernel @twelve(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 12, load_warps = 4, stages = 3>) {
  %qc = fi_tile.channel : !qchan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %qc : !qchan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
    fi_tile.commit %qc : !qchan
    %rows = fi_tile.get %qc : !qchan
    fi_tile.release %qc : !qchan
  }
  fi_tile.return
}
// No whole warpgroups: nobody hands registers over.
// CHECK-LABEL: fi_tile.kernel @few
// CHECK: fi_tile.role @load warps 1 {
// CHECK: fi_tile.role @compute warps 2 {
fi_tile.kernel @few(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 2, load_warps = 1, stages = 3>) {
  %qc = fi_tile.channel : !qchan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %qc : !qchan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
    fi_tile.commit %qc : !qchan
    %rows = fi_tile.get %qc : !qchan
    fi_tile.release %qc : !qchan
  }
  fi_tile.return
}
}

// -----

// Registers are handed over from sm_90a on.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!rows = !fi_tile.buf<64x64xf16, #smem>
!qchan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
module attributes {fi.target = #fi.target<sm_80>} {
// CHECK-LABEL: fi_tile.kernel @older
// CHECK: fi_tile.role @load warps 4 {
// CHECK: fi_tile.role @compute warps 4 {
fi_tile.kernel @older(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3>) {
  %qc = fi_tile.channel : !qchan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %qc : !qchan
    fi_tile.copy_rows %q[%it] to %f group 1 : memref<?x2x64xf16>, !rows
    fi_tile.commit %qc : !qchan
    %rows = fi_tile.get %qc : !qchan
    fi_tile.release %qc : !qchan
  }
  fi_tile.return
}
}

// -----

// What is computed is in the registers of warps that compute.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
fi_tile.kernel @computed(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, load_warps = 1, stages = 1>) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %t = arith.constant dense<1.0> : tensor<16x64xf16>
    %f = fi_tile.acquire %c : !chan
    // expected-error @below {{'fi_tile.write' op expected operands of products that are copied as they are, where warps load for others ('load_warps'), but this one is computed [SCH9]}}
    fi_tile.write %t to %f : tensor<16x64xf16>, !buf
    fi_tile.commit %c : !chan
    %b = fi_tile.get %c : !chan
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

// What has roles is left as it is.
// CHECK-LABEL: fi_tile.kernel @roles
// CHECK-COUNT-2: fi_tile.role
// CHECK-NOT: fi_tile.role
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
!one = !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
fi_tile.kernel @roles(%q: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !one
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !one
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !one
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !one
      fi_tile.release %c : !one
    }
  }
  fi_tile.return
}
