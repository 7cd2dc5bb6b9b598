// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --cse --canonicalize | FileCheck %s --check-prefix=ORDER

!ix = tensor<?xi32>
!n = tensor<?x2x8xf32>
!pool = memref<?x2x4x8xbf16>
!kv = !fi.paged_kv<4x2x8xbf16, HND>

// CHECK-LABEL: fi.program @append
// CHECK: fi.append %nk, %nv rows(%ap : tensor<?xi32>) to %{{.*}} : tensor<?x2x8xf32>, memref<?x2x8xf16> to !kv

// What writes and what reads the pool keeps its order: no attention moves across
// an append, and equal attentions before and behind it are two.
// ORDER-LABEL: fi.program @append
// ORDER: fi.attention
// ORDER: fi.append
// ORDER: fi.attention
// ORDER: fi.return
fi.program @append plan(%ap: !ix, %ip: !ix, %pg: !ix, %last: !ix)
    run(%q: !n, %nk: !n, %nv: memref<?x2x8xf16>, %k: !pool, %v: !pool) -> (!n, !n) {
  %view = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %a = fi.attention %q rows(%ap : !ix) over %view scale(1.0) : !n over !kv -> !n
  fi.append %nk, %nv rows(%ap : !ix) to %view : !n, memref<?x2x8xf16> to !kv
  %b = fi.attention %q rows(%ap : !ix) over %view scale(1.0) : !n over !kv -> !n
  fi.return %a, %b : !n, !n
}

// CHECK-LABEL: fi.program @transformed
// CHECK: fi.append %nk, %nv rows(%ap : tensor<?xi32>) to %{{.*}} pair<half> dims(16) captures(%[[C:.*]] = %t : tensor<?xf32>) key(%[[X:.*]]: f32, %{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[P:.*]]: index) {
// CHECK:   fi.load %[[C]][%[[P]]] : tensor<?xf32>
// CHECK: } value(%{{.*}}: f32, %[[Y:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index) {
// CHECK:   fi.yield %[[Y]], %{{.*}} : f32, f32
// CHECK: } : tensor<?x2x32xf32>, tensor<?x2x32xf32> to !kv
// CHECK: fi.append {{.*}} pair<interleaved> value(%
// ORDER-LABEL: fi.program @transformed
fi.program @transformed plan(%ap: !ix) run(%nk: tensor<?x2x32xf32>, %nv: tensor<?x2x32xf32>, %k: memref<?x2x32xf32>, %t: tensor<?xf32>) {
  %view = fi.view.ragged %k, %k indptr(%ap : !ix) : memref<?x2x32xf32>, memref<?x2x32xf32> -> !fi.ragged_kv<2x32xf32>
  fi.append %nk, %nv rows(%ap : !ix) to %view pair<half> dims(16) captures(%c = %t : tensor<?xf32>)
      key(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
    %a = fi.load %c[%pos] : tensor<?xf32>
    fi.yield %a, %x : f32, f32
  } value(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %y, %x : f32, f32
  } : tensor<?x2x32xf32>, tensor<?x2x32xf32> to !fi.ragged_kv<2x32xf32>
  fi.append %nk, %nv rows(%ap : !ix) to %view pair<interleaved>
      value(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %y, %x : f32, f32
  } : tensor<?x2x32xf32>, tensor<?x2x32xf32> to !fi.ragged_kv<2x32xf32>
  fi.return
}
