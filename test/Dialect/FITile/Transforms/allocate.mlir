// Channels get offsets, groups of warps copies of their own; what does not fit is refused
// by how much.
// RUN: not fi-opt %s --fi-tile-allocate --split-input-file 2>%t.err | FileCheck %s
// RUN: FileCheck %s --check-prefix=TARGET < %t.err
// RUN: not fi-opt %s --pass-pipeline='builtin.module(fi_tile.kernel(fi-tile-allocate{limit=40000}))' --split-input-file -o %t 2>&1 | FileCheck %s --check-prefix=LIMIT

#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 3>
#padded = #fi_tile.smem<pitch = 144>
#swizzled = #fi_tile.smem<pitch = 128, swizzle = 128>
!q = !fi_tile.chan<16x64xf16, #padded, depth = 1>
!k = !fi_tile.chan<16x64xf16, #swizzled, depth = 3>
// 16 * 144 = 2304 bytes, to the next 1024.
// CHECK-LABEL: fi_tile.kernel @one
// CHECK-SAME: attributes {fi_tile.shared = 9216 : i64}
// CHECK: fi_tile.channel at 0 : !chan{{$}}
// CHECK: fi_tile.channel at 3072 : !chan1
// CHECK-NEXT: fi_tile.return
fi_tile.kernel @one(%w: !fi_tile.work) schedule(#schedule) {
  %q = fi_tile.channel : !q
  %k = fi_tile.channel : !k
  fi_tile.return
}

// -----

// LIMIT: error: 'fi_tile.kernel' op expected a schedule whose buffers fit into 40000 bytes of shared memory, but they take 49152, 9152 too many [SCH5]
// LIMIT: note: 24576 bytes for '!fi_tile.chan<16x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 3>'
// LIMIT: note: 24576 bytes for
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4, stages = 3>
#swizzled = #fi_tile.smem<pitch = 128, swizzle = 128>
!k = !fi_tile.chan<16x64xf16, #swizzled, depth = 3>
// CHECK-LABEL: fi_tile.kernel @groups
// CHECK-SAME: attributes {fi_tile.shared = 49152 : i64}
// CHECK: fi_tile.channel at 0 : !chan
// CHECK: fi_tile.channel at 24576 : !chan
fi_tile.kernel @groups(%w: !fi_tile.work) schedule(#schedule) {
  %k = fi_tile.channel : !k
  %v = fi_tile.channel : !k
  fi_tile.return
}

// -----

#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1>
// CHECK-LABEL: fi_tile.kernel @none
// CHECK-SAME: attributes {fi_tile.shared = 0 : i64}
fi_tile.kernel @none(%w: !fi_tile.work) schedule(#schedule) {
  fi_tile.return
}

// -----

// Without a limit it is the target's.
// LIMIT: but they take 196608
// TARGET: error: 'fi_tile.kernel' op expected a schedule whose buffers fit into 166912 bytes of shared memory, but they take 196608, 29696 too many [SCH5]
module attributes {fi.target = #fi.target<sm_80>} {
fi_tile.kernel @target(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 3>) {
  %k = fi_tile.channel : !fi_tile.chan<1024x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
  %v = fi_tile.channel : !fi_tile.chan<512x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
  fi_tile.return
}
}

// -----

// Channels of roles have two mbarriers of 8 bytes for each buffer, behind all buffers.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, stages = 3>
#panels = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 2048>
#swizzled = #fi_tile.smem<pitch = 128, swizzle = 128>
// 3 buffers of two panels of 16 rows each, then 16 * 3 and 16 bytes of mbarriers.
// CHECK-LABEL: fi_tile.kernel @roles
// CHECK-SAME: attributes {fi_tile.shared = 14400 : i64}
// CHECK: fi_tile.channel at 0 barriers 14336 : !chan
// CHECK: fi_tile.channel at 12288 barriers 14384 : !chan1
fi_tile.kernel @roles(%w: !fi_tile.work) schedule(#schedule) {
  %k = fi_tile.channel : !fi_tile.chan<16x128xf16, #panels, depth = 3>
  %q = fi_tile.channel : !fi_tile.chan<16x64xf16, #swizzled, depth = 1>
  fi_tile.role @load warps 4 {
  }
  fi_tile.return
}
