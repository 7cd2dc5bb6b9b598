// A function of libm is bound by the package itself, on a machine that need not
// have development files.
// RUN: rm -rf %t.fipkg && fi-translate --fi-to-package %s -o %t.fipkg
// RUN: llvm-readelf -d --dyn-syms %t.fipkg/kernels.so | FileCheck %s
// CHECK: (NEEDED) {{.*}}[libm.so.6]
// CHECK-NOT: (NEEDED) {{.*}}[libc.so.6]
// CHECK: UND powf
// RUN: fi-run %t.fipkg --batch=%S/Inputs/two-requests.json --source=%s --compare=reference | FileCheck %s --check-prefix=PASS
// PASS: PASS: {{[0-9]+}} elements agree

!ix = tensor<?xi32>
!q = tensor<?x4x64xf32>
!k = tensor<?x2x64xf32>
!kv = !fi.ragged_kv<2x64xf32>
fi.program @power plan(%qo: !ix, %indptr: !ix) run(%q: !q, %k: !k, %v: !k) -> (!q, tensor<?x4xf32>) {
  %kv = fi.view.ragged %k, %v indptr(%indptr : !ix) : !k, !k -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.125)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = arith.constant 0.7 : f32
        %a = math.absf %s : f32
        %t = math.powf %a, %c : f32
        fi.yield %t : f32
      }
      mask(#fi.causal) : !q over !kv -> !q, tensor<?x4xf32>
  fi.return %o, %lse : !q, tensor<?x4xf32>
}
