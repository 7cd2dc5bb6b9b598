// Many rows on sm_90a: warpgroups, and warps that copy for them, where products are of f16 or
// bf16 and operands lie in memory as these take them.
// RUN: fi-opt %s --fi-choose-schedule --split-input-file | FileCheck %s

// Three warpgroups. A lane has the output, 64 registers, scores and weights of 64 keys.
!q = tensor<?x8x128xbf16>
!o = tensor<?x8x128xbf16>
!kv = !fi.ragged_kv<2x128xbf16>
!k = tensor<?x2x128xbf16>
!v = tensor<?x2x128xbf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @d128
// CHECK: , #fi.schedule<tile_rows = 192, tile_keys = 64, warps = 12, load_warps = 4, stages = 4, wgmma = 1, rotate = 1, tma = 1, late = 1, lanes = 4>])
fi.program @d128 run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}

// -----

// Few columns leave registers for more keys.
!q = tensor<?x8x64xf16>
!o = tensor<?x8x64xf16>
!kv = !fi.ragged_kv<2x64xf16>
!k = tensor<?x2x64xf16>
!v = tensor<?x2x64xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @d64
// CHECK: , #fi.schedule<tile_rows = 192, tile_keys = 80, warps = 12, load_warps = 4, stages = 4, wgmma = 1, rotate = 1, tma = 1, late = 1, lanes = 4>])
fi.program @d64 run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}

// -----

// Wider keys: fewer stages fit into shared memory.
!q = tensor<?x8x192xbf16>
!o = tensor<?x8x128xbf16>
!kv = !fi.ragged_kv<2x192xbf16, vo = 128>
!k = tensor<?x2x192xbf16>
!v = tensor<?x2x128xbf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @d192_128
// CHECK: , #fi.schedule<tile_rows = 192, tile_keys = 64, warps = 12, load_warps = 4, stages = 3, wgmma = 1, rotate = 1, tma = 1, late = 1, lanes = 4>])
fi.program @d192_128 run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}

// -----

// Two warpgroups, whose lanes have more registers each.
!q = tensor<?x8x256xbf16>
!o = tensor<?x8x256xbf16>
!kv = !fi.ragged_kv<2x256xbf16>
!k = tensor<?x2x256xbf16>
!v = tensor<?x2x256xbf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @d256
// CHECK: , #fi.schedule<tile_rows = 128, tile_keys = 64, warps = 8, load_warps = 4, stages = 2, wgmma = 1, rotate = 1, tma = 1, late = 1, lanes = 4>])
fi.program @d256 run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}

// -----

// Too wide an output.
!q = tensor<?x8x512xbf16>
!o = tensor<?x8x512xbf16>
!kv = !fi.ragged_kv<2x512xbf16>
!k = tensor<?x2x512xbf16>
!v = tensor<?x2x512xbf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @d512
// CHECK: lanes = 4, max_rows = 32>, #fi.schedule<tile_rows = {{[0-9]+}}, tile_keys = {{[0-9]+}}, warps = {{[0-9]+}}, stages = {{[0-9]+}}, lanes = 4>])
fi.program @d512 run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}

// -----

// Keys of another type than the query are converted by threads.
!q = tensor<?x8x128xbf16>
!o = tensor<?x8x128xbf16>
!kv = !fi.ragged_kv<2x128xf16>
!k = tensor<?x2x128xf16>
!v = tensor<?x2x128xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @types
// CHECK: lanes = 4, max_rows = {{[0-9]+}}>, #fi.schedule<tile_rows = {{[0-9]+}}, tile_keys = {{[0-9]+}}, warps = {{[0-9]+}}, stages = {{[0-9]+}}, lanes = 4>])
fi.program @types run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}

// -----

// Not before sm_90a.
!q = tensor<?x8x128xbf16>
!o = tensor<?x8x128xbf16>
!kv = !fi.ragged_kv<2x128xbf16>
!k = tensor<?x2x128xbf16>
!v = tensor<?x2x128xbf16>
module attributes {fi.target = #fi.target<sm_80>} {
// CHECK-LABEL: fi.program @older
// CHECK: lanes = 4, max_rows = 32>, #fi.schedule<tile_rows = {{[0-9]+}}, tile_keys = {{[0-9]+}}, warps = {{[0-9]+}}, stages = {{[0-9]+}}, lanes = 4>])
fi.program @older run(%q: !q, %k: !k, %v: !v) -> (!o) {
  %kv = fi.view.ragged %k, %v : !k, !v -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !o
  fi.return %o : !o
}
}
