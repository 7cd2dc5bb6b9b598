// A kernel comes from the text: editing the score region changes the CPU and the
// reference alike.
// RUN: fi-run %s --batch=%S/Inputs/two-requests.json --compare=reference --save=%t.before.npz | FileCheck %s
// RUN: sed 's/constant 1.0/constant -2.5/' %s > %t.mlir
// RUN: fi-run %t.mlir --batch=%S/Inputs/two-requests.json --compare=reference --save=%t.after.npz | FileCheck %s
// RUN: fi-run %t.mlir --batch=%S/Inputs/two-requests.json --backend=reference --save=%t.reference.npz
// RUN: %python %S/Inputs/changed.py %t.before.npz %t.after.npz %t.reference.npz
// CHECK: compared with reference:
// CHECK: PASS: {{[0-9]+}} elements agree

!ix = tensor<?xi32>
!q = tensor<?x4x64xf32>
!k = tensor<?x2x64xf32>
!kv = !fi.ragged_kv<2x64xf32>
fi.program @edited plan(%qo: !ix, %indptr: !ix) run(%q: !q, %k: !k, %v: !k) -> (!q, tensor<?x4xf32>) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !k, !k -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.125)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = arith.constant 1.0 : f32
        %t = arith.mulf %s, %c : f32
        fi.yield %t : f32
      }
      mask(#fi.causal) : !q over !kv -> !q, tensor<?x4xf32>
  fi.return %o, %lse : !q, tensor<?x4xf32>
}
