// RUN: fi-opt %s --fi-canonicalize --fi-choose-schedule --fi-to-fi-tile --split-input-file | FileCheck %s

// Every layout is loads through a view of its type: only the view knows where rows are.

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
  fi.program @two_tables
      plan(%qo: tensor<?xi32>, %ip: tensor<?xi32>, %pg: tensor<?xi32>, %vp: tensor<?xi32>, %last: tensor<?xi32>)
      run(%q: tensor<?x4x32xf32>, %k: memref<?x2x8x32xf32>, %v: memref<?x2x8x32xf32>)
      -> (tensor<?x4x32xf32>) {
    %kv = fi.view.paged %k, %v tables(%ip, %pg, %vp, %last : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
        : memref<?x2x8x32xf32>, memref<?x2x8x32xf32> -> !fi.paged_kv<8x2x32xf32, HND, two_tables>
    %o = fi.attention %q rows(%qo : tensor<?xi32>) over %kv scale(0.2)
        : tensor<?x4x32xf32> over !fi.paged_kv<8x2x32xf32, HND, two_tables> -> tensor<?x4x32xf32>
    fi.return %o : tensor<?x4x32xf32>
  }
}
// CHECK-LABEL: fi_tile.kernel @two_tables_attention0_rows16
// CHECK: fi_tile.view %k, %v pages(%pg, %vp : memref<?xi32, strided<[1]>>, memref<?xi32, strided<[1]>>)
// CHECK: fi_tile.package @two_tables
// CHECK-SAME: pages = "pg"
// CHECK-SAME: value_pages = "vp"

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
  fi.program @latent
      plan(%qo: tensor<?xi32>, %ip: tensor<?xi32>, %pg: tensor<?xi32>, %last: tensor<?xi32>)
      run(%qn: tensor<?x4x64xf32>, %qr: tensor<?x4x8xf32>, %c: memref<?x4x64xf32>, %r: memref<?x4x8xf32>)
      -> (tensor<?x4x64xf32>) {
    %kv = fi.view.latent %c, %r tables(%ip, %pg, %last : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
        : memref<?x4x64xf32>, memref<?x4x8xf32> -> !fi.latent_kv<64+8xf32, page = 4>
    %o = fi.attention %qn, %qr rows(%qo : tensor<?xi32>) over %kv scale(0.2)
        : tensor<?x4x64xf32>, tensor<?x4x8xf32> over !fi.latent_kv<64+8xf32, page = 4>
        -> tensor<?x4x64xf32>
    fi.return %o : tensor<?x4x64xf32>
  }
}
// A key is multiplied in two parts, and its rows are the values: loaded once.
// CHECK-LABEL: fi_tile.kernel @latent_attention0_rows16
// CHECK: %[[Q:.*]] = fi_tile.load_rows %qn
// CHECK: %[[R:.*]] = fi_tile.load_rows %qr
// CHECK: fi_tile.for_keys
// CHECK: %[[K:.*]] = fi_tile.load_kv keys
// CHECK: %[[T:.*]] = fi_tile.load_kv tail
// CHECK: fi_tile.dot %[[Q]], %[[K]] transpose
// CHECK: fi_tile.dot %[[R]], %[[T]] transpose
// CHECK-NOT: fi_tile.load_kv
// CHECK: fi_tile.update {{.*}} values(%[[K]])
// CHECK: fi_tile.package @latent
// CHECK-SAME: query_tail = "qr"
// CHECK-SAME: order = "ND"
// CHECK-SAME: tail = "r"

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
  fi.program @blocks
      plan(%qo: tensor<?xi32>, %ip: tensor<?xi32>, %rp: tensor<?xi32>, %cols: tensor<?xi32>)
      run(%q: tensor<?x4x32xf32>, %k: tensor<?x2x32xf32>, %v: tensor<?x2x32xf32>)
      -> (tensor<?x4x32xf32>) {
    %kv = fi.view.bsr %k, %v indptr(%ip : tensor<?xi32>) blocks(%rp, %cols : tensor<?xi32>, tensor<?xi32>)
        : tensor<?x2x32xf32>, tensor<?x2x32xf32> -> !fi.bsr_kv<16x2x32xf32, rows = 5>
    %o = fi.attention %q rows(%qo : tensor<?xi32>) over %kv scale(0.2)
        : tensor<?x4x32xf32> over !fi.bsr_kv<16x2x32xf32, rows = 5> -> tensor<?x4x32xf32>
    fi.return %o : tensor<?x4x32xf32>
  }
}
// Tiles of keys are no longer than a block.
// CHECK-LABEL: fi_tile.kernel @blocks_attention0_rows16
// CHECK-SAME: tile_keys = 16
// CHECK: fi_tile.package @blocks
// CHECK-SAME: blocks = {columns = 16 : i64, rows = 5 : i64}
// CHECK-SAME: columns = "cols"
// CHECK-SAME: row_indptr = "rp"
