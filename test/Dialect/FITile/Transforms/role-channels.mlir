// Channels between roles become mbarriers: numbers of buffers and phases of mbarriers go
// through all loops, also those over items; an order that cannot work is found.
// RUN: fi-opt %s --fi-tile-lower-channels --split-input-file --verify-diagnostics | FileCheck %s
// RUN: fi-opt %s --fi-tile-check-async --split-input-file --verify-diagnostics -o %t.unchanged

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!buf = !fi_tile.buf<16x64xf16, #smem>
!one = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!three = !fi_tile.chan<16x64xf16, #smem, depth = 3>
// CHECK-LABEL: fi_tile.kernel @rings
fi_tile.kernel @rings(%q: !k, %k: !k, %w: !fi_tile.work) schedule(#s) {
  // CHECK: %[[Q:.*]] = fi_tile.channel : !chan{{$}}
  // CHECK: %[[K:.*]] = fi_tile.channel : !chan1
  %qc = fi_tile.channel : !one
  %kc = fi_tile.channel : !three
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  // CHECK: fi_tile.role @load warps 4 {
  fi_tile.role @load warps 4 {
    // A fresh buffer is empty: the phase before the first one, of parity 1, is over.
    // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
    // CHECK-NEXT: %[[ONE:.*]] = arith.constant 1 : i32
    // One buffer has a phase and no number.
    // CHECK-NEXT: fi_tile.for_items %[[IT:.*]] in %work iter_args(%[[QP:.*]] = %[[ONE]], %[[KP:.*]] = %[[ONE]], %[[KN:.*]] = %[[ZERO]]) -> (i32, i32, i32) {
    // CHECK-NEXT: fi_tile.await empty %[[Q]][%[[ZERO]]] phase %[[QP]] : !chan
    // CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[ZERO]]
    // CHECK-NEXT: %[[F:.*]] = fi_tile.slot %[[Q]][%[[I]]]
    // CHECK-NEXT: %{{.*}} = arith.constant 1
    // CHECK-NEXT: %[[QP1:.*]] = arith.xori %[[QP]], %{{.*}}
    // CHECK-NEXT: fi_tile.copy_rows %q[%[[IT]]] to %[[F]]
    // CHECK-NEXT: fi_tile.arrive full %[[Q]][%[[ZERO]]] : !chan
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %qc : !one
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %qc : !one
      // CHECK-NEXT: %[[R:.*]]:2 = fi_tile.for_keys %{{.*}} all step 16 iter_args(%[[P:.*]] = %[[KP]], %[[N:.*]] = %[[KN]]) -> (i32, i32) {
      // CHECK-NEXT: fi_tile.await empty %[[K]][%[[N]]] phase %[[P]] : !chan1
      // CHECK-NEXT: %[[I:.*]] = arith.index_cast %[[N]]
      // CHECK-NEXT: %[[G:.*]] = fi_tile.slot %[[K]][%[[I]]]
      // The phase changes from round to round.
      // CHECK: %[[OTHER:.*]] = arith.xori %[[P]]
      // CHECK: %[[N1:.*]] = arith.addi %[[N]]
      // CHECK: %[[WRAPS:.*]] = arith.cmpi eq, %[[N1]], %c3
      // CHECK-NEXT: %[[P1:.*]] = arith.select %[[WRAPS]], %[[OTHER]], %[[P]]
      // CHECK: %[[N2:.*]] = arith.select %[[WRAPS]], %{{.*}}, %[[N1]]
      // CHECK-NEXT: fi_tile.copy_kv keys {{.*}} to %[[G]]
      // CHECK-NEXT: fi_tile.arrive full %[[K]][%[[N]]]
      // CHECK-NEXT: fi_tile.yield %[[P1]], %[[N2]]
      // CHECK-NEXT: }
      // CHECK-NEXT: fi_tile.yield %[[QP1]], %[[R]]#0, %[[R]]#1
      fi_tile.for_keys %t in %it all step 16 {
        %g = fi_tile.acquire %kc : !three
        fi_tile.copy_kv keys %kv[%it, %t] to %g : !kv, !buf
        fi_tile.commit %kc : !three
        fi_tile.yield
      }
    }
  }
  // CHECK: fi_tile.role @compute warps 4 {
  fi_tile.role @compute warps 4 {
    // CHECK-NEXT: %[[ZERO:.*]] = arith.constant 0 : i32
    // CHECK: fi_tile.for_items %{{.*}} in %work iter_args(%[[QP:.*]] = %[[ZERO]], %[[KP:.*]] = %[[ZERO]], %[[KN:.*]] = %[[ZERO]])
    // CHECK-NEXT: fi_tile.await full %[[Q]][%[[ZERO]]] phase %[[QP]] : !chan
    // CHECK: %[[ROWS:.*]] = fi_tile.slot %[[Q]]
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[P:.*]] = %[[KP]], %[[N:.*]] = %[[KN]])
    // CHECK-NEXT: fi_tile.await full %[[K]][%[[N]]] phase %[[P]] : !chan1
    // CHECK: %[[B:.*]] = fi_tile.slot %[[K]]
    // CHECK: fi_tile.dot %[[ROWS]], %[[B]]
    // CHECK-NEXT: fi_tile.arrive empty %[[K]][%[[N]]]
    // CHECK: fi_tile.yield
    // CHECK: fi_tile.arrive empty %[[Q]][%[[ZERO]]]
    // CHECK: fi_tile.yield
    fi_tile.for_items %it in %w {
      %rows = fi_tile.get %qc : !one
      fi_tile.for_keys %t in %it all step 16 {
        %b = fi_tile.get %kc : !three
        %s = fi_tile.dot %rows, %b transpose : !rows, !buf -> tensor<64x16xf32>
        fi_tile.release %kc : !three
        fi_tile.yield
      }
      fi_tile.release %qc : !one
    }
  }
  fi_tile.return
}

// -----

// A buffer is given back when the products are there; two that are held go in their order.
// CHECK-LABEL: fi_tile.kernel @products
// CHECK: fi_tile.role @compute
// CHECK: fi_tile.await full %[[K:.*]][%[[N:.*]]] phase
// CHECK: fi_tile.await full %[[K]][%[[M:.*]]] phase
// CHECK: fi_tile.dot_start
// CHECK: fi_tile.wait
// CHECK-NEXT: fi_tile.arrive empty %[[K]][%[[N]]]
// CHECK-NEXT: fi_tile.arrive empty %[[K]][%[[M]]]
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!two = !fi_tile.chan<64x64xf16, #smem, depth = 2>
fi_tile.kernel @products(%q: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !two
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !two
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !two
      %g = fi_tile.acquire %c : !two
      fi_tile.copy_rows %q[%it] to %g group 1 : !k, !rows
      fi_tile.commit %c : !two
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %a = fi_tile.get %c : !two
      %b = fi_tile.get %c : !two
      %f = fi_tile.dot_start %a, %b transpose : !rows, !rows -> !fi_tile.future<tensor<64x64xf32>>
      %s = fi_tile.wait %f : !fi_tile.future<tensor<64x64xf32>>
      fi_tile.release %c : !two
      fi_tile.release %c : !two
    }
  }
  fi_tile.return
}

// -----

// The selections of a rotated loop: as many gets in all as there are tiles.
// CHECK-LABEL: fi_tile.kernel @selections
// CHECK: fi_tile.for_keys %{{.*}} all first step 16 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}})
// CHECK: fi_tile.for_keys %{{.*}} full rest step 16 iter_args(
// CHECK: fi_tile.for_keys %{{.*}} partial rest step 16 iter_args(
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!three = !fi_tile.chan<16x64xf16, #smem, depth = 3>
fi_tile.kernel @selections(%w: !fi_tile.work) schedule(#s) {
  %kc = fi_tile.channel : !three
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      fi_tile.for_keys %t in %it all first step 16 {
        %b = fi_tile.get %kc : !three
        fi_tile.release %kc : !three
        fi_tile.yield
      }
      fi_tile.for_keys %t in %it full rest step 16 {
        %b = fi_tile.get %kc : !three
        fi_tile.release %kc : !three
        fi_tile.yield
      }
      fi_tile.for_keys %t in %it partial rest step 16 {
        %b = fi_tile.get %kc : !three
        fi_tile.release %kc : !three
        fi_tile.yield
      }
    }
  }
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      fi_tile.for_keys %t in %it all step 16 {
        %b = fi_tile.acquire %kc : !three
        fi_tile.commit %kc : !three
        fi_tile.yield
      }
    }
  }
  fi_tile.return
}

// -----

// Nobody commits.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 2>
fi_tile.kernel @no_commit(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'fi_tile.get' op expected a committed buffer, but role 'compute' would wait for ever for slot 0 of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 2>) [TILE25]}}
      %b = fi_tile.get %c : !chan
      %s = fi_tile.dot_start %b, %b transpose : !rows, !rows -> !fi_tile.future<tensor<64x64xf32>>
      %t = fi_tile.wait %s : !fi_tile.future<tensor<64x64xf32>>
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

// Nobody releases: the second item finds no free buffer.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @no_release(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'fi_tile.acquire' op expected a free buffer, but role 'load' would wait for ever for slot 0 of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>) [TILE25]}}
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !chan
      %s = fi_tile.dot_start %b, %b transpose : !rows, !rows -> !fi_tile.future<tensor<64x64xf32>>
      %t = fi_tile.wait %s : !fi_tile.future<tensor<64x64xf32>>
    }
  }
  fi_tile.return
}

// -----

// Two items fit.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 2>
fi_tile.kernel @left(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.channel' op expected every buffer that is filled to be read and released, but slot 0 of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 2>) is not [TILE25]}}
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @commit_first(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'fi_tile.commit' op expected a buffer of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>) that is acquired before in the same block [TILE25]}}
      fi_tile.commit %c : !chan
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @release_first(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'fi_tile.release' op expected a buffer of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>) that is gotten before in the same block [TILE25]}}
      fi_tile.release %c : !chan
      %b = fi_tile.get %c : !chan
    }
  }
  fi_tile.return
}

// -----

// Two roles fill it.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @two(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'fi_tile.acquire' op expected one role that fills channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>), but 'load' does, too [TILE25]}}
      %f = fi_tile.acquire %c : !chan
      fi_tile.commit %c : !chan
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

// Two roles read it.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @readers(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'fi_tile.get' op expected one role that reads channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>), but 'load' does, too [TILE25]}}
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @branch(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      // expected-error @below {{'scf.if' op expected channels between roles to be used in loops over items and keys only [TILE25]}}
      scf.if %x {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
      }
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

// The buffer may be filled again while the product reads it.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @early(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !chan
      %s = fi_tile.dot_start %b, %b transpose : !rows, !rows -> !fi_tile.future<tensor<64x64xf32>>
      // expected-error @below {{'fi_tile.release' op expected a buffer that nobody reads, but a product that is not waited for reads slot 0 of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>) [TILE29]}}
      fi_tile.release %c : !chan
      %t = fi_tile.wait %s : !fi_tile.future<tensor<64x64xf32>>
    }
  }
  fi_tile.return
}

// -----

// Released before the product begins.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @released(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
      fi_tile.commit %c : !chan
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
      // expected-error @below {{'fi_tile.dot_start' op expected a gotten buffer to read, but slot 0 of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>) is released [TILE29]}}
      %s = fi_tile.dot_start %b, %b transpose : !rows, !rows -> !fi_tile.future<tensor<64x64xf32>>
      %t = fi_tile.wait %s : !fi_tile.future<tensor<64x64xf32>>
    }
  }
  fi_tile.return
}

// -----

// Filled behind the commit.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2, wgmma = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @late(%q: !k, %x: i1, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.acquire %c : !chan
      fi_tile.commit %c : !chan
      // expected-error @below {{'fi_tile.copy_rows' op expected an acquired buffer to copy into, but slot 0 of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>, depth = 1>) is committed [TILE29]}}
      fi_tile.copy_rows %q[%it] to %f group 1 : !k, !rows
    }
  }
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

// A buffer by number is no buffer of an acquire.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!k = memref<?x2x64xf16>
!rows = !fi_tile.buf<64x64xf16, #smem>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @number(%q: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @compute warps 4 {
    %zero = arith.constant 0 : index
    fi_tile.for_items %it in %w {
      %b = fi_tile.acquire %c : !chan
      fi_tile.commit %c : !chan
      %f = fi_tile.get %c : !chan
      %g = builtin.unrealized_conversion_cast %f : !rows to !rows
      // expected-error @below {{'fi_tile.copy_rows' op expected buffers that are results of fi_tile.acquire or fi_tile.get in the same item and role [TILE29]}}
      fi_tile.copy_rows %q[%it] to %g group 1 : !k, !rows
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

// A buffer goes back where it was taken.
#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 2>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
fi_tile.kernel @blocks(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.role @compute warps 4 {
    fi_tile.for_items %it in %w {
      %f = fi_tile.get %c : !chan
      fi_tile.for_keys %t in %it all first step 16 {
        // expected-error @below {{'fi_tile.release' op expected a buffer of channel 0 (!fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>) that is gotten before in the same block [TILE25]}}
        fi_tile.release %c : !chan
        fi_tile.yield
      }
    }
  }
  fi_tile.return
}
