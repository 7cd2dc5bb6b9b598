// A program of the user's own: another mask and a soft cap, no append, no lse.
// RUN: fi-replay %s --backend=reference --trace=%S/Inputs/small.csv --steps=0 \
// RUN:   --in-flight=3 --budget=16 --pages=40 --checks=4 | FileCheck %s

// CHECK: program  f16, 4/2 heads x 16, page 4 NHD, attention; pages filled by the host
// CHECK: requests   6 admitted, 6 completed, at most 3 in flight
// CHECK: checked

!kv   = !fi.paged_kv<4x2x16xf16, NHD>
!pool = memref<?x4x2x16xf16>
!ix   = tensor<?xi32>
!q    = tensor<?x4x16xf16>

fi.program @windowed
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.25) score(#fi.softcap<30.0>)
      mask(#fi.causal, #fi.window<left = 10>) : !q over !kv -> !q
  fi.return %o : !q
}
