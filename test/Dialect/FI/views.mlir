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
// CHECK-DAG: !fi.paged_kv<4x2x8xf32, HND, two_tables>
// CHECK-DAG: !fi.paged_kv<4x2x8xf32, NHD, index = i64, table = dense, fused, two_tables>
// CHECK-DAG: !fi.latent_kv<512+64xbf16, page = 64>
// CHECK-DAG: !fi.latent_kv<256+8xf16, page = ?, index = i64, table = dense>
// CHECK-DAG: !fi.bsr_kv<64x8x128xbf16, rows = 16>
// CHECK-DAG: !fi.bsr_kv<1x8x128xbf16, HND, vo = 64, v = f16, index = i64, rows = 1>
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

// CHECK-LABEL: fi.program @two_tables
// CHECK: fi.view.paged %k, %v tables(%indptr, %pages, %value_pages, %last : {{.*}}) :
fi.program @two_tables plan(%indptr: !ix, %pages: !ix, %value_pages: !ix, %last: !ix)
    run(%k: memref<?x2x4x8xf32>, %v: memref<?x2x4x8xf32>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %value_pages, %last : !ix, !ix, !ix, !ix)
      : memref<?x2x4x8xf32>, memref<?x2x4x8xf32> -> !fi.paged_kv<4x2x8xf32, HND, two_tables>
  fi.return
}

// CHECK-LABEL: fi.program @two_dense_tables
// CHECK: fi.view.paged %kv tables(%pages, %value_pages, %lengths : {{.*}}) :
fi.program @two_dense_tables
    plan(%pages: tensor<?x?xi64>, %value_pages: tensor<?x?xi64>, %lengths: !jx)
    run(%kv: memref<?x2x4x2x8xf32>) {
  %view = fi.view.paged %kv tables(%pages, %value_pages, %lengths : tensor<?x?xi64>, tensor<?x?xi64>, !jx)
      : memref<?x2x4x2x8xf32>
      -> !fi.paged_kv<4x2x8xf32, NHD, two_tables, fused, table = dense, index = i64>
  fi.return
}

// CHECK-LABEL: fi.program @latent
// CHECK: fi.view.latent %c, %r tables(%indptr, %pages, %last : {{.*}}) origin(%first : tensor<?xi32>) : memref<?x64x512xbf16>, memref<?x64x64xbf16> ->
fi.program @latent plan(%indptr: !ix, %pages: !ix, %last: !ix, %first: !ix)
    run(%c: memref<?x64x512xbf16>, %r: memref<?x64x64xbf16>) {
  %kv = fi.view.latent %c, %r tables(%indptr, %pages, %last : !ix, !ix, !ix)
      origin(%first : !ix)
      : memref<?x64x512xbf16>, memref<?x64x64xbf16> -> !fi.latent_kv<512+64xbf16, page = 64>
  fi.return
}

// One pool of latents and tails, given as two parts of its columns.
// CHECK-LABEL: fi.program @latent_dense
// CHECK: fi.view.latent %c, %r tables(%pages, %lengths : {{.*}}) : memref<?x?x256xf16, strided<[?, 264, 1]>>, memref<?x?x8xf16, strided<[?, 264, 1], offset: 256>> ->
fi.program @latent_dense plan(%pages: tensor<?x?xi64>, %lengths: !jx)
    run(%c: memref<?x?x256xf16, strided<[?, 264, 1]>>,
        %r: memref<?x?x8xf16, strided<[?, 264, 1], offset: 256>>) {
  %kv = fi.view.latent %c, %r tables(%pages, %lengths : tensor<?x?xi64>, !jx)
      : memref<?x?x256xf16, strided<[?, 264, 1]>>, memref<?x?x8xf16, strided<[?, 264, 1], offset: 256>>
      -> !fi.latent_kv<256+8xf16, table = dense, index = i64, page = ?>
  fi.return
}

// CHECK-LABEL: fi.program @blocks
// CHECK: fi.view.bsr %k, %v indptr(%ip : tensor<?xi32>) blocks(%rp, %cols : tensor<?xi32>, tensor<?xi32>) origin(%first : tensor<?xi32>) : tensor<?x8x128xbf16>, tensor<?x8x128xbf16> ->
fi.program @blocks plan(%ip: !ix, %rp: !ix, %cols: !ix, %first: !ix)
    run(%k: tensor<?x8x128xbf16>, %v: tensor<?x8x128xbf16>) {
  %kv = fi.view.bsr %k, %v indptr(%ip : !ix) blocks(%rp, %cols : !ix, !ix) origin(%first : !ix)
      : tensor<?x8x128xbf16>, tensor<?x8x128xbf16> -> !fi.bsr_kv<64x8x128xbf16, rows = 16>
  fi.return
}

// CHECK-LABEL: fi.program @blocks_of_one_request
// CHECK: fi.view.bsr %k, %v blocks(%rp, %cols : tensor<?xi64>, tensor<?xi64>) :
fi.program @blocks_of_one_request plan(%rp: !jx, %cols: !jx)
    run(%k: tensor<8x?x128xbf16>, %v: tensor<8x?x64xf16>) {
  %kv = fi.view.bsr %k, %v blocks(%rp, %cols : !jx, !jx)
      : tensor<8x?x128xbf16>, tensor<8x?x64xf16>
      -> !fi.bsr_kv<1x8x128xbf16, rows = 1, HND, index = i64, vo = 64, v = f16>
  fi.return
}
