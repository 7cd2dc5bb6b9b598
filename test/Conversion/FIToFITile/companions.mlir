// Companions are stages of rows: an item is a tile of rows of one head, or of one part
// of a head's columns. Pairs are loaded as tiles of first and of second elements.
// RUN: fi-opt %s --split-input-file --fi-to-fi-tile | FileCheck %s

// CHECK-LABEL: fi_tile.kernel @gate_gated0_rows64
// CHECK: %[[I:.*]] = fi_tile.item %{{.*}}[kv_head]
// CHECK: %[[PART:.*]] = arith.remui %[[I]], %{{.*}} : index
// CHECK: %[[HEAD:.*]] = arith.divui %[[I]], %{{.*}} : index
// CHECK: %[[AT:.*]] = arith.muli %[[PART]], %{{.*}} : index
// CHECK: fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 head %[[HEAD]] from %[[AT]] step 1 : {{.*}} -> tensor<64x192xbf16>
// CHECK: %[[BEHIND:.*]] = arith.addi %[[AT]], %{{.*}} : index
// CHECK: fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 head %[[HEAD]] from %[[BEHIND]] step 1
// CHECK: math.exp2
// CHECK: fi_tile.store_rows %{{.*}}, %{{.*}}[%{{.*}}] group 1 head %[[HEAD]] from %[[AT]] step 1 : tensor<64x192xbf16>
// CHECK: fi_tile.package @gate
// CHECK-SAME: heads = 4 : i64
fi.program @gate run(%x: tensor<?x2x768xbf16>) -> (tensor<?x2x384xbf16>) {
  %y = fi.gated %x act(silu) : tensor<?x2x768xbf16> -> tensor<?x2x384xbf16>
  fi.return %y : tensor<?x2x384xbf16>
}

// -----

// CHECK-LABEL: fi_tile.kernel @rope_rope0_rows64
// CHECK: fi_tile.gather %{{.*}}[%{{.*}}] : {{.*}} -> tensor<64x1xi32>
// CHECK: %[[A:.*]] = fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 from %[[X:.*]] step 2 : {{.*}} -> tensor<64x16xf32>
// CHECK: %[[B:.*]] = fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 from %[[Y:.*]] step 2
// CHECK: fi_tile.store_rows %[[B]], %{{.*}}[%{{.*}}] group 1 from %[[X]] step 2
// CHECK: fi_tile.store_rows %{{.*}}, %{{.*}}[%{{.*}}] group 1 from %[[Y]] step 2
// What is not paired is copied.
// CHECK: %[[REST:.*]] = fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 from %{{.*}} step 1 : {{.*}} -> tensor<64x8xf32>
// CHECK: fi_tile.store_rows %[[REST]], %
// CHECK: fi_tile.package @rope
// CHECK-SAME: with_rows = ["pos"]
fi.program @rope run(%x: tensor<?x2x40xf32>, %pos: tensor<?xi32>) -> (tensor<?x2x40xf32>) {
  %y = fi.rope %x at(%pos : tensor<?xi32>) pair<interleaved> dims(32)
      transform(%a: f32, %b: f32, %pair: index, %req: index, %head: index, %p: index) {
    %f = arith.index_cast %p : index to i32
    %g = arith.sitofp %f : i32 to f32
    %c = arith.mulf %a, %g : f32
    fi.yield %b, %c : f32, f32
  } : tensor<?x2x40xf32> -> tensor<?x2x40xf32>
  fi.return %y : tensor<?x2x40xf32>
}
