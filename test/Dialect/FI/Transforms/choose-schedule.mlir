// A body for few rows and one for all others, by the target and the group.
// RUN: fi-opt %s --fi-choose-schedule --split-input-file --verify-diagnostics | FileCheck %s

!q = tensor<?x8x16xf32>
!kv = !fi.ragged_kv<2x16xf32>
!k = tensor<?x2x16xf32>
module attributes {fi.target = #fi.target<cpu, vector_bits = 512>} {
// CHECK-LABEL: fi.program @wide
// CHECK: schedules([#fi.schedule<tile_rows = 16, {{[^>]*}}max_rows = 16{{[^>]*}}>, #fi.schedule<tile_rows = 192, tile_keys = {{[0-9]+}}, mr = 6, nr = 4, lanes = 16>])
fi.program @wide run(%q: !q, %k: !k) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

!q = tensor<?x6x16xf32>
!kv = !fi.ragged_kv<2x16xf32>
!k = tensor<?x2x16xf32>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// Rows of a body are a multiple of its block's.
// CHECK-LABEL: fi.program @narrow
// CHECK: schedules([#fi.schedule<tile_rows = 16, {{[^>]*}}mr = 4, {{[^>]*}}max_rows = 16{{[^>]*}}>, #fi.schedule<tile_rows = 192, tile_keys = {{[0-9]+}}, mr = 6, nr = 2, lanes = 8>])
fi.program @narrow run(%q: !q, %k: !k) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
// What a user has written is kept.
// CHECK-LABEL: fi.program @kept
// CHECK: schedules([#fi.schedule<tile_rows = 8, tile_keys = 32, mr = 2, nr = 1, lanes = 1>])
fi.program @kept run(%q: !q, %k: !k) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) schedules([#fi.schedule<tile_rows = 8, tile_keys = 32, mr = 2, nr = 1>]) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

// expected-error @+1 {{expected a module with the attribute 'fi.target', for example #fi.target<cpu, vector_bits = 256>}}
module {
}

// -----

!q = tensor<?x8x16xf16>
!kv = !fi.ragged_kv<2x16xf16>
!k = tensor<?x2x16xf16>
module attributes {fi.target = #fi.target<sm_80>} {
// CHECK-LABEL: fi.program @gpu
// CHECK: schedules([#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2, lanes = 4, max_rows = 16>, #fi.schedule<tile_rows = 32, tile_keys = 32, warps = 2, stages = 3, lanes = 4, max_rows = 32>, #fi.schedule<tile_rows = 128, tile_keys = 64, warps = 4, stages = 2, lanes = 4>])
fi.program @gpu run(%q: !q, %k: !k) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}

// -----

// Numbers of f32 are split into several for a product: fewer rows a warp.
!q = tensor<?x8x16xf32>
!kv = !fi.ragged_kv<2x16xf32>
!k = tensor<?x2x16xf32>
module attributes {fi.target = #fi.target<sm_80>} {
// CHECK-LABEL: fi.program @gpu_f32
// CHECK: schedules([#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2, lanes = 4, max_rows = 16>, #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, stages = 2, lanes = 4>])
fi.program @gpu_f32 run(%q: !q, %k: !k) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
}
