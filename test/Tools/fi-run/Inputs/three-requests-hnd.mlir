// The twin of examples/three-requests.mlir with heads before tokens in a page.
!ix   = tensor<?xi32>
!pool = memref<?x2x4x64xf32>
!kv   = !fi.paged_kv<4x2x64xf32, HND>
!q    = tensor<?x4x64xf32>
!lse  = tensor<?x4xf32>

fi.program @three_requests
    plan(%qo_indptr: !ix, %kv_indptr: !ix, %kv_indices: !ix, %last_page_len: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !lse) {
  %kv = fi.view.paged %k, %v tables(%kv_indptr, %kv_indices, %last_page_len : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo_indptr : !ix) over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q, !lse
  fi.return %o, %lse : !q, !lse
}
