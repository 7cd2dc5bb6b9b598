// Appends and the algebra of states become kernels over rows; states live in
// temporaries.
// RUN: fi-opt %s --fi-to-fi-tile | FileCheck %s

!ix = tensor<?xi32>
!q = tensor<?x2x8xf32>
!new = tensor<?x1x8xf32>
!pool = memref<?x1x4x8xbf16>
!kv = !fi.paged_kv<4x1x8xbf16, HND>
!st = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>

// CHECK-LABEL: fi_tile.kernel @step_append0_rows64(%nk: {{.*}}, %nv: {{.*}}, %k: {{.*}}, %v: {{.*}}, %pg: {{.*}}, %work: !fi_tile.work)
// kv_len - q_len + row_begin
// CHECK: arith.subi
// CHECK: %[[AT:.*]] = arith.addi
// CHECK: %[[K:.*]] = fi_tile.load_rows %nk
// CHECK: %[[N:.*]] = arith.truncf %[[K]] : tensor<64x8xf32> to tensor<64x8xbf16>
// CHECK: fi_tile.store_kv keys %[[N]], %{{.*}}[%{{.*}}, %[[AT]]]
// CHECK: fi_tile.store_kv values

// CHECK-LABEL: fi_tile.kernel @step_attention0_rows4(
// CHECK-SAME: %temporary0: memref<?x2x8xf32, strided<[?, ?, 1]>>, %temporary1: memref<?x2xf32, strided<[?, 1]>>
// CHECK-LABEL: fi_tile.kernel @step_merge0_rows64(
// CHECK-SAME: %temporary0: {{.*}}, %temporary1: {{.*}}, %temporary2: {{.*}}, %temporary3: {{.*}}, %temporary4: {{.*}}, %temporary5: {{.*}}, %work
// CHECK: fi_tile.merge #fi.softmax<base = 2>
// CHECK-LABEL: fi_tile.kernel @step_finalize0_rows64(
// CHECK: fi_tile.gather %sink
// CHECK: fi_tile.sink
// CHECK: arith.truncf
// CHECK: fi_tile.store_rows {{.*}} %result1

// CHECK-LABEL: fi_tile.package @step
// CHECK-SAME: results = [{dtype = "f32", name = "result0", rows_of = "q", shape = [unit, 2]}, {dtype = "f16", name = "result1", rows_of = "q", shape = [unit, 2, 8]}]
// CHECK-SAME: op = "append"
// CHECK-SAME: op = "attention"
// CHECK-SAME: op = "attention"
// CHECK-SAME: op = "rows"
// CHECK-SAME: op = "rows"
// CHECK-SAME: temporaries = [{dtype = "f32", name = "temporary0", rows_of = "q", shape = [unit, 2, 8]}
fi.program @step plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%q: !q, %nk: !new, %nv: !new, %k: !pool, %v: !pool, %sink: tensor<2xf32>)
    -> (tensor<?x2xf32>, tensor<?x2x8xf16>) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  fi.append %nk, %nv rows(%qo : !ix) to %kv : !new, !new to !kv
  %a = fi.attention %q rows(%qo : !ix) over %kv scale(0.5)
      schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>]) : !q over !kv -> !st
  %b = fi.attention %q rows(%qo : !ix) over %kv scale(0.25)
      schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>]) : !q over !kv -> !st
  %m = fi.merge %a, %b : !st
  %o, %lse = fi.finalize %m sink(%sink : tensor<2xf32>) : !st -> tensor<?x2x8xf16>, tensor<?x2xf32>
  fi.return %lse, %o : tensor<?x2xf32>, tensor<?x2x8xf16>
}

// The state of no keys is the normaliser's before the first key. Its rows come from the
// plan, from a tensor, or are a number.
// CHECK-LABEL: fi_tile.kernel @empties_empty0_rows64
// CHECK: %[[R:.*]]:3 = fi_tile.init(#fi.softmax<base = 2>)
// CHECK: %[[O:.*]], %[[L:.*]] = fi_tile.finalize #fi.softmax<base = 2> %[[R]]#0, %[[R]]#1, %[[R]]#2
// CHECK: fi_tile.store_rows %[[O]], %temporary0
// CHECK: fi_tile.store_rows %[[L]], %temporary1
// CHECK: fi_tile.package @empties
// CHECK-SAME: {dtype = "f32", name = "result0", rows_of = "n", shape = [unit, 2, 8]}
// CHECK-SAME: {dtype = "f32", name = "result1", rows_of = 5 : i64, shape = [5, 2, 8]}
// CHECK-SAME: {dtype = "f32", name = "result2", rows_of = "q", shape = [unit, 2, 8]}
// CHECK-SAME: op = "rows", rows_of = "n"
// CHECK-SAME: {dtype = "f32", name = "temporary0", rows_of = "n", shape = [unit, 2, 8]}
!any = !fi.state<?x2x8xf32, #fi.softmax<base = 2>>
!five = !fi.state<5x2x8xf32, #fi.softmax<base = 2>>
fi.program @empties plan(%n: index) run(%q: tensor<?x2x8xf32>) -> (tensor<?x2x8xf32>, tensor<5x2x8xf32>, tensor<?x2x8xf32>) {
  %a = fi.empty rows(%n) : !any
  %b = fi.empty : !five
  %zero = arith.constant 0 : index
  %d = tensor.dim %q, %zero : tensor<?x2x8xf32>
  %c = fi.empty rows(%d) : !any
  %x = fi.finalize %a : !any -> tensor<?x2x8xf32>
  %y = fi.finalize %b : !five -> tensor<5x2x8xf32>
  %z = fi.finalize %c : !any -> tensor<?x2x8xf32>
  fi.return %x, %y, %z : tensor<?x2x8xf32>, tensor<5x2x8xf32>, tensor<?x2x8xf32>
}
