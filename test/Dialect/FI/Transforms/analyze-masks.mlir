// RUN: fi-opt %s --fi-analyze-masks --verify-diagnostics | FileCheck %s

// The bounds of common masks. The attribute's keys are sorted by name.

!q = tensor<?x4x64xf32>
!kv = !fi.ragged_kv<2x64xf32>
!t = tensor<?x2x64xf32>
!ix = tensor<?xi32>

// CHECK-LABEL: fi.program @no_mask
fi.program @no_mask run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK-NOT: bounds(
  %o = fi.attention %q over %kv scale(0.125) : !q over !kv -> !q
  fi.return %o : !q
}

// An attribute and the region that it stands for give the same.
// CHECK-LABEL: fi.program @causal
fi.program @causal run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: mask(#fi.causal) bounds([{exact = true, hi = [["q"]], lo = []}])
  %o = fi.attention %q over %kv scale(0.125) mask(#fi.causal)
      : !q over !kv -> !q
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["q"]], lo = []}])
  %o2 = fi.attention %q over %kv scale(0.125)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %m = arith.cmpi sge, %qp, %kp : index
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// CHECK-LABEL: fi.program @window
fi.program @window run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: bounds([{exact = true, hi = [], lo = [["add", ["q"], ["const", -127]]]}])
  %left = fi.attention %q over %kv scale(0.125) mask(#fi.window<left = 127>)
      : !q over !kv -> !q
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["add", ["q"], ["const", 3]]], lo = []}])
  %right = fi.attention %q over %kv scale(0.125) mask(#fi.window<right = 3>)
      : !q over !kv -> !q
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["add", ["q"], ["const", 3]]], lo = [["add", ["q"], ["const", -127]]]}])
  %both = fi.attention %q over %kv scale(0.125)
      mask(#fi.window<left = 127, right = 3>) : !q over !kv -> !q
  // The causal bound makes the right one superfluous.
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["q"]], lo = [["add", ["q"], ["const", -127]]]}])
  %causal = fi.attention %q over %kv scale(0.125)
      mask(#fi.causal, #fi.window<left = 127, right = 3>) : !q over !kv -> !q
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["q"]], lo = [["add", ["q"], ["const", -127]]]}])
  %region = fi.attention %q over %kv scale(0.125) mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %d = arith.subi %qp, %kp : index
        %c = arith.constant 128 : index
        %m = arith.cmpi ult, %d, %c : index
        fi.yield %m : i1
      } : !q over !kv -> !q
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["add", ["q"], ["const", 3]]], lo = []}])
  %any = fi.attention %q over %kv scale(0.125)
      mask(#fi.any<#fi.causal, #fi.window<right = 3>>) : !q over !kv -> !q
  fi.return %both : !q
}
