// What a kernel that overlaps with launches may do, and where.
// RUN: fi-opt %s -split-input-file -verify-diagnostics

fi_tile.kernel @k(%q: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.launch_next
  fi_tile.for_items %it in %w {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf32> -> tensor<16x64xf32>
    // expected-error @below {{'fi_tile.await_launches' op expected nothing in front of it in an item but what reads the plan's data and writes nothing, but got 'fi_tile.load_rows' [TILE44]}}
    fi_tile.await_launches
  }
  fi_tile.await_launches
  fi_tile.return
}

// -----

// At any depth.
fi_tile.kernel @k(%q: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.launch_next
  %true = arith.constant true
  fi_tile.for_items %it in %w {
    scf.if %true {
      %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x64xf32> -> tensor<16x64xf32>
    }
    // expected-error @below {{'fi_tile.await_launches' op expected nothing in front of it in an item but what reads the plan's data and writes nothing, but got 'fi_tile.load_rows' [TILE44]}}
    fi_tile.await_launches
  }
  fi_tile.await_launches
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.await_launches' op expected a kernel with 'fi_tile.launch_next', which holds it to the rules of launches that overlap [TILE45]}}
    fi_tile.await_launches
  }
  fi_tile.return
}

// -----

// A role that waits does not wait for another one.
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.launch_next' op expected every loop over items of its kernel to have 'fi_tile.await_launches' in its body and behind it [TILE45]}}
  fi_tile.launch_next
  fi_tile.role @load warps 4 registers 40 {
    fi_tile.for_items %it in %w {
      fi_tile.await_launches
    }
    fi_tile.await_launches
  }
  fi_tile.role @compute warps 4 registers 232 {
    // expected-note @below {{this one has not}}
    fi_tile.for_items %it in %w {
      fi_tile.await_launches
    }
  }
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.launch_next' op expected every loop over items of its kernel to have 'fi_tile.await_launches' in its body and behind it [TILE45]}}
  fi_tile.launch_next
  // expected-note @below {{this one has not}}
  fi_tile.for_items %it in %w {
    fi_tile.await_launches
  }
  fi_tile.return
}

// -----

!kv = !fi.paged_kv<16x2x64xf16, NHD>
!wide = !fi_tile.buf<16x128xf16, #fi_tile.smem<pitch = 256, swizzle = 128>>
fi_tile.kernel @k(%k: memref<?x16x2x64xf16>, %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : memref<?x16x2x64xf16>, memref<?x16x2x64xf16> -> !kv
  %true = arith.constant true
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    %e = fi_tile.locate %kv[%it, %zero] if %true : !kv -> !fi_tile.entries<!wide>
    // expected-error @below {{'fi_tile.prefetch_kv' op expected entries for a buffer of rows of 64 x 'f16', but got '!fi_tile.buf<16x128xf16, #fi_tile.smem<pitch = 256, swizzle = 128>>' [TILE46]}}
    fi_tile.prefetch_kv keys %kv[%it, %zero] if %true entries(%e : !fi_tile.entries<!wide>) : !kv
  }
  fi_tile.return
}
