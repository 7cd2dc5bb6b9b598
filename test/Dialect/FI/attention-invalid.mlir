// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message about fi.attention and fi.load; the numbers are those
// of docs/spec.md.

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: tensor<?x?x8xf32>, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected operand 'query' to be [rows, heads, dim] with heads and dim known, but got 'tensor<?x?x8xf32>' [ATT1]}}
  %o = fi.attention %q over %kv scale(1.0) : tensor<?x?x8xf32> over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: tensor<?x8xf32>, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected operand 'query' to be [rows, heads, dim] with heads and dim known, but got 'tensor<?x8xf32>' [ATT1]}}
  %o = fi.attention %q over %kv scale(1.0) : tensor<?x8xf32> over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: tensor<?x3x8xf32>, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected the number of query heads to be a multiple of 2 KV heads, but got 3 [ATT3]}}
  %o = fi.attention %q over %kv scale(1.0) : tensor<?x3x8xf32> over !kv -> tensor<?x3x8xf32>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: tensor<?x4x16xf32>, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected head dim of operand 'query' to be that of the view's keys, 8, but got 16 [ATT4]}}
  %o = fi.attention %q over %kv scale(1.0) : tensor<?x4x16xf32> over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %r: tensor<?x?xi32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected operand 'rows' to be of rank 1, but got 'tensor<?x?xi32>' [ATT7]}}
  %o = fi.attention %q rows(%r : tensor<?x?xi32>) over %kv scale(1.0) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %r: tensor<i32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected operand 'positions' to be of rank 1, but got 'tensor<i32>' [ATT7]}}
  %o = fi.attention %q over %kv at(%r : tensor<i32>) scale(1.0) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected a state of 4x8 by #fi.softmax<base = 2>, but got '!fi.state<?x4x8xf32, #fi.softmax<base = e>>' [ATT6]}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !fi.state<?x4x8xf32, #fi.softmax<base = e>>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected a state of 4x8 by #fi.softmax<base = 2>, but got '!fi.state<?x2x8xf32, #fi.softmax<base = 2>>' [ATT6]}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %s: tensor<4xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected no operand 'sink' where the result is a state: give it to fi.finalize [ATT9]}}
  %o = fi.attention %q over %kv scale(1.0) sink(%s : tensor<4xf32>) : !q over !kv -> !st
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected operand 'segments' exactly with a segmented state [ATT8]}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !seg
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %g = fi.segments over %kv split(#fi.split<balanced>) : !kv
  // expected-error @+1 {{expected operand 'segments' exactly with a segmented state [ATT8]}}
  %o = fi.attention %q over %kv segments(%g) scale(1.0) : !q over !kv -> !st
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %g = fi.segments over %kv split(#fi.split<balanced>) : !kv
  // expected-error @+1 {{expected operand 'segments' exactly with a segmented state [ATT8]}}
  %o = fi.attention %q over %kv segments(%g) scale(1.0) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %m: memref<?x4x8xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected no 'outs' where the result is a state [ATT17]}}
  %o = fi.attention %q over %kv scale(1.0) outs(%m : memref<?x4x8xf32>) : !q over !kv -> !st
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: memref<?x4x8xf32>, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected results in 'outs' where operand 'query' is a memref, but got 1 results [ATT17]}}
  %o = fi.attention %q over %kv scale(1.0) : memref<?x4x8xf32> over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %m: memref<?x4x8xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 'outs' to be a tensor of the type of each result where operand 'query' is a tensor, ('tensor<?x4x8xf32>'), but got ('memref<?x4x8xf32>') [ATT17]}}
  %o = fi.attention %q over %kv scale(1.0) outs(%m : memref<?x4x8xf32>) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: memref<?x4x8xf32>, %k: !t, %m: !q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 'outs' to be memrefs, but got 'tensor<?x4x8xf32>' [ATT17]}}
  fi.attention %q over %kv scale(1.0) outs(%m : !q) : memref<?x4x8xf32> over !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: memref<?x4x8xf32>, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 1 destination (output) or 2 (output, statistic), but got 0 [ATT6]}}
  fi.attention %q over %kv scale(1.0) : memref<?x4x8xf32> over !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 1 result (output) or 2 (output, statistic), but got 3 [ATT6]}}
  %o:3 = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q, !l, !l
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected result 'output' to be [rows, 4, 8] of f32, f16 or bf16, but got 'tensor<?x4x16xf32>' [ATT6]}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> tensor<?x4x16xf32>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected result 'output' to be [rows, 4, 8] of f32, f16 or bf16, but got 'tensor<?x4x8xi32>' [ATT6]}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> tensor<?x4x8xi32>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected result 'statistic' to be [rows, 4] of f32, but got 'tensor<?x4xf16>' [ATT6]}}
  %o:2 = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q, tensor<?x4xf16>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %s: tensor<2xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected operand 'sink' to have one logit for each of 4 query heads, but got 'tensor<2xf32>' [ATT10]}}
  %o = fi.attention %q over %kv scale(1.0) sink(%s : tensor<2xf32>) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected a normaliser, but got #fi.causal [ATT9]}}
  %o = fi.attention %q over %kv scale(1.0) normalise(#fi.causal) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected a score attribute, but got #fi.causal [ATT15]}}
  %o = fi.attention %q over %kv scale(1.0) score(#fi.causal) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected mask attributes, but got #fi.softcap<3.000000e+00> [ATT15]}}
  %o = fi.attention %q over %kv scale(1.0) mask(#fi.softcap<3.0>) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected one list of mask attributes}}
  %o = fi.attention %q over %kv scale(1.0) mask(#fi.causal) mask(#fi.causal) : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 'half' or 'interleaved', but got 'third'}}
  %o = fi.attention %q over %kv scale(1.0) pair<third> : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 'pair' exactly with a region 'query' or 'key' [ATT19]}}
  %o = fi.attention %q over %kv scale(1.0) pair<half> : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected 'pair' exactly with a region 'query' or 'key' [ATT19]}}
  %o = fi.attention %q over %kv scale(1.0) query(%x: f32, %y: f32, %p: index, %r: index, %h: index, %at: index) { fi.yield %x, %y : f32, f32 } : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected region 'mask' to take (index, index, index, index, index), but got (index, index) [ATT11]}}
  %o = fi.attention %q over %kv scale(1.0) mask(%a: index, %b: index) {
    %t = arith.constant true
    fi.yield %t : i1
  } : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %s: tensor<4xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected region 'score' to take (f32, index, index, index, index, index, tensor<4xf32>), but got (f32, tensor<4xf32>) [ATT11]}}
  %o = fi.attention %q over %kv scale(1.0) captures(%c = %s : tensor<4xf32>) score(%x: f32) {
    fi.yield %x : f32
  } : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected region 'mask' to yield (i1) [ATT12]}}
  %o = fi.attention %q over %kv scale(1.0) mask(%r: index, %qh: index, %kh: index, %qp: index, %kp: index) {
    fi.yield %kp : index
  } : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected region 'score' to yield (f32) [ATT12]}}
  %o = fi.attention %q over %kv scale(1.0) score(%s: f32, %r: index, %qh: index, %kh: index, %qp: index, %kp: index) {
    fi.yield %s, %s : f32, f32
  } : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected region 'key' to yield (f32, f32) [ATT12]}}
  %o = fi.attention %q over %kv scale(1.0) pair<half> key(%x: f32, %y: f32, %p: index, %r: index, %h: index, %at: index) {
    fi.yield %x : f32
  } : !q over !kv -> !q
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) score(%s: f32, %r: index, %qh: index, %kh: index, %qp: index, %kp: index) {
    %c = arith.constant 0 : index
    // expected-error @+1 {{expected only arith, math, index, scf.if and fi.load in region 'score' of fi.attention [ATT13]}}
    %d = tensor.from_elements %s : tensor<1xf32>
    fi.yield %s : f32
  } : !q over !kv -> !q
  fi.return
}

// -----

// The text of a region cannot name a value from outside; the generic form can, and
// the op is isolated from above.
fi.program @outside run(%q: tensor<?x2x8xf32>, %w: index) {
  %kv = fi.view.ragged %q, %q : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
  // expected-note @+1 {{required by region isolation constraints}}
  %o = "fi.attention"(%q, %kv) <{normaliser = #fi.softmax<base = 2>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0 : f32}> ({}, {}, {}, {
  ^bb0(%a: index, %b: index, %c: index, %d: index, %e: index):
    // expected-error @+1 {{using value defined outside the region}}
    %m = arith.cmpi sle, %e, %w : index
    fi.yield %m : i1
  }) : (tensor<?x2x8xf32>, !fi.ragged_kv<2x8xf32>) -> tensor<?x2x8xf32>
  fi.return
}

// -----

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
fi.program @p run(%q: !q, %k: !t, %d: tensor<?x?xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) captures(%c = %d : tensor<?x?xf32>) score(%s: f32, %r: index, %qh: index, %kh: index, %qp: index, %kp: index) {
    // expected-error @+1 {{expected 2 indices into operand 'source', but got 1 [LD2]}}
    %x = fi.load %c[%kp] : tensor<?x?xf32>
    fi.yield %x : f32
  } : !q over !kv -> !q
  fi.return
}

// -----

fi.program @scale_twice run(%q: tensor<?x2x8xf32>, %sc: f32) {
  %kv = fi.view.ragged %q, %q : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
  // expected-error @+1 {{expected 'scale' as a number or as a value [ATT5]}}
  %o = "fi.attention"(%q, %kv, %sc) <{normaliser = #fi.softmax<base = 2>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 1, 0, 0, 0, 0>, scale = 1.0 : f32}> ({}, {}, {}, {}) : (tensor<?x2x8xf32>, !fi.ragged_kv<2x8xf32>, f32) -> tensor<?x2x8xf32>
  fi.return
}

// -----

fi.program @no_scale run(%q: tensor<?x2x8xf32>) {
  %kv = fi.view.ragged %q, %q : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
  // expected-error @+1 {{expected 'scale' as a number or as a value [ATT5]}}
  %o = "fi.attention"(%q, %kv) <{normaliser = #fi.softmax<base = 2>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 0, 0, 0, 0, 0>}> ({}, {}, {}, {}) : (tensor<?x2x8xf32>, !fi.ragged_kv<2x8xf32>) -> tensor<?x2x8xf32>
  fi.return
}

// -----

fi.program @score_twice run(%q: tensor<?x2x8xf32>) {
  %kv = fi.view.ragged %q, %q : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
  // expected-error @+1 {{expected 'score' as an attribute or as a region, but got both [ATT16]}}
  %o = "fi.attention"(%q, %kv) <{normaliser = #fi.softmax<base = 2>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0 : f32, scoreAttr = #fi.softcap<3.0>}> ({}, {}, {
  ^bb0(%s: f32, %a: index, %b: index, %c: index, %d: index, %e: index):
    fi.yield %s : f32
  }, {}) : (tensor<?x2x8xf32>, !fi.ragged_kv<2x8xf32>) -> tensor<?x2x8xf32>
  fi.return
}

// -----

fi.program @two_blocks run(%q: tensor<?x2x8xf32>) {
  %kv = fi.view.ragged %q, %q : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
  // expected-error @+1 {{expected region 'score' to have one block, but got 2 [ATT11]}}
  %o = "fi.attention"(%q, %kv) <{normaliser = #fi.softmax<base = 2>, operandSegmentSizes = array<i32: 1, 0, 1, 0, 0, 0, 0, 0, 0, 0>, scale = 1.0 : f32}> ({}, {}, {
  ^bb0(%s: f32, %a: index, %b: index, %c: index, %d: index, %e: index):
    cf.br ^bb1
  ^bb1:
    fi.yield %s : f32
  }, {}) : (tensor<?x2x8xf32>, !fi.ragged_kv<2x8xf32>) -> tensor<?x2x8xf32>
  fi.return
}

// -----

!kv = !fi.ragged_kv<2x8xf32>
!q = tensor<?x4x8xf32>
func.func @f(%q: !q, %kv: !kv, %sink: tensor<4xf32>) {
  // expected-error @+1 {{expected a normaliser that takes a sink, but got #fi.sigmoid<bias = -1.000000e+00> [ATT10]}}
  %o = fi.attention %q over %kv scale(1.0) sink(%sink : tensor<4xf32>) normalise(#fi.sigmoid<bias = -1.0>) : !q over !kv -> !q
  return
}

// -----

!kv = !fi.ragged_kv<2x8xf32>
!q = tensor<?x4x8xf32>
func.func @f(%q: !q, %kv: !kv) {
  // expected-error @+1 {{expected a state of 4x8 by #fi.sum, but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>>' [ATT6]}}
  %o = fi.attention %q over %kv scale(1.0) normalise(#fi.sum) : !q over !kv -> !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
  return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
!qn = tensor<?x4x64xf32>
!qr = tensor<?x4x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%qn: !qn, %qr: !qr, %c: !c, %r: !r) {
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  // expected-error @+1 {{expected head dim of operand 'query' to be that of the view's keys, 72, but got 64 [ATT4]}}
  %o = fi.attention %qn over %w scale(1.0) : !qn over !kv -> !qn
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
!qn = tensor<?x4x64xf32>
!qr = tensor<?x4x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%qn: !qn, %qr: !qr, %c: !c, %r: !r) {
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  // expected-error @+1 {{expected head dim of operand 'query' to be that of the view's keys, 64 without their tails, but got 8 [ATT4]}}
  %o = fi.attention %qr, %qr over %w scale(1.0) : !qr, !qr over !kv -> !qn
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
!qn = tensor<?x4x64xf32>
!qr = tensor<?x4x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%qn: !qn, %qr: !qr, %c: !c, %r: !r) {
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  // expected-error @+1 {{expected the second query operand to be like the first, of [?, 4, 8] x 'f32', but got 'tensor<?x4x64xf32>' [ATT23]}}
  %o = fi.attention %qn, %qn over %w scale(1.0) : !qn, !qn over !kv -> !qn
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
!qn = tensor<?x4x64xf32>
!qr = tensor<?x4x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%qn: !qn, %qr: !qr, %h: tensor<?x4x8xf16>, %c: !c, %r: !r) {
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  // expected-error @+1 {{expected the second query operand to be like the first, of [?, 4, 8] x 'f32', but got 'tensor<?x4x8xf16>' [ATT23]}}
  %o = fi.attention %qn, %h over %w scale(1.0) : !qn, tensor<?x4x8xf16> over !kv -> !qn
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
!qn = tensor<?x4x64xf32>
!qr = tensor<?x4x8xf32>
fi.program @p plan(%ip: !ix, %pg: !ix, %last: !ix) run(%qn: !qn, %qr: !qr, %c: !c, %r: !r) {
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  // expected-error @+1 {{expected no region 'query' or 'key' over a view whose keys have tails: transform queries and keys before [ATT24]}}
  %o = fi.attention %qn, %qr over %w scale(1.0) pair<half>
      query(%x: f32, %y: f32, %p: index, %req: index, %h: index, %pos: index) {
        fi.yield %x, %y : f32, f32
      } : !qn, !qr over !kv -> !qn
  fi.return
}

// -----

!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
fi.program @p plan() run(%q: !t, %k: !t) {
  %w = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-error @+1 {{expected no second query operand over a view whose keys have no tail, but got 'tensor<?x2x8xf32>' [ATT23]}}
  %o = fi.attention %q, %q over %w scale(1.0) : !t, !t over !kv -> !t
  fi.return
}
