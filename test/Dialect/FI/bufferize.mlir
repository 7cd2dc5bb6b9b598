// Ops of fi on tensors in functions become ops on memrefs.
// RUN: fi-opt %s --one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" --split-input-file --canonicalize --cse | FileCheck %s

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

// Results without a destination get buffers of the query's rows.
// CHECK-LABEL: func.func @allocates
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x8xf32>, %[[K:.*]]: memref<?x2x8xf32>, %[[V:.*]]: memref<?x2x8xf32>, %[[QO:.*]]: memref<?xi32>, %[[S:.*]]: memref<4xf32>) -> (memref<?x4x8xf32>, memref<?x4xf32>)
// CHECK: %[[KV:.*]] = fi.view.ragged %[[K]], %[[V]] indptr(%[[QO]] : memref<?xi32>) : memref<?x2x8xf32>, memref<?x2x8xf32> -> !kv
// CHECK: %[[N:.*]] = memref.dim %[[Q]], %{{.*}} : memref<?x4x8xf32>
// CHECK: %[[O:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x4x8xf32>
// CHECK: %[[L:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x4xf32>
// CHECK: fi.attention %[[Q]] rows(%[[QO]] : memref<?xi32>) over %[[KV]] scale(1.000000e+00) sink(%[[S]] : memref<4xf32>) mask(#fi.causal) outs(%[[O]], %[[L]] : memref<?x4x8xf32>, memref<?x4xf32>) {fi.note = "kept"} : memref<?x4x8xf32> over !kv{{$}}
// CHECK: return %[[O]], %[[L]]
func.func @allocates(%q: !q, %k: !t, %v: !t, %qo: !ix, %s: tensor<4xf32>) -> (!q, !l) {
  %kv = fi.view.ragged %k, %v indptr(%qo : !ix) : !t, !t -> !kv
  %o, %l = fi.attention %q rows(%qo : !ix) over %kv scale(1.0) sink(%s : tensor<4xf32>) mask(#fi.causal) {fi.note = "kept"} : !q over !kv -> !q, !l
  return %o, %l : !q, !l
}

// -----

!q = tensor<?x4x8xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

// A destination is written where it lies: no allocation, no copy.
// CHECK-LABEL: func.func @in_place
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x8xf32>, %[[K:.*]]: memref<?x2x8xf32>, %[[D:.*]]: memref<?x4x8xf32>)
// CHECK-NOT: memref.alloc
// CHECK-NOT: memref.copy
// CHECK: fi.attention %[[Q]] over %{{.*}} scale(1.000000e+00) outs(%[[D]] : memref<?x4x8xf32>) : memref<?x4x8xf32> over !kv{{$}}
// CHECK-NOT: memref.copy
// CHECK: return
func.func @in_place(%q: !q, %k: !t, %d: !q {bufferization.writable = true}) -> !q {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) outs(%d : !q) : !q over !kv -> !q
  return %o : !q
}

// The query cannot be the destination: it is read while that is written.
// CHECK-LABEL: func.func @not_in_place
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x8xf32>,
// CHECK: %[[O:.*]] = memref.alloc
// CHECK: fi.attention %[[Q]] over %{{.*}} scale(1.000000e+00) outs(%[[O]] : memref<?x4x8xf32>)
func.func @not_in_place(%q: !q, %k: !t) -> !q {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) outs(%q : !q) : !q over !kv -> !q
  return %o : !q
}

// -----

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!t = tensor<?x16x2x8xf32>
!kv = !fi.paged_kv<16x2x8xf32, NHD>

// A table that is overwritten in place while a view of it lives: the view gets a
// copy, made before.
// CHECK-LABEL: func.func @table_overwritten
// CHECK-SAME: %[[P:[^ ]*]]: memref<?xi32>, %[[LAST:[^ ]*]]: memref<?xi32>, %[[W:[^ ]*]]: memref<?xi32>)
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: memref.copy %[[W]], %[[COPY]]
// CHECK: %[[KV:.*]] = fi.view.paged %{{.*}}, %{{.*}} tables(%[[P]], %[[COPY]], %[[LAST]]
// CHECK: memref.store %{{.*}}, %[[W]]
// CHECK: fi.attention %{{.*}} over %[[KV]]
func.func @table_overwritten(%q: !q, %k: !t, %i: index, %x: i32, %p: !ix, %last: !ix, %w: !ix {bufferization.writable = true}) -> (!q, !ix) {
  %kv = fi.view.paged %k, %k tables(%p, %w, %last : !ix, !ix, !ix) : !t, !t -> !kv
  %w2 = tensor.insert %x into %w[%i] : !ix
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  return %o, %w2 : !q, !ix
}

// A table that is written before the view is made needs none.
// CHECK-LABEL: func.func @table_written_before
// CHECK-SAME: %[[W:[^ ]*]]: memref<?xi32>)
// CHECK-NOT: memref.copy
// CHECK: memref.store %{{.*}}, %[[W]]
// CHECK-NOT: memref.copy
// CHECK: fi.view.paged %{{.*}}, %{{.*}} tables(%{{.*}}, %[[W]], %{{.*}}
// CHECK-NOT: memref.copy
// CHECK: return
func.func @table_written_before(%q: !q, %k: !t, %i: index, %x: i32, %p: !ix, %last: !ix, %w: !ix {bufferization.writable = true}) -> (!q, !ix) {
  %w2 = tensor.insert %x into %w[%i] : !ix
  %kv = fi.view.paged %k, %k tables(%p, %w2, %last : !ix, !ix, !ix) : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  return %o, %w2 : !q, !ix
}

// In a loop: the next iteration's view sees the write, this one's must not.
// CHECK-LABEL: func.func @table_in_loop
// CHECK: scf.for
// CHECK: memref.copy %[[W:.*]], %[[COPY:.*]] :
// CHECK: fi.view.paged %{{.*}}, %{{.*}} tables(%{{.*}}, %[[COPY]], %{{.*}}
// CHECK: memref.store %{{.*}}, %[[W]]
// CHECK: fi.attention
func.func @table_in_loop(%q: !q, %k: !t, %n: index, %x: i32, %p: !ix, %last: !ix, %w: !ix {bufferization.writable = true}, %d: !q {bufferization.writable = true}) -> (!q, !ix) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r, %s = scf.for %i = %c0 to %n step %c1 iter_args(%t = %w, %a = %d) -> (!ix, !q) {
    %kv = fi.view.paged %k, %k tables(%p, %t, %last : !ix, !ix, !ix) : !t, !t -> !kv
    %t2 = tensor.insert %x into %t[%i] : !ix
    %o = fi.attention %q over %kv scale(1.0) outs(%a : !q) : !q over !kv -> !q
    scf.yield %t2, %o : !ix, !q
  }
  return %s, %r : !q, !ix
}

// The destination is the pool of keys: the view gets a copy of it.
// CHECK-LABEL: func.func @destination_is_pool
// CHECK-SAME: %[[T:[^ ]*]]: memref<?x4x8xf32>)
// CHECK: %[[COPY:.*]] = memref.alloc
// CHECK: memref.copy %[[T]], %[[COPY]]
// CHECK: fi.view.ragged
// CHECK: fi.attention
func.func @destination_is_pool(%q: !q, %t: tensor<?x4x8xf32> {bufferization.writable = true}) -> !q {
  %kv = fi.view.ragged %t, %t : tensor<?x4x8xf32>, tensor<?x4x8xf32> -> !fi.ragged_kv<4x8xf32>
  %o = fi.attention %q over %kv scale(1.0) outs(%t : !q) : !q over !fi.ragged_kv<4x8xf32> -> !q
  return %o : !q
}

// -----

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

// Captures, in every region.
// CHECK-LABEL: func.func @captures
// CHECK-SAME: %[[D:[^ ]*]]: memref<?x?xi32>, %[[S:[^ ]*]]: memref<4xf32>)
// CHECK: fi.attention %{{.*}} captures(%[[C0:.*]] = %[[S]] : memref<4xf32>, %[[C1:.*]] = %[[D]] : memref<?x?xi32>)
// CHECK: fi.load %[[C0]][%qh] : memref<4xf32>
// CHECK: fi.load %[[C1]][%req, %kp] : memref<?x?xi32>
// CHECK: outs(
func.func @captures(%q: !q, %k: !t, %doc: tensor<?x?xi32>, %slope: tensor<4xf32>) -> !q {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv
  %o = fi.attention %q over %kv scale(1.0)
      captures(%sl = %slope : tensor<4xf32>, %dc = %doc : tensor<?x?xi32>)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %m = fi.load %sl[%qh] : tensor<4xf32>
        %t = arith.addf %s, %m : f32
        fi.yield %t : f32
      }
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = fi.load %dc[%req, %kp] : tensor<?x?xi32>
        %zero = arith.constant 0 : i32
        %b = arith.cmpi eq, %c, %zero : i32
        fi.yield %b : i1
      } : !q over !kv -> !q
  return %o : !q
}

// -----

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!t = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>
!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>

// States stay values. A state's rows are found where it was made.
// CHECK-LABEL: func.func @states
// CHECK-SAME: (%[[Q:.*]]: memref<?x4x8xf32>, %{{.*}}: memref<?x2x8xf32>, %[[QO:.*]]: memref<?xi32>, %[[SINK:.*]]: memref<4xf32>)
// CHECK: %[[G:.*]] = fi.segments rows(%[[QO]] : memref<?xi32>)
// CHECK: %[[P:.*]] = fi.attention %[[Q]] rows(%[[QO]] : memref<?xi32>) over %{{.*}} segments(%[[G]]) {{.*}} : memref<?x4x8xf32> over !kv -> !state
// CHECK: %[[F:.*]] = fi.merge_segments %[[P]] by %[[G]]
// CHECK: %[[M:.*]] = fi.merge %[[F]], %{{.*}}
// CHECK: %[[N:.*]] = memref.dim %[[Q]]
// CHECK: %[[O:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x4x8xf32>
// CHECK: %[[L:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x4xf32>
// CHECK: fi.finalize %[[M]] sink(%[[SINK]] : memref<4xf32>) outs(%[[O]], %[[L]] : memref<?x4x8xf32>, memref<?x4xf32>)
// CHECK: return %[[O]], %[[L]]
func.func @states(%q: !q, %k: !t, %qo: !ix, %sink: tensor<4xf32>) -> (!q, !l) {
  %kv = fi.view.ragged %k, %k indptr(%qo : !ix) : !t, !t -> !kv
  %g = fi.segments rows(%qo : !ix) over %kv split(#fi.split<fixed = 64>) : !kv
  %p = fi.attention %q rows(%qo : !ix) over %kv segments(%g) scale(1.0) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %g : !seg -> !st
  %b = fi.attention %q rows(%qo : !ix) over %kv scale(2.0) : !q over !kv -> !st
  %m = fi.merge %s, %b : !st
  %o, %l = fi.finalize %m sink(%sink : tensor<4xf32>) : !st -> !q, !l
  return %o, %l : !q, !l
}

// A state from elsewhere needs a destination, and has it.
// CHECK-LABEL: func.func @state_argument
// CHECK: fi.finalize %{{.*}} outs(%[[D:.*]] : memref<?x4x8xf32>) : !state1{{$}}
func.func @state_argument(%s: !st, %d: !q {bufferization.writable = true}) -> !q {
  %o = fi.finalize %s outs(%d : !q) : !st -> !q
  return %o : !q
}

// New keys and values may be tensors beside pools that are memrefs.
// CHECK-LABEL: func.func @append
// CHECK: fi.append %{{.*}}, %{{.*}} rows(%{{.*}} : memref<?xi32>) to %{{.*}} : memref<?x2x8xf32>, memref<?x2x8xf32> to !kv
func.func @append(%nk: !t, %ap: !ix, %k: memref<?x2x8xf32>) {
  %kv = fi.view.ragged %k, %k indptr(%ap : !ix) : memref<?x2x8xf32>, memref<?x2x8xf32> -> !kv
  fi.append %nk, %nk rows(%ap : !ix) to %kv : !t, !t to !kv
  return
}

// Norms: a place for each result, new or given.
// CHECK-LABEL: func.func @norms
// CHECK-SAME: (%[[X:.*]]: memref<?x1x64xf32>, %[[R:.*]]: memref<?x1x64xf32>, %[[W:.*]]: memref<64xf32>)
// CHECK: %[[N:.*]] = memref.dim %[[X]]
// CHECK: %[[Y:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x1x64xf16>
// CHECK: %[[S:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?x1x64xf32>
// CHECK: fi.rms_norm %[[X]] add(%[[R]] : memref<?x1x64xf32>) weight(%[[W]] : memref<64xf32>) plus_one eps(1.000000e-01) outs(%[[Y]], %[[S]] : memref<?x1x64xf16>, memref<?x1x64xf32>) : memref<?x1x64xf32>{{$}}
// CHECK: return %[[Y]], %[[S]]
func.func @norms(%x: tensor<?x1x64xf32>, %r: tensor<?x1x64xf32>, %w: tensor<64xf32>) -> (tensor<?x1x64xf16>, tensor<?x1x64xf32>) {
  %y, %s = fi.rms_norm %x add(%r : tensor<?x1x64xf32>) weight(%w : tensor<64xf32>) plus_one eps(0.1) : tensor<?x1x64xf32> -> tensor<?x1x64xf16>, tensor<?x1x64xf32>
  return %y, %s : tensor<?x1x64xf16>, tensor<?x1x64xf32>
}

// CHECK-LABEL: func.func @norm_in_place
// CHECK-SAME: (%[[X:.*]]: memref<?x1x64xf32>, %[[D:.*]]: memref<?x1x64xf32>)
// CHECK-NOT: alloc
// CHECK: fi.layer_norm %[[X]] eps(1.000000e-01) outs(%[[D]] : memref<?x1x64xf32>) : memref<?x1x64xf32>{{$}}
// CHECK: return %[[D]]
func.func @norm_in_place(%x: tensor<?x1x64xf32>, %d: tensor<?x1x64xf32> {bufferization.writable = true}) -> tensor<?x1x64xf32> {
  %y = fi.layer_norm %x eps(0.1) outs(%d : tensor<?x1x64xf32>) : tensor<?x1x64xf32> -> tensor<?x1x64xf32>
  return %y : tensor<?x1x64xf32>
}

// Other ops on rows: gates, pairs with what they capture, codes and their scales.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: memref<?x1x64xf32>, %[[P:.*]]: memref<?xi32>, %[[T:.*]]: memref<?x2x16xf32>)
// CHECK: %[[G:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x1x32xf16>
// CHECK: fi.gated %[[X]] act(gelu) outs(%[[G]] : memref<?x1x32xf16>) : memref<?x1x64xf32>
// CHECK: %[[Y:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x1x32xf32>
// CHECK: fi.rope %[[G]] at(%[[P]] : memref<?xi32>) pair<half> captures(%[[C:.*]] = %[[T]] : memref<?x2x16xf32>) transform(
// CHECK: fi.load %[[C]][%{{.*}}] : memref<?x2x16xf32>
// CHECK: } outs(%[[Y]] : memref<?x1x32xf32>) : memref<?x1x32xf16>
// CHECK-DAG: %[[Q:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x1x32xi8>
// CHECK-DAG: %[[S:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x1xf32>
// CHECK: fi.quantise %[[Y]] to(!fi.scaled<i8, per = token, by = f32>) outs(%[[Q]], %[[S]] : memref<?x1x32xi8>, memref<?x1xf32>) : memref<?x1x32xf32>
// CHECK: return %[[Q]], %[[S]]
func.func @rows(%x: tensor<?x1x64xf32>, %p: tensor<?xi32>, %t: tensor<?x2x16xf32>) -> (tensor<?x1x32xi8>, tensor<?x1xf32>) {
  %g = fi.gated %x act(gelu) : tensor<?x1x64xf32> -> tensor<?x1x32xf16>
  %y = fi.rope %g at(%p : tensor<?xi32>) pair<half> captures(%c = %t : tensor<?x2x16xf32>)
      transform(%a: f32, %b: f32, %pair: index, %req: index, %head: index, %pos: index) {
    %zero = arith.constant 0 : index
    %f = fi.load %c[%pos, %zero, %pair] : tensor<?x2x16xf32>
    %u = arith.mulf %a, %f : f32
    fi.yield %b, %u : f32, f32
  } : tensor<?x1x32xf16> -> tensor<?x1x32xf32>
  %q, %s = fi.quantise %y to(!fi.scaled<i8, per = token, by = f32>) : tensor<?x1x32xf32> -> tensor<?x1x32xi8>, tensor<?x1xf32>
  return %q, %s : tensor<?x1x32xi8>, tensor<?x1xf32>
}

// CHECK-LABEL: func.func @rows_in_place
// CHECK-SAME: (%[[C:.*]]: memref<?x1x64xi8>, %[[S:.*]]: memref<?x1xf32>, %[[P:.*]]: memref<?xi32>, %[[D:.*]]: memref<?x1x64xf32>, %[[E:.*]]: memref<?x1x64xf32>)
// CHECK-NOT: alloc
// CHECK: fi.dequantise %[[C]] from(!fi.scaled<i8, per = token, by = f32>) scales(%[[S]] : memref<?x1xf32>) outs(%[[D]] : memref<?x1x64xf32>) : memref<?x1x64xi8>
// CHECK: fi.rope %[[D]] at(%[[P]] : memref<?xi32>) pair<half> transform(
// CHECK: } outs(%[[E]] : memref<?x1x64xf32>) : memref<?x1x64xf32>
// CHECK: return %[[E]]
func.func @rows_in_place(%c: tensor<?x1x64xi8>, %s: tensor<?x1xf32>, %p: tensor<?xi32>, %d: tensor<?x1x64xf32> {bufferization.writable = true}, %e: tensor<?x1x64xf32> {bufferization.writable = true}) -> tensor<?x1x64xf32> {
  %y = fi.dequantise %c from(!fi.scaled<i8, per = token, by = f32>) scales(%s : tensor<?x1xf32>) outs(%d : tensor<?x1x64xf32>) : tensor<?x1x64xi8> -> tensor<?x1x64xf32>
  %z = fi.rope %y at(%p : tensor<?xi32>) pair<half> transform(%a: f32, %b: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %b, %a : f32, f32
  } outs(%e : tensor<?x1x64xf32>) : tensor<?x1x64xf32> -> tensor<?x1x64xf32>
  return %z : tensor<?x1x64xf32>
}

// CHECK-LABEL: func.func @shared_scales
// CHECK-SAME: (%[[X:.*]]: memref<?x1x64xf32>)
// CHECK-DAG: %[[Q:.*]] = memref.alloc(%{{.*}}) {alignment = 64 : i64} : memref<?x1x64xi8>
// CHECK-DAG: %[[S:.*]] = memref.alloc() {alignment = 64 : i64} : memref<1xf32>
// CHECK: fi.quantise %[[X]] to(!fi.scaled<i8, per = tensor, by = f32>) outs(%[[Q]], %[[S]] : memref<?x1x64xi8>, memref<1xf32>) : memref<?x1x64xf32>
func.func @shared_scales(%x: tensor<?x1x64xf32>) -> (tensor<?x1x64xi8>, tensor<1xf32>) {
  %q, %s = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) : tensor<?x1x64xf32> -> tensor<?x1x64xi8>, tensor<1xf32>
  return %q, %s : tensor<?x1x64xi8>, tensor<1xf32>
}

// CHECK-LABEL: func.func @segments
// CHECK-SAME: (%[[X:.*]]: memref<?xi1>, %[[F:.*]]: memref<?xi32>, %[[N:.*]]: index)
// CHECK: %[[Y:.*]] = memref.alloc(%[[N]]) {alignment = 64 : i64} : memref<?xi8>
// CHECK: fi.segment_pack_bits %[[X]] from(%[[F]] : memref<?xi32>) to(%[[F]] : memref<?xi32>) order(little) outs(%[[Y]] : memref<?xi8>) : memref<?xi1>
// CHECK: return %[[Y]]
func.func @segments(%x: tensor<?xi1>, %f: tensor<?xi32>, %n: index) -> tensor<?xi8> {
  %y = fi.segment_pack_bits %x from(%f : tensor<?xi32>) to(%f : tensor<?xi32>) bytes(%n) order(little) : tensor<?xi1> -> tensor<?xi8>
  return %y : tensor<?xi8>
}
