// RUN: fi-opt %s --fi-outline-programs --split-input-file --verify-diagnostics

!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

func.func @leaves(%q: !q) -> !kv {
  // expected-error @+1 {{expected '!fi.ragged_kv<4x8xf32>' to be used by ops of fi of the same block only, but it is used by 'func.return'}}
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  // expected-note @+1 {{it is used here}}
  return %kv : !kv
}

// -----

!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

// expected-note @+1 {{it comes from here}}
func.func @comes(%q: !q, %kv: !kv) -> !q {
  // expected-error @+1 {{expected an op of fi in this function to make '!fi.ragged_kv<4x8xf32>'}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  return %o : !q
}

// -----

!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

func.func @blocks(%q: !q, %c: i1) -> !q {
  // expected-error @+1 {{expected '!fi.ragged_kv<4x8xf32>' to be used by ops of fi of the same block only, but it is used by 'fi.attention'}}
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  %r = scf.if %c -> !q {
    // expected-note @+1 {{it is used here}}
    %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
    scf.yield %o : !q
  } else {
    scf.yield %q : !q
  }
  return %r : !q
}

// -----

!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

func.func @sooner(%q: !q) -> (!q, !q) {
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  // expected-error @+1 {{expected its result to be used behind the last op of its program}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  // expected-note @+1 {{it is used here}}
  %d = tensor.cast %o : !q to tensor<?x4x8xf32>
  %e = tensor.cast %d : tensor<?x4x8xf32> to !q
  // expected-note @+1 {{the program's last op}}
  %o2 = fi.attention %e over %kv scale(1.0) : !q over !kv -> !q
  return %o, %o2 : !q, !q
}

// -----

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!pool = memref<?x2x4x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, HND>

func.func @memory(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix, %n: tensor<?x2x8xf32>, %q: !q, %k: !pool, %x: f32) -> !q {
  %c0 = arith.constant 0 : index
  %kv = fi.view.paged %k, %k tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  // expected-note @+1 {{the first of them}}
  fi.append %n, %n rows(%qo : !ix) to %kv : tensor<?x2x8xf32>, tensor<?x2x8xf32> to !kv
  // expected-error @+1 {{has effects on memory between ops of fi that make one program}}
  memref.store %x, %k[%c0, %c0, %c0, %c0] : !pool
  // expected-note @+1 {{the last of them}}
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(1.0) : !q over !kv -> !q
  return %o : !q
}

// -----

!ix = tensor<2xi32>
!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

// A table of elements of the queries: what is planned would wait for them.
// expected-note @+1 {{see here}}
func.func @computed(%q: !q) -> !q {
  %c0 = arith.constant 0 : index
  %rows = tensor.generate {
  ^bb0(%i: index):
    %x = tensor.extract %q[%i, %c0, %c0] : !q
    %n = arith.fptosi %x : f32 to i32
    tensor.yield %n : i32
  } : !ix
  %kv = fi.view.ragged %q, %q indptr(%rows : !ix) : !q, !q -> !kv
  // expected-error @+1 {{expected what its plan is made of to be known without running, but 'indptr' depends on 'k', a run argument [CAL6]}}
  %o = fi.attention %q rows(%rows : !ix) over %kv scale(1.0) : !q over !kv -> !q
  return %o : !q
}

// -----

!ix = tensor<2xi32>
!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

func.func @loaded(%q: !q, %m: memref<i32>) -> !q {
  // expected-note @+1 {{see here}}
  %n = memref.load %m[] : memref<i32>
  %z = arith.constant 0 : i32
  %rows = tensor.from_elements %z, %n : !ix
  %kv = fi.view.ragged %q, %q indptr(%rows : !ix) : !q, !q -> !kv
  // expected-error @+1 {{expected what its plan is made of to be known without running, but 'indptr' depends on memory, by 'memref.load' [CAL6]}}
  %o = fi.attention %q rows(%rows : !ix) over %kv scale(1.0) : !q over !kv -> !q
  return %o : !q
}
