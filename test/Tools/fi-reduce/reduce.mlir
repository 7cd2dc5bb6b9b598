// RUN: fi-reduce %s --test=%S/Inputs/has-division.sh -o %t 2>&1 | FileCheck %s --check-prefix=COUNT
// COUNT: fi-reduce: 6 operations left after {{[0-9]+}} runs
// RUN: FileCheck %s < %t

// RUN: not fi-reduce %s --test=%S/Inputs/none.sh 2>&1 | FileCheck %s --check-prefix=NONE
// NONE: error: --test: '{{.*}}none.sh' could not be run
// RUN: not fi-reduce %s --test=false 2>&1 | FileCheck %s --check-prefix=WHOLE
// WHOLE: error: --test: expected 'false' to end with 0 on the whole of '{{.*}}reduce.mlir', but it did not
// RUN: not fi-reduce %S/Inputs/has-division.sh --test=false 2>&1 | FileCheck %s --check-prefix=INVALID
// INVALID: is not a valid program

!ix = tensor<?xi32>
!t = tensor<?x2x32xf32>

// CHECK-NOT: fi.program @gone
fi.program @gone plan(%rows: !ix) run(%q: !t) -> () {
  fi.return
}

// The region with the division stays, and of the rest what it needs.
// CHECK: fi.program @kept
// CHECK: fi.view.ragged
// CHECK: fi.attention
// CHECK-NOT: math.exp
// CHECK: arith.divf %s, %s
// CHECK-NEXT: fi.yield
// CHECK-NOT: mask
// CHECK-NOT: fi.attention
// CHECK: fi.return
fi.program @kept plan(%rows: !ix, %keys: !ix) run(%q: !t) -> (!t) {
  %kv = fi.view.ragged %q, %q : !t, !t -> !fi.ragged_kv<2x32xf32>
  %o = fi.attention %q over %kv scale(0.25)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %two = arith.constant 2.0 : f32
        %d = arith.divf %s, %two : f32
        %e = math.exp %d : f32
        %m = arith.mulf %e, %two : f32
        fi.yield %m : f32
      }
      mask(#fi.causal) : !t over !fi.ragged_kv<2x32xf32> -> !t
  %n = fi.attention %o over %kv scale(0.25) : !t over !fi.ragged_kv<2x32xf32> -> !t
  fi.return %n : !t
}
