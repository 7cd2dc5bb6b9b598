// Dims of results resolve to dims of what they come from.
// RUN: fi-opt %s --resolve-shaped-type-result-dims --canonicalize --cse --split-input-file | FileCheck %s

!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>

// CHECK-LABEL: func.func @attention
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x8xf32>,
// CHECK-DAG: %[[C4:.*]] = arith.constant 4 : index
// CHECK-DAG: %[[N:.*]] = tensor.dim %[[Q]], %{{.*}} : tensor<?x4x8xf32>
// CHECK-NOT: fi.attention
// CHECK: return %[[N]], %[[N]], %[[C4]]
func.func @attention(%q: !q, %k: !t) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o, %l = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q, !l
  %a = tensor.dim %o, %c0 : !q
  %b = tensor.dim %l, %c0 : !l
  %c = tensor.dim %o, %c1 : !q
  return %a, %b, %c : index, index, index
}

// -----

!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>

// CHECK-LABEL: func.func @finalize
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x8xf32>, %{{.*}}: tensor<?x2x8xf32>, %[[ROWS:.*]]: index)
// CHECK: %[[N:.*]] = tensor.dim %[[Q]], %{{.*}} : tensor<?x4x8xf32>
// CHECK: return %[[N]], %[[N]], %[[ROWS]]
func.func @finalize(%q: !q, %k: !t, %rows: index) -> (index, index, index) {
  %c0 = arith.constant 0 : index
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %s = fi.attention %q over %kv scale(1.0) : !q over !kv -> !st
  %e = fi.empty rows(%rows) : !st
  %m = fi.merge %s, %e : !st
  %o, %l = fi.finalize %m : !st -> !q, !l
  %n = fi.finalize %e : !st -> !q
  %a = tensor.dim %o, %c0 : !q
  %b = tensor.dim %l, %c0 : !l
  %c = tensor.dim %n, %c0 : !q
  return %a, %b, %c : index, index, index
}

// -----

!q = tensor<?x4x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>

// Nothing is known of a state from elsewhere, but for its destination.
// CHECK-LABEL: func.func @argument
// CHECK-SAME: (%[[S:.*]]: !state, %[[D:.*]]: tensor<?x4x8xf32>)
// CHECK: %[[O:.*]] = fi.finalize %[[S]] : !state
// CHECK: %[[A:.*]] = tensor.dim %[[O]]
// CHECK: %[[B:.*]] = tensor.dim %[[D]]
// CHECK: return %[[A]], %[[B]]
func.func @argument(%s: !st, %d: !q) -> (index, index) {
  %c0 = arith.constant 0 : index
  %o = fi.finalize %s : !st -> !q
  %p = fi.finalize %s outs(%d : !q) : !st -> !q
  %a = tensor.dim %o, %c0 : !q
  %b = tensor.dim %p, %c0 : !q
  return %a, %b : index, index
}
