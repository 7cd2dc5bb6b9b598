// Parts of tiles: halves, every other column, few columns of many; and loops over all
// keys of a tile, where the item has fewer rows.
// RUN: fi-opt %s --fi-tile-to-vector --canonicalize --cse --split-input-file | FileCheck %s

!kv = !fi.ragged_kv<2x32xbf16>
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// Read from the keys' memory, widened, two vectors of every other column from four.
// CHECK-LABEL: func.func @interleaved
// CHECK: %[[ROWS:.*]] = arith.constant 16 : index
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c1 {
// CHECK: %[[V:.*]] = vector.load %{{.*}} : memref<?xbf16>, vector<16xbf16>
// CHECK: %[[ODD:.*]] = vector.shuffle %[[V]], %[[V]] [1, 3, 5, 7, 9, 11, 13, 15] : vector<16xbf16>, vector<16xbf16>
// CHECK: %[[W:.*]] = arith.extf %[[ODD]] : vector<8xbf16> to vector<8xf32>
// CHECK: vector.store %[[W]], %[[PART:.*]][%{{.*}}, %{{.*}}] : memref<16x16xf32>, vector<8xf32>
// What is computed from them is computed for every key.
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c1 {
// CHECK: math.cos %{{.*}} : vector<8xf32>
// The result's rows are the item's.
// CHECK: scf.for %{{.*}} = %c0 to %[[ITEM:.*]] step %c4 {
// CHECK: vector.fma
fi_tile.kernel @interleaved(%q: memref<?x2x16xf32>, %k: memref<?x2x32xbf16>, %o: memref<?x2x16xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %view = fi_tile.view %k, %k : memref<?x2x32xbf16>, memref<?x2x32xbf16> -> !kv
  fi_tile.for_items %it in %work {
    %zero = arith.constant 0 : index
    %a = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<8x16xf32>
    %t = fi_tile.load_kv keys %view[%it, %zero] : !kv -> tensor<16x32xf32>
    %y = fi_tile.columns %t from 1 step 2 : tensor<16x32xf32> -> tensor<16x16xf32>
    %c = math.cos %y : tensor<16x16xf32>
    %s = fi_tile.dot %a, %c transpose : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
    fi_tile.store_rows %s, %o[%it] group 1 : tensor<8x16xf32>, memref<?x2x16xf32>
  }
  fi_tile.return
}
}

// -----

// A part that fills no vector is padded with zeros.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// CHECK-LABEL: func.func @half
// CHECK-DAG: %[[Z:.*]] = arith.constant dense<0.000000e+00> : vector<8xf32>
// CHECK: %[[V:.*]] = vector.load %{{.*}}[%{{.*}}, %c4{{.*}}] : memref<8x8xf32>, vector<4xf32>
// CHECK: %[[P:.*]] = vector.insert_strided_slice %[[V]], %[[Z]] {offsets = [0], strides = [1]} : vector<4xf32> into vector<8xf32>
// CHECK: vector.store %[[P]]
fi_tile.kernel @half(%q: memref<?x2x8xf32>, %o: memref<?x2x4xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 1 : memref<?x2x8xf32> -> tensor<8x8xf32>
    %y = fi_tile.columns %a from 4 step 1 : tensor<8x8xf32> -> tensor<8x4xf32>
    fi_tile.store_rows %y, %o[%it] group 1 : tensor<8x4xf32>, memref<?x2x4xf32>
  }
  fi_tile.return
}
}

// -----

// One column, far apart columns.
#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// CHECK-LABEL: func.func @few
// CHECK: vector.load %{{.*}}[%{{.*}}, %c17] : memref<8x32xf32>, vector<1xf32>
// CHECK: memref.load %{{.*}}[%{{.*}}, %c3]
// CHECK: memref.load %{{.*}}[%{{.*}}, %c31]
// CHECK: vector.from_elements %{{.*}}, %{{.*}} : vector<2xf32>
fi_tile.kernel @few(%q: memref<?x2x32xf32>, %o: memref<?x2x2xf32>, %l: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 1 : memref<?x2x32xf32> -> tensor<8x32xf32>
    %y = fi_tile.columns %a from 17 step 1 : tensor<8x32xf32> -> tensor<8x1xf32>
    %z = fi_tile.columns %a from 3 step 28 : tensor<8x32xf32> -> tensor<8x2xf32>
    fi_tile.store_rows %y, %l[%it] group 1 : tensor<8x1xf32>, memref<?x2xf32>
    fi_tile.store_rows %z, %o[%it] group 1 : tensor<8x2xf32>, memref<?x2x2xf32>
  }
  fi_tile.return
}
}
