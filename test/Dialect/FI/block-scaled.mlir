// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o %t.out

// Elements of 4 bits whose blocks have scales.

!ix = tensor<?xi32>

// CHECK-DAG: !fi.paged_kv<16x8x128x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>, HND>
// CHECK-DAG: !fi.paged_kv<16x8x128x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN, per = head>, NHD, vo = 64, v = !fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>>
// CHECK-DAG: !fi.paged_kv<?x8x128x!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>, HND, fused>
// CHECK-DAG: !fi.ragged_kv<8x128x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND, v = !fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>

// CHECK-LABEL: fi.program @nvfp4
// CHECK: scales(%kb, %ks, %vb, %vs : memref<?x8x16x8xf8E4M3FN>, f32, tensor<?x8x16x8xf8E4M3FN>, f32)
fi.program @nvfp4 plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%k: memref<?x8x16x64xi8>, %v: memref<?x8x16x64xi8>, %kb: memref<?x8x16x8xf8E4M3FN>, %ks: f32, %vb: tensor<?x8x16x8xf8E4M3FN>, %vs: f32) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%kb, %ks, %vb, %vs : memref<?x8x16x8xf8E4M3FN>, f32, tensor<?x8x16x8xf8E4M3FN>, f32)
      : memref<?x8x16x64xi8>, memref<?x8x16x64xi8>
      -> !fi.paged_kv<16x8x128x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>, HND>
  fi.return
}

// CHECK-LABEL: fi.program @both
// CHECK: scales(%kb, %ks, %vb : tensor<?x16x8x8xf8E4M3FN>, tensor<8xf32>, tensor<?x16x8x2xf8E8M0FNU>)
fi.program @both plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%k: memref<?x16x8x64xi8>, %v: memref<?x16x8x32xi8>, %kb: tensor<?x16x8x8xf8E4M3FN>, %ks: tensor<8xf32>, %vb: tensor<?x16x8x2xf8E8M0FNU>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%kb, %ks, %vb : tensor<?x16x8x8xf8E4M3FN>, tensor<8xf32>, tensor<?x16x8x2xf8E8M0FNU>)
      : memref<?x16x8x64xi8>, memref<?x16x8x32xi8>
      -> !fi.paged_kv<16x8x128x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN, per = head>, NHD, vo = 64, v = !fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>>
  fi.return
}

// CHECK-LABEL: fi.program @fused
// CHECK: scales(%kb, %vb : tensor<?x8x?x4xf8E8M0FNU>, tensor<?x8x?x4xf8E8M0FNU>)
fi.program @fused plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%kv: memref<?x2x8x?x64xi8>, %kb: tensor<?x8x?x4xf8E8M0FNU>, %vb: tensor<?x8x?x4xf8E8M0FNU>) {
  %view = fi.view.paged %kv tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%kb, %vb : tensor<?x8x?x4xf8E8M0FNU>, tensor<?x8x?x4xf8E8M0FNU>)
      : memref<?x2x8x?x64xi8>
      -> !fi.paged_kv<?x8x128x!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>, HND, fused>
  fi.return
}

// CHECK-LABEL: fi.program @ragged
// CHECK: scales(%ks, %vb, %vs : f32, tensor<8x?x8xf8E4M3FN>, f32)
fi.program @ragged plan(%ip: !ix)
    run(%k: tensor<8x?x128xf8E4M3FN>, %v: tensor<8x?x64xi8>, %ks: f32, %vb: tensor<8x?x8xf8E4M3FN>, %vs: f32) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix)
      scales(%ks, %vb, %vs : f32, tensor<8x?x8xf8E4M3FN>, f32)
      : tensor<8x?x128xf8E4M3FN>, tensor<8x?x64xi8>
      -> !fi.ragged_kv<8x128x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND, v = !fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
  fi.return
}
