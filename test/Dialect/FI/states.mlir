// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>

// CHECK-DAG: [[ST:!state[0-9]*]] = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
// CHECK-DAG: [[SEG:!state[0-9]*]] = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
// CHECK-DAG: [[E:!state[0-9]*]] = !fi.state<3x4x8xf32, #fi.softmax<base = e>>

// CHECK-LABEL: fi.program @states
// CHECK: %[[E0:.*]] = fi.empty rows(%n) : [[ST]]
// CHECK: %[[A:.*]] = fi.attention %q over %{{.*}} scale(1.000000e+00) : tensor<?x4x8xf32> over !kv -> [[ST]]
// CHECK: %[[G:.*]] = fi.segments over %{{.*}} split(#fi.split<fixed = 64>) : !kv
// CHECK: %[[P:.*]] = fi.attention %q over %{{.*}} segments(%[[G]]) scale(1.000000e+00) : tensor<?x4x8xf32> over !kv -> [[SEG]]
// CHECK: %[[F:.*]] = fi.merge_segments %[[P]] by %[[G]] : [[SEG]] -> [[ST]]
// CHECK: %[[M:.*]] = fi.merge %[[E0]], %[[A]], %[[F]] : [[ST]]
// CHECK: fi.finalize %[[M]] sink(%sink : tensor<4xf32>) : [[ST]] -> tensor<?x4x8xbf16>, tensor<?x4xf32>
fi.program @states run(%q: !q, %k: !t, %n: index, %sink: tensor<4xf32>)
    -> (tensor<?x4x8xbf16>, tensor<?x4xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %e = fi.empty rows(%n) : !st
  %a = fi.attention %q over %kv scale(1.0) : !q over !kv -> !st
  %g = fi.segments over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q over %kv segments(%g) scale(1.0) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %m = fi.merge %e, %a, %s : !st
  %o, %l = fi.finalize %m sink(%sink : tensor<4xf32>) : !st -> tensor<?x4x8xbf16>, tensor<?x4xf32>
  fi.return %o, %l : tensor<?x4x8xbf16>, tensor<?x4xf32>
}

// CHECK-LABEL: fi.program @static_rows
// CHECK: fi.segments rows(%qo : tensor<?xi32>) over %{{.*}} split(#fi.split<balanced>) : !kv
// CHECK: fi.empty : [[E]]
fi.program @static_rows plan(%qo: !ix) run(%k: !t) -> (tensor<3x4x8xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<balanced>) : !kv
  %e = fi.empty : !fi.state<3x4x8xf32, #fi.softmax<base = e>>
  %o = fi.finalize %e : !fi.state<3x4x8xf32, #fi.softmax<base = e>> -> tensor<3x4x8xf32>
  fi.return %o : tensor<3x4x8xf32>
}

// Results in memrefs, and tensors whose places results may take.
// CHECK-LABEL: fi.program @places
// CHECK: fi.finalize %{{.*}} sink(%sink : memref<4xf32>) outs(%o, %l : memref<?x4x8xbf16>, memref<?x4xf32>) : [[ST]]{{$}}
// CHECK: fi.finalize %{{.*}} outs(%t : tensor<?x4x8xf32>) : [[ST]] -> tensor<?x4x8xf32>
// CHECK: fi.attention %q over %{{.*}} scale(1.000000e+00) outs(%t : tensor<?x4x8xf32>) : tensor<?x4x8xf32> over !kv -> tensor<?x4x8xf32>
fi.program @places run(%q: !q, %k: !t, %sink: memref<4xf32>, %o: memref<?x4x8xbf16>, %l: memref<?x4xf32>, %t: !q) -> (!q, !q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %a = fi.attention %q over %kv scale(1.0) : !q over !kv -> !st
  fi.finalize %a sink(%sink : memref<4xf32>) outs(%o, %l : memref<?x4x8xbf16>, memref<?x4xf32>) : !st
  %0 = fi.finalize %a outs(%t : !q) : !st -> !q
  %1 = fi.attention %q over %kv scale(1.0) outs(%t : !q) : !q over !kv -> !q
  fi.return %0, %1 : !q, !q
}
