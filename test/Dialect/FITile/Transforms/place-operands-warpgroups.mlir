// Products of warpgroups: what they read lies in panels of 64 columns; what they cannot read
// is refused.
// RUN: fi-opt %s --fi-tile-place-operands --split-input-file --verify-diagnostics | FileCheck %s

// Rows of 72 columns take two panels, each with all rows.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
// CHECK-DAG: #smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
// CHECK-DAG: #smem1 = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 4096>
// CHECK-DAG: !chan = !fi_tile.chan<64x72xf16, #smem, depth = 1>
// CHECK-DAG: !chan1 = !fi_tile.chan<32x72xf16, #smem1, depth = 1>
// CHECK-LABEL: fi_tile.kernel @both
// CHECK: fi_tile.channel : !chan{{$}}
// CHECK: fi_tile.channel : !chan1
// CHECK: fi_tile.channel : !chan1
// CHECK: fi_tile.dot %{{.*}}, %{{.*}} transpose warpgroup :
// CHECK: fi_tile.dot %{{.*}}, %{{.*}} acc(%{{.*}}) warpgroup :
!kv = !fi.ragged_kv<2x72xf16>
!k = memref<?x2x72xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
fi_tile.kernel @both(%q: !k, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x72xf16>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    %a = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf16>, tensor<32x72xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}
}

// -----

// Numbers of f32.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
!kv = !fi.ragged_kv<2x72xf32>
!k = memref<?x2x72xf32>
module attributes {fi.target = #fi.target<sm_90a>} {
fi_tile.kernel @wide(%q: !k, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x72xf32>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    %a = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf32>
      // expected-error @below {{'fi_tile.dot' op expected a product of f16 or bf16 with keys or values as they are loaded, of a multiple of 8 columns up to 256, for 'wgmma', but got 'tensor<64x72xf32>' and 'tensor<32x72xf32>'; leave 'wgmma' out of the schedule [SCH9]}}
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf32>, tensor<32x72xf32> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf32>
      %p = arith.negf %s : tensor<64x32xf32>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf32>, tensor<32x72xf32> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}
}

// -----

// Keys that are computed.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
!kv = !fi.ragged_kv<2x72xf16>
!k = memref<?x2x72xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
fi_tile.kernel @computed(%q: !k, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x72xf16>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    %a = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %other = arith.negf %keys : tensor<32x72xf16>
      // expected-error @below {{'fi_tile.dot' op expected a product of f16 or bf16 with keys or values as they are loaded, of a multiple of 8 columns up to 256, for 'wgmma', but got 'tensor<64x72xf16>' and 'tensor<32x72xf16>'; leave 'wgmma' out of the schedule [SCH9]}}
      %s = fi_tile.dot %rows, %other transpose : tensor<64x72xf16>, tensor<32x72xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}
}

// -----

// Values are multiplied by 16 rows.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 24, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
!kv = !fi.ragged_kv<2x72xf16>
!k = memref<?x2x72xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
fi_tile.kernel @rows(%q: !k, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x72xf16>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    %a = fi_tile.for_keys %t in %it all step 24 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<24x72xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf16>, tensor<24x72xf16> -> tensor<64x24xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<24x72xf16>
      %p = arith.truncf %s : tensor<64x24xf32> to tensor<64x24xf16>
      // expected-error @below {{'fi_tile.dot' op expected a product of f16 or bf16 with keys or values as they are loaded, of a multiple of 8 columns up to 256, for 'wgmma', but got 'tensor<64x24xf16>' and 'tensor<24x72xf16>'; leave 'wgmma' out of the schedule [SCH9]}}
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x24xf16>, tensor<24x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}
}

// -----

// An output of more columns than a product has.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
!kv = !fi.ragged_kv<2x264xf16>
!k = memref<?x2x264xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
fi_tile.kernel @columns(%q: !k, %k: !k, %v: !k, %o: memref<?x2x264xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x264xf16>
    %init = arith.constant dense<0.0> : tensor<64x264xf32>
    %a = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %init) -> (tensor<64x264xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x264xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x264xf16>, tensor<32x264xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x264xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      // expected-error @below {{'fi_tile.dot' op expected a product of f16 or bf16 with keys or values as they are loaded, of a multiple of 8 columns up to 256, for 'wgmma', but got 'tensor<64x32xf16>' and 'tensor<32x264xf16>'; leave 'wgmma' out of the schedule [SCH9]}}
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x264xf16> -> tensor<64x264xf32>
      fi_tile.yield %next : tensor<64x264xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x264xf32>, memref<?x2x264xf32>
  }
  fi_tile.return
}
}

// -----

// A target without them.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
!kv = !fi.ragged_kv<2x72xf16>
!k = memref<?x2x72xf16>
module attributes {fi.target = #fi.target<sm_80>} {
// expected-error @below {{'fi_tile.kernel' op expected a target with products of warpgroups for 'wgmma', but got sm_80 [SCH9]}}
fi_tile.kernel @older(%q: !k, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x72xf16>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    %a = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf16>, tensor<32x72xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}
}

// -----

// No target.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
!kv = !fi.ragged_kv<2x72xf16>
!k = memref<?x2x72xf16>
// expected-error @below {{'fi_tile.kernel' op expected a target with products of warpgroups for 'wgmma', but got none [SCH9]}}
fi_tile.kernel @none(%q: !k, %k: !k, %v: !k, %o: memref<?x2x72xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %v : !k, !k -> !kv
  fi_tile.for_items %it in %work {
    %rows = fi_tile.load_rows %q[%it] group 1 : !k -> tensor<64x72xf16>
    %init = arith.constant dense<0.0> : tensor<64x72xf32>
    %a = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %init) -> (tensor<64x72xf32>) {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %s = fi_tile.dot %rows, %keys transpose : tensor<64x72xf16>, tensor<32x72xf16> -> tensor<64x32xf32>
      %values = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<32x72xf16>
      %p = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf16>
      %next = fi_tile.dot %p, %values acc(%acc) : tensor<64x32xf16>, tensor<32x72xf16> -> tensor<64x72xf32>
      fi_tile.yield %next : tensor<64x72xf32>
    }
    fi_tile.store_rows %a, %o[%it] group 1 : tensor<64x72xf32>, memref<?x2x72xf32>
  }
  fi_tile.return
}
