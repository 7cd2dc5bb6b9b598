// fi.attention is isolated from above, so upstream passes neither pull constants out of
// its regions nor put values from outside into them: not if the same constants stand
// outside, in other regions and in another attention, and not through a loop or a call.
// RUN: fi-opt %s --cse --canonicalize --sccp --inline --loop-invariant-code-motion \
// RUN:   --cse --canonicalize -o %t.mlir
// RUN: FileCheck %s < %t.mlir
// RUN: fi-opt %t.mlir --verify-roundtrip -o /dev/null
// What is left goes all the way down.
// RUN: fi-opt %t.mlir --pass-pipeline='builtin.module(fi.program(cse,canonicalize))' \
// RUN:   | fi-opt --fi-prepare --cse --canonicalize --sccp \
// RUN:   --fi-lower-to-tile --fi-lower-to-vector --fi-lower-to-llvm -o /dev/null

!ix = tensor<?xi32>
!q = tensor<?x4x16xf32>
!pool = memref<?x2x4x16xf32>
!kv = !fi.paged_kv<4x2x16xf32, HND>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
  // CHECK-LABEL: fi.program @regions
  // CHECK: fi.attention
  // CHECK: query(
  // CHECK-NEXT: %[[HALF:.+]] = arith.constant 5.000000e-01 : f32
  // CHECK-NEXT: arith.mulf %{{.+}}, %[[HALF]]
  // CHECK: score(
  // CHECK-NEXT: %[[HALF2:.+]] = arith.constant 5.000000e-01 : f32
  // CHECK-NEXT: arith.mulf %{{.+}}, %[[HALF2]]
  // CHECK: mask(
  // CHECK-NEXT: %[[TWO:.+]] = arith.constant 2 : index
  // CHECK-NEXT: arith.subi %{{.+}}, %[[TWO]]
  // CHECK: fi.attention
  // CHECK: mask(
  // CHECK-NEXT: %[[TWO2:.+]] = arith.constant 2 : index
  // CHECK-NEXT: arith.subi %{{.+}}, %[[TWO2]]
  fi.program @regions plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
      run(%q: !q, %k: !pool, %v: !pool, %scale: f32) -> (!q, !q) {
    %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
    %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.25) pair<half>
        captures(%c = %scale : f32)
        query(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
      %half = arith.constant 0.5 : f32
      %a = arith.mulf %x, %half : f32
      %b = arith.mulf %y, %c : f32
      fi.yield %a, %b : f32, f32
    } score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
      %half = arith.constant 0.5 : f32
      %a = arith.mulf %s, %half : f32
      fi.yield %a : f32
    } mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
      %one = arith.constant 1 : index
      %two = arith.addi %one, %one : index
      %at = arith.subi %qp, %two : index
      %m = arith.cmpi sle, %kp, %at : index
      fi.yield %m : i1
    } : !q over !kv -> !q
    %p = fi.attention %q rows(%qo : !ix) over %kv scale(0.25)
        mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
      %two = arith.constant 2 : index
      %at = arith.subi %qp, %two : index
      %m = arith.cmpi sle, %kp, %at : index
      fi.yield %m : i1
    } : !q over !kv -> !q
    fi.return %o, %p : !q, !q
  }
}
