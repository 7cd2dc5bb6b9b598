// One kernel for each schedule, one merge for each number of rows, and the manifest.
// RUN: fi-opt %s --fi-to-fi-tile | FileCheck %s
// RUN: fi-opt %s --fi-to-fi-tile | fi-opt --fi-to-fi-tile | FileCheck %s

!ix = tensor<?xi32>
!q = tensor<?x4x8xf32>
!pool = memref<?x2x4x8xf32>
!kv = !fi.paged_kv<4x2x8xf32, HND>

// CHECK-NOT: fi.program
// CHECK-LABEL: fi_tile.kernel @p_attention0_rows4(
// CHECK-SAME: %q: memref<?x4x8xf32, strided<[?, ?, 1]>>, %k: memref<?x2x4x8xf32, strided<[?, ?, ?, 1]>>
// CHECK-SAME: %pg: memref<?xi32, strided<[1]>>, %sink: memref<4xf32, strided<[1]>>
// CHECK-SAME: %result0: memref<?x4x8xf32, strided<[?, ?, 1]>>, %result1: memref<?x4xf32, strided<[?, 1]>>, %work: !fi_tile.work)
// CHECK-SAME: schedule(#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1, lanes = 1, max_rows = 4>)
// CHECK: fi_tile.for_items %[[IT:.*]] in %work {
// Query heads of a KV head are packed: row / 2 is the token, row % 2 the head.
// CHECK: %[[Q:.*]] = fi_tile.load_rows %q[%[[IT]]] group 2
// CHECK: %[[R:.*]] = fi_tile.iota %{{.*}} : tensor<4x1xindex>
// CHECK: %[[TOKEN:.*]] = arith.divui %[[R]]
// CHECK: %[[WITHIN:.*]] = arith.remui %[[R]]
// origin + kv_len - q_len + token
// CHECK: %[[QP:.*]] = arith.addi %[[TOKEN]]
// CHECK: fi_tile.init(#fi.softmax<base = 2>)
// CHECK: fi_tile.for_keys %[[T:.*]] in %[[IT]] all step 8
// CHECK: %[[K:.*]] = fi_tile.load_kv keys
// CHECK: %[[S:.*]] = fi_tile.dot %[[Q]], %[[K]] transpose
// CHECK: %[[X:.*]] = arith.mulf %[[S]]
// The key range, then the region, which depends on rows and keys.
// CHECK: arith.cmpi slt, %{{.*}} : tensor<1x8xindex>
// CHECK: arith.cmpi sle, %{{.*}} : tensor<4x8xindex>
// CHECK: fi_tile.mask %[[X]]
// CHECK: fi_tile.load_kv values
// CHECK: fi_tile.update
// CHECK: scf.if
// The sink counts where the keys are whole.
// CHECK: fi_tile.gather %sink
// CHECK: fi_tile.finalize {{.*}} sink
// CHECK: fi_tile.store_rows {{.*}} %result0
// CHECK: fi_tile.store_rows {{.*}} %result1
// CHECK: } else {
// CHECK-NOT: sink
// CHECK: fi_tile.store_state
// CHECK: fi_tile.kernel @p_attention0_merge4(
// CHECK: fi_tile.load_state
// CHECK: scf.for
// CHECK: fi_tile.merge
// CHECK: fi_tile.sink
// Equal numbers of rows share a merge.
// CHECK: fi_tile.kernel @p_attention0_rows4_1(
// CHECK-SAME: tile_keys = 16
// CHECK-NOT: fi_tile.kernel
// CHECK-LABEL: fi_tile.package @p
// CHECK-SAME: name = "qo"
// CHECK-SAME: max_rows = 4 : i64
// CHECK-SAME: symbol = "p_attention0_rows4"
// CHECK-SAME: symbol = "p_attention0_rows4_1"
// CHECK-SAME: buffers = ["q", "k", "v", "pg", "sink", "result0", "result1"]
// CHECK-SAME: terms = [{exact = true, hi = {{\[}}["q"]], lo = []}]
// CHECK-SAME: symbol = "p_attention0_merge4"
// CHECK-SAME: split = {keys = 32 : i64, policy = "fixed"}
fi.program @p plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %sink: tensor<4xf32>) -> (!q, tensor<?x4xf32>) {
  %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.5) sink(%sink : tensor<4xf32>)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %m = arith.cmpi sle, %kp, %qp : index
        fi.yield %m : i1
      } split(#fi.split<fixed = 32>) bounds([{lo = [], hi = [["q"]], exact = true}])
      schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1, max_rows = 4>,
                 #fi.schedule<tile_rows = 4, tile_keys = 16, mr = 4, nr = 2>])
      : !q over !kv -> !q, tensor<?x4xf32>
  fi.return %o, %lse : !q, tensor<?x4xf32>
}

// Without a group, without tables, without a mask: the head is the item's.
// CHECK-LABEL: fi_tile.kernel @plain_attention0_rows8(
// CHECK-NOT: arith.divui
// CHECK: fi_tile.view %k, %k :
// CHECK: fi_tile.mask
// CHECK-LABEL: fi_tile.package @plain
// CHECK-NOT: mask =
// CHECK-SAME: kind = "ragged"
fi.program @plain run(%q: tensor<?x2x8xf16>, %k: tensor<?x2x8xf32>) -> (tensor<?x2x8xf16>) {
  %kv = fi.view.ragged %k, %k : tensor<?x2x8xf32>, tensor<?x2x8xf32> -> !fi.ragged_kv<2x8xf32>
  // Different element types: the product is in f32.
  // (The query is widened where it is loaded.)
  %o = fi.attention %q over %kv scale(1.0) schedules([#fi.schedule<tile_rows = 8, tile_keys = 8, mr = 2, nr = 1>])
      : tensor<?x2x8xf16> over !fi.ragged_kv<2x8xf32> -> tensor<?x2x8xf16>
  fi.return %o : tensor<?x2x8xf16>
}
