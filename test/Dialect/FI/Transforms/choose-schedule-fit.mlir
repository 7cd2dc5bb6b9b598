// Tiles that do not fit into a chip's shared memory are chosen smaller: keys while
// their ring is larger than the rows of the query, else rows, with their warps.
// RUN: fi-opt %s --fi-choose-schedule --split-input-file | FileCheck %s

!q = tensor<?x2x256xf16>
!kv = !fi.ragged_kv<2x256xf16>
module attributes {fi.target = #fi.target<sm_80>} {
// CHECK-LABEL: fi.program @w256
// CHECK: #fi.schedule<tile_rows = 128, tile_keys = 32, warps = 8, stages = 2, lanes = 4>])
fi.program @w256 run(%q: !q, %k: !q) -> (!q) {
  %kv = fi.view.ragged %k, %k : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

!q = tensor<?x2x256xf16>
!kv = !fi.ragged_kv<2x256xf16>
module attributes {fi.target = #fi.target<sm_86>} {
// CHECK-LABEL: fi.program @n256
// CHECK: #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2, lanes = 4>])
fi.program @n256 run(%q: !q, %k: !q) -> (!q) {
  %kv = fi.view.ragged %k, %k : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

!q = tensor<?x2x512xf16>
!kv = !fi.ragged_kv<2x512xf16>
module attributes {fi.target = #fi.target<sm_80>} {
// CHECK-LABEL: fi.program @w512
// CHECK: #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, stages = 2, lanes = 4>])
fi.program @w512 run(%q: !q, %k: !q) -> (!q) {
  %kv = fi.view.ragged %k, %k : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

!q = tensor<?x2x512xf16>
!kv = !fi.ragged_kv<2x512xf16>
module attributes {fi.target = #fi.target<sm_86>} {
// CHECK-LABEL: fi.program @n512
// CHECK: #fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 2, lanes = 4>])
fi.program @n512 run(%q: !q, %k: !q) -> (!q) {
  %kv = fi.view.ragged %k, %k : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

!q = tensor<?x2x512xf16>
!kv = !fi.ragged_kv<2x512xf16>
module attributes {fi.target = #fi.target<sm_90a>} {
// CHECK-LABEL: fi.program @h512
// CHECK: #fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, stages = 2, lanes = 4>])
fi.program @h512 run(%q: !q, %k: !q) -> (!q) {
  %kv = fi.view.ragged %k, %k : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}
