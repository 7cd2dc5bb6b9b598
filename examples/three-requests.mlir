//===- three-requests.mlir - three requests of a serving batch ------------===//
//
// Causal attention with grouped queries over a paged cache, in f32: 4 query heads
// share 2 KV heads of 64 elements; a page holds 4 keys, tokens before heads (NHD).
//
//   fi-run examples/three-requests.mlir --compare=reference --print
//
// runs it on the batch of three-requests.json, which lies beside this file:
//
//            new rows   keys in the cache   pages       visible to the rows
//   R0       3          6                   7 2         4 5 6
//   R1       1          2                   11          2
//   R2       4          9                   3 14 6      6 7 8 9
//
// The last row of a request stands at its last key, so the first of R2's four rows
// sees 9 - 3 = 6 keys.
//
//===----------------------------------------------------------------------===//

// Tables say which pages a request has: 32-bit integers, lengths known per batch.
!ix   = tensor<?xi32>
// A pool of pages, shared by all requests: [pages, keys of a page, heads, dim].
!pool = memref<?x4x2x64xf32>
// The type of the view says what the kernel is compiled for.
!kv   = !fi.paged_kv<4x2x64xf32, NHD>
// Rows of all requests behind each other: [rows, query heads, dim].
!q    = tensor<?x4x64xf32>
!lse  = tensor<?x4xf32>

fi.program @three_requests
    // What a plan needs; it serves every layer of the model.
    plan(%qo_indptr: !ix, %kv_indptr: !ix, %kv_indices: !ix, %last_page_len: !ix)
    // What each layer brings.
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !lse) {
  %kv = fi.view.paged %k, %v tables(%kv_indptr, %kv_indices, %last_page_len : !ix, !ix, !ix) : !pool, !pool -> !kv
  // The scale is 1 / sqrt(64). The second result is the log-sum-exp in base 2.
  %o, %lse = fi.attention %q rows(%qo_indptr : !ix) over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q, !lse
  fi.return %o, %lse : !q, !lse
}
