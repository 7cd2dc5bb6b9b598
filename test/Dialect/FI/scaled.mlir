// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o %t.out

// Elements that are codes with scales, of every granularity.

!ix = tensor<?xi32>

// CHECK-DAG: !fi.paged_kv<16x8x128x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>
// CHECK-DAG: !fi.paged_kv<16x8x128x!fi.scaled<f8E5M2, per = head, by = f32>, HND, v = bf16>
// CHECK-DAG: !fi.paged_kv<16x8x128x!fi.scaled<i8, per = page, by = f32>, NHD, vo = 64, v = !fi.scaled<f8E4M3FN, per = token, by = f32>>
// CHECK-DAG: !fi.paged_kv<?x8x128x!fi.scaled<i8, per = token, by = f32>, HND, fused>
// CHECK-DAG: !fi.ragged_kv<8x128x!fi.scaled<f8E4M3FN, per = token, by = f32>, HND>

// CHECK-LABEL: fi.program @per_tensor
// CHECK: fi.view.paged %k, %v tables(%{{.*}}) scales(%ks, %vs : f32, f32) origin(%first : tensor<?xi32>) :
fi.program @per_tensor plan(%indptr: !ix, %pages: !ix, %last: !ix, %first: !ix)
    run(%k: memref<?x8x16x128xf8E4M3FN>, %v: memref<?x8x16x128xf8E4M3FN>, %ks: f32, %vs: f32) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks, %vs : f32, f32) origin(%first : !ix)
      : memref<?x8x16x128xf8E4M3FN>, memref<?x8x16x128xf8E4M3FN>
      -> !fi.paged_kv<16x8x128x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>
  fi.return
}

// CHECK-LABEL: fi.program @keys_only
// CHECK: scales(%ks : tensor<8xf32>)
fi.program @keys_only plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%k: memref<?x8x16x128xf8E5M2>, %v: memref<?x8x16x128xbf16>, %ks: tensor<8xf32>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks : tensor<8xf32>)
      : memref<?x8x16x128xf8E5M2>, memref<?x8x16x128xbf16>
      -> !fi.paged_kv<16x8x128x!fi.scaled<f8E5M2, per = head, by = f32>, HND, v = bf16>
  fi.return
}

// CHECK-LABEL: fi.program @page_and_token
// CHECK: scales(%ks, %vs : memref<?x8xf32>, tensor<?x16x8xf32>)
fi.program @page_and_token plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%k: memref<?x16x8x128xi8>, %v: memref<?x16x8x64xf8E4M3FN>, %ks: memref<?x8xf32>, %vs: tensor<?x16x8xf32>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks, %vs : memref<?x8xf32>, tensor<?x16x8xf32>)
      : memref<?x16x8x128xi8>, memref<?x16x8x64xf8E4M3FN>
      -> !fi.paged_kv<16x8x128x!fi.scaled<i8, per = page, by = f32>, NHD, vo = 64, v = !fi.scaled<f8E4M3FN, per = token, by = f32>>
  fi.return
}

// CHECK-LABEL: fi.program @fused
// CHECK: scales(%ks, %vs : tensor<?x8x?xf32>, tensor<?x8x?xf32>)
fi.program @fused plan(%indptr: !ix, %pages: !ix, %last: !ix)
    run(%kv: memref<?x2x8x?x128xi8>, %ks: tensor<?x8x?xf32>, %vs: tensor<?x8x?xf32>) {
  %view = fi.view.paged %kv tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks, %vs : tensor<?x8x?xf32>, tensor<?x8x?xf32>)
      : memref<?x2x8x?x128xi8>
      -> !fi.paged_kv<?x8x128x!fi.scaled<i8, per = token, by = f32>, HND, fused>
  fi.return
}

// CHECK-LABEL: fi.program @ragged
// CHECK: fi.view.ragged %k, %v indptr(%ip : tensor<?xi32>) scales(%ks, %vs : tensor<8x?xf32>, tensor<8x?xf32>) :
fi.program @ragged plan(%ip: !ix)
    run(%k: tensor<8x?x128xf8E4M3FN>, %v: tensor<8x?x128xf8E4M3FN>, %ks: tensor<8x?xf32>, %vs: tensor<8x?xf32>) {
  %kv = fi.view.ragged %k, %v indptr(%ip : !ix)
      scales(%ks, %vs : tensor<8x?xf32>, tensor<8x?xf32>)
      : tensor<8x?x128xf8E4M3FN>, tensor<8x?x128xf8E4M3FN>
      -> !fi.ragged_kv<8x128x!fi.scaled<f8E4M3FN, per = token, by = f32>, HND>
  fi.return
}

// CHECK-LABEL: fi.program @latents
// CHECK: scales(%ks : tensor<?x16xf32>) origin(%first : tensor<?xi32>) :
fi.program @latents plan(%indptr: !ix, %pages: !ix, %last: !ix, %first: !ix)
    run(%c: memref<?x16x64xf8E4M3FN>, %r: memref<?x16x16xf8E4M3FN>, %ks: tensor<?x16xf32>) {
  %kv = fi.view.latent %c, %r tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks : tensor<?x16xf32>) origin(%first : !ix)
      : memref<?x16x64xf8E4M3FN>, memref<?x16x16xf8E4M3FN>
      -> !fi.latent_kv<64+16x!fi.scaled<f8E4M3FN, per = token, by = f32>, page = 16>
  fi.return
}

// CHECK-LABEL: fi.program @blocks
// CHECK: scales(%ks, %vs : f32, tensor<?x2xf32>) :
fi.program @blocks plan(%ip: !ix, %rows: !ix, %columns: !ix)
    run(%k: tensor<?x2x64xi8>, %v: tensor<?x2x64xi8>, %ks: f32, %vs: tensor<?x2xf32>) {
  %kv = fi.view.bsr %k, %v indptr(%ip : !ix) blocks(%rows, %columns : !ix, !ix)
      scales(%ks, %vs : f32, tensor<?x2xf32>) : tensor<?x2x64xi8>, tensor<?x2x64xi8>
      -> !fi.bsr_kv<64x2x64x!fi.scaled<i8, per = tensor, by = f32>, v = !fi.scaled<i8, per = token, by = f32>, rows = 16>
  fi.return
}
