// Short spellings of rotary embeddings become the regions that they stand for.
// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s | fi-opt | FileCheck %s

!ix = tensor<?xi32>
!x = tensor<?x4x64xbf16>

// CHECK-LABEL: fi.program @plain
fi.program @plain run(%x: !x, %p: !ix) -> (!x) {
  // CHECK: fi.rope %x at(%p : tensor<?xi32>) pair<half> dims(32) transform(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[I:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[P:.*]]: index) {
  // CHECK: arith.index_cast %[[I]] : index to i32
  // -2 log2(10000) / 32
  // CHECK: arith.constant -8.3048{{.*}}e-01 : f32
  // CHECK: %[[RATE:.*]] = math.exp2
  // CHECK: arith.index_cast %[[P]] : index to i32
  // CHECK: %[[ANGLE:.*]] = arith.mulf %{{.*}}, %[[RATE]] : f32
  // CHECK: math.cos %[[ANGLE]] : f32
  // CHECK: math.sin %[[ANGLE]] : f32
  %y = fi.rope %x at(%p : !ix) pair<half> dims(32) transform(#fi.rotary<10000.0>) : !x -> !x
  fi.return %y : !x
}

// CHECK-LABEL: fi.program @scaled
fi.program @scaled run(%x: !x, %p: !ix, %g: tensor<?xf32>) -> (!x, !x, !x) {
  // CHECK: fi.rope
  // CHECK: arith.constant 2.500000e-01 : f32
  %a = fi.rope %x at(%p : !ix) pair<interleaved> transform(#fi.rotary<10000.0, #fi.linear<factor = 4.0>>) : !x -> !x
  // Turns less 1, over 3: 8192 / (6 pi) and -1 / 3.
  // CHECK: fi.rope
  // CHECK: arith.constant 434.59{{.*}} : f32
  // CHECK: arith.constant -0.3333{{.*}} : f32
  // CHECK: arith.constant 1.250000e-01 : f32
  %b = fi.rope %x at(%p : !ix) pair<half>
      transform(#fi.rotary<500000.0, #fi.llama3<factor = 8.0, low = 1.0, high = 4.0, context = 8192>>) : !x -> !x
  // A ramp from pair 10 to pair 23, and 0.1 ln(4) + 1.
  // CHECK: fi.rope
  // CHECK: arith.constant 1.000000e+01 : f32
  // CHECK: arith.constant 0.0769{{.*}} : f32
  // CHECK: arith.constant 1.1386{{.*}} : f32
  %c = fi.rope %x at(%p : !ix) pair<half>
      transform(#fi.rotary<10000.0, #fi.yarn<factor = 4.0, fast = 32.0, slow = 1.0, context = 4096>>) : !x -> !x
  fi.return %a, %b, %c : !x, !x, !x
}

!q  = tensor<?x4x32xf32>
!kv = tensor<?x2x32xf32>
!v  = !fi.ragged_kv<2x32xf32, NHD>

// Attention has its view's dim in pairs, an append that of what it stores.
// CHECK-LABEL: fi.program @attention
fi.program @attention plan(%qo: !ix, %kvi: !ix) run(%q: !q, %k: !kv, %w: !kv, %g: f32) -> (!q) {
  %view = fi.view.ragged %k, %w indptr(%kvi : !ix) : !kv, !kv -> !v
  // CHECK: fi.attention
  // CHECK-SAME: pair<half> captures(%{{.*}} = %g : f32) query(
  // CHECK: arith.constant -8.3048{{.*}}e-01 : f32
  // CHECK: } key(
  // CHECK: arith.constant -8.3048{{.*}}e-01 : f32
  // CHECK: } score(
  %o = fi.attention %q rows(%qo : !ix) over %view scale(0.125) pair<half> captures(%c = %g : f32)
      query(#fi.rotary<10000.0>) key(#fi.rotary<10000.0>)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
    %t = arith.mulf %s, %c : f32
    fi.yield %t : f32
  } : !q over !v -> !q
  fi.return %o : !q
}

!m  = memref<?x2x32xf32>
// CHECK-LABEL: fi.program @append
fi.program @append plan(%qo: !ix, %kvi: !ix) run(%nk: !kv, %nv: !kv, %k: !m, %w: !m) {
  %view = fi.view.ragged %k, %w indptr(%kvi : !ix) : !m, !m -> !v
  // CHECK: fi.append
  // CHECK-SAME: pair<half> dims(16) key(
  // -2 log2(10000) / 16
  // CHECK: arith.constant -1.66096{{.*}} : f32
  fi.append %nk, %nv rows(%qo : !ix) to %view pair<half> dims(16) key(#fi.rotary<10000.0>) : !kv, !kv to !v
  fi.return
}
