// One case for each message of layouts and of the placed form's ops.
// RUN: fi-opt %s -split-input-file -verify-diagnostics

// expected-error @below {{expected 1 to 4096 repeats and 1 to 32 warps, but got rep = [0, 8], warps = 4 [LAY1]}}
func.func private @f() attributes {a = #fi_tile.frag<mma_c, rep = [0, 8], warps = 4>}

// -----

// expected-error @below {{expected 1 to 4096 repeats and 1 to 32 warps, but got rep = [1, 4097], warps = 4 [LAY1]}}
func.func private @f() attributes {a = #fi_tile.frag<mma_c, rep = [1, 4097], warps = 4>}

// -----

// expected-error @below {{expected 1 to 4096 repeats and 1 to 32 warps, but got rep = [1, 8], warps = 33 [LAY1]}}
func.func private @f() attributes {a = #fi_tile.frag<mma_a16, rep = [1, 8], warps = 33>}

// -----

// expected-error @below {{expected 1 to 32 warps in all, but got 4 x 9 [LAY1]}}
func.func private @f() attributes {a = #fi_tile.frag<row32, rep = [1, 8], warps = 4, column_warps = 9>}

// -----

// expected-error @below {{expected 'column_warps' of 1 in fragments of products, but got 2 for 'mma_c' [LAY7]}}
func.func private @f() attributes {a = #fi_tile.frag<mma_c, rep = [1, 8], warps = 4, column_warps = 2>}

// -----

#partial = #fi_tile.partial<<row8, rep = [1, 1], warps = 1>>
// expected-error @below {{expected partial results of lanes in fragments of products, but got 'row8' [LAY7]}}
func.func private @f(tensor<4x4xf32, #partial>)

// -----

#rows = #fi_tile.frag<row32, rep = [2, 2], warps = 1, column_warps = 4>
// expected-error @below {{expected a multiple of 8 columns from 1032 to 2048 in this layout, but got 1024 [LAY6]}}
func.func private @f(tensor<2x1024xf32, #rows>)

// -----

#rows = #fi_tile.frag<row32, rep = [2, 2], warps = 1, column_warps = 4>
// expected-error @below {{expected a multiple of 8 columns from 1032 to 2048 in this layout, but got 1036 [LAY6]}}
func.func private @f(tensor<2x1036xf32, #rows>)

// -----

// expected-error @below {{expected dimension 0 or 1 to be dropped, but got 2 [LAY2]}}
func.func private @f() attributes {a = #fi_tile.slice<2, <mma_c, rep = [1, 8], warps = 4>>}

// -----

// expected-error @below {{expected a pitch of a multiple of 16 bytes, up to 65536, but got 24 [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 24>}

// -----

// expected-error @below {{expected a pitch of a multiple of 16 bytes, up to 65536, but got 65552 [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 65552>}

// -----

// expected-error @below {{expected a swizzle of 0 or 128 bytes, but got 32 [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 128, swizzle = 32>}

// -----

// expected-error @below {{expected a pitch of a multiple of the swizzle, 128 bytes, but got 144 [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 144, swizzle = 128>}

// -----

// expected-error @below {{expected panels of a pitch of the swizzle, a multiple of eight rows each, but got a pitch of 128, a swizzle of 0 and panels of 2048 bytes [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 128, panel = 2048>}

// -----

// expected-error @below {{expected panels of a pitch of the swizzle, a multiple of eight rows each, but got a pitch of 256, a swizzle of 128 and panels of 4096 bytes [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 256, swizzle = 128, panel = 4096>}

// -----

// expected-error @below {{expected panels of a pitch of the swizzle, a multiple of eight rows each, but got a pitch of 128, a swizzle of 128 and panels of 512 bytes [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 512>}

// -----

// expected-error @below {{expected panels of a pitch of the swizzle, a multiple of eight rows each, but got a pitch of 128, a swizzle of 128 and panels of 1600 bytes [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 1600>}

// -----

// expected-error @below {{expected panels of a pitch of the swizzle, a multiple of eight rows each, but got a pitch of 128, a swizzle of 128 and panels of 525312 bytes [LAY3]}}
func.func private @f() attributes {a = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 525312>}

// -----

// expected-error @below {{expected rows that fit into panels of 2048 bytes, but got 17 of 128 bytes [LAY4]}}
func.func private @f() attributes {a = !fi_tile.buf<17x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>>}

// -----

// The product of rows and pitch has more than 64 bits.
// expected-error @below {{expected rows that fit into panels of 8192 bytes, but got 9223372036854775807 of 128 bytes [LAY4]}}
func.func private @f() attributes {a = !fi_tile.buf<9223372036854775807x4xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>}

// -----

// expected-error @below {{expected 1 to 4096 rows of at most 65536 bytes, but got 4 of 4611686018427387904 x 'f16' [LAY4]}}
func.func private @f() attributes {a = !fi_tile.buf<4x4611686018427387904xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>}

// -----

// expected-error @below {{expected elements of whole bytes, or an even number of columns of f4E2M1FN, but got 4 x 'i1' [LAY4]}}
func.func private @f() attributes {a = !fi_tile.buf<4x4xi1, #fi_tile.smem<pitch = 128>>}

// -----

// expected-error @below {{expected 1 to 4096 rows of at most the pitch, 128 bytes, but got 4 of 65 x 'f16' [LAY4]}}
func.func private @f() attributes {a = !fi_tile.buf<4x65xf16, #fi_tile.smem<pitch = 128>>}

// -----

// expected-error @below {{expected 1 to 4096 rows of at most the pitch, 128 bytes, but got 4097 of 64 x 'f16' [LAY4]}}
func.func private @f() attributes {a = !fi_tile.buf<4097x64xf16, #fi_tile.smem<pitch = 128>>}

// -----

// expected-error @below {{expected rows x columns x type and a layout #fi_tile.smem<...>}}
func.func private @f() attributes {a = !fi_tile.buf<4x4x4xf16, #fi_tile.smem<pitch = 128>>}

// -----

// expected-error @below {{expected rows x columns x type and a layout #fi_tile.smem<...>}}
func.func private @f() attributes {a = !fi_tile.buf<4x4xf16, 3 : i32>}

// -----

// expected-error @below {{expected a depth of 1 to 16 buffers, but got 17 [LAY5]}}
func.func private @f() attributes {a = !fi_tile.chan<4x4xf16, #fi_tile.smem<pitch = 128>, depth = 17>}

// -----

// expected-error @below {{expected a tile of 64x128 in this layout, but got 64x64 [LAY6]}}
func.func private @f(tensor<64x64xf32, #fi_tile.frag<mma_c, rep = [1, 16], warps = 4>>)

// -----

// expected-error @below {{expected a tile of 64x128 in this layout, but got 64 [LAY6]}}
func.func private @f(tensor<64xf32, #fi_tile.frag<mma_c, rep = [1, 16], warps = 4>>)

// -----

// expected-error @below {{expected elements of 16 bits in a layout of 'mma_a16', but got 'f32' [LAY6]}}
func.func private @f(tensor<64x16xf32, #fi_tile.frag<mma_a16, rep = [1, 1], warps = 4>>)

// -----

// expected-error @below {{expected a tile of 64x1 in this layout, but got 32x1 [LAY6]}}
func.func private @f(tensor<32x1xf32, #fi_tile.slice<1, <mma_c, rep = [1, 16], warps = 4>>>)

// -----

// expected-error @below {{expected a tile of 1x128 in this layout, but got 64x128 [LAY6]}}
func.func private @f(tensor<64x128xf32, #fi_tile.slice<0, <mma_c, rep = [1, 16], warps = 4>>>)

// -----

// expected-error @below {{expected a tile of 64x4 in this layout, but got 64x8 [LAY6]}}
func.func private @f(tensor<64x8xf32, #fi_tile.partial<<mma_c, rep = [1, 16], warps = 4>>>)

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%q: memref<?x2x32xf16>, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    // expected-error @below {{'fi_tile.copy_rows' op expected a source [rows, heads, 64] of 'f16', but got 'memref<?x2x32xf16>' [TILE20]}}
    fi_tile.copy_rows %q[%it] to %b group 1 : memref<?x2x32xf16>, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    // expected-error @below {{'fi_tile.copy_rows' op expected a group of at least 1 head, but got 0 [TILE20]}}
    fi_tile.copy_rows %q[%it] to %b group 0 : memref<?x2x64xf16>, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!kv = !fi.ragged_kv<2x32xf16>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%k: memref<?x2x32xf16>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant 0 : index
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k : memref<?x2x32xf16>, memref<?x2x32xf16> -> !kv
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    // expected-error @below {{'fi_tile.copy_kv' op expected a buffer of rows of 32 x 'f16', but got '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE21]}}
    fi_tile.copy_kv keys %kv[%it, %zero] to %b : !kv, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected a tile of the buffer's shape and type, but got 'tensor<16x32xf16>' from '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE22]}}
    %t = fi_tile.read %b : !buf -> tensor<16x32xf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected 'from' of at least 0 and 'step' of at least 1, given together, with columns of the buffer, but got 33 columns from 1 step 2 of '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE22]}}
    %t = fi_tile.read %b from 1 step 2 : !buf -> tensor<16x33xf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected 'from' of at least 0 and 'step' of at least 1, given together, with columns of the buffer, but got 1 columns from 64 step 1 of '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE22]}}
    %t = fi_tile.read %b from 64 step 1 : !buf -> tensor<16x1xf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected 'from' of at least 0 and 'step' of at least 1, given together, with columns of the buffer, but got 8 columns from -1 step 1 of '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE22]}}
    %t = fi_tile.read %b from -1 step 1 : !buf -> tensor<16x8xf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected 'from' of at least 0 and 'step' of at least 1, given together, with columns of the buffer, but got 8 columns from 0 step 0 of '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE22]}}
    %t = fi_tile.read %b from 0 step 0 : !buf -> tensor<16x8xf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected a tile of the buffer's shape and type, but got 'tensor<16x8xf32>' from '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE22]}}
    %t = fi_tile.read %b from 0 step 1 : !buf -> tensor<16x8xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    %t = arith.constant dense<1.0> : tensor<16x32xf16>
    // expected-error @below {{'fi_tile.write' op expected a tile of the buffer's shape and type, but got 'tensor<16x32xf16>' for '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE32]}}
    fi_tile.write %t to %b : tensor<16x32xf16>, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    %t = arith.constant dense<1.0> : tensor<16x64xf32>
    // expected-error @below {{'fi_tile.write' op expected a tile of the buffer's shape and type, but got 'tensor<16x64xf32>' for '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE32]}}
    fi_tile.write %t to %b : tensor<16x64xf32>, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    %t = arith.constant dense<1.0> : tensor<32x64xf16>
    // expected-error @below {{'fi_tile.write' op expected a tile of the buffer's shape and type, but got 'tensor<32x64xf16>' for '!fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>' [TILE32]}}
    fi_tile.write %t to %b : tensor<32x64xf16>, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    %t = arith.constant dense<1.0> : tensor<16x64xf16>
    // expected-error @below {{'fi_tile.relayout' op expected a result that differs in its layout only, but got 'tensor<16x64xf32>' from 'tensor<16x64xf16>' [TILE23]}}
    %u = fi_tile.relayout %t : tensor<16x64xf16> -> tensor<16x64xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!chan = !fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128>, depth = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.channel' op expects parent op 'fi_tile.kernel'}}
    %c = fi_tile.channel : !chan
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
!kv = !fi.paged_kv<16x2x64xf16, NHD>
!buf = !fi_tile.buf<16x64xf16, #fi_tile.smem<pitch = 128>>
fi_tile.kernel @k(%k: memref<?x16x2x64xf16>, %p: memref<?xi32>, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant 0 : index
  %true = arith.constant true
  %kv = fi_tile.view %k, %k pages(%p : memref<?xi32>) : memref<?x16x2x64xf16>, memref<?x16x2x64xf16> -> !kv
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.locate' op expected one of the view's 1 page tables, but got number 1 [TILE33]}}
    %e = fi_tile.locate %kv[%it, %zero] if %true table 1 : !kv -> !fi_tile.entries<!buf>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.role' op expected 1 to 32 warps, but got 0 [TILE39]}}
  fi_tile.role @load warps 0 {
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.role' op expected 1 to 32 warps, but got 33 [TILE39]}}
  fi_tile.role @load warps 33 {
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.role' op expected 'registers' of whole warpgroups, four warps each, a multiple of 8 from 24 to 256, but got 56 for 2 warps [TILE39]}}
  fi_tile.role @load warps 2 registers 56 {
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.role' op expected 'registers' of whole warpgroups, four warps each, a multiple of 8 from 24 to 256, but got 60 for 4 warps [TILE39]}}
  fi_tile.role @load warps 4 registers 60 {
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.role' op expected 'registers' of whole warpgroups, four warps each, a multiple of 8 from 24 to 256, but got 16 for 4 warps [TILE39]}}
  fi_tile.role @load warps 4 registers 16 {
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.role' op expected 'registers' of whole warpgroups, four warps each, a multiple of 8 from 24 to 256, but got 264 for 4 warps [TILE39]}}
  fi_tile.role @load warps 4 registers 264 {
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%x: index, %w: !fi_tile.work) schedule(#s) {
  // expected-note @below {{computed here}}
  %y = arith.addi %x, %x : index
  fi_tile.role @load warps 4 {
    // expected-error @below {{'arith.muli' op expected values of its role, channels, views, constants and arguments of the kernel, but got one of 'index' [TILE39]}}
    %z = arith.muli %y, %x : index
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.role' op expects parent op 'fi_tile.kernel'}}
    fi_tile.role @load warps 4 {
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a product of f16 or bf16 with a result of 64 x 64 f32, but got '!fi_tile.buf<64x64xf32, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' and '!fi_tile.buf<64x64xf32, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' to 'tensor<64x64xf32>' [TILE40]}}
    %f = fi_tile.dot_start %b, %b : !widebuf, !widebuf -> !fi_tile.future<!T>
    %t = fi_tile.wait %f : !fi_tile.future<!T>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a product of f16 or bf16 with a result of 64 x 64 f32, but got '!fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' and '!fi_tile.buf<64x64xf32, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' to 'tensor<64x64xf32>' [TILE40]}}
    %f = fi_tile.dot_start %a, %b : !buf, !widebuf -> !fi_tile.future<!T>
    %t = fi_tile.wait %f : !fi_tile.future<!T>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a product of f16 or bf16 with a result of 64 x 64 f32, but got '!fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' and '!fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' to 'tensor<64x32xf32>' [TILE40]}}
    %f = fi_tile.dot_start %a, %a : !buf, !buf -> !fi_tile.future<tensor<64x32xf32>>
    %t = fi_tile.wait %f : !fi_tile.future<tensor<64x32xf32>>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a product of f16 or bf16 with a result of 64 x 64 f32, but got '!fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' and '!fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>>' to 'tensor<64x64xf16>' [TILE40]}}
    %f = fi_tile.dot_start %a, %a : !buf, !buf -> !fi_tile.future<tensor<64x64xf16>>
    %t = fi_tile.wait %f : !fi_tile.future<tensor<64x64xf16>>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected an accumulator of the type of the result, 'tensor<64x64xf32>', but got 'tensor<64x32xf32>' [TILE40]}}
    %f = fi_tile.dot_start %a, %a acc(%acc : tensor<64x32xf32>) : !buf, !buf -> !fi_tile.future<!T>
    %t = fi_tile.wait %f : !fi_tile.future<!T>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a future that is waited for once, but it is used 0 times [TILE40]}}
    %f = fi_tile.dot_start %a, %a : !buf, !buf -> !fi_tile.future<!T>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a future that is waited for once, but it is used 2 times [TILE40]}}
    %f = fi_tile.dot_start %a, %a : !buf, !buf -> !fi_tile.future<!T>
    %t = fi_tile.wait %f : !fi_tile.future<!T>
    %u = fi_tile.wait %f : !fi_tile.future<!T>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
!wide = !fi_tile.chan<64x64xf32, #smem, depth = 1>
!widebuf = !fi_tile.buf<64x64xf32, #smem>
!T = tensor<64x64xf32>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %d = fi_tile.channel : !wide
  fi_tile.for_items %it in %w {
    %acc = arith.constant dense<0.0> : tensor<64x32xf32>
    %a = fi_tile.get %c : !chan
    %b = fi_tile.get %d : !wide
    // expected-error @below {{'fi_tile.dot_start' op expected a future that fi_tile.wait takes in the same block, but 'fi_tile.wait' does, or elsewhere [TILE40]}}
    %f = fi_tile.dot_start %a, %a : !buf, !buf -> !fi_tile.future<!T>
    fi_tile.for_keys %t in %it all step 16 {
      %u = fi_tile.wait %f : !fi_tile.future<!T>
      fi_tile.yield
    }
  }
  fi_tile.return
}


// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!chan = !fi_tile.chan<64x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #smem>
fi_tile.kernel @k(%q: memref<?x2x64xf16>, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %b = fi_tile.acquire %c : !chan
    // expected-error @below {{'fi_tile.copy_rows' op expected 'via(tma)' in a role, whose channels count bytes, but got it outside of roles [TILE41]}}
    fi_tile.copy_rows %q[%it] to %b group 1 via(tma) : memref<?x2x64xf16>, !buf
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 1>
#smem = #fi_tile.smem<pitch = 128, swizzle = 128>
!kv = !fi.paged_kv<12x2x64xf16, NHD>
!k = memref<?x12x2x64xf16>
!chan = !fi_tile.chan<16x64xf16, #smem, depth = 1>
!buf = !fi_tile.buf<16x64xf16, #smem>
fi_tile.kernel @k(%k: !k, %pages: memref<?xi32>, %w: !fi_tile.work) schedule(#s) {
  %c = fi_tile.channel : !chan
  %kv = fi_tile.view %k, %k pages(%pages : memref<?xi32>) : !k, !k -> !kv
  fi_tile.role @load warps 4 {
    fi_tile.for_items %it in %w {
      fi_tile.for_keys %t in %it all step 16 {
        %b = fi_tile.acquire %c : !chan
        // expected-error @below {{'fi_tile.copy_kv' op expected with 'via(tma)' all keys of a tile of a loop over keys, in pages of a known multiple of 8 or without pages, at most 256 in each, of pools of at most 5 dimensions, but got boxes of 4 of '!fi.paged_kv<12x2x64xf16, NHD>' [TILE41]}}
        fi_tile.copy_kv keys %kv[%it, %t] to %b via(tma) : !kv, !buf
        fi_tile.yield
      }
    }
  }
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.mark' op expected 'end' without a name and without 'once', but got a name [TILE42]}}
  fi_tile.mark end "tiles"
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.mark' op expected 'end' without a name and without 'once', but got 'once' [TILE42]}}
    fi_tile.mark end once
  }
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.mark' op expected a name of 1 to 48 printable characters without quotes and backslashes, but got none [TILE42]}}
  fi_tile.mark phase
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.mark' op expected a name of 1 to 48 printable characters without quotes and backslashes, but got "a\0Ab" [TILE42]}}
  fi_tile.mark moment "a\0Ab"
  fi_tile.return
}

// -----

fi_tile.kernel @k(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.mark' op expected 'once' in a loop over items, whose first time it counts, but got it outside [TILE43]}}
  fi_tile.mark phase "tiles" once
  fi_tile.return
}
