// Plans and runs become calls of the runtime, with values as numbers.
// RUN: fi-opt %s --fi-calls-to-llvm | FileCheck %s
// RUN: fi-opt %s --fi-calls-to-llvm=erase-programs | FileCheck %s --check-prefix=ERASED
// ERASED-NOT: fi.

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!t = tensor<20x2x8xbf16>
!kv = !fi.ragged_kv<2x8xbf16>

// CHECK-DAG: llvm.mlir.global internal constant @fi_name_of_layer("layer\00")
// CHECK-DAG: llvm.func @fi_call_plan(!llvm.ptr, i32, !llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
// CHECK-DAG: llvm.func @fi_call_run(!llvm.ptr, i32, !llvm.ptr, i32, !llvm.ptr)
// CHECK-DAG: llvm.func @fi_call_release(!llvm.ptr)
// CHECK: fi.program @layer
fi.program @layer plan(%rows: !ix, %n: i32) run(%q: !q, %k: !t, %s: f32) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q rows(%rows : !ix) over %kv scale(%s) : !q over !kv -> !q
  fi.return %o : !q
}

// CHECK-LABEL: func.func @call
// CHECK-SAME: (%[[ROWS:.*]]: memref<?xi32>, %{{.*}}: i32, %[[Q:.*]]: memref<?x4x8xf32, strided<[?, ?, 1], offset: ?>>
// The arrays are made once, whatever loops there are.
// CHECK-COUNT-4: llvm.alloca
// CHECK: scf.for
// CHECK-NOT: llvm.alloca
// A tensor (0) of i32 (3 << 8) of one dimension (1 << 16).
// CHECK: %[[BASE:.*]], %[[OFFSET:.*]], %[[SIZE:.*]], %[[STRIDE:.*]] = memref.extract_strided_metadata %[[ROWS]]
// CHECK: memref.extract_aligned_pointer_as_index %[[ROWS]]
// CHECK: arith.muli %[[OFFSET]], %c4
// CHECK: llvm.mlir.constant(66304 : i64)
// A whole number (2) of i32.
// CHECK: llvm.mlir.constant(770 : i64)
// CHECK: arith.extsi %{{.*}} : i32 to i64
// The shapes of queries, keys and the number: 0 + 0 << 8 + 3 << 16, bf16 2 << 8.
// CHECK: llvm.mlir.constant(196608 : i64)
// CHECK: llvm.mlir.constant(197120 : i64)
// CHECK: llvm.mlir.constant(20 : i64)
// CHECK: %[[P:.*]] = llvm.call @fi_call_plan(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr, i32, !llvm.ptr, i32, !llvm.ptr) -> !llvm.ptr
// CHECK: scf.if
// CHECK: memref.extract_strided_metadata %[[Q]]
// CHECK: arith.bitcast %{{.*}} : f32 to i32
// CHECK: llvm.call @fi_call_run(%[[P]], %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}})
// CHECK: }
// CHECK: llvm.call @fi_call_release(%[[P]])
// CHECK-NEXT: }
func.func @call(%rows: memref<?xi32>, %m: i32, %q: memref<?x4x8xf32, strided<[?, ?, 1], offset: ?>>, %k: memref<20x2x8xbf16>,
                %s: f32, %o: memref<?x4x8xf32>, %n: index, %c: i1) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.for %i = %c0 to %n step %c1 {
    %p = fi.plan @layer(%rows, %m : memref<?xi32>, i32) sizes(%n)
    scf.if %c {
      fi.run @layer(%q, %k, %s : memref<?x4x8xf32, strided<[?, ?, 1], offset: ?>>, memref<20x2x8xbf16>, f32) by(%p) outs(%o : memref<?x4x8xf32>)
    }
  }
  return
}
