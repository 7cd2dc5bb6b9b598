// Waiting becomes groups of asynchronous copies and barriers; loops carry the numbers of
// slots; an order that cannot work is found.
// RUN: fi-opt %s --fi-tile-lower-channels --split-input-file --verify-diagnostics | FileCheck %s

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!one = !fi_tile.chan<16x64xf16, #smem, depth = 1>
!two = !fi_tile.chan<16x64xf16, #smem, depth = 2>
!three = !fi_tile.chan<16x64xf16, #smem, depth = 3>

// A ring of two, one tile ahead: at each get one later group may be under way. All warps
// have to be past the release of a buffer before its refill: the get of the next iteration
// sees to that.
// CHECK-LABEL: fi_tile.kernel @ahead
fi_tile.kernel @ahead(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2>) {
  // CHECK: %[[C:.*]] = fi_tile.channel
  %c = fi_tile.channel : !two
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    // CHECK: %[[ZERO:.*]] = arith.constant 0 : index
    // CHECK: %[[FREE:.*]] = fi_tile.slot %[[C]][%[[ZERO]]]
    // CHECK: %[[N1:.*]] = arith.xori %[[ZERO]]
    // CHECK: fi_tile.copy_kv keys {{.*}} to %[[FREE]] if
    // CHECK: nvvm.cp.async.commit.group
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !two
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !two
    %next = fi_tile.advance %cursor step 16
    // CHECK: fi_tile.for_keys %{{.*}} all step 16 iter_args(%{{.*}} = %{{.*}}, %[[NEXT:.*]] = %[[N1]], %[[OLDEST:.*]] = %[[ZERO]]) -> (!fi_tile.cursor, index, index) {
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      // CHECK-NEXT: nvvm.cp.async.wait.group 0
      // CHECK-NEXT: nvvm.barrier0
      // CHECK-NEXT: %[[B:.*]] = fi_tile.slot %[[C]][%[[OLDEST]]]
      %b = fi_tile.get %c : !two
      %key1, %valid1 = fi_tile.cursor_key %cur
      // CHECK-NOT: nvvm.barrier0
      // CHECK: fi_tile.slot %[[C]][%[[NEXT]]]
      %g = fi_tile.acquire %c : !two
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      // CHECK: nvvm.cp.async.commit.group
      fi_tile.commit %c : !two
      // CHECK: fi_tile.dot %[[B]], %[[B]]
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %c : !two
      %after = fi_tile.advance %cur step 16
      // CHECK: fi_tile.yield %{{.*}}, %{{.*}}, %{{.*}} : !fi_tile.cursor, index, index
      fi_tile.yield %after : !fi_tile.cursor
    }
    // CHECK-NOT: fi_tile.release
  }
  fi_tile.return
}

// -----

// Two channels: the get of the first may leave the group of the second under way. One
// buffer each: between the release of the second and its refill there is no other barrier;
// for the first the second's is enough.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!one = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @pair
fi_tile.kernel @pair(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>) {
  %kc = fi_tile.channel : !one
  %vc = fi_tile.channel : !one
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.for_keys
    // CHECK-NOT: iter_args
    // CHECK-NOT: nvvm.barrier0
    // CHECK: nvvm.cp.async.commit.group
    // CHECK-NEXT: nvvm.barrier0
    // CHECK-NEXT: fi_tile.slot
    // CHECK: nvvm.cp.async.commit.group
    // CHECK-NEXT: nvvm.cp.async.wait.group 1
    // CHECK-NEXT: nvvm.barrier0
    // CHECK: nvvm.cp.async.wait.group 0
    // CHECK-NEXT: nvvm.barrier0
    fi_tile.for_keys %t in %it all step 16 {
      %f = fi_tile.acquire %kc : !one
      fi_tile.copy_kv keys %kv[%it, %t] to %f : !kv, !buf
      fi_tile.commit %kc : !one
      %g = fi_tile.acquire %vc : !one
      fi_tile.copy_kv values %kv[%it, %t] to %g : !kv, !buf
      fi_tile.commit %vc : !one
      %a = fi_tile.get %kc : !one
      fi_tile.release %kc : !one
      %b = fi_tile.get %vc : !one
      fi_tile.release %vc : !one
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

// One warp by itself has no need of the others.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!one = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @warp
// CHECK-NOT: nvvm.barrier0
// CHECK: nvvm.bar.warp.sync
fi_tile.kernel @warp(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4, stages = 1>) {
  %kc = fi_tile.channel : !one
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %kc : !one
    fi_tile.copy_rows %k[%it] to %f group 1 : !k, !buf
    fi_tile.commit %kc : !one
    %a = fi_tile.get %kc : !one
    fi_tile.release %kc : !one
  }
  fi_tile.return
}

// -----

// Groups of two warps: each has a barrier of its own, since they have different numbers of
// tiles.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<32x64xf16, #smem>
!one = !fi_tile.chan<32x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @groups
// CHECK-NOT: nvvm.barrier0
// CHECK: nvvm.cp.async.wait.group 0
// CHECK: %[[GROUP:.*]] = fi_tile.group
// CHECK: %[[NUMBER:.*]] = arith.addi %[[GROUP]], %{{.*}} : index
// CHECK: %[[ID:.*]] = arith.index_cast %[[NUMBER]] : index to i32
// CHECK: %[[THREADS:.*]] = arith.constant 64 : i32
// CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %[[THREADS]]
fi_tile.kernel @groups(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, key_warps = 4, stages = 1>) {
  %kc = fi_tile.channel : !one
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %kc : !one
    fi_tile.copy_rows %k[%it] to %f group 1 : !k, !buf
    fi_tile.commit %kc : !one
    %a = fi_tile.get %kc : !one
    fi_tile.release %kc : !one
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<32x64xf16, #smem, depth = 1>
// expected-error @below {{'fi_tile.kernel' op expected at most 15 groups of several warps ('key_warps'), since each has a barrier of its own, but got 16 of 2 warps; take fewer groups, or groups of one warp [SCH7]}}
fi_tile.kernel @too_many(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, key_warps = 16, stages = 1>) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %c : !chan
    fi_tile.commit %c : !chan
    %b = fi_tile.get %c : !chan
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @nothing(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.get' op expected a committed buffer to get: this would wait for ever for slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) [TILE25]}}
    %b = fi_tile.get %c : !chan
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

// The third iteration finds the ring full.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @full(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    fi_tile.for_keys %t in %it all step 16 {
      // expected-error @below {{'fi_tile.acquire' op expected a free buffer, but all 2 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) are in use, slot 0 first [TILE25]}}
      %f = fi_tile.acquire %c : !chan
      fi_tile.commit %c : !chan
      fi_tile.yield
    }
    fi_tile.for_keys %t in %it all step 16 {
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @commit(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.commit' op expected an acquired buffer to commit, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is not acquired [TILE25]}}
    fi_tile.commit %c : !chan
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @release(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %c : !chan
    fi_tile.commit %c : !chan
    // expected-error @below {{'fi_tile.release' op expected a gotten buffer to release, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is not gotten [TILE25]}}
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @kept(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.channel' op expected every buffer that is gotten to be released before the item ends, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is not [TILE25]}}
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %c : !chan
    fi_tile.commit %c : !chan
    %b = fi_tile.get %c : !chan
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @left(%k: !k, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.channel' op expected every buffer that is committed to be gotten before the item ends, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is not [TILE25]}}
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_rows %k[%it] to %f group 1 : !k, !buf
    fi_tile.commit %c : !chan
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @branch(%x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    // expected-error @below {{'scf.if' op expected channels to be used in loops only, not in branches [TILE25]}}
    scf.if %x {
      %f = fi_tile.acquire %c : !chan
      fi_tile.commit %c : !chan
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

// What is written is there after a barrier: no group of copies, and none to wait for. One
// barrier is enough for both buffers; the next tile's copies stay under way. The channels
// of the copies lie between the release of what was written and the next acquire.
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!one = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// CHECK-LABEL: fi_tile.kernel @written
fi_tile.kernel @written(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 1>) {
  %kc = fi_tile.channel : !one
  %xc = fi_tile.channel : !one
  %yc = fi_tile.channel : !one
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.for_keys
    // CHECK: fi_tile.copy_kv
    // CHECK-NEXT: nvvm.cp.async.commit.group
    // CHECK-NEXT: nvvm.cp.async.wait.group 0
    // CHECK-NEXT: nvvm.barrier0
    // CHECK: fi_tile.read
    // CHECK-NEXT: fi_tile.slot
    // CHECK-NEXT: fi_tile.write
    // CHECK-NEXT: fi_tile.slot
    // CHECK-NEXT: fi_tile.write
    // CHECK-NEXT: nvvm.barrier0
    // CHECK-NEXT: fi_tile.slot
    // CHECK-NEXT: fi_tile.slot
    // CHECK-NEXT: fi_tile.dot
    // CHECK-NOT: nvvm.barrier0
    // CHECK: }
    fi_tile.for_keys %t in %it all step 16 {
      %f = fi_tile.acquire %kc : !one
      fi_tile.copy_kv keys %kv[%it, %t] to %f : !kv, !buf
      fi_tile.commit %kc : !one
      %a = fi_tile.get %kc : !one
      %tile = fi_tile.read %a : !buf -> tensor<16x64xf16>
      fi_tile.release %kc : !one
      %x = fi_tile.acquire %xc : !one
      fi_tile.write %tile to %x : tensor<16x64xf16>, !buf
      fi_tile.commit %xc : !one
      %y = fi_tile.acquire %yc : !one
      fi_tile.write %tile to %y : tensor<16x64xf16>, !buf
      fi_tile.commit %yc : !one
      %xr = fi_tile.get %xc : !one
      %yr = fi_tile.get %yc : !one
      %s = fi_tile.dot %xr, %yr transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %xc : !one
      fi_tile.release %yc : !one
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!one = !fi_tile.chan<16x64xf16, #smem, depth = 1>
fi_tile.kernel @both(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>) {
  // expected-error @below {{'fi_tile.channel' op expected a channel that is filled by fi_tile.write or by copies, but got both [TILE25]}}
  %c = fi_tile.channel : !one
  fi_tile.for_items %it in %w {
    %t = arith.constant dense<1.0> : tensor<16x64xf16>
    %f = fi_tile.acquire %c : !one
    fi_tile.write %t to %f : tensor<16x64xf16>, !buf
    fi_tile.copy_rows %k[%it] to %f group 1 : !k, !buf
    fi_tile.commit %c : !one
    %a = fi_tile.get %c : !one
    fi_tile.release %c : !one
  }
  fi_tile.return
}
