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

// Below a length by request, or causal.
// CHECK-LABEL: fi.program @prefix
fi.program @prefix plan(%prefix: !ix) run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["q"]], lo = []}, {exact = true, hi = [["add", ["load", "prefix", ["request"]], ["const", -1]]], lo = []}])
  %o = fi.attention %q over %kv scale(0.125) captures(%p = %prefix : !ix)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %n = fi.load %p[%req] : !ix
        %i = arith.index_cast %kp : index to i32
        %a = arith.cmpi slt, %i, %n : i32
        %b = arith.cmpi sle, %kp, %qp : index
        %m = arith.ori %a, %b : i1
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// A remainder of the key's position leaves bounds that are necessary only.
// CHECK-LABEL: fi.program @dilated
fi.program @dilated plan(%window: index)
    run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: bounds([{exact = false, hi = [["q"]], lo = [["sub", ["q"], ["scalar", "window"]]]}])
  %o = fi.attention %q over %kv scale(0.125) captures(%w = %window : index)
      mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %two = arith.constant 2 : index
        %zero = arith.constant 0 : index
        %d = arith.subi %qp, %kp : index
        // expected-remark @below {{cannot bound this mask: it takes a remainder of the key's position}}
        %r = arith.remsi %d, %two : index
        %even = arith.cmpi eq, %r, %zero : index
        %near = arith.cmpi sle, %d, %w : index
        %m = arith.andi %even, %near : i1
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// CHECK-LABEL: fi.program @chunked
fi.program @chunked run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["add", ["mul", ["floordiv", ["q"], ["const", 512]], ["const", 512]], ["const", 511]]], lo = [["mul", ["floordiv", ["q"], ["const", 512]], ["const", 512]]]}])
  %o = fi.attention %q over %kv scale(0.125)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = arith.constant 512 : index
        %a = arith.floordivsi %qp, %c : index
        %b = arith.floordivsi %kp, %c : index
        %m = arith.cmpi eq, %a, %b : index
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// Keys of the query's document are found by search in the sorted table. Out of
// range it reads 0, so that keys behind it belong to document 0.
// CHECK-LABEL: fi.program @documents
fi.program @documents plan(%doc: tensor<?x1024xi32> {fi.sorted},
                           %loose: tensor<?x1024xi32>)
    run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK: bounds([
  // CHECK-SAME{LITERAL}: {exact = true, hi = [["q"], ["add", ["first", "doc", ["request"], ["add", ["load", "doc", ["request"], ["q"]], ["const", 1]]], ["const", -1]]], lo = [["first", "doc", ["request"], ["load", "doc", ["request"], ["q"]]]]}
  // CHECK-SAME{LITERAL}: , {exact = true, hi = [["add", ["mul", ["min", ["max", ["sub", ["const", 0], ["load", "doc", ["request"], ["q"]]], ["const", -1]], ["const", 0]], ["const", 4611686018427387904]], ["const", 2305843009213693952]], ["add", ["mul", ["min", ["max", ["load", "doc", ["request"], ["q"]], ["const", -1]], ["const", 0]], ["const", 4611686018427387904]], ["const", 2305843009213693952]], ["q"]], lo = [["const", 1024]]}])
  %o = fi.attention %q over %kv scale(0.125)
      captures(%d = %doc : tensor<?x1024xi32>) mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %a = fi.load %d[%req, %qp] : tensor<?x1024xi32>
        %b = fi.load %d[%req, %kp] : tensor<?x1024xi32>
        %m = arith.cmpi eq, %a, %b : i32
        fi.yield %m : i1
      } : !q over !kv -> !q
  // CHECK{LITERAL}: bounds([{exact = false, hi = [["q"]], lo = []}])
  %o2 = fi.attention %q over %kv scale(0.125)
      captures(%d = %loose : tensor<?x1024xi32>) mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %a = fi.load %d[%req, %qp] : tensor<?x1024xi32>
        %b = fi.load %d[%req, %kp] : tensor<?x1024xi32>
        // expected-remark @below {{cannot bound this mask: plan argument 'loose' is not marked {fi.sorted}}}
        %m = arith.cmpi eq, %a, %b : i32
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// What is no plan argument is not known when tiles are chosen. Bounds that were
// there before are replaced.
// CHECK-LABEL: fi.program @run_argument
fi.program @run_argument run(%q: !q, %k: !t, %v: !t, %flags: !ix) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: bounds([{exact = false, hi = [], lo = []}])
  %o = fi.attention %q over %kv scale(0.125) captures(%f = %flags : !ix)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        // expected-remark @below {{cannot bound this mask: it reads run argument 'flags'; only plan arguments are known when tiles are chosen}}
        %a = fi.load %f[%kp] : !ix
        %zero = arith.constant 0 : i32
        %m = arith.cmpi ne, %a, %zero : i32
        fi.yield %m : i1
      } bounds([{exact = true, hi = [["q"]], lo = []}]) : !q over !kv -> !q
  // CHECK: fi.attention
  // CHECK-NOT: bounds(
  %o2 = fi.attention %q over %kv scale(0.125)
      bounds([{exact = true, hi = [["q"]], lo = []}]) : !q over !kv -> !q
  fi.return %o : !q
}

// Heads that see all, and heads with a window: a condition without the key's
// position bounds all keys or none.
// CHECK-LABEL: fi.program @heads
fi.program @heads run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  // CHECK{LITERAL}: bounds([{exact = true, hi = [["add", ["mul", ["min", ["max", ["sub", ["const", 1], ["q_head"]], ["const", -1]], ["const", 0]], ["const", 4611686018427387904]], ["const", 2305843009213693952]], ["q"]], lo = []}, {exact = true, hi = [["q"]], lo = [["add", ["q"], ["const", -255]]]}])
  %o = fi.attention %q over %kv scale(0.125) mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %two = arith.constant 2 : index
        %c = arith.constant 256 : index
        %global = arith.cmpi slt, %qh, %two : index
        %d = arith.subi %qp, %kp : index
        %near = arith.cmpi slt, %d, %c : index
        %m = arith.ori %near, %global : i1
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}
