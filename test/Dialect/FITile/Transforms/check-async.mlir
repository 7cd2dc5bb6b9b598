// Copies, waits and barriers of hand-written kernels, with channels and with slots: what works
// passes, and each thing that is left out is found.
// RUN: fi-opt %s --fi-tile-check-async --split-input-file --verify-diagnostics > %t.mlir
// RUN: FileCheck %s --input-file=%t.mlir
// CHECK: fi_tile.kernel @ahead

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// A ring of two, one tile ahead.
fi_tile.kernel @ahead(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !chan
    %next = fi_tile.advance %cursor step 16
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      %b = fi_tile.get %c : !chan
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.acquire %c : !chan
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      fi_tile.commit %c : !chan
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %c : !chan
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after : !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The commit of the loop is left out.
fi_tile.kernel @no_commit(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !chan
    %next = fi_tile.advance %cursor step 16
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      // expected-error @below {{'fi_tile.get' op expected a committed buffer to get: this would wait for ever for slot 1 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) [TILE25]}}
      %b = fi_tile.get %c : !chan
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.acquire %c : !chan
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %c : !chan
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after : !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The get is left out: the buffer that is read is still being filled.
fi_tile.kernel @no_get(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !chan
    %next = fi_tile.advance %cursor step 16
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.acquire %c : !chan
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      fi_tile.commit %c : !chan
      // expected-error @below {{'fi_tile.dot' op expected a gotten buffer to read, but slot 1 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is committed and not gotten [TILE29]}}
      %s = fi_tile.dot %g, %g transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %c : !chan
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after : !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// Released before it is read.
fi_tile.kernel @early(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !chan
    %next = fi_tile.advance %cursor step 16
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      %b = fi_tile.get %c : !chan
      %key1, %valid1 = fi_tile.cursor_key %cur
      fi_tile.release %c : !chan
      %g = fi_tile.acquire %c : !chan
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      fi_tile.commit %c : !chan
      // expected-error @below {{'fi_tile.dot' op expected a gotten buffer to read, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is released [TILE29]}}
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after : !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The release is left out.
fi_tile.kernel @no_release(%k: !k, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.channel' op expected every buffer that is gotten to be released before the item ends, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is not [TILE25]}}
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !chan
    %next = fi_tile.advance %cursor step 16
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      %b = fi_tile.get %c : !chan
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.acquire %c : !chan
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      fi_tile.commit %c : !chan
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after : !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// A copy into the buffer that is read.
fi_tile.kernel @other(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.acquire %c : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    fi_tile.commit %c : !chan
    %next = fi_tile.advance %cursor step 16
    %last = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next) -> (!fi_tile.cursor) {
      %b = fi_tile.get %c : !chan
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.acquire %c : !chan
      // expected-error @below {{'fi_tile.copy_kv' op expected an acquired buffer to copy into, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) is gotten [TILE29]}}
      fi_tile.copy_kv keys %kv[%it, %key1] to %b if %valid1 : !kv, !buf
      fi_tile.commit %c : !chan
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      fi_tile.release %c : !chan
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after : !fi_tile.cursor
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The same with slots.
fi_tile.kernel @slots(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The commit of the loop is left out.
fi_tile.kernel @slots_no_commit(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      // expected-error @below {{'fi_tile.dot' op expected nvvm.cp.async.commit.group after the copies into slot 1 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) before it is read [TILE30]}}
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The wait is left out.
fi_tile.kernel @slots_no_wait(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      // expected-error @below {{'fi_tile.dot' op expected nvvm.cp.async.wait.group for the copies into slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) before it is read; groups committed since that one: 1 [TILE30]}}
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The wait leaves a group too many under way.
fi_tile.kernel @slots_short_wait(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 1
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      // expected-error @below {{'fi_tile.dot' op expected nvvm.cp.async.wait.group for the copies into slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) before it is read; groups committed since that one: 1 [TILE30]}}
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The barrier behind the wait is left out.
fi_tile.kernel @slots_no_barrier(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      // expected-error @below {{'fi_tile.dot' op expected a barrier behind the wait for the copies into slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) before it is read: other warps have copied parts of it [TILE30]}}
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// The barrier between items is left out.
fi_tile.kernel @slots_next_item(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    // expected-error @below {{'fi_tile.copy_kv' op expected a barrier between the last read of slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) and the copy that fills it again: another warp may still be reading it [TILE30]}}
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// A number beyond the ring.
fi_tile.kernel @slots_number(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      // expected-error @below {{'fi_tile.slot' op expected a slot below 2 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>), but got 2 [TILE30]}}
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.addi %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// A number that depends on the tile.
fi_tile.kernel @slots_unknown(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      // expected-error @below {{'fi_tile.slot' op expected the number of a slot of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) to follow from constants and the trips of loops [TILE30]}}
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.addi %use, %t : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// Nothing is copied before the loop.
fi_tile.kernel @slots_nothing(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      nvvm.cp.async.wait.group 0
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      // expected-error @below {{'fi_tile.dot' op expected a copy into slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>) before it is read [TILE30]}}
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// A wait that some runs have.
fi_tile.kernel @slots_branch(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : !k, !k -> !kv
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    nvvm.barrier0
    %cursor = fi_tile.cursor %it step 16
    %key, %valid = fi_tile.cursor_key %cursor
    %f = fi_tile.slot %c[%zero] : !chan
    fi_tile.copy_kv keys %kv[%it, %key] to %f if %valid : !kv, !buf
    nvvm.cp.async.commit.group
    %next = fi_tile.advance %cursor step 16
    %last:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%cur = %next, %fill = %one, %use = %zero) -> (!fi_tile.cursor, index, index) {
      %odd = arith.cmpi eq, %t, %zero : index
      scf.if %odd {
        // expected-error @below {{'nvvm.cp.async.wait.group' op expected copies, waits and barriers in loops only, not in branches [TILE30]}}
        nvvm.cp.async.wait.group 0
      }
      nvvm.barrier0
      %b = fi_tile.slot %c[%use] : !chan
      %use1 = arith.xori %use, %one : index
      %key1, %valid1 = fi_tile.cursor_key %cur
      %g = fi_tile.slot %c[%fill] : !chan
      %fill1 = arith.xori %fill, %one : index
      fi_tile.copy_kv keys %kv[%it, %key1] to %g if %valid1 : !kv, !buf
      nvvm.cp.async.commit.group
      %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32>
      %after = fi_tile.advance %cur step 16
      fi_tile.yield %after, %fill1, %use1 : !fi_tile.cursor, index, index
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// Items are the same for all groups.
fi_tile.kernel @meet(%k: !k, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %o = arith.constant dense<0.0> : tensor<16x64xf32>
    %l = arith.constant dense<0.0> : tensor<16x1xf32>
    %slot = fi_tile.item %it[slot]
    %zero = arith.constant 0 : index
    %whole = arith.cmpi slt, %slot, %zero : index
    %n = arith.extui %whole : i1 to i32
    %n1 = arith.index_cast %n : i32 to index
    %one = arith.constant 1 : index
    scf.for %i = %zero to %n1 step %one {
      fi_tile.share_state %o, %l : tensor<16x64xf32>, tensor<16x1xf32>
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// Groups have different numbers of tiles.
fi_tile.kernel @loop(%k: !k, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %o = arith.constant dense<0.0> : tensor<16x64xf32>
    %l = arith.constant dense<0.0> : tensor<16x1xf32>
    fi_tile.for_keys %t in %it all step 16 {
      // expected-error @below {{'fi_tile.share_state' op expected all warps of the worker to come here together, but whether they do is decided by 'fi_tile.for_keys' for each group of warps by itself [TILE31]}}
      fi_tile.share_state %o, %l : tensor<16x64xf32>, tensor<16x1xf32>
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// One group alone.
fi_tile.kernel @branch(%k: !k, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %o = arith.constant dense<0.0> : tensor<16x64xf32>
    %l = arith.constant dense<0.0> : tensor<16x1xf32>
    %group = fi_tile.group
    %zero = arith.constant 0 : index
    %first = arith.cmpi eq, %group, %zero : index
    scf.if %first {
      // expected-error @below {{'fi_tile.share_state' op expected all warps of the worker to come here together, but whether they do is decided by 'scf.if' for each group of warps by itself [TILE31]}}
      fi_tile.share_state %o, %l : tensor<16x64xf32>, tensor<16x1xf32>
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 2, stages = 2>
!kv = !fi.ragged_kv<2x64xf16>
!k = memref<?x2x64xf16>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 2>
// What warps find of their rows may differ.
fi_tile.kernel @warps(%k: !k, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %odd = arith.constant dense<false> : tensor<16x1xi1>
    %some = fi_tile.any %odd : tensor<16x1xi1>
    %one = arith.constant 1 : index
    %zero = arith.constant 0 : index
    %n = arith.select %some, %one, %zero : index
    scf.for %i = %zero to %n step %one {
      // expected-error @below {{'fi_tile.acquire' op expected all warps of the worker to come here together, but whether they do is decided by 'scf.for' for each warp by itself [TILE31]}}
      %f = fi_tile.acquire %c : !chan
      fi_tile.commit %c : !chan
      %b = fi_tile.get %c : !chan
      fi_tile.release %c : !chan
    }
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 1>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// A buffer is written while it is acquired.
fi_tile.kernel @late(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %t = arith.constant dense<1.0> : tensor<16x64xf16>
    %f = fi_tile.acquire %c : !chan
    fi_tile.commit %c : !chan
    // expected-error @below {{'fi_tile.write' op expected an acquired buffer to copy into, but slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>) is committed and not gotten [TILE29]}}
    fi_tile.write %t to %f : tensor<16x64xf16>, !buf
    %b = fi_tile.get %c : !chan
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 1>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// What is written is there behind a barrier.
fi_tile.kernel @unseen(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    %t = arith.constant dense<1.0> : tensor<16x64xf16>
    %b = fi_tile.slot %c[%zero] : !chan
    fi_tile.write %t to %b : tensor<16x64xf16>, !buf
    // expected-error @below {{'fi_tile.read' op expected a barrier behind what is written to slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>) before it is read: other warps have written parts of it [TILE30]}}
    %r = fi_tile.read %b : !buf -> tensor<16x64xf16>
    nvvm.barrier0
  }
  fi_tile.return
}

// -----

#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
#s = #fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 1>
!buf = !fi_tile.buf<16x64xf16, #smem>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
// The next item's is written behind another one.
fi_tile.kernel @again(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    %t = arith.constant dense<1.0> : tensor<16x64xf16>
    %b = fi_tile.slot %c[%zero] : !chan
    // expected-error @below {{'fi_tile.write' op expected a barrier between the last read of slot 0 of channel 0 (!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>) and what is written there: another warp may still be reading it [TILE30]}}
    fi_tile.write %t to %b : tensor<16x64xf16>, !buf
    nvvm.barrier0
    %r = fi_tile.read %b : !buf -> tensor<16x64xf16>
  }
  fi_tile.return
}

// -----

// Warps that share a row tell one another their parts.
#rows = #fi_tile.frag<row32, rep = [2, 1], warps = 1, column_warps = 2>
#row = #fi_tile.slice<1, #rows>
fi_tile.kernel @reduction(%x: memref<?x1x512xf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 2, tile_keys = 2, warps = 2>) {
  fi_tile.for_items %it in %w {
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1x512xf32> -> tensor<2x512xf32, #rows>
    %zero = arith.constant dense<0.0> : tensor<2x512xf32, #rows>
    %c = arith.cmpf ogt, %t, %zero : tensor<2x512xf32, #rows>
    %any = fi_tile.any %c : tensor<2x512xi1, #rows>
    scf.if %any {
      // expected-error @below {{'fi_tile.reduce' op expected all warps of the worker to come here together, but whether they do is decided by 'scf.if' for each warp by itself [TILE31]}}
      %s = fi_tile.reduce add %t : tensor<2x512xf32, #rows> -> tensor<2x1xf32, #row>
    }
  }
  fi_tile.return
}
