// A mask of packed bits.
!ix   = tensor<?xi32>
!pool = memref<?x2x16x32xf32>
!kv   = !fi.paged_kv<16x2x32xf32, HND>
!q    = tensor<?x4x32xf32>
fi.program @packed
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix,
         %bits: !ix, %first: !ix, %keys: !ix, %begin: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.17677669)
      captures(%words = %bits : !ix, %f = %first : !ix, %n = %keys : !ix, %b = %begin : !ix)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %p = fi.load %f[%req] : !ix
        %w = fi.load %n[%req] : !ix
        %o = fi.load %b[%req] : !ix
        %pi = arith.index_cast %p : i32 to index
        %wi = arith.index_cast %w : i32 to index
        %oi = arith.index_cast %o : i32 to index
        %i = arith.subi %qp, %pi : index
        %before = arith.muli %i, %wi : index
        %start = arith.addi %oi, %before : index
        %bit = arith.addi %start, %kp : index
        %c32 = arith.constant 32 : index
        %word = arith.divui %bit, %c32 : index
        %in = arith.remui %bit, %c32 : index
        %s = arith.index_cast %in : index to i32
        %x = fi.load %words[%word] : !ix
        %y = arith.shrui %x, %s : i32
        %m = arith.trunci %y : i32 to i1
        fi.yield %m : i1
      }
      : !q over !kv -> !q
  fi.return %o : !q
}
