// Ops of fi in functions become programs, with calls in their place.
// RUN: fi-opt %s --split-input-file --fi-outline-programs | FileCheck %s
// What comes out is a program like any other, and nothing is left to do.
// RUN: fi-opt %s --split-input-file --fi-outline-programs --fi-outline-programs | FileCheck %s

!q = tensor<14x4x8xf32>
!t = tensor<20x2x8xf32>
!ix = tensor<3xi32>
!kv = !fi.ragged_kv<2x8xf32>

// Tables are the plan's, everything else comes with a run; sizes are known.
// CHECK-LABEL: fi.program @batch_attention0
// CHECK-SAME: plan(%indptr: tensor<3xi32>, %rows: tensor<3xi32>)
// CHECK-SAME: run(%k: tensor<20x2x8xf32>, %v: tensor<20x2x8xf32>, %q: tensor<14x4x8xf32>) -> (tensor<14x4x8xf32>)
// CHECK-NEXT: %[[KV:.*]] = fi.view.ragged %k, %v indptr(%indptr : tensor<3xi32>)
// CHECK-NEXT: %[[O:.*]] = fi.attention %q rows(%rows : tensor<3xi32>) over %[[KV]] scale(2.500000e-01)
// CHECK-NEXT: fi.return %[[O]]
// CHECK-LABEL: func.func @batch
// CHECK-SAME: (%[[Q:.*]]: tensor<14x4x8xf32>, %[[K:.*]]: tensor<20x2x8xf32>, %[[V:.*]]: tensor<20x2x8xf32>)
// CHECK-DAG: %[[R:.*]] = arith.constant dense<[0, 7, 14]>
// CHECK-DAG: %[[I:.*]] = arith.constant dense<[0, 10, 20]>
// CHECK-DAG: %[[E:.*]] = tensor.empty() : tensor<14x4x8xf32>
// CHECK: %[[P:.*]] = fi.plan @batch_attention0(%[[I]], %[[R]] : tensor<3xi32>, tensor<3xi32>){{$}}
// CHECK: %[[O:.*]] = fi.run @batch_attention0(%[[K]], %[[V]], %[[Q]] : tensor<20x2x8xf32>, tensor<20x2x8xf32>, tensor<14x4x8xf32>) by(%[[P]]) outs(%[[E]] : tensor<14x4x8xf32>) -> tensor<14x4x8xf32>
// CHECK: return %[[O]]
func.func @batch(%q: !q, %k: !t, %v: !t) -> !q {
  %rows = arith.constant dense<[0, 7, 14]> : !ix
  %keys = arith.constant dense<[0, 10, 20]> : !ix
  %kv = fi.view.ragged %k, %v indptr(%keys : !ix) : !t, !t -> !kv
  %o = fi.attention %q rows(%rows : !ix) over %kv scale(0.25) : !q over !kv -> !q
  return %o : !q
}

// -----

!q = tensor<?x4x8xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

// Nothing counts rows and keys: the plan is told. A number that follows from
// sizes is the plan's, so that masks by it have bounds; constants are written
// in the program; captured tensors come with a run.
// CHECK-LABEL: fi.program @open_attention0
// CHECK-SAME: plan(%capture: index)
// CHECK-SAME: run(%k: tensor<?x2x8xf32>, %v: tensor<?x2x8xf32>, %q: tensor<?x4x8xf32>, %capture1: tensor<4xf32>)
// CHECK: arith.constant 7 : index
// CHECK: fi.attention
// CHECK-LABEL: func.func @open
// CHECK-SAME: (%[[Q:.*]]: tensor<?x4x8xf32>, %[[K:.*]]: tensor<?x2x8xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK: %[[SHIFT:.*]] = arith.subi
// CHECK-DAG: %[[D0:.*]] = tensor.dim %[[K]], %c0
// CHECK-DAG: %[[D1:.*]] = tensor.dim %[[Q]], %c0
// CHECK: fi.plan @open_attention0(%[[SHIFT]] : index) sizes(%{{.*}}, %{{.*}})
// CHECK: fi.run @open_attention0(%[[K]], %{{.*}}, %[[Q]], %[[B]] :
func.func @open(%q: !q, %k: !t, %b: tensor<4xf32>) -> !q {
  %c0 = arith.constant 0 : index
  %c7 = arith.constant 7 : index
  %n = tensor.dim %q, %c0 : !q
  %m = tensor.dim %k, %c0 : !t
  %shift = arith.subi %m, %n : index
  %v = tensor.cast %k : !t to !t
  %kv = fi.view.ragged %k, %v : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) captures(%b0 = %b : tensor<4xf32>, %w = %c7 : index, %s0 = %shift : index)
    score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
      %x = fi.load %b0[%qh] : tensor<4xf32>
      %t = arith.addf %s, %x : f32
      fi.yield %t : f32
    }
    mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
      %row = arith.subi %qp, %s0 : index
      %end = arith.addi %row, %w : index
      %in = arith.cmpi sle, %kp, %end : index
      fi.yield %in : i1
    } : !q over !kv -> !q
  return %o : !q
}

// -----

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!pool = memref<?x2x4x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, HND>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>

// An append and states that share a view are of one program. The statistic is
// as large as the output, whose place the caller gave. A capture that is marked
// is the plan's.
// CHECK-LABEL: fi.program @cascade_attention0
// CHECK-SAME: plan(%table: tensor<?xi32>, %table1: tensor<?xi32>, %table2: tensor<?xi32>, %new_rows: tensor<?xi32>, %capture: tensor<?xi32>)
// CHECK-SAME: run(%k: memref<?x2x4x8xf32>, %v: memref<?x2x4x8xf32>, %new_k: tensor<?x2x8xf32>, %q: tensor<?x4x8xf32>, %sink: tensor<4xf32>) -> (tensor<?x4x8xf32>, tensor<?x4xf32>)
// CHECK: fi.append %new_k, %new_k
// CHECK: fi.attention
// CHECK: fi.finalize %{{.*}} sink(%sink : tensor<4xf32>) : !state -> tensor<?x4x8xf32>, tensor<?x4xf32>
// CHECK-LABEL: func.func @cascade
// CHECK-SAME: %[[D:[a-z0-9]*]]: tensor<?x4x8xf32>, %[[DL:[a-z0-9]*]]: tensor<?x4xf32>)
// CHECK: fi.plan @cascade_attention0({{.*}}){{$}}
// CHECK: fi.run @cascade_attention0({{.*}}) by(%{{.*}}) outs(%[[D]], %[[DL]] : tensor<?x4x8xf32>, tensor<?x4xf32>) -> tensor<?x4x8xf32>, tensor<?x4xf32>
func.func @cascade(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix, %doc: !ix {fi.plan}, %nk: tensor<?x2x8xf32>,
                   %q: !q, %k: !pool, %v: !pool, %sink: tensor<4xf32>, %d: !q, %dl: !l) -> (!q, !l) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nk rows(%qo : !ix) to %kv : tensor<?x2x8xf32>, tensor<?x2x8xf32> to !kv
  %s = fi.attention %q rows(%qo : !ix) over %kv scale(1.0) captures(%dc = %doc : !ix)
    mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
      %a = fi.load %dc[%qp] : !ix
      %b = fi.load %dc[%kp] : !ix
      %same = arith.cmpi eq, %a, %b : i32
      fi.yield %same : i1
    } : !q over !kv -> !st
  %o, %lse = fi.finalize %s sink(%sink : tensor<4xf32>) outs(%d, %dl : !q, !l) : !st -> !q, !l
  return %o, %lse : !q, !l
}

// -----

!q = tensor<?x4x8xf32>
!t = tensor<?x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

// Tensors go from program to program through the function; in a loop, the call
// stays there.
// CHECK: fi.program @layers_rms_norm0 run(
// CHECK: fi.program @layers_attention0 run(
// CHECK-LABEL: func.func @layers
// CHECK: scf.for
// CHECK: fi.plan @layers_rms_norm0() sizes(
// CHECK: %[[N:.*]] = fi.run @layers_rms_norm0
// CHECK: fi.plan @layers_attention0() sizes(
// CHECK: %[[O:.*]] = fi.run @layers_attention0({{.*}}%[[N]]
// CHECK: scf.yield %[[O]]
func.func @layers(%x: !q, %k: !t, %w: tensor<8xf32>, %n: index) -> !q {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%q = %x) -> !q {
    %a = fi.rms_norm %q weight(%w : tensor<8xf32>) eps(1.0e-5) : !q -> !q
    %kv = fi.view.ragged %k, %k : !t, !t -> !kv
    %o = fi.attention %a over %kv scale(1.0) : !q over !kv -> !q
    scf.yield %o : !q
  }
  return %r : !q
}

// -----

!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

// What nobody uses goes; two equal ones are two programs; names are new.
// CHECK: fi.program @twice_attention1
// CHECK: fi.program @twice_attention2
// CHECK-NOT: fi.program
// CHECK-LABEL: func.func @twice
// CHECK-COUNT-2: fi.run
// CHECK-NOT: fi.run
func.func private @twice_attention0()
func.func @twice(%q: !q) -> (!q, !q) {
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  %kv2 = fi.view.ragged %q, %q : !q, !q -> !kv
  %kv3 = fi.view.ragged %q, %q : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  %o2 = fi.attention %o over %kv2 scale(1.0) : !q over !kv -> !q
  %unused = fi.attention %o over %kv3 scale(1.0) : !q over !kv -> !q
  return %o, %o2 : !q, !q
}

// -----

!q = tensor<8x4x8xf32>
!kv = !fi.ragged_kv<4x8xf32>

// What is read may be the place of the result as well.
// CHECK-LABEL: fi.program @own_place_attention0
// CHECK: fi.attention %q over %{{.*}} scale(1.000000e+00) : tensor<8x4x8xf32>
// CHECK-LABEL: func.func @own_place
// CHECK-SAME: (%[[Q:.*]]: tensor<8x4x8xf32>, %[[K:.*]]: tensor<8x4x8xf32>)
// CHECK: fi.run @own_place_attention0(%[[K]], %[[Q]] : tensor<8x4x8xf32>, tensor<8x4x8xf32>) by(%{{.*}}) outs(%[[Q]] : tensor<8x4x8xf32>)
func.func @own_place(%q: !q, %k: !q) -> !q {
  %kv = fi.view.ragged %k, %k : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) outs(%q : !q) : !q over !kv -> !q
  return %o : !q
}
