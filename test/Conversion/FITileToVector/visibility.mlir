// Products compute only what a mask leaves: scores of blocks that see anything, and
// weights times values from the first visible key to the last.
// RUN: fi-opt %s --fi-tile-to-vector --canonicalize --cse --split-input-file | FileCheck %s

#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// CHECK-LABEL: func.func @both
// For each block of rows, whether any of them sees anything in a vector of keys.
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %{{.*}} step %c4 {
// CHECK: %[[SEEN:.*]]:2 = scf.for %{{.*}} = %[[BLOCK]] to %{{.*}} step %c1 iter_args({{.*}}) -> (vector<8xi1>, vector<8xi1>) {
// CHECK-COUNT-2: arith.ori %{{.*}} : vector<8xi1>
// CHECK: vector.reduction <or>, %[[SEEN]]#0 : vector<8xi1> into i1
// CHECK: vector.reduction <or>, %[[SEEN]]#1 : vector<8xi1> into i1
// CHECK: memref.store %{{.*}}, %[[FIRST:.*]][%[[BLOCK]]] : memref<8xindex>
// CHECK: memref.store %{{.*}}, %[[LIMIT:.*]][%[[BLOCK]]] : memref<8xindex>
// The scores.
// CHECK: %[[F:.*]] = memref.load %[[FIRST]][%[[ROW:.*]]]
// CHECK: %[[L:.*]] = memref.load %[[LIMIT]][%[[ROW]]]
// CHECK: arith.cmpi slt, %[[F]]
// CHECK: arith.cmpi sgt, %[[L]]
// CHECK: %[[ANY:.*]] = arith.andi
// CHECK: scf.if %[[ANY]] {
// CHECK: vector.fma
// The weights, hidden ones included, then the terms that are not 0.
// CHECK: arith.select %{{.*}} : vector<8xi1>, vector<8xf32>
// CHECK: %[[BEGIN:.*]] = memref.load %[[FIRST]]
// CHECK: %[[END:.*]] = memref.load %[[LIMIT]]
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step %c1 iter_args
// CHECK: vector.fma
fi_tile.kernel @both(%q: memref<?x2x32xf32>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %k = arith.constant dense<1.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xf32> -> tensor<8x32xf32>
    %s = fi_tile.dot %a, %k transpose : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
    %row = fi_tile.item %it[row_begin]
    %rows = fi_tile.iota %row : tensor<8x1xindex>
    %key = fi_tile.item %it[kv_origin]
    %keys = fi_tile.iota %key : tensor<1x16xindex>
    %r = fi_tile.broadcast %rows : tensor<8x1xindex> -> tensor<8x16xindex>
    %c = fi_tile.broadcast %keys : tensor<1x16xindex> -> tensor<8x16xindex>
    %visible = arith.cmpi sle, %c, %r : tensor<8x16xindex>
    %masked = fi_tile.mask %s where %visible : tensor<8x16xf32>, tensor<8x16xi1>
    %top = fi_tile.reduce max %masked : tensor<8x16xf32> -> tensor<8x1xf32>
    %tops = fi_tile.broadcast %top : tensor<8x1xf32> -> tensor<8x16xf32>
    %difference = arith.subf %masked, %tops : tensor<8x16xf32>
    %weights = math.exp2 %difference fastmath<afn> : tensor<8x16xf32>
    %p = fi_tile.dot %weights, %k : tensor<8x16xf32>, tensor<16x32xf32> -> tensor<8x32xf32>
    fi_tile.store_rows %p, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}
}

// -----

// Scores that something besides the mask reads are all computed; so are products
// with weights that are not 0 where they are hidden.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// CHECK-LABEL: func.func @all
// CHECK-NOT: vector.reduction <or>
// CHECK-NOT: scf.if
// CHECK: return
fi_tile.kernel @all(%q: memref<?x2x32xf32>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %k = arith.constant dense<1.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xf32> -> tensor<8x32xf32>
    %s = fi_tile.dot %a, %k transpose : tensor<8x32xf32>, tensor<16x32xf32> -> tensor<8x16xf32>
    %key = fi_tile.item %it[kv_origin]
    %rows = fi_tile.iota %key : tensor<8x1xindex>
    %keys = fi_tile.iota %key : tensor<1x16xindex>
    %r = fi_tile.broadcast %rows : tensor<8x1xindex> -> tensor<8x16xindex>
    %c = fi_tile.broadcast %keys : tensor<1x16xindex> -> tensor<8x16xindex>
    %visible = arith.cmpi sle, %c, %r : tensor<8x16xindex>
    %masked = fi_tile.mask %s where %visible : tensor<8x16xf32>, tensor<8x16xi1>
    %weights = arith.maxnumf %masked, %s : tensor<8x16xf32>
    %p = fi_tile.dot %weights, %k : tensor<8x16xf32>, tensor<16x32xf32> -> tensor<8x32xf32>
    fi_tile.store_rows %p, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}
}
