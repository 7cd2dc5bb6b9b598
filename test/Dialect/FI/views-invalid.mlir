// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message about views; the numbers are those of docs/spec.md.

// expected-error @+1 {{expected a page size of at least 1 or ?, but got 0 [KV1]}}
func.func private @f(!fi.paged_kv<0x2x8xf32, NHD>)

// -----

// expected-error @+1 {{expected at least 1 head, but got 0 [KV1]}}
func.func private @f(!fi.paged_kv<4x0x8xf32, NHD>)

// -----

// expected-error @+1 {{expected at least 1 head, but got 0 [KV1]}}
func.func private @f(!fi.ragged_kv<0x8xf32>)

// -----

// expected-error @+1 {{expected head dim of keys to be a multiple of 8 up to 512, but got 12 [KV2]}}
func.func private @f(!fi.paged_kv<4x2x12xf32, NHD>)

// -----

// expected-error @+1 {{expected head dim of keys to be a multiple of 8 up to 512, but got 520 [KV2]}}
func.func private @f(!fi.ragged_kv<2x520xf32>)

// -----

// expected-error @+1 {{expected head dim of values to be a multiple of 8 up to 512, but got 20 [KV2]}}
func.func private @f(!fi.ragged_kv<2x8xf32, vo = 20>)

// -----

// expected-error @+1 {{expected elements of type f32, f16, bf16, !fi.scaled or !fi.block_scaled, but got 'f64' [KV3]}}
func.func private @f(!fi.ragged_kv<2x8xf64>)

// -----

// expected-error @+1 {{expected elements of type f32, f16, bf16, !fi.scaled or !fi.block_scaled, but got 'i8' [KV3]}}
func.func private @f(!fi.paged_kv<4x2x8xf32, NHD, v = i8>)

// -----

// expected-error @+1 {{expected tables of i32 or i64, but got 'i16' [KV4]}}
func.func private @f(!fi.ragged_kv<2x8xf32, index = i16>)

// -----

// expected-error @+1 {{expected a fused pool to have keys and values of one dim and element, but got 8x'f32' and 16x'f32' [KV1]}}
func.func private @f(!fi.paged_kv<4x2x8xf32, NHD, vo = 16, fused>)

// -----

// expected-error @+1 {{expected page x heads x dim x element, but got 2 sizes}}
func.func private @f(!fi.paged_kv<4x2xf32, NHD>)

// -----

// expected-error @+1 {{expected heads x dim x element, but got 3 sizes}}
func.func private @f(!fi.ragged_kv<4x2x8xf32>)

// -----

// expected-error @+1 {{expected the order of a page, NHD or HND}}
func.func private @f(!fi.paged_kv<4x2x8xf32>)

// -----

// expected-error @+1 {{expected one of NHD, HND, 'vo = ', 'v = ', 'index = ', 'table = dense', 'fused', 'two_tables', but got 'fast'}}
func.func private @f(!fi.paged_kv<4x2x8xf32, NHD, fast>)

// -----

// expected-error @+1 {{expected one of NHD, HND, 'vo = ', 'v = ', 'index = ', but got 'fused'}}
func.func private @f(!fi.ragged_kv<2x8xf32, fused>)

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected 2 pools, of keys and values, but got 1 [KV5]}}
  %w = fi.view.paged %k tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected 1 fused pool, but got 2 [KV5]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !fi.paged_kv<4x2x8xf32, NHD, fused>
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: memref<?x2x4x8xf32>, %v: !pool) {
  // expected-error @+1 {{expected operand 'keys' of shape [?, 4, 2, 8] by the view's type, but got [?, 2, 4, 8] [KV5]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : memref<?x2x4x8xf32>, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: memref<?x4x2x16xf32>) {
  // expected-error @+1 {{expected operand 'values' of shape [?, 4, 2, 8] by the view's type, but got [?, 4, 2, 16] [KV5]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, memref<?x4x2x16xf32> -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected operand 'pool' of shape [?, 2, 4, 2, 8] by the view's type, but got [?, 4, 2, 8] [KV5]}}
  %w = fi.view.paged %k tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool -> !fi.paged_kv<4x2x8xf32, NHD, fused>
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: memref<?x4x2x8xbf16>) {
  // expected-error @+1 {{expected operand 'values' to hold 'f32' by the view's type, but got 'bf16' [KV5]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, memref<?x4x2x8xbf16> -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: memref<?x4x2x8xf32, strided<[?, ?, ?, 2]>>, %v: !pool) {
  // expected-error @+1 {{expected operand 'keys' to have a last dimension of stride 1, but got 'memref<?x4x2x8xf32, strided<[?, ?, ?, 2]>>' [KV8]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : memref<?x4x2x8xf32, strided<[?, ?, ?, 2]>>, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected 3 tables (indptr, pages, last), but got 2 [KV6]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg : !ix, !ix) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected 2 tables (pages, lengths), but got 3 [KV6]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !fi.paged_kv<4x2x8xf32, NHD, table = dense>
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected operand 'pages' to be of rank 2 with elements of type 'i32', but got 'tensor<?xi32>' [KV6]}}
  %w = fi.view.paged %k, %v tables(%pg, %last : !ix, !ix) : !pool, !pool -> !fi.paged_kv<4x2x8xf32, NHD, table = dense>
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: tensor<?xi64>) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected operand 'last' to be of rank 1 with elements of type 'i32', but got 'tensor<?xi64>' [KV6]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, tensor<?xi64>) : !pool, !pool -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, NHD>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix, %o: tensor<?x?xi32>) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected operand 'origin' to be of rank 1 with elements of type 'i32', but got 'tensor<?x?xi32>' [KV7]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) origin(%o : tensor<?x?xi32>) : !pool, !pool -> !kv
  fi.return
}

// -----

!t = tensor<?x2x8xf32>
fi.program @p plan() run(%k: !t) {
  // expected-error @+1 {{expected 2 pools, of keys and values, but got 1 [KV5]}}
  %w = fi.view.ragged %k : !t -> !fi.ragged_kv<2x8xf32>
  fi.return
}

// -----

!t = tensor<?x2x8xf32>
fi.program @p plan() run(%k: !t) {
  // expected-error @+1 {{expected operand 'keys' of shape [?, 4, 8] by the view's type, but got [?, 2, 8] [KV5]}}
  %w = fi.view.ragged %k, %k : !t, !t -> !fi.ragged_kv<4x8xf32>
  fi.return
}

// -----

!t = tensor<?x2x8xf32>
fi.program @p plan() run(%k: tensor<2x?x8xf32>, %v: tensor<?x2x16xf32>) {
  // expected-error @+1 {{expected operand 'values' of shape [2, ?, 8] by the view's type, but got [?, 2, 16] [KV5]}}
  %w = fi.view.ragged %k, %v : tensor<2x?x8xf32>, tensor<?x2x16xf32> -> !fi.ragged_kv<2x8xf32, HND>
  fi.return
}

// -----

!t = tensor<?x2x8xf32>
fi.program @p plan(%ip: tensor<?xi32>) run(%k: !t) {
  // expected-error @+1 {{expected operand 'indptr' to be of rank 1 with elements of type 'i64', but got 'tensor<?xi32>' [KV6]}}
  %w = fi.view.ragged %k, %k indptr(%ip : tensor<?xi32>) : !t, !t -> !fi.ragged_kv<2x8xf32, index = i64>
  fi.return
}

// -----

!t = tensor<?x2x8xf32>
fi.program @p plan(%o: tensor<?xi32>) run(%k: !t) {
  // expected-error @+1 {{expected operand 'origin' to be of rank 1 with elements of type 'i64', but got 'tensor<?xi32>' [KV7]}}
  %w = fi.view.ragged %k, %k origin(%o : tensor<?xi32>) : !t, !t -> !fi.ragged_kv<2x8xf32, index = i64>
  fi.return
}

// -----

// expected-error @+1 {{expected a page size of at least 1 or ?, but got 0 [KV1]}}
func.func private @f(!fi.latent_kv<64+8xf32, page = 0>)

// -----

// expected-error @+1 {{expected dim of latents to be a multiple of 8 up to 512, but got 520 [KV2]}}
func.func private @f(!fi.latent_kv<520+64xf32, page = 16>)

// -----

// expected-error @+1 {{expected dim of tails to be a multiple of 8 up to 512, but got 4 [KV2]}}
func.func private @f(!fi.latent_kv<64+4xf32, page = 16>)

// -----

// expected-error @+1 {{expected elements of type f32, f16, bf16 or !fi.scaled, but got 'f64' [KV3]}}
func.func private @f(!fi.latent_kv<64+8xf64, page = 16>)

// -----

// expected-error @+1 {{expected tables of i32 or i64, but got 'i16' [KV4]}}
func.func private @f(!fi.latent_kv<64+8xf32, page = 16, index = i16>)

// -----

// expected-error @+1 {{expected the keys of a page, 'page = '}}
func.func private @f(!fi.latent_kv<64+8xf32>)

// -----

// expected-error @+1 {{expected latent + tail x element, but got 2 sizes of tails}}
func.func private @f(!fi.latent_kv<64+8x8xf32, page = 16>)

// -----

// expected-error @+1 {{expected one of 'page = ', 'index = ', 'table = dense', but got 'fused'}}
func.func private @f(!fi.latent_kv<64+8xf32, fused>)

// -----

// expected-error @+1 {{expected blocks of 1 to 1048576 columns, but got 0 [KV12]}}
func.func private @f(!fi.bsr_kv<0x2x8xf32, rows = 16>)

// -----

// expected-error @+1 {{expected blocks of 1 to 1048576 rows, but got 0 [KV12]}}
func.func private @f(!fi.bsr_kv<16x2x8xf32>)

// -----

// expected-error @+1 {{expected at least 1 head, but got 0 [KV1]}}
func.func private @f(!fi.bsr_kv<16x0x8xf32, rows = 16>)

// -----

// expected-error @+1 {{expected head dim of keys to be a multiple of 8 up to 512, but got 12 [KV2]}}
func.func private @f(!fi.bsr_kv<16x2x12xf32, rows = 16>)

// -----

// expected-error @+1 {{expected columns x heads x dim x element, but got 2 sizes}}
func.func private @f(!fi.bsr_kv<16x8xf32, rows = 16>)

// -----

// expected-error @+1 {{expected one of NHD, HND, 'vo = ', 'v = ', 'index = ', 'rows = ', but got 'fused'}}
func.func private @f(!fi.bsr_kv<16x2x8xf32, fused>)

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected 4 tables (indptr, pages, value_pages, last), but got 3 [KV6]}}
  %w = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !fi.paged_kv<4x2x8xf32, NHD, two_tables>
  fi.return
}

// -----

!ix = tensor<?xi32>
!pool = memref<?x4x2x8xf32>
!table = tensor<?x?xi32>
fi.program @p plan(%pg: !table, %vp: !ix, %len: !ix) run(%k: !pool, %v: !pool) {
  // expected-error @+1 {{expected operand 'value_pages' to be of rank 2 with elements of type 'i32', but got 'tensor<?xi32>' [KV6]}}
  %w = fi.view.paged %k, %v tables(%pg, %vp, %len : !table, !ix, !ix) : !pool, !pool -> !fi.paged_kv<4x2x8xf32, NHD, table = dense, two_tables>
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%c: !c, %r: !r) {
  // expected-error @+1 {{expected 2 pools, of latents and tails, but got 1 [KV5]}}
  %w = fi.view.latent %c tables(%ip, %pg, %last : !ix, !ix, !ix) : !c -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%c: !c, %r: !r) {
  // expected-error @+1 {{expected operand 'tails' of shape [?, 4, 8] by the view's type, but got [?, 4, 64] [KV5]}}
  %w = fi.view.latent %c, %c tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !c -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%c: !c, %r: !r) {
  // expected-error @+1 {{expected operand 'latents' of shape [?, 4, 64] by the view's type, but got [?, 4, 8] [KV5]}}
  %w = fi.view.latent %r, %c tables(%ip, %pg, %last : !ix, !ix, !ix) : !r, !c -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%c: !c, %r: !r) {
  // expected-error @+1 {{expected 3 tables (indptr, pages, last), but got 2 [KV6]}}
  %w = fi.view.latent %c, %r tables(%ip, %pg : !ix, !ix) : !c, !r -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!kv = !fi.bsr_kv<16x2x8xf32, rows = 4>
fi.program @p plan(%ip: !ix, %jx: tensor<?xi64>) run(%k: !t) {
  // expected-error @+1 {{expected 2 tables of blocks (row_indptr, columns), but got 1 [KV13]}}
  %w = fi.view.bsr %k, %k indptr(%ip : !ix) blocks(%ip : !ix) : !t, !t -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!kv = !fi.bsr_kv<16x2x8xf32, rows = 4>
fi.program @p plan(%ip: !ix, %jx: tensor<?xi64>) run(%k: !t) {
  // expected-error @+1 {{expected operand 'columns' to be of rank 1 with elements of type 'i32', but got 'tensor<?xi64>' [KV13]}}
  %w = fi.view.bsr %k, %k indptr(%ip : !ix) blocks(%ip, %jx : !ix, tensor<?xi64>) : !t, !t -> !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!kv = !fi.bsr_kv<16x2x8xf32, rows = 4>
fi.program @p plan(%ip: !ix, %jx: tensor<?xi64>) run(%k: !t) {
  // expected-error @+1 {{expected 2 pools, of keys and values, but got 1 [KV5]}}
  %w = fi.view.bsr %k indptr(%ip : !ix) blocks(%ip, %ip : !ix, !ix) : !t -> !kv
  fi.return
}
