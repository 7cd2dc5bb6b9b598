!ix = tensor<?xi32>
!t = tensor<?x2x32xf32>
!kv = !fi.ragged_kv<2x32xf32>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
  fi.program @layer plan(%rows: !ix, %keys: !ix) run(%q: !t, %k: !t, %v: !t) -> (!t) {
    %kv = fi.view.ragged %k, %v indptr(%keys : !ix) : !t, !t -> !kv
    %o = fi.attention %q rows(%rows : !ix) over %kv scale(0.25) mask(#fi.causal) : !t over !kv -> !t
    fi.return %o : !t
  }
}
