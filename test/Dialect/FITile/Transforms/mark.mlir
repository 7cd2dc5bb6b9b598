// Time stamps where phases of a kernel begin, in modules that ask for them.
// RUN: fi-opt %s --fi-tile-mark --split-input-file | FileCheck %s
// Again: kernels that have marks keep them.
// RUN: fi-opt %s --fi-tile-mark --fi-tile-mark --split-input-file | FileCheck %s

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
!O = tensor<16x64xf32>
!R = tensor<16x1xf32>
// A loop's phase begins behind the wait for its first tile, so that one which never runs
// has none, and the prologue ends there.
module attributes {fi.profile = "phases"} {
  // CHECK-LABEL: fi_tile.kernel @decode
  fi_tile.kernel @decode(%k: !k, %o: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2>) {
    %kc = fi_tile.channel : !chan
    %vc = fi_tile.channel : !chan
    %zero = arith.constant dense<0.0> : !O
    %row = arith.constant dense<0.0> : !R
    %none = arith.constant -1 : index
    // CHECK: fi_tile.for_items
    // CHECK-NEXT: fi_tile.mark phase "prologue"
    fi_tile.for_items %it in %w {
      // CHECK: fi_tile.for_keys %{{.*}} full
      // CHECK-NEXT: fi_tile.get
      // CHECK-NEXT: fi_tile.mark phase "full tiles" once
      // CHECK-NEXT: fi_tile.release
      // CHECK-NEXT: fi_tile.get
      // CHECK-NEXT: fi_tile.release
      %f = fi_tile.for_keys %t in %it full step 16 iter_args(%a = %zero) -> (!O) {
        %b = fi_tile.get %kc : !chan
        fi_tile.release %kc : !chan
        %c = fi_tile.get %vc : !chan
        fi_tile.release %vc : !chan
        fi_tile.yield %a : !O
      }
      // CHECK: fi_tile.for_keys %{{.*}} partial
      // CHECK-NEXT: fi_tile.get
      // CHECK-NEXT: fi_tile.mark phase "partial tiles" once
      %p = fi_tile.for_keys %t in %it partial step 16 iter_args(%a = %f) -> (!O) {
        %b = fi_tile.get %kc : !chan
        fi_tile.release %kc : !chan
        fi_tile.yield %a : !O
      }
      // CHECK: fi_tile.mark phase "finalising"
      %slot = fi_tile.item %it[slot]
      %whole = arith.cmpi eq, %slot, %none : index
      // CHECK: scf.if
      // CHECK-NEXT: fi_tile.mark phase "storing results"
      // CHECK-NEXT: fi_tile.store_rows
      // CHECK-NEXT: fi_tile.store_rows
      // CHECK-NEXT: } else {
      // CHECK-NEXT: fi_tile.mark phase "storing a state"
      // CHECK-NEXT: fi_tile.store_state
      // CHECK-NEXT: fi_tile.mark phase "meeting"
      // CHECK-NEXT: fi_tile.arrive_last
      // CHECK-NEXT: scf.if
      // CHECK-NEXT: fi_tile.mark phase "merging"
      // CHECK-NEXT: fi_tile.load_state
      // CHECK-NEXT: fi_tile.mark phase "storing results"
      // CHECK-NEXT: fi_tile.store_rows
      scf.if %whole {
        fi_tile.store_rows %p, %o[%it] group 1 : !O, memref<?x2x64xf32>
        fi_tile.store_rows %p, %o[%it] group 1 : !O, memref<?x2x64xf32>
      } else {
        fi_tile.store_state %p, %row to %w[%it] : !O, !R
        %last = fi_tile.arrive_last %w[%it]
        scf.if %last {
          %x, %y = fi_tile.load_state %w[%it, %slot] : !O, !R
          fi_tile.store_rows %x, %o[%it] group 1 : !O, memref<?x2x64xf32>
        }
      }
      // CHECK: }
      // CHECK-NEXT: }
      // CHECK-NEXT: fi_tile.mark end
      // CHECK-NEXT: }
    }
    fi_tile.return
  }

  // Kernels that have marks keep those.
  // CHECK-LABEL: fi_tile.kernel @own
  // CHECK-NOT: "work"
  // CHECK: fi_tile.mark moment "here"
  // CHECK-NOT: fi_tile.mark
  fi_tile.kernel @own(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
    fi_tile.for_items %it in %w {
      fi_tile.mark moment "here"
    }
    fi_tile.return
  }
}

// -----

// Each role by itself; with tiles, waits too, but none beside a product that is under way.
#panels = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<64x64xf16, #panels>
!chan = !fi_tile.chan<64x64xf16, #panels, depth = 2>
!S = tensor<64x64xf32>
module attributes {fi.profile = "tiles"} {
  // CHECK-LABEL: fi_tile.kernel @roles
  fi_tile.kernel @roles(%k: !k, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 2, wgmma = 1>) {
    %kc = fi_tile.channel : !chan
    %kv = fi_tile.view %k, %k : !k, !k -> !kv
    // CHECK: fi_tile.role @load
    fi_tile.role @load warps 4 {
      // CHECK-NEXT: fi_tile.for_items
      // CHECK-NEXT: fi_tile.mark phase "copying"
      // CHECK-NEXT: fi_tile.for_keys
      // CHECK-NEXT: fi_tile.mark phase "waiting for a buffer"
      // CHECK-NEXT: fi_tile.acquire
      // CHECK-NEXT: fi_tile.mark phase "copying"
      // CHECK-NEXT: fi_tile.copy_kv
      // CHECK-NEXT: fi_tile.commit
      // CHECK-NEXT: fi_tile.yield
      // CHECK-NEXT: }
      // CHECK-NEXT: fi_tile.mark end
      fi_tile.for_items %it in %w {
        fi_tile.for_keys %t in %it full step 64 {
          %b = fi_tile.acquire %kc : !chan
          fi_tile.copy_kv keys %kv[%it, %t] to %b : !kv, !buf
          fi_tile.commit %kc : !chan
          fi_tile.yield
        }
      }
    }
    // CHECK: fi_tile.role @compute
    fi_tile.role @compute warps 4 {
      // CHECK: fi_tile.mark phase "prologue"
      fi_tile.for_items %it in %w {
        // CHECK: fi_tile.for_keys
        // CHECK-NEXT: fi_tile.mark phase "waiting for a tile"
        // CHECK-NEXT: fi_tile.get
        // CHECK-NEXT: fi_tile.mark phase "full tiles"{{$}}
        // CHECK-NEXT: fi_tile.dot_start
        // CHECK-NEXT: fi_tile.get
        // CHECK-NEXT: fi_tile.wait
        // CHECK-NOT: fi_tile.mark
        // CHECK: fi_tile.yield
        // CHECK-NEXT: }
        // CHECK-NEXT: fi_tile.mark phase "finalising"
        // CHECK-NEXT: fi_tile.mark end
        fi_tile.for_keys %t in %it full step 64 {
          %b = fi_tile.get %kc : !chan
          %f = fi_tile.dot_start %b, %b transpose : !buf, !buf -> !fi_tile.future<!S>
          %c = fi_tile.get %kc : !chan
          %s = fi_tile.wait %f : !fi_tile.future<!S>
          fi_tile.release %kc : !chan
          fi_tile.release %kc : !chan
          fi_tile.yield
        }
      }
    }
    fi_tile.return
  }
}

// -----

// Other modules are left as they are.
// CHECK-LABEL: fi_tile.kernel @plain
// CHECK-NOT: fi_tile.mark
fi_tile.kernel @plain(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
  }
  fi_tile.return
}
