// RUN: fi-opt %s --fi-canonicalize | FileCheck %s
// RUN: fi-opt %s --fi-canonicalize -o %t.once
// RUN: fi-opt %t.once --fi-canonicalize -o %t.twice
// RUN: diff %t.once %t.twice

!q = tensor<?x4x64xf32>
!kv = !fi.ragged_kv<2x64xf32>
!t = tensor<?x2x64xf32>
!ix = tensor<?xi32>

// Attributes become regions; the number of the scale stays.
// CHECK-LABEL: fi.program @attributes
// CHECK: fi.attention %q over %{{.*}} scale(1.250000e-01)
// CHECK-SAME: score(%[[S:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
// CHECK-NEXT: %[[R:.*]] = arith.constant 0.0333333351 : f32
// CHECK-NEXT: %[[D:.*]] = arith.mulf %[[S]], %[[R]] : f32
// CHECK-NEXT: %[[T:.*]] = math.tanh %[[D]] fastmath<afn> : f32
// CHECK-NEXT: %[[C:.*]] = arith.constant 3.000000e+01 : f32
// CHECK-NEXT: %[[V:.*]] = arith.mulf %[[T]], %[[C]] : f32
// CHECK-NEXT: fi.yield %[[V]] : f32
// CHECK-NEXT: } mask(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK-NEXT: %[[A:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : index
// CHECK-NEXT: %[[W:.*]] = arith.constant 127 : index
// CHECK-NEXT: %[[L:.*]] = arith.subi %[[Q]], %[[W]] : index
// CHECK-NEXT: %[[B:.*]] = arith.cmpi sge, %[[K]], %[[L]] : index
// CHECK-NEXT: %[[M:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT: fi.yield %[[M]] : i1
// CHECK-NEXT: } : tensor
fi.program @attributes run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(0.125) score(#fi.softcap<30.0>)
      mask(#fi.causal, #fi.window<left = 127>) : !q over !kv -> !q
  fi.return %o : !q
}

// A list of attributes and a region become one region.
// CHECK-LABEL: fi.program @conjunction
// CHECK: mask(%[[REQ:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK-NEXT: %[[A:.*]] = arith.cmpi sle, %[[K]], %[[Q]] : index
// CHECK-NEXT: %[[B:.*]] = arith.cmpi ne, %[[REQ]], %[[K]] : index
// CHECK-NEXT: %[[M:.*]] = arith.andi %[[A]], %[[B]] : i1
// CHECK-NEXT: fi.yield %[[M]] : i1
// CHECK-NEXT: } : tensor
fi.program @conjunction run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(0.125) mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %m = arith.cmpi ne, %req, %kp : index
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// Equal captures are merged, and with them the loads; what is unused goes.
// CHECK-LABEL: fi.program @captures
// CHECK: captures(%[[C:.*]] = %doc : tensor<?xi32>) mask(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK-NEXT: %[[A:.*]] = fi.load %[[C]][%[[K]]] : tensor<?xi32>
// CHECK-NEXT: %[[B:.*]] = fi.load %[[C]][%[[Q]]] : tensor<?xi32>
// CHECK-NEXT: %[[M:.*]] = arith.cmpi eq, %[[A]], %[[B]] : i32
// CHECK-NEXT: fi.yield %[[M]] : i1
fi.program @captures plan(%doc: !ix, %other: !ix)
    run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(0.125)
      captures(%a = %doc : !ix, %b = %other : !ix, %c = %doc : !ix)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %u = fi.load %b[%req] : !ix
        %x = fi.load %c[%kp] : !ix
        %y = fi.load %a[%qp] : !ix
        %z = fi.load %c[%qp] : !ix
        %m = arith.cmpi eq, %x, %y : i32
        %n = arith.cmpi eq, %x, %z : i32
        %both = arith.andi %m, %n : i1
        fi.yield %both : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// A captured constant is folded into the region, which folds to true and goes.
// So do regions that yield their arguments.
// CHECK-LABEL: fi.program @trivial
// CHECK: fi.attention %q over %{{[0-9a-z]+}} scale(1.250000e-01) : tensor
fi.program @trivial run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %w = arith.constant 5 : index
  %o = fi.attention %q over %kv scale(0.125) pair<half>
      captures(%c = %w : index)
      query(%x: f32, %y: f32, %p: index, %r: index, %h: index, %pos: index) {
        fi.yield %x, %y : f32, f32
      }
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %one = arith.constant 1.0 : f32
        %same = arith.mulf %s, %one : f32
        fi.yield %same : f32
      }
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %six = arith.constant 6 : index
        %below = arith.cmpi slt, %c, %six : index
        %causal = arith.cmpi sle, %kp, %qp : index
        %m = arith.ori %causal, %below : i1
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// A mask that is false stays: no key is visible.
// CHECK-LABEL: fi.program @nothing
// CHECK: mask({{.*}}) {
// CHECK-NEXT: %[[F:.*]] = arith.constant false
// CHECK-NEXT: fi.yield %[[F]] : i1
fi.program @nothing run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(0.125)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %m = arith.cmpi slt, %kp, %kp : index
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}

// The order of operations does not matter.
// CHECK-LABEL: fi.program @order
// CHECK: mask(%[[REQ:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK-NEXT: %[[X:.*]] = arith.cmpi eq, %[[K]], %[[REQ]] : index
// CHECK-NEXT: %[[C:.*]] = arith.constant 7 : index
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[Q]], %[[C]] : index
// CHECK-NEXT: %[[Y:.*]] = arith.cmpi sle, %[[K]], %[[B]] : index
// CHECK-NEXT: %[[M:.*]] = arith.xori %[[X]], %[[Y]] : i1
// CHECK-NEXT: fi.yield %[[M]] : i1
// CHECK: mask(%[[REQ:.*]]: index, %{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK-NEXT: %[[X:.*]] = arith.cmpi eq, %[[K]], %[[REQ]] : index
// CHECK-NEXT: %[[C:.*]] = arith.constant 7 : index
// CHECK-NEXT: %[[B:.*]] = arith.addi %[[Q]], %[[C]] : index
// CHECK-NEXT: %[[Y:.*]] = arith.cmpi sle, %[[K]], %[[B]] : index
// CHECK-NEXT: %[[M:.*]] = arith.xori %[[X]], %[[Y]] : i1
// CHECK-NEXT: fi.yield %[[M]] : i1
fi.program @order run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o1 = fi.attention %q over %kv scale(0.125)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = arith.constant 7 : index
        %b = arith.addi %qp, %c : index
        %y = arith.cmpi sle, %kp, %b : index
        %x = arith.cmpi eq, %kp, %req : index
        %m = arith.xori %x, %y : i1
        fi.yield %m : i1
      } : !q over !kv -> !q
  %o2 = fi.attention %q over %kv scale(0.125)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %x = arith.cmpi eq, %kp, %req : index
        %c = arith.constant 7 : index
        %b = arith.addi %qp, %c : index
        %y = arith.cmpi sle, %kp, %b : index
        %m = arith.xori %x, %y : i1
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o2 : !q
}

// Casts of index to fewer bits and back lose bits, which MLIR's folder forgets.
// CHECK-LABEL: fi.program @truncates
// CHECK: mask(%{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[Q:.*]]: index, %[[K:.*]]: index) {
// CHECK-NEXT: %[[W:.*]] = arith.index_cast %[[K]] : index to i64
// CHECK-NEXT: %[[N:.*]] = arith.trunci %[[W]] : i64 to i32
// CHECK-NEXT: %[[B:.*]] = arith.index_cast %[[N]] : i32 to index
// CHECK-NEXT: %[[M:.*]] = arith.cmpi sle, %[[B]], %[[Q]] : index
// CHECK-NEXT: fi.yield %[[M]] : i1
fi.program @truncates run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(0.125)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %n = arith.index_cast %kp : index to i32
        %b = arith.index_cast %n : i32 to index
        %m = arith.cmpi sle, %b, %qp : index
        fi.yield %m : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}
