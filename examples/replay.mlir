// The program that fi-replay runs by default: the attention of one layer for one
// step of a serving engine. `fi-replay --print-program` prints it for other sizes;
// `fi-replay examples/replay.mlir` runs it as it stands here, or as you change it.
//
// A step brings the rows of some requests: one for each request that decodes, a
// chunk for each prompt. Their keys and values go to pages first, as the last keys
// of their request, so that a row sees itself. `qo`, `indptr`, `pages` and `last`
// are known when the step is planned; one plan serves every layer of a model.
!kv   = !fi.paged_kv<16x8x128xf32, HND>
!pool = memref<?x8x16x128xf32>
!ix   = tensor<?xi32>
!q    = tensor<?x32x128xf32>
!new  = tensor<?x8x128xf32>
!lse  = tensor<?x32xf32>

fi.program @replay
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %newk: !new, %newv: !new, %k: !pool, %v: !pool) -> (!q, !lse) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      : !pool, !pool -> !kv
  fi.append %newk, %newv rows(%qo : !ix) to %kv : !new, !new to !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(8.838835e-02)
      mask(#fi.causal) : !q over !kv -> !q, !lse
  fi.return %o, %lse : !q, !lse
}
