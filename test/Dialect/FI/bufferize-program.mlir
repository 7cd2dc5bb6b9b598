// Programs are left as they are, also beside functions that are bufferized.
// RUN: fi-opt %s --one-shot-bufferize="allow-unknown-ops" | FileCheck %s
// RUN: fi-opt %s --one-shot-bufferize="bufferize-function-boundaries allow-unknown-ops" | FileCheck %s --check-prefixes=CHECK,FUNC

!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

// CHECK-LABEL: fi.program @p
// CHECK-NEXT: %[[KV:.*]] = fi.view.ragged %k, %k : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !kv
// CHECK-NEXT: %[[S:.*]] = fi.attention %q over %[[KV]] {{.*}} captures(%{{.*}} = %bias : tensor<4xf32>)
// CHECK-NEXT: fi.load %{{.*}} : tensor<4xf32>
// CHECK: } : tensor<?x4x8xf32> over !kv -> !state
// CHECK: %[[O:.*]] = fi.finalize %[[S]] : !state -> tensor<?x4x8xf32>
// CHECK-NEXT: fi.return %[[O]] : tensor<?x4x8xf32>
fi.program @p run(%q: !q, %k: !t, %bias: tensor<4xf32>) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %s = fi.attention %q over %kv scale(1.0) captures(%b = %bias : tensor<4xf32>)
      score(%x: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %y = fi.load %b[%qh] : tensor<4xf32>
        %z = arith.addf %x, %y : f32
        fi.yield %z : f32
      } : !q over !kv -> !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
  %o = fi.finalize %s : !fi.state<?x4x8xf32, #fi.softmax<base = 2>> -> !q
  fi.return %o : !q
}

// FUNC-LABEL: func.func @f
// FUNC: memref.store
func.func @f(%t: tensor<4xf32> {bufferization.writable = true}, %i: index, %x: f32) -> tensor<4xf32> {
  %r = tensor.insert %x into %t[%i] : tensor<4xf32>
  return %r : tensor<4xf32>
}
