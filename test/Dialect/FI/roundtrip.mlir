// RUN: fi-opt %s -o %t.text
// RUN: fi-opt %t.text -o %t.again && diff %t.text %t.again
// RUN: fi-opt %s --emit-bytecode -o %t.bc && fi-opt %t.bc -o %t.frombc && diff %t.text %t.frombc
// RUN: fi-opt %s --mlir-print-op-generic -o %t.generic && fi-opt %t.generic -o %t.fromgeneric && diff %t.text %t.fromgeneric
// RUN: fi-opt %s --verify-roundtrip -o /dev/null
// RUN: fi-opt %s | FileCheck %s

// Whole programs come back to the same text from text, bytecode and generic form.

// CHECK: fi.program @llama plan(%qo: tensor<?xi32>, %indptr: tensor<?xi32>, %pages: tensor<?xi32>, %last: tensor<?xi32>) run(%q: tensor<?x32x128xbf16>,
// CHECK: fi.program @documents
// CHECK: fi.program @cascade
// CHECK: fi.program @split

!kv   = !fi.paged_kv<16x8x128xbf16, HND>
!pool = memref<?x8x16x128xbf16>
!ix   = tensor<?xi32>
!q    = tensor<?x32x128xbf16>
!lse  = tensor<?x32xf32>

fi.program @llama
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q, !lse) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(8.838835e-02) mask(#fi.causal) : !q over !kv -> !q, !lse
  fi.return %o, %lse : !q, !lse
}

fi.program @documents
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix, %doc: tensor<?x?xi32>)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32, %slope: tensor<32xf32>) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(%sc)
      captures(%sl = %slope : tensor<32xf32>, %dc = %doc : tensor<?x?xi32>)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %d = arith.subi %kp, %qp : index
        %i = arith.index_cast %d : index to i32
        %f = arith.sitofp %i : i32 to f32
        %m = fi.load %sl[%qh] : tensor<32xf32>
        %b = arith.mulf %m, %f : f32
        %t = arith.addf %s, %b : f32
        fi.yield %t : f32
      }
      mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %a = fi.load %dc[%req, %qp] : tensor<?x?xi32>
        %c = fi.load %dc[%req, %kp] : tensor<?x?xi32>
        %same = arith.cmpi eq, %a, %c : i32
        fi.yield %same : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}
!st = !fi.state<?x32x128xf32, #fi.softmax<base = 2>>

fi.program @cascade
    plan(%all: !ix, %qo: !ix, %pi: !ix, %pp: !ix, %pl: !ix, %si: !ix, %sp: !ix, %sl: !ix, %first: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sc: f32, %sink: tensor<32xf32>) -> (!q, !lse) {
  %prefix = fi.view.paged %k, %v tables(%pi, %pp, %pl : !ix, !ix, !ix) : !pool, !pool -> !kv
  %suffix = fi.view.paged %k, %v tables(%si, %sp, %sl : !ix, !ix, !ix) origin(%first : !ix) : !pool, !pool -> !kv
  %shared = fi.attention %q rows(%all : !ix) over %prefix scale(%sc) : !q over !kv -> !st
  %own = fi.attention %q rows(%qo : !ix) over %suffix scale(%sc) mask(#fi.causal, #fi.window<left = 127>) : !q over !kv -> !st
  %s = fi.merge %shared, %own : !st
  %o, %lse = fi.finalize %s sink(%sink : tensor<32xf32>) : !st -> !q, !lse
  fi.return %o, %lse : !q, !lse
}
!seg = !fi.state<?x32x128xf32, #fi.softmax<base = 2>, segmented>

fi.program @split
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %nk: tensor<?x8x128xbf16>, %ap: !ix) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nk rows(%ap : !ix) to %kv : tensor<?x8x128xbf16>, tensor<?x8x128xbf16> to !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 2048>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(8.838835e-02) score(#fi.softcap<30.0>) mask(#fi.any<#fi.causal, #fi.window<left = 3, right = 4>>) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %o = fi.finalize %s : !st -> !q
  fi.return %o : !q
}
