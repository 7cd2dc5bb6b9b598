// A value of a region stays as small as what it depends on: a scalar, a column per
// row, a row per key, or a tile.
// RUN: fi-opt %s --fi-to-fi-tile | FileCheck %s

!q = tensor<?x4x8xf32>
!k = tensor<?x2x8xf32>
!kv = !fi.ragged_kv<2x8xf32>

// CHECK-LABEL: fi_tile.kernel @alibi_attention0_rows4
// CHECK: %[[KP:.*]] = fi_tile.iota %{{.*}} : tensor<1x8xindex>
// By head, so by row: a gather of a column.
// CHECK: %[[M:.*]] = fi_tile.gather %slope[%{{.*}}] : {{.*}}, tensor<4x1xindex> -> tensor<4x1xf32>
// CHECK: arith.subi %{{.*}} : tensor<4x8xindex>
// CHECK: arith.index_cast %{{.*}} : tensor<4x8xindex> to tensor<4x8xi32>
// CHECK: %[[F:.*]] = arith.sitofp %{{.*}} : tensor<4x8xi32> to tensor<4x8xf32>
// CHECK: %[[B:.*]] = fi_tile.broadcast %[[M]] : tensor<4x1xf32> -> tensor<4x8xf32>
// CHECK: arith.mulf %[[B]], %[[F]]
fi.program @alibi run(%q: !q, %k: !k, %slope: tensor<4xf32>) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) captures(%sl = %slope : tensor<4xf32>)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %m = fi.load %sl[%qh] : tensor<4xf32>
        %d = arith.subi %kp, %qp : index
        %i = arith.index_cast %d : index to i32
        %f = arith.sitofp %i : i32 to f32
        %b = arith.mulf %m, %f : f32
        %t = arith.addf %s, %b : f32
        fi.yield %t : f32
      } schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>]) : !q over !kv -> !q
  fi.return %o : !q
}

// CHECK-LABEL: fi_tile.kernel @branches_attention0_rows4
// By key alone: rows of a tile.
// CHECK: fi_tile.gather %doc[%{{.*}}, %{{.*}}] : {{.*}} -> tensor<1x8xi64>
// A branch becomes both sides and a select. A divisor that may be 0 is 1 there: only
// the side that is not taken divides by it.
// CHECK: %[[ZERO:.*]] = arith.cmpi eq, %{{.*}}, %{{.*}} : tensor<1x8xi64>
// CHECK: %[[SAFE:.*]] = arith.select %[[ZERO]]
// CHECK: arith.divsi %{{.*}}, %[[SAFE]] : tensor<1x8xi64>
// CHECK: arith.select %{{.*}} : tensor<1x8xi1>, tensor<1x8xi64>
// A constant divisor needs no guard.
// CHECK-NOT: arith.cmpi eq
// CHECK: arith.remsi
// The index dialect is arith.
// CHECK: arith.maxsi
// CHECK-NOT: index.
// CHECK-NOT: scf.if %{{.*}} -> (
fi.program @branches run(%q: !q, %k: !k, %doc: tensor<?x?xi64>) -> (!q) {
  %kv = fi.view.ragged %k, %k : !k, !k -> !kv
  %o = fi.attention %q over %kv scale(1.0) captures(%dc = %doc : tensor<?x?xi64>)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %n = fi.load %dc[%req, %kp] : tensor<?x?xi64>
        %zero = arith.constant 0 : i64
        %some = arith.cmpi ne, %n, %zero : i64
        %c = scf.if %some -> i64 {
          %hundred = arith.constant 100 : i64
          %d = arith.divsi %hundred, %n : i64
          scf.yield %d : i64
        } else {
          scf.yield %zero : i64
        }
        %three = arith.constant 3 : i64
        %r = arith.remsi %c, %three : i64
        %i = arith.index_cast %r : i64 to index
        %x = index.maxs %i, %kp
        %m = index.cmp sle(%x, %qp)
        fi.yield %m : i1
      } schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>]) : !q over !kv -> !q
  fi.return %o : !q
}
