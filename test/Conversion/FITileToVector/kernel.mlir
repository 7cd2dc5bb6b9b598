// Control flow, memory and elementwise work of a kernel.
// RUN: fi-opt %s --fi-tile-to-vector --canonicalize --cse | FileCheck %s

#schedule = #fi.schedule<tile_rows = 8, tile_keys = 8, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {

// Items from begin to end, two kinds of key ranges, tiles of a range.
// CHECK-LABEL: func.func @loops
// CHECK-SAME: (%{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64, %{{.*}}: !llvm.ptr)
// CHECK-DAG: %[[LO:.*]] = arith.index_cast %[[BEGIN]]
// CHECK-DAG: %[[HI:.*]] = arith.index_cast %[[END]]
// CHECK: scf.for %{{.*}} = %[[LO]] to %[[HI]] step %c1 {
// CHECK: scf.for %[[RANGE:.*]] = %{{.*}} to %{{.*}} step %c1 {
// CHECK: arith.muli %[[RANGE]], %c16
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %c8 {
// CHECK: scf.for %{{.*}} = %c0 to %{{.*}} step %c8 {
// What depends on rows alone is vectorised along them.
// CHECK-NEXT: %[[M:.*]] = vector.load %{{.*}} : memref<8xf32>, vector<8xf32>
// CHECK-NEXT: arith.addf %[[M]]
fi_tile.kernel @loops(%o: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %zero = arith.constant dense<0.0> : tensor<8x1xf32>
  %one = arith.constant dense<1.0> : tensor<8x1xf32>
  fi_tile.for_items %it in %work {
    %r = fi_tile.for_keys %t in %it all step 8 iter_args(%a = %zero) -> (tensor<8x1xf32>) {
      %b = arith.addf %a, %one : tensor<8x1xf32>
      fi_tile.yield %b : tensor<8x1xf32>
    }
    fi_tile.store_rows %r, %o[%it] group 2 : tensor<8x1xf32>, memref<?x2xf32>
  }
  fi_tile.return
}

// Keys are found by the page table: page t / 4, slot t % 4.
// CHECK-LABEL: func.func @pages
// CHECK: vector.store {{.*}} : memref<8x8xf32>
// CHECK: %[[KEY:.*]] = arith.minsi
// CHECK: %[[PAGE:.*]] = arith.divui %[[KEY]], %c4
// CHECK: %[[AT:.*]] = arith.addi %{{.*}}, %[[PAGE]]
// CHECK: arith.remui %[[KEY]], %c4
// CHECK: memref.load %{{.*}}[%[[AT]]] : memref<?xi64>
// CHECK: memref.store %{{.*}} : memref<8xindex>
fi_tile.kernel @pages(%q: memref<?x2x8xf32>, %k: memref<?x1x4x8xf32>, %pages: memref<?xi64>, %o: memref<?x2x8xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %kv = fi_tile.view %k, %k pages(%pages : memref<?xi64>) : memref<?x1x4x8xf32>, memref<?x1x4x8xf32> -> !fi.paged_kv<4x1x8xf32, HND, index = i64>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x8xf32> -> tensor<8x8xf32>
    fi_tile.for_keys %t in %it all step 8 {
      %keys = fi_tile.load_kv keys %kv[%it, %t] : !fi.paged_kv<4x1x8xf32, HND, index = i64> -> tensor<8x8xf32>
      %s = fi_tile.dot %a, %keys transpose : tensor<8x8xf32>, tensor<8x8xf32> -> tensor<8x8xf32>
      fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x8xf32>, memref<?x2x8xf32>
      fi_tile.yield
    }
  }
  fi_tile.return
}

// An index out of range reads 0: the mask of the gather, one unsigned comparison.
// CHECK-LABEL: func.func @gathers
// CHECK: %[[IN:.*]] = arith.cmpi ult, %{{.*}} : vector<8xindex>
// CHECK: vector.gather %{{.*}}[%c0] [%{{.*}}], %[[IN]], %{{.*}} : memref<?xf32>, vector<8xindex>, vector<8xi1>, vector<8xf32>
// 2^x for x <= 0 is a polynomial, without a call.
// CHECK: arith.cmpf ogt
// CHECK-COUNT-6: vector.fma
// CHECK: arith.shli
// CHECK-NOT: math.
fi_tile.kernel @gathers(%table: memref<?xf32>, %o: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %begin = fi_tile.item %it[row_begin]
    %rows = fi_tile.iota %begin : tensor<8x1xindex>
    %x = fi_tile.gather %table[%rows] : memref<?xf32>, tensor<8x1xindex> -> tensor<8x1xf32>
    %e = math.exp2 %x fastmath<afn> : tensor<8x1xf32>
    fi_tile.store_rows %e, %o[%it] group 2 : tensor<8x1xf32>, memref<?x2xf32>
  }
  fi_tile.return
}

// States of split keys: row by row of the item's slot.
// CHECK-LABEL: func.func @states
// CHECK: scf.if
// CHECK: vector.store {{.*}} : memref<?xf32>, vector<8xf32>
fi_tile.kernel @states(%q: memref<?x2x8xf32>, %l: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x8xf32> -> tensor<8x8xf32>
    %b = fi_tile.load_rows %l[%it] group 2 : memref<?x2xf32> -> tensor<8x1xf32>
    %slot = fi_tile.item %it[slot]
    %zero = arith.constant 0 : index
    %split = arith.cmpi sge, %slot, %zero : index
    scf.if %split {
      fi_tile.store_state %a, %b to %work[%it] : tensor<8x8xf32>, tensor<8x1xf32>
    }
  }
  fi_tile.return
}

// Long rows: loops over chunks, four at once, and what is left; a reduction has a sum
// for each, and leaves out what lies behind the last column.
// CHECK-LABEL: func.func @long_rows
// CHECK: scf.for %[[C:.*]] = %c0 to %c1056 step %c32 {
// CHECK-COUNT-4: vector.store %{{.*}}, %{{.*}} : memref<8x1072xf32>, vector<8xf32>
// CHECK: }
// CHECK-COUNT-2: vector.store %{{.*}}, %{{.*}} : memref<8x1072xf32>, vector<8xf32>
// CHECK: %[[SUMS:.*]]:4 = scf.for %{{.*}} = %c0 to %c1056 step %c32 iter_args
// CHECK-COUNT-4: arith.mulf
// CHECK: scf.yield
// CHECK: arith.addf %[[SUMS]]#0
// CHECK: arith.select %{{.*}}, %{{.*}}, %{{.*}} : vector<8xi1>, vector<8xf32>
// CHECK: %[[A:.*]] = arith.addf %[[SUMS]]#1
// CHECK: arith.addf %[[A]], %[[SUMS]]#3
fi_tile.kernel @long_rows(%q: memref<?x1x1068xf32>, %o: memref<?x1xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x1x1068xf32> -> tensor<8x1068xf32>
    %y = arith.mulf %x, %x : tensor<8x1068xf32>
    %s = fi_tile.reduce add %y : tensor<8x1068xf32> -> tensor<8x1xf32>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<8x1xf32>, memref<?x1xf32>
  }
  fi_tile.return
}

// The manifest learns the bytes of scratch: a tile of 8 x 8, one of 8, each with a
// line more.
// CHECK: fi_tile.package @p {stages = [{bodies = [{scratch = 448 : i64, symbol = "states"}]}]}
fi_tile.package @p {stages = [{bodies = [{scratch = 0 : i64, symbol = "states"}]}]}
}
