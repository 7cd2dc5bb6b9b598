// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message about elements that are codes with scales.

// expected-error @+1 {{expected a storage type of f8E4M3FN, f8E5M2 or i8, but got 'f16' [QNT1]}}
func.func private @f(!fi.scaled<f16, per = tensor, by = f32>)

// -----

// expected-error @+1 {{expected scales of f32, but got 'bf16' [QNT2]}}
func.func private @f(!fi.scaled<f8E4M3FN, per = tensor, by = bf16>)

// -----

// expected-error @+1 {{expected one of tensor, head, page, token, but got 'row'}}
func.func private @f(!fi.scaled<f8E4M3FN, per = row, by = f32>)

// -----

// expected-error @+1 {{expected scales per tensor, head or token where there are no pages, but got '!fi.scaled<f8E4M3FN, per = page, by = f32>' [QNT3]}}
func.func private @f(!fi.ragged_kv<2x8x!fi.scaled<f8E4M3FN, per = page, by = f32>>)

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xf8E4M3FN>
!kv = !fi.paged_kv<4x2x8x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool, %s: f32) {
  // expected-error @+1 {{expected 2 operands 'scales', those of keys and of values that the view's type asks for, but got 1 [QNT4]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s : f32) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool, %s: f32) {
  // expected-error @+1 {{expected 0 operands 'scales', those of keys and of values that the view's type asks for, but got 1 [QNT4]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s : f32) : !pool, !pool -> !fi.paged_kv<4x2x8xf32, HND>
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xf8E4M3FN>
!kv = !fi.paged_kv<4x2x8x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool, %s: f32, %t: tensor<2xf32>) {
  // expected-error @+1 {{expected the scales of values to be a number of f32, one for each tensor, but got 'tensor<2xf32>' [QNT4]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s, %t : f32, tensor<2xf32>) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xf8E4M3FN>
!kv = !fi.paged_kv<4x2x8x!fi.scaled<f8E4M3FN, per = head, by = f32>, HND>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool, %s: f32, %t: tensor<2xf32>) {
  // expected-error @+1 {{expected the scales of keys to be f32 of shape [2], one for each head, but got 'f32' [QNT4]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s, %t : f32, tensor<2xf32>) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xi8>
!kv = !fi.paged_kv<4x2x8x!fi.scaled<i8, per = token, by = f32>, HND>
!s = tensor<?x4x2xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool, %s: !s) {
  // expected-error @+1 {{expected the scales of keys to be f32 of shape [?, 2, 4], one for each token, but got 'tensor<?x4x2xf32>' [QNT4]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s, %s : !s, !s) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xi8>
!kv = !fi.paged_kv<4x2x8x!fi.scaled<i8, per = page, by = f32>, HND>
!s = tensor<?x2x1xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool, %s: !s) {
  // expected-error @+1 {{expected the scales of keys to be f32 of shape [?, 2], one for each page, but got 'tensor<?x2x1xf32>' [QNT4]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s, %s : !s, !s) : !pool, !pool -> !kv
  fi.return
}

// -----

!t = tensor<?x2x8xf8E5M2>
!kv = !fi.ragged_kv<2x8x!fi.scaled<f8E5M2, per = token, by = f32>>
!s = tensor<?x3xf32>
fi.program @p plan() run(%k: !t, %s: !s) {
  // expected-error @+1 {{expected the scales of keys to be f32 of shape [?, 2], one for each token, but got 'tensor<?x3xf32>' [QNT4]}}
  %w = fi.view.ragged %k, %k scales(%s, %s : !s, !s) : !t, !t -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x2x4x8xf16>
!kv = !fi.paged_kv<4x2x8x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, HND>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %s: f32) {
  // expected-error @+1 {{expected operand 'keys' to hold 'f8E4M3FN' by the view's type, but got 'f16' [KV5]}}
  %w = fi.view.paged %k, %k tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s, %s : f32, f32) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!s = tensor<?x4x1xf32>
!kv = !fi.latent_kv<64+16x!fi.scaled<f8E4M3FN, per = token, by = f32>, page = 4>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%c: memref<?x4x64xf8E4M3FN>, %r: memref<?x4x16xf8E4M3FN>, %s: !s) {
  // expected-error @+1 {{expected the scales of keys to be f32 of shape [?, 4], one for each token, but got 'tensor<?x4x1xf32>' [QNT4]}}
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) scales(%s : !s) : memref<?x4x64xf8E4M3FN>, memref<?x4x16xf8E4M3FN> -> !kv
  fi.return
}

// -----

// expected-error @+1 {{expected elements of type f32, f16, bf16 or !fi.scaled, but got '!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>' [KV3]}}
func.func private @f(!fi.latent_kv<64+16x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>, page = 4>)

// -----

// expected-error @+1 {{expected scales per tensor, head or token where there are no pages, but got '!fi.scaled<i8, per = page, by = f32>' [QNT3]}}
func.func private @f(!fi.bsr_kv<64x2x64x!fi.scaled<i8, per = page, by = f32>, rows = 16>)
