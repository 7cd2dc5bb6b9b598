// What is not bufferized says so.
// RUN: fi-opt %s --one-shot-bufferize=bufferize-function-boundaries --split-input-file --verify-diagnostics

!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
func.func @escapes(%k: !t) -> !kv {
  // expected-error @+1 {{expected a view of tensors to be used by fi.attention, fi.append and fi.segments only, but it is used by 'func.return': its buffers may be gone or overwritten there}}
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  // expected-note @+1 {{make the view there, or make it from memrefs}}
  return %kv : !kv
}

// -----

!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
func.func @strides(%q: tensor<?x4x8xf32>, %k: !t) -> tensor<?x4x8xf32> {
  // expected-error @below {{expected the buffer of pool 0 to have a last dimension of stride 1, but got 'memref<?x2x8xf32, strided<[?, ?, ?], offset: ?>>': bufferize function boundaries with identity-layout-map [KV8]}}
  // expected-error @below {{failed to bufferize op}}
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) : tensor<?x4x8xf32> over !kv -> tensor<?x4x8xf32>
  return %o : tensor<?x4x8xf32>
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @rows(%s: !st) -> tensor<?x4x8xf32> {
  // expected-error @below {{has results whose sizes are not known here, where the state was not made; give their places in 'outs'}}
  // expected-error @below {{failed to bufferize op}}
  %o = fi.finalize %s : !st -> tensor<?x4x8xf32>
  return %o : tensor<?x4x8xf32>
}

// -----

!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
// expected-error @below {{is not bufferized: its tensors become buffers when it is lowered to level 2; leave it as it is with 'allow-unknown-ops'}}
// expected-error @below {{failed to bufferize op}}
fi.program @p run(%q: !q, %k: !t) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}
