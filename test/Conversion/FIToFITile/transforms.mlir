// A transformed row is a tile of first and one of second elements of its pairs; the
// product is the sum of two. Nothing puts a row together again, and nothing is rounded.
// RUN: fi-opt %s --fi-to-fi-tile | FileCheck %s

!q = tensor<?x4x16xbf16>
!k = tensor<?x2x16xbf16>
!kv = !fi.ragged_kv<2x16xbf16>
#s = #fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>

// CHECK-LABEL: fi_tile.kernel @rotary_attention0_rows4
// CHECK: %[[Q:.*]] = fi_tile.load_rows %q[%{{.*}}] group 2 : {{.*}} -> tensor<4x16xf32>
// CHECK: %[[QX:.*]] = fi_tile.columns %[[Q]] from 0 step 1 : tensor<4x16xf32> -> tensor<4x8xf32>
// CHECK: %[[QY:.*]] = fi_tile.columns %[[Q]] from 8 step 1 : tensor<4x16xf32> -> tensor<4x8xf32>
// Pairs are columns; the angle of a row and a pair is a tile.
// CHECK: %[[PAIR:.*]] = fi_tile.iota %{{.*}} : tensor<1x8xindex>
// CHECK: math.exp2 %{{.*}} : tensor<1x8xf32>
// CHECK: %[[C:.*]] = math.cos %{{.*}} : tensor<4x8xf32>
// CHECK: %[[A:.*]] = arith.mulf %[[QX]], %[[C]] : tensor<4x8xf32>
// CHECK: %[[B:.*]] = arith.mulf %[[QY]], %[[C]] : tensor<4x8xf32>
// CHECK: fi_tile.for_keys %[[T:.*]] in
// CHECK: %[[K:.*]] = fi_tile.load_kv keys %{{.*}} -> tensor<8x16xf32>
// Positions of keys, by row of their tile.
// CHECK: %[[AT:.*]] = arith.addi %[[T]], %{{.*}} : index
// CHECK: fi_tile.iota %[[AT]] : tensor<8x1xindex>
// CHECK: %[[KX:.*]] = fi_tile.columns %[[K]] from 0 step 1
// CHECK: %[[KY:.*]] = fi_tile.columns %[[K]] from 8 step 1
// No region for keys here.
// CHECK: %[[S1:.*]] = fi_tile.dot %[[A]], %[[KX]] transpose : tensor<4x8xf32>, tensor<8x8xf32> -> tensor<4x8xf32>
// CHECK: %[[S2:.*]] = fi_tile.dot %[[B]], %[[KY]] transpose
// CHECK: arith.addf %[[S1]], %[[S2]] : tensor<4x8xf32>
// Values are read in their own type.
// CHECK: fi_tile.load_kv values %{{.*}} -> tensor<8x16xbf16>
fi.program @rotary run(%q: !q, %k: !k) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) pair<half>
      query(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        %i = arith.index_cast %pair : index to i32
        %f = arith.sitofp %i : i32 to f32
        %e = math.exp2 %f : f32
        %p = arith.index_cast %pos : index to i32
        %g = arith.sitofp %p : i32 to f32
        %t = arith.mulf %g, %e : f32
        %c = math.cos %t : f32
        %a = arith.mulf %x, %c : f32
        %b = arith.mulf %y, %c : f32
        fi.yield %a, %b : f32, f32
      } schedules([#s]) : !q over !kv -> !q
  fi.return %o : !q
}

// Captures and what depends on less than a tile; every other element.
// CHECK-LABEL: fi_tile.kernel @gains_attention0_rows4
// CHECK: fi_tile.columns %{{.*}} from 0 step 2 : tensor<4x16xf32> -> tensor<4x8xf32>
// CHECK: fi_tile.columns %{{.*}} from 1 step 2 : tensor<4x16xf32> -> tensor<4x8xf32>
// CHECK: %[[KX:.*]] = fi_tile.columns %{{.*}} from 0 step 2 : tensor<8x16xf32> -> tensor<8x8xf32>
// CHECK: %[[KY:.*]] = fi_tile.columns %{{.*}} from 1 step 2 : tensor<8x16xf32> -> tensor<8x8xf32>
// CHECK: %[[G:.*]] = fi_tile.gather %gain[%{{.*}}] : {{.*}}, tensor<8x1xindex> -> tensor<8x1xf32>
// CHECK: %[[W:.*]] = fi_tile.broadcast %[[G]] : tensor<8x1xf32> -> tensor<8x8xf32>
// CHECK: fi_tile.dot %{{.*}}, %[[W]] transpose
// CHECK: fi_tile.dot %{{.*}}, %[[KX]] transpose
fi.program @gains run(%q: !q, %k: !k, %gain: tensor<?xf32>) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) pair<interleaved> captures(%gn = %gain : tensor<?xf32>)
      key(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        %g = fi.load %gn[%pos] : tensor<?xf32>
        fi.yield %g, %x : f32, f32
      } schedules([#s]) : !q over !kv -> !q
  fi.return %o : !q
}
