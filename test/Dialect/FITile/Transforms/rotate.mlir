// Products with values come one tile later, beside the product with the keys of the next.
// RUN: fi-opt %s --fi-tile-rotate --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @two
fi_tile.kernel @two(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#schedule) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  // CHECK: %[[K:.*]] = fi_tile.channel : !chan1
  // CHECK: %[[V:.*]] = fi_tile.channel : !chan1
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %zero = arith.constant dense<0.0> : tensor<64x64xf32>
      %least = arith.constant dense<1.0> : tensor<64x1xf32>
      %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
      // CHECK: %[[Q:.*]] = fi_tile.get %{{.*}} : !chan{{$}}
      %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
      // The first tile has no product of values before it: its weights are those of the
      // last loop, which has all masks.
      // CHECK: %[[NONE:.*]] = arith.constant dense<0.000000e+00> : tensor<64x16xf16>
      // CHECK-NEXT: %[[F:.*]]:3 = fi_tile.for_keys %{{.*}} all first step 16 iter_args(%{{.*}} = %[[NONE]], %[[O:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}) -> (tensor<64x16xf16>, tensor<64x64xf32>, tensor<64x1xf32>) {
      // CHECK-NEXT: %[[B:.*]] = fi_tile.get %[[K]]
      // CHECK-NEXT: %[[S:.*]] = fi_tile.dot_start %[[Q]], %[[B]] transpose
      // CHECK-NEXT: %[[S1:.*]] = fi_tile.wait %[[S]]
      // CHECK-NEXT: fi_tile.release %[[K]]
      // CHECK-NEXT: %[[X:.*]] = arith.mulf %[[S1]]
      // CHECK-NEXT: %[[M1:.*]] = fi_tile.reduce max %[[X]]
      // CHECK-NEXT: %[[FACTOR:.*]] = fi_tile.broadcast %[[M1]]
      // CHECK-NEXT: %[[E:.*]] = math.exp2 %[[X]]
      // CHECK-NEXT: %[[P:.*]] = arith.truncf %[[E]]
      // CHECK-NEXT: %[[O1:.*]] = arith.mulf %[[O]], %[[FACTOR]]
      // CHECK-NEXT: fi_tile.yield %[[P]], %[[O1]], %[[M1]]
      // CHECK-NEXT: }
      // The others begin both products, and need the one of scores first.
      // CHECK-NEXT: %[[R:.*]]:3 = fi_tile.for_keys %{{.*}} full rest step 16 iter_args(%[[P:.*]] = %[[F]]#0, %[[O:.*]] = %[[F]]#1, %[[M:.*]] = %[[F]]#2)
      // CHECK-NEXT: %[[B:.*]] = fi_tile.get %[[K]]
      // CHECK-NEXT: %[[S:.*]] = fi_tile.dot_start %[[Q]], %[[B]] transpose
      // CHECK-NEXT: %[[C:.*]] = fi_tile.get %[[V]]
      // CHECK-NEXT: %[[A:.*]] = fi_tile.dot_start %[[P]], %[[C]] acc(%[[O]] : tensor<64x64xf32>)
      // CHECK-NEXT: %[[S1:.*]] = fi_tile.wait %[[S]]
      // CHECK-NEXT: fi_tile.release %[[K]]
      // CHECK-NOT: arith.mulf
      // CHECK: %[[M1:.*]] = fi_tile.reduce max %[[S1]]
      // CHECK-NEXT: %[[FACTOR:.*]] = fi_tile.broadcast %[[M1]]
      // CHECK-NEXT: %[[E:.*]] = math.exp2 %[[S1]]
      // Weights become narrow, and the accumulator changes, behind the product.
      // CHECK-NEXT: %[[O1:.*]], %[[E1:.*]] = fi_tile.wait %[[A]] keep(%[[E]] : tensor<64x16xf32>)
      // CHECK-NEXT: fi_tile.release %[[V]]
      // CHECK-NEXT: %[[P1:.*]] = arith.truncf %[[E1]]
      // CHECK-NEXT: %[[O2:.*]] = arith.mulf %[[O1]], %[[FACTOR]]
      // CHECK-NEXT: fi_tile.yield %[[P1]], %[[O2]], %[[M1]]
      // CHECK-NEXT: }
      %a:2 = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero, %m = %least) -> (tensor<64x64xf32>, tensor<64x1xf32>) {
        %b = fi_tile.get %kc : !chan
        %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
        fi_tile.release %kc : !chan
        %m1 = fi_tile.reduce max %s : tensor<64x16xf32> -> tensor<64x1xf32>
        %factor = fi_tile.broadcast %m1 : tensor<64x1xf32> -> tensor<64x64xf32>
        %acc1 = arith.mulf %acc, %factor : tensor<64x64xf32>
        %e = math.exp2 %s : tensor<64x16xf32>
        %p = arith.truncf %e : tensor<64x16xf32> to tensor<64x16xf16>
        %c = fi_tile.get %vc : !chan
        %acc2 = fi_tile.dot %p, %c acc(%acc1) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
        fi_tile.release %vc : !chan
        fi_tile.yield %acc2, %m1 : tensor<64x64xf32>, tensor<64x1xf32>
      }
      // CHECK: %[[T:.*]]:3 = fi_tile.for_keys %{{.*}} partial rest step 16 iter_args(%{{.*}} = %[[R]]#0, %{{.*}} = %[[R]]#1, %{{.*}} = %[[R]]#2)
      // CHECK-NEXT: fi_tile.get %[[K]]
      // CHECK-NEXT: fi_tile.dot_start
      // CHECK-NEXT: fi_tile.get %[[V]]
      // CHECK-NEXT: fi_tile.dot_start
      // CHECK-NEXT: fi_tile.wait
      // CHECK-NEXT: fi_tile.release %[[K]]
      // CHECK-NEXT: arith.mulf
      // CHECK: fi_tile.yield
      // CHECK-NEXT: }
      // The last product, for which queries are not needed any more.
      // CHECK-NEXT: fi_tile.release %{{.*}} : !chan{{$}}
      // CHECK-NEXT: %[[L:.*]] = fi_tile.for_keys %{{.*}} all last step 16 iter_args(%[[O:.*]] = %[[T]]#1) -> (tensor<64x64xf32>) {
      // CHECK-NEXT: %[[C:.*]] = fi_tile.get %[[V]]
      // CHECK-NEXT: %[[A:.*]] = fi_tile.dot_start %[[T]]#0, %[[C]] acc(%[[O]] : tensor<64x64xf32>)
      // CHECK-NEXT: %[[O1:.*]] = fi_tile.wait %[[A]]
      // CHECK-NEXT: fi_tile.release %[[V]]
      // CHECK-NEXT: fi_tile.yield %[[O1]]
      // CHECK-NEXT: }
      // CHECK-NEXT: %[[BY:.*]] = fi_tile.broadcast %[[T]]#2
      // CHECK-NEXT: arith.mulf %[[L]], %[[BY]]
      %r:2 = fi_tile.for_keys %t in %it partial step 16 iter_args(%acc = %a#0, %m = %a#1) -> (tensor<64x64xf32>, tensor<64x1xf32>) {
        %b = fi_tile.get %kc : !chan
        %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
        fi_tile.release %kc : !chan
        %x = arith.mulf %s, %sixteen : tensor<64x16xf32>
        %m1 = fi_tile.reduce max %x : tensor<64x16xf32> -> tensor<64x1xf32>
        %factor = fi_tile.broadcast %m1 : tensor<64x1xf32> -> tensor<64x64xf32>
        %acc1 = arith.mulf %acc, %factor : tensor<64x64xf32>
        %e = math.exp2 %x : tensor<64x16xf32>
        %p = arith.truncf %e : tensor<64x16xf32> to tensor<64x16xf16>
        %c = fi_tile.get %vc : !chan
        %acc2 = fi_tile.dot %p, %c acc(%acc1) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
        fi_tile.release %vc : !chan
        fi_tile.yield %acc2, %m1 : tensor<64x64xf32>, tensor<64x1xf32>
      }
      fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
      %by = fi_tile.broadcast %r#1 : tensor<64x1xf32> -> tensor<64x64xf32>
      %out = arith.mulf %r#0, %by : tensor<64x64xf32>
      fi_tile.store_rows %out, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
    }
  }
  fi_tile.return
}

// -----

// Not asked for.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @off
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @off(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// One product.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @one
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @one(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected two products of warpgroups, but there are 1 products, or others}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield %acc : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// Products of single warps.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @others
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @others(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected two products of warpgroups, but there are 2 products, or others}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// The product is used by more than the next tile.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @used
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @used(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected the second product to be carried and not used otherwise}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      %acc2 = arith.addf %acc1, %acc1 : tensor<64x64xf32>
      fi_tile.yield %acc2 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// Keys are held longer.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @held
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @held(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected products with a buffer that the loop gets and releases}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %kc : !chan
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// Scores are added to.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @scores
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @scores(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected a first product of a buffer, without an accumulator}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b acc(%sixteen) transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// Weights are not made from the scores.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @weights
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @weights(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected weights in registers that become narrow for the second product}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %half, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// What has an effect would come earlier or later.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @effects
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @effects(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected nothing but products to have effects, but 'fi_tile.store_rows' has}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      fi_tile.store_rows %zero, %o[%it] group 1 : tensor<64x64xf32>, memref<?x2x64xf32>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// The accumulator changes before there are scores.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @early
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @early(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected the accumulator to change behind the scores}}
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %twice = arith.addf %acc, %acc : tensor<64x64xf32>
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%twice) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// Loops of other channels.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @differ
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @differ(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %sixteen = arith.constant dense<2.0> : tensor<64x16xf32>
    %half = arith.constant dense<2.0> : tensor<64x16xf16>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    %a = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    // expected-remark @below {{is not rotated: its products differ from those of the loop before}}
    %r = fi_tile.for_keys %t in %it partial step 16 iter_args(%acc = %a) -> (tensor<64x64xf32>) {
      %b = fi_tile.get %vc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %vc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %c = fi_tile.get %kc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %kc : !chan
      fi_tile.yield %acc1 : tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}

// -----

// A value that is carried follows from the accumulator.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #keys>
!chan = !fi_tile.chan<16x64xf16, #keys, depth = 2>
// CHECK-LABEL: fi_tile.kernel @carried
// CHECK-NOT: fi_tile.dot_start
// CHECK: fi_tile.return
fi_tile.kernel @carried(%o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1>) {
  %qc = fi_tile.channel : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  %kc = fi_tile.channel : !chan
  %vc = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32>
    %q = fi_tile.get %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
    // expected-remark @below {{is not rotated: expected other carried values not to depend on the accumulator}}
    %a:2 = fi_tile.for_keys %t in %it full step 16 iter_args(%acc = %zero, %was = %zero) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
      %b = fi_tile.get %kc : !chan
      %s = fi_tile.dot %q, %b transpose warpgroup : !rows, !buf -> tensor<64x16xf32>
      fi_tile.release %kc : !chan
      %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
      %twice = arith.addf %acc, %acc : tensor<64x64xf32>
      %c = fi_tile.get %vc : !chan
      %acc1 = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<64x16xf16>, !buf -> tensor<64x64xf32>
      fi_tile.release %vc : !chan
      fi_tile.yield %acc1, %twice : tensor<64x64xf32>, tensor<64x64xf32>
    }
    fi_tile.release %qc : !fi_tile.chan<64x64xf16, #smem, depth = 1>
  }
  fi_tile.return
}
