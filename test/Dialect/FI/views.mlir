// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null

// Every option of the view types, in any order on the way in and in one order on
// the way out.

!ix = tensor<?xi32>
!jx = tensor<?xi64>

// CHECK-DAG: !fi.paged_kv<16x8x128xbf16, HND>
// CHECK-DAG: !fi.paged_kv<?x1x8xf32, NHD>
// CHECK-DAG: !fi.paged_kv<1x2x192xf16, NHD, vo = 128, v = f32, index = i64, table = dense>
// CHECK-DAG: !fi.paged_kv<5x2x512xf32, NHD, fused>
// CHECK-DAG: !fi.ragged_kv<8x128xbf16>
// CHECK-DAG: !fi.ragged_kv<8x128xbf16, HND, vo = 64, v = f16, index = i64>

// CHECK-LABEL: fi.program @paged
// CHECK: fi.view.paged %k, %v tables(%indptr, %pages, %last : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>) : memref<?x8x16x128xbf16>, memref<?x8x16x128xbf16> ->
fi.program @paged plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%k: memref<?x8x16x128xbf16>, %v: memref<?x8x16x128xbf16>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      : memref<?x8x16x128xbf16>, memref<?x8x16x128xbf16> -> !fi.paged_kv<16x8x128xbf16, HND>
  fi.return
}

// CHECK-LABEL: fi.program @dynamic_page
// CHECK: fi.view.paged %{{.*}} origin(%first : memref<?xi32>) : tensor<?x?x1x8xf32>,
fi.program @dynamic_page plan(%indptr: !ix, %pages: !ix, %last: !ix, %first: memref<?xi32>)
    run(%k: tensor<?x?x1x8xf32>, %v: tensor<?x?x1x8xf32>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      origin(%first : memref<?xi32>)
      : tensor<?x?x1x8xf32>, tensor<?x?x1x8xf32> -> !fi.paged_kv<?x1x8xf32, NHD>
  fi.return
}

// CHECK-LABEL: fi.program @dense_table
// CHECK: fi.view.paged %{{.*}} tables(%pages, %lengths : tensor<?x?xi64>, tensor<?xi64>)
fi.program @dense_table plan(%pages: tensor<?x?xi64>, %lengths: !jx)
    run(%k: memref<?x1x2x192xf16>,
        %v: memref<?x1x2x128xf32, strided<[?, ?, ?, 1], offset: ?>>) {
  %kv = fi.view.paged %k, %v tables(%pages, %lengths : tensor<?x?xi64>, !jx)
      : memref<?x1x2x192xf16>, memref<?x1x2x128xf32, strided<[?, ?, ?, 1], offset: ?>>
      -> !fi.paged_kv<1x2x192xf16, NHD, table = dense, index = i64, v = f32, vo = 128>
  fi.return
}

// CHECK-LABEL: fi.program @fused
// CHECK: fi.view.paged %kv tables(%{{.*}}) : tensor<?x2x5x2x512xf32> ->
fi.program @fused plan(%indptr: !ix, %pages: !ix, %last: !ix) run(%kv: tensor<?x2x5x2x512xf32>) {
  %view = fi.view.paged %kv tables(%indptr, %pages, %last : !ix, !ix, !ix)
      : tensor<?x2x5x2x512xf32> -> !fi.paged_kv<5x2x512xf32, fused, NHD>
  fi.return
}

// CHECK-LABEL: fi.program @contiguous
// CHECK: fi.view.ragged %k, %v : tensor<100x8x128xbf16>, tensor<?x8x128xbf16> ->
fi.program @contiguous run(%k: tensor<100x8x128xbf16>, %v: tensor<?x8x128xbf16>) {
  %kv = fi.view.ragged %k, %v : tensor<100x8x128xbf16>, tensor<?x8x128xbf16>
      -> !fi.ragged_kv<8x128xbf16, NHD>
  fi.return
}

// CHECK-LABEL: fi.program @ragged
// CHECK: fi.view.ragged %k, %v indptr(%ip : tensor<?xi64>) origin(%first : tensor<?xi64>) :
fi.program @ragged plan(%ip: !jx, %first: !jx)
    run(%k: tensor<8x?x128xbf16>, %v: tensor<8x?x64xf16>) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !jx) origin(%first : !jx)
      : tensor<8x?x128xbf16>, tensor<8x?x64xf16>
      -> !fi.ragged_kv<8x128xbf16, HND, vo = 64, v = f16, index = i64>
  fi.return
}
