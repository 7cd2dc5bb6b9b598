// Bits that are taken out of gathered words are gathered as bits, however they are spelled.
// RUN: fi-opt %s --fi-tile-gather-bits --canonicalize | FileCheck %s

#s = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 1, lanes = 4>
// CHECK-LABEL: fi_tile.kernel @bits
// CHECK-SAME: %[[WORDS:.*]]: memref<?xi32>, %[[BYTES:.*]]: memref<?xi8>
fi_tile.kernel @bits(%words: memref<?xi32>, %bytes: memref<?xi8>, %x: memref<?x1x16xf32>, %d: memref<?x1x16xf32>, %w: !fi_tile.work) schedule(#s) {
  %c32 = arith.constant dense<32> : tensor<16x16xindex>
  %c31 = arith.constant dense<31> : tensor<16x16xindex>
  %c5 = arith.constant dense<5> : tensor<16x16xindex>
  %c8 = arith.constant dense<8> : tensor<16x16xindex>
  %one = arith.constant dense<1> : tensor<16x16xi32>
  %none = arith.constant dense<0> : tensor<16x16xi32>
  fi_tile.for_items %it in %w {
    %s = fi_tile.load_rows %x[%it] group 1 : memref<?x1x16xf32> -> tensor<16x16xf32>
    %b = fi_tile.item %it[kv_origin]
    // CHECK: %[[I:.*]] = fi_tile.broadcast
    %row = fi_tile.iota %b : tensor<1x16xindex>
    %i = fi_tile.broadcast %row : tensor<1x16xindex> -> tensor<16x16xindex>
    // CHECK: %[[A:.*]] = fi_tile.gather %[[WORDS]][%[[I]]] bits : memref<?xi32>, tensor<16x16xindex> -> tensor<16x16xi1>
    %q = arith.divui %i, %c32 : tensor<16x16xindex>
    %g = fi_tile.gather %words[%q] : memref<?xi32>, tensor<16x16xindex> -> tensor<16x16xi32>
    %r = arith.remui %i, %c32 : tensor<16x16xindex>
    %n = arith.index_cast %r : tensor<16x16xindex> to tensor<16x16xi32>
    %y = arith.shrui %g, %n : tensor<16x16xi32>
    %m = arith.trunci %y : tensor<16x16xi32> to tensor<16x16xi1>
    // CHECK: fi_tile.mask %{{.*}} where %[[A]]
    %e = fi_tile.mask %s where %m : tensor<16x16xf32>, tensor<16x16xi1>
    // Shifts and masks.
    // CHECK: %[[B:.*]] = fi_tile.gather %[[WORDS]][%[[I]]] bits
    %q1 = arith.shrui %i, %c5 : tensor<16x16xindex>
    %g1 = fi_tile.gather %words[%q1] : memref<?xi32>, tensor<16x16xindex> -> tensor<16x16xi32>
    %r1 = arith.andi %i, %c31 : tensor<16x16xindex>
    %n1 = arith.index_cast %r1 : tensor<16x16xindex> to tensor<16x16xi32>
    %y1 = arith.shrui %g1, %n1 : tensor<16x16xi32>
    %z1 = arith.andi %y1, %one : tensor<16x16xi32>
    %m1 = arith.cmpi ne, %z1, %none : tensor<16x16xi32>
    // CHECK: fi_tile.mask %{{.*}} where %[[B]]
    %e1 = fi_tile.mask %e where %m1 : tensor<16x16xf32>, tensor<16x16xi1>
    // Bytes, widened.
    // CHECK: %[[C:.*]] = fi_tile.gather %[[BYTES]][%[[I]]] bits : memref<?xi8>
    %q2 = arith.divui %i, %c8 : tensor<16x16xindex>
    %g2 = fi_tile.gather %bytes[%q2] : memref<?xi8>, tensor<16x16xindex> -> tensor<16x16xi8>
    %w2 = arith.extui %g2 : tensor<16x16xi8> to tensor<16x16xi32>
    %r2 = arith.remui %i, %c8 : tensor<16x16xindex>
    %n2 = arith.index_cast %r2 : tensor<16x16xindex> to tensor<16x16xi32>
    %y2 = arith.shrui %w2, %n2 : tensor<16x16xi32>
    %m2 = arith.trunci %y2 : tensor<16x16xi32> to tensor<16x16xi1>
    // CHECK: fi_tile.mask %{{.*}} where %[[C]]
    %e2 = fi_tile.mask %e1 where %m2 : tensor<16x16xf32>, tensor<16x16xi1>
    // The bit of another place, and words of another width, stay what they are.
    // CHECK-NOT: bits
    %n3 = arith.index_cast %q : tensor<16x16xindex> to tensor<16x16xi32>
    %y3 = arith.shrui %g, %n3 : tensor<16x16xi32>
    %m3 = arith.trunci %y3 : tensor<16x16xi32> to tensor<16x16xi1>
    %e3 = fi_tile.mask %e2 where %m3 : tensor<16x16xf32>, tensor<16x16xi1>
    %g4 = fi_tile.gather %words[%q2] : memref<?xi32>, tensor<16x16xindex> -> tensor<16x16xi32>
    %y4 = arith.shrui %g4, %n2 : tensor<16x16xi32>
    %m4 = arith.trunci %y4 : tensor<16x16xi32> to tensor<16x16xi1>
    %e4 = fi_tile.mask %e3 where %m4 : tensor<16x16xf32>, tensor<16x16xi1>
    fi_tile.store_rows %e4, %d[%it] group 1 : tensor<16x16xf32>, memref<?x1x16xf32>
  }
  fi_tile.return
}
