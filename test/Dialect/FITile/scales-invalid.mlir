// RUN: fi-opt %s --split-input-file --verify-diagnostics

!kv = !fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
func.func @f(%s: memref<?x2xf8E4M3FN>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{expected scales of rank 3 of 'f8E4M3FN', but got 'memref<?x2xf8E4M3FN>' [TILE34]}}
  %r = fi_tile.load_scales keys %s, %kv[%it, %t] : memref<?x2xf8E4M3FN>, !kv -> tensor<16x32xf32>
  return
}

// -----

!kv = !fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
func.func @f(%s: memref<?x2x2xf8E4M3FN>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{expected a tile of 32 columns of f32 by scales of 2 blocks, but got 'tensor<16x2xf32>' by 'memref<?x2x2xf8E4M3FN>' [TILE34]}}
  %r = fi_tile.load_scales keys %s, %kv[%it, %t] : memref<?x2x2xf8E4M3FN>, !kv -> tensor<16x2xf32>
  return
}

// -----

!kv = !fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
func.func @f(%s: memref<?x2x2xf8E4M3FN>, %x: tensor<16x32xf32>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{expected scales of blocks of the view, and a tile of 32 columns of i8, but got 'tensor<16x32xf32>' for 'memref<?x2x2xf8E4M3FN>' of '!fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>' [TILE37]}}
  fi_tile.store_scales keys %x to %s, %kv[%it, %t] : tensor<16x32xf32>, memref<?x2x2xf8E4M3FN>, !kv
  return
}

// -----

func.func @f(%x: tensor<16x40xf32>) {
  // expected-error @below {{expected a tile of f32 with a multiple of 16 columns, but got 'tensor<16x40xf32>' [TILE38]}}
  %m = fi_tile.block_max %x block 16 : tensor<16x40xf32>
  return
}

// -----

!kv = !fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
func.func @f(%x: tensor<16x16xi8>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{'fi_tile.store_kv' op expected whole rows where two codes share a byte, but got columns of '!fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>' [TILE5]}}
  fi_tile.store_kv keys %x, %kv[%it, %t] from %t step 1 : tensor<16x16xi8>, !kv
  return
}
