// Programs planned and run in functions.
// RUN: fi-opt %s --verify-roundtrip | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --cse | FileCheck %s --check-prefix=CSE
// RUN: fi-opt %s --one-shot-bufferize="bufferize-function-boundaries allow-unknown-ops function-boundary-type-conversion=identity-layout-map" | FileCheck %s --check-prefix=BUFFERS

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

fi.program @layer plan(%rows: !ix, %keys: !ix) run(%q: !q, %k: !t, %v: !t, %s: f32) -> (!q) {
  %kv = fi.view.ragged %k, %v indptr(%keys : !ix) : !t, !t -> !kv
  %o = fi.attention %q rows(%rows : !ix) over %kv scale(%s) : !q over !kv -> !q
  fi.return %o : !q
}

// CHECK-LABEL: func.func @tensors
// CHECK: %[[P:.*]] = fi.plan @layer(%{{.*}}, %{{.*}} : tensor<?xi32>, tensor<?xi32>){{$}}
// CHECK: fi.run @layer(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : tensor<?x4x8xf32>, tensor<?x2x8xf32>, tensor<?x2x8xf32>, f32) by(%[[P]]) outs(%{{.*}} : tensor<?x4x8xf32>) -> tensor<?x4x8xf32>
// Layers share a plan.
// CSE-LABEL: func.func @tensors
// CSE-COUNT-1: fi.plan
// CSE-NOT: fi.plan
// CSE-COUNT-2: fi.run
// BUFFERS-LABEL: func.func @tensors
// BUFFERS-SAME: (%[[R:.*]]: memref<?xi32>, %[[KP:.*]]: memref<?xi32>, %[[Q:.*]]: memref<?x4x8xf32>, %[[K:.*]]: memref<?x2x8xf32>, %{{.*}}: f32, %[[E:.*]]: memref<?x4x8xf32>)
// BUFFERS: %[[P:.*]] = fi.plan @layer(%[[R]], %[[KP]] : memref<?xi32>, memref<?xi32>)
// BUFFERS-NOT: memref.copy
// BUFFERS: fi.run @layer(%[[Q]], %[[K]], %[[K]], %{{.*}} : memref<?x4x8xf32>, memref<?x2x8xf32>, memref<?x2x8xf32>, f32) by(%[[P]]) outs(%[[E]] : memref<?x4x8xf32>){{$}}
// BUFFERS: %[[P2:.*]] = fi.plan
// The result is the second layer's query, so it may not lie in the first's place.
// BUFFERS: %[[N:.*]] = memref.alloc
// BUFFERS: fi.run @layer(%[[E]], %{{.*}} by(%[[P2]]) outs(%[[N]] : memref<?x4x8xf32>){{$}}
func.func @tensors(%rows: !ix, %keys: !ix, %q: !q, %k: !t, %s: f32, %e: !q {bufferization.writable = true}) -> !q {
  %p = fi.plan @layer(%rows, %keys : !ix, !ix)
  %a = fi.run @layer(%q, %k, %k, %s : !q, !t, !t, f32) by(%p) outs(%e : !q) -> !q
  %p2 = fi.plan @layer(%rows, %keys : !ix, !ix)
  %b = fi.run @layer(%a, %k, %k, %s : !q, !t, !t, f32) by(%p2) outs(%a : !q) -> !q
  return %b : !q
}

// CHECK-LABEL: func.func @memrefs
// CHECK: fi.plan @layer(%{{.*}}) sizes(%{{.*}}, %{{.*}}, %{{.*}}){{$}}
// CHECK: fi.run @layer({{.*}} : memref<?x4x8xf32, strided<[?, ?, 1], offset: ?>>, {{.*}}) by(%{{.*}}) outs(%{{.*}} : memref<?x4x8xf32>){{$}}
func.func @memrefs(%rows: memref<?xi32>, %q: memref<?x4x8xf32, strided<[?, ?, 1], offset: ?>>, %k: memref<?x2x8xf32>, %s: f32, %o: memref<?x4x8xf32>, %n: index) {
  %p = fi.plan @layer(%rows, %rows : memref<?xi32>, memref<?xi32>) sizes(%n, %n, %n)
  fi.run @layer(%q, %k, %k, %s : memref<?x4x8xf32, strided<[?, ?, 1], offset: ?>>, memref<?x2x8xf32>, memref<?x2x8xf32>, f32) by(%p) outs(%o : memref<?x4x8xf32>)
  return
}

// A program without arguments of either kind.
fi.program @nothing run() {
  fi.return
}
// CHECK-LABEL: func.func @empty
// CHECK: %[[P:.*]] = fi.plan @nothing()
// CHECK: fi.run @nothing() by(%[[P]]){{$}}
func.func @empty() {
  %p = fi.plan @nothing()
  fi.run @nothing() by(%p)
  return
}
