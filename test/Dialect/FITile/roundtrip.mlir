// Every op of level 2 in text, in bytecode and in the generic form.
// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s | fi-opt | FileCheck %s
// RUN: fi-opt %s -emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s -mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null

#schedule = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
#softmax = #fi.softmax<base = 2>
!kv = !fi.paged_kv<16x8x128xf32, HND>

// CHECK: !kv = !fi.paged_kv<16x8x128xf32, HND>
// CHECK: !kv1 = !fi.ragged_kv<8x64xf16>
// CHECK: !kv2 = !fi.paged_kv<32x2x64xf32, NHD, fused>

// Names of arguments survive, so that a manifest can use them.
// CHECK-LABEL: fi_tile.kernel @rows(%q: memref<?x32x128xbf16>, %lse: memref<?x32xf32>, %scale: f32, %work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>) {
fi_tile.kernel @rows(%q: memref<?x32x128xbf16>, %lse: memref<?x32xf32>,
                     %scale: f32, %work: !fi_tile.work) schedule(#schedule) {
  // CHECK-NEXT: fi_tile.for_items %[[IT:.*]] in %work {
  fi_tile.for_items %it in %work {
    // CHECK-NEXT: %[[Q:.*]] = fi_tile.load_rows %q[%[[IT]]] group 4 : memref<?x32x128xbf16> -> tensor<16x128xbf16>
    %0 = fi_tile.load_rows %q[%it] group 4 : memref<?x32x128xbf16> -> tensor<16x128xbf16>
    // CHECK-NEXT: fi_tile.load_rows %q[%[[IT]]] group 4 : memref<?x32x128xbf16> -> tensor<16x128xf32>
    %1 = fi_tile.load_rows %q[%it] group 4 : memref<?x32x128xbf16> -> tensor<16x128xf32>
    // CHECK-NEXT: %[[L:.*]] = fi_tile.load_rows %lse[%[[IT]]] group 4 : memref<?x32xf32> -> tensor<16x1xf32>
    %2 = fi_tile.load_rows %lse[%it] group 4 : memref<?x32xf32> -> tensor<16x1xf32>
    // CHECK-NEXT: fi_tile.store_rows %[[Q]], %q[%[[IT]]] group 4 : tensor<16x128xbf16>, memref<?x32x128xbf16>
    fi_tile.store_rows %0, %q[%it] group 4 : tensor<16x128xbf16>, memref<?x32x128xbf16>
    // CHECK-NEXT: fi_tile.store_rows %[[L]], %lse[%[[IT]]] group 4 {note = "twice"} : tensor<16x1xf32>, memref<?x32xf32>
    fi_tile.store_rows %2, %lse[%it] group 4 {note = "twice"} : tensor<16x1xf32>, memref<?x32xf32>
  // CHECK-NEXT: } {note = 1 : i64}
  } {note = 1}
  // CHECK-NEXT: fi_tile.return
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @items
// CHECK-SAME: (%arg0: memref<?xf32> {fi.note}, %work: !fi_tile.work)
// CHECK-SAME: attributes {fi.note = "kernel"}
fi_tile.kernel @items(%0: memref<?xf32> {fi.note}, %w: !fi_tile.work) schedule(#schedule)
    attributes {fi.note = "kernel"} {
  fi_tile.for_items %it in %w {
    // CHECK:      fi_tile.item %[[IT:.*]][request]
    // CHECK-NEXT: fi_tile.item %[[IT]][kv_head]
    // CHECK-NEXT: fi_tile.item %[[IT]][row_begin]
    // CHECK-NEXT: fi_tile.item %[[IT]][row_count]
    // CHECK-NEXT: fi_tile.item %[[IT]][q_begin]
    // CHECK-NEXT: fi_tile.item %[[IT]][q_len]
    // CHECK-NEXT: fi_tile.item %[[IT]][kv_len]
    // CHECK-NEXT: fi_tile.item %[[IT]][kv_origin]
    // CHECK-NEXT: fi_tile.item %[[IT]][slot]
    // CHECK-NEXT: fi_tile.item %[[IT]][slot_count]
    %1 = fi_tile.item %it[request]
    %2 = fi_tile.item %it[kv_head]
    %3 = fi_tile.item %it[row_begin]
    %4 = fi_tile.item %it[row_count]
    %5 = fi_tile.item %it[q_begin]
    %6 = fi_tile.item %it[q_len]
    %7 = fi_tile.item %it[kv_len]
    %8 = fi_tile.item %it[kv_origin]
    %9 = fi_tile.item %it[slot]
    %10 = fi_tile.item %it[slot_count]
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @keys
fi_tile.kernel @keys(%k: memref<?x8x16x128xf32>, %v: memref<?x8x16x128xf32>,
                     %pages: memref<?xi32>, %rk: memref<?x8x64xf16>,
                     %fused: memref<?x2x32x2x64xf32>, %work: !fi_tile.work)
    schedule(#schedule) {
  // CHECK: %[[KV:.*]] = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x8x16x128xf32>, memref<?x8x16x128xf32> -> !kv
  %kv = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x8x16x128xf32>, memref<?x8x16x128xf32> -> !kv
  // CHECK-NEXT: %[[RKV:.*]] = fi_tile.view %rk, %rk : memref<?x8x64xf16>, memref<?x8x64xf16> -> !kv1
  %rkv = fi_tile.view %rk, %rk : memref<?x8x64xf16>, memref<?x8x64xf16> -> !fi.ragged_kv<8x64xf16>
  // CHECK-NEXT: fi_tile.view %fused pages(%pages : memref<?xi32>) : memref<?x2x32x2x64xf32> -> !kv2
  %fkv = fi_tile.view %fused pages(%pages : memref<?xi32>) : memref<?x2x32x2x64xf32> -> !fi.paged_kv<32x2x64xf32, NHD, fused>
  %zero = arith.constant dense<0.0> : tensor<16x1xf32>
  fi_tile.for_items %it in %work {
    // CHECK: %{{.*}} = fi_tile.for_keys %[[T:.*]] in %[[IT:.*]] all step 64 iter_args(%[[A:.*]] = %{{.*}}) -> (tensor<16x1xf32>) {
    %0 = fi_tile.for_keys %t in %it all step 64 iter_args(%a = %zero) -> (tensor<16x1xf32>) {
      // CHECK-NEXT: %[[K:.*]] = fi_tile.load_kv keys %[[KV]][%[[IT]], %[[T]]] : !kv -> tensor<64x128xf32>
      %1 = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<64x128xf32>
      // CHECK-NEXT: fi_tile.load_kv values %[[RKV]][%[[IT]], %[[T]]] : !kv1 -> tensor<64x64xf32>
      %2 = fi_tile.load_kv values %rkv[%it, %t] : !fi.ragged_kv<8x64xf16> -> tensor<64x64xf32>
      // CHECK-NEXT: fi_tile.store_kv values %[[K]], %[[KV]][%[[IT]], %[[T]]] : tensor<64x128xf32>, !kv
      fi_tile.store_kv values %1, %kv[%it, %t] : tensor<64x128xf32>, !kv
      // CHECK-NEXT: fi_tile.yield %[[A]] : tensor<16x1xf32>
      fi_tile.yield %a : tensor<16x1xf32>
    // CHECK-NEXT: } {note}
    } {note}
    // CHECK-NEXT: fi_tile.for_keys %{{.*}} in %[[IT]] full step 32 {
    fi_tile.for_keys %t in %it full step 32 {
      // CHECK-NEXT: fi_tile.yield
      fi_tile.yield
    }
    // CHECK: fi_tile.for_keys %{{.*}} in %[[IT]] partial step 1 {
    fi_tile.for_keys %t in %it partial step 1 {
      fi_tile.yield
    }
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @tiles
fi_tile.kernel @tiles(%doc: memref<?x?xi32>, %x: memref<f32>, %a: memref<?x1x128xf32>,
                      %b: memref<?x1x64xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    // CHECK: %[[R:.*]] = fi_tile.item
    %request = fi_tile.item %it[request]
    // CHECK-NEXT: %[[KP:.*]] = fi_tile.iota %[[R]] : tensor<1x64xindex>
    %kp = fi_tile.iota %request : tensor<1x64xindex>
    // CHECK-NEXT: fi_tile.iota %[[R]] : tensor<16x1xindex>
    %qp = fi_tile.iota %request : tensor<16x1xindex>
    // CHECK-NEXT: fi_tile.gather %doc[%[[R]], %[[KP]]] : memref<?x?xi32>, index, tensor<1x64xindex> -> tensor<1x64xi32>
    %0 = fi_tile.gather %doc[%request, %kp] : memref<?x?xi32>, index, tensor<1x64xindex> -> tensor<1x64xi32>
    // CHECK-NEXT: fi_tile.gather %doc[%[[R]], %[[R]]] : memref<?x?xi32>, index, index -> i32
    %1 = fi_tile.gather %doc[%request, %request] : memref<?x?xi32>, index, index -> i32
    // CHECK-NEXT: fi_tile.gather %x[] : memref<f32> -> f32
    %2 = fi_tile.gather %x[] : memref<f32> -> f32
    // CHECK-NEXT: %[[BK:.*]] = fi_tile.broadcast %[[KP]] : tensor<1x64xindex> -> tensor<16x64xindex>
    %bk = fi_tile.broadcast %kp : tensor<1x64xindex> -> tensor<16x64xindex>
    // CHECK-NEXT: fi_tile.columns %[[BK]] from 1 step 2 : tensor<16x64xindex> -> tensor<16x32xindex>
    %odd = fi_tile.columns %bk from 1 step 2 : tensor<16x64xindex> -> tensor<16x32xindex>
    %bq = fi_tile.broadcast %qp : tensor<16x1xindex> -> tensor<16x64xindex>
    // CHECK: %[[OK:.*]] = arith.cmpi
    %ok = arith.cmpi sle, %bk, %bq : tensor<16x64xindex>
    %q = fi_tile.load_rows %a[%it] group 1 : memref<?x1x128xf32> -> tensor<16x128xf32>
    %k = arith.constant dense<1.0> : tensor<64x128xf32>
    // CHECK: %[[S:.*]] = fi_tile.dot %{{.*}}, %{{.*}} transpose : tensor<16x128xf32>, tensor<64x128xf32> -> tensor<16x64xf32>
    %s = fi_tile.dot %q, %k transpose : tensor<16x128xf32>, tensor<64x128xf32> -> tensor<16x64xf32>
    // CHECK-NEXT: %[[M:.*]] = fi_tile.mask %[[S]] where %[[OK]] : tensor<16x64xf32>, tensor<16x64xi1>
    %m = fi_tile.mask %s where %ok : tensor<16x64xf32>, tensor<16x64xi1>
    // CHECK-NEXT: fi_tile.reduce max %[[M]] : tensor<16x64xf32> -> tensor<16x1xf32>
    %top = fi_tile.reduce max %m : tensor<16x64xf32> -> tensor<16x1xf32>
    // CHECK-NEXT: fi_tile.reduce add %[[M]] : tensor<16x64xf32> -> tensor<16x4xf32>
    %sum = fi_tile.reduce add %m : tensor<16x64xf32> -> tensor<16x4xf32>
    // CHECK-NEXT: %[[O:.*]] = fi_tile.dot %[[M]], %{{.*}} : tensor<16x64xf32>, tensor<64x128xf32> -> tensor<16x128xf32>
    %o = fi_tile.dot %m, %k : tensor<16x64xf32>, tensor<64x128xf32> -> tensor<16x128xf32>
    // CHECK-NEXT: fi_tile.dot %[[M]], %{{.*}} acc(%[[O]]) : tensor<16x64xf32>, tensor<64x128xf32> -> tensor<16x128xf32>
    %p = fi_tile.dot %m, %k acc(%o) : tensor<16x64xf32>, tensor<64x128xf32> -> tensor<16x128xf32>
    // CHECK-NEXT: fi_tile.dot %{{.*}}, %{{.*}} acc(%[[S]]) transpose : tensor<16x128xf32>, tensor<64x128xf32> -> tensor<16x64xf32>
    %r = fi_tile.dot %q, %k acc(%s) transpose : tensor<16x128xf32>, tensor<64x128xf32> -> tensor<16x64xf32>
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @states
fi_tile.kernel @states(%sinks: memref<?x8xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %scores = arith.constant dense<0.0> : tensor<16x64xf32>
    %values = arith.constant dense<0.0> : tensor<64x128xf32>
    %sink = fi_tile.load_rows %sinks[%it] group 1 : memref<?x8xf32> -> tensor<16x1xf32>
    // CHECK: %[[R:.*]]:3 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    %r:3 = fi_tile.init(#softmax) : tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    // CHECK-NEXT: %[[U:.*]]:3 = fi_tile.update #fi.softmax<base = 2> scores(%{{.*}}) values(%{{.*}}) into(%[[R]]#0, %[[R]]#1, %[[R]]#2) : tensor<16x64xf32>, tensor<64x128xf32> into tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    %u:3 = fi_tile.update #softmax scores(%scores) values(%values) into(%r#0, %r#1, %r#2) : tensor<16x64xf32>, tensor<64x128xf32> into tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32>
    // CHECK-NEXT: %[[A:.*]], %[[LA:.*]] = fi_tile.finalize #fi.softmax<base = 2> %[[U]]#0, %[[U]]#1, %[[U]]#2 : tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32> -> tensor<16x128xf32>, tensor<16x1xf32>
    %a, %la = fi_tile.finalize #softmax %u#0, %u#1, %u#2 : tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32> -> tensor<16x128xf32>, tensor<16x1xf32>
    // CHECK-NEXT: %[[B:.*]], %[[LB:.*]] = fi_tile.finalize #fi.softmax<base = 2> %[[U]]#0, %[[U]]#1, %[[U]]#2 sink(%[[SINK:.*]] : tensor<16x1xf32>) : tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32> -> tensor<16x128xf32>, tensor<16x1xf32>
    %b, %lb = fi_tile.finalize #softmax %u#0, %u#1, %u#2 sink(%sink : tensor<16x1xf32>) : tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x4xf32> -> tensor<16x128xf32>, tensor<16x1xf32>
    // CHECK-NEXT: %[[C:.*]], %[[LC:.*]] = fi_tile.merge #fi.softmax<base = 2>(%[[A]], %[[LA]]), (%[[B]], %[[LB]]) : tensor<16x128xf32>, tensor<16x1xf32>
    %c, %lc = fi_tile.merge #softmax (%a, %la), (%b, %lb) : tensor<16x128xf32>, tensor<16x1xf32>
    // CHECK-NEXT: %[[D:.*]], %[[LD:.*]] = fi_tile.sink #fi.softmax<base = 2> %[[C]], %[[LC]], %[[SINK]] : tensor<16x128xf32>, tensor<16x1xf32>
    %d, %ld = fi_tile.sink #softmax %c, %lc, %sink : tensor<16x128xf32>, tensor<16x1xf32>
    // CHECK-NEXT: fi_tile.store_state %[[D]], %[[LD]] to %work[%[[IT:.*]]] : tensor<16x128xf32>, tensor<16x1xf32>
    fi_tile.store_state %d, %ld to %work[%it] : tensor<16x128xf32>, tensor<16x1xf32>
    %i = arith.constant 1 : index
    // CHECK: fi_tile.load_state %work[%[[IT]], %{{.*}}] : tensor<16x128xf32>, tensor<16x1xf32>
    %e, %le = fi_tile.load_state %work[%it, %i] : tensor<16x128xf32>, tensor<16x1xf32>
    // CHECK: %[[F:.*]]:3 = fi_tile.fold #fi.softmax<base = 2> (%[[C]], %[[LC]]), (%[[D]], %[[LD]]) into (%[[A]], %[[LA]], %[[LA]]) : tensor<16x128xf32>, tensor<16x1xf32> into tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    %f:3 = fi_tile.fold #softmax (%c, %lc), (%d, %ld) into (%a, %la, %la) : tensor<16x128xf32>, tensor<16x1xf32> into tensor<16x128xf32>, tensor<16x1xf32>, tensor<16x1xf32>
    // CHECK: fi_tile.arrive_last %work[%[[IT]]]{{$}}
    %last = fi_tile.arrive_last %work[%it]
    // CHECK: fi_tile.arrive_last %work[%[[IT]]] counter %[[I:.*]], %[[I]]
    %part = fi_tile.arrive_last %work[%it] counter %i, %i
    // CHECK: fi_tile.store_merged_state %[[F]]#0, %[[F]]#1 to %work[%[[IT]], %[[I]]] part %[[I]] : tensor<16x128xf32>, tensor<16x1xf32>
    fi_tile.store_merged_state %f#0, %f#1 to %work[%it, %i] part %i : tensor<16x128xf32>, tensor<16x1xf32>
    // CHECK: %[[REST:.*]] = fi_tile.from_row %[[IT]][%[[I]]]
    %rest = fi_tile.from_row %it[%i]
    // CHECK: fi_tile.load_group_state %[[I]] part %[[I]] of 128 from %[[I]] : tensor<2x128xf32>, tensor<2x1xf32>
    %g, %lg = fi_tile.load_group_state %i part %i of 128 from %i : tensor<2x128xf32>, tensor<2x1xf32>
    // CHECK: fi_tile.store_state %{{.*}}, %{{.*}} to %work[%[[REST]]] : tensor<2x128xf32>, tensor<2x1xf32>
    fi_tile.store_state %g, %lg to %work[%rest] : tensor<2x128xf32>, tensor<2x1xf32>
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.package @llama {manifest = 1 : i64, program = "llama"}
fi_tile.package @llama {manifest = 1, program = "llama"}

// CHECK-LABEL: fi_tile.kernel @columns
fi_tile.kernel @columns(%x: memref<?x2x64xbf16>, %y: memref<?x2x64xf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, mr = 8, nr = 2>) {
  %one = arith.constant 1 : index
  %kv = fi_tile.view %y, %y : memref<?x2x64xf32>, memref<?x2x64xf32> -> !fi.ragged_kv<2x64xf32>
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 head %{{.*}} from %{{.*}} step 2 : memref<?x2x64xbf16> -> tensor<16x32xf32>
    %a = fi_tile.load_rows %x[%it] group 1 head %one from %one step 2 : memref<?x2x64xbf16> -> tensor<16x32xf32>
    // CHECK: fi_tile.load_rows %{{.*}}[%{{.*}}] group 1 from %{{.*}} step 1 : memref<?x2x64xbf16> -> tensor<16x32xf32>
    %b = fi_tile.load_rows %x[%it] group 1 from %one step 1 : memref<?x2x64xbf16> -> tensor<16x32xf32>
    // CHECK: fi_tile.store_rows %{{.*}}, %{{.*}}[%{{.*}}] group 1 head %{{.*}} from %{{.*}} step 2 : tensor<16x32xf32>, memref<?x2x64xf32>
    fi_tile.store_rows %a, %y[%it] group 1 head %one from %one step 2 : tensor<16x32xf32>, memref<?x2x64xf32>
    // CHECK: fi_tile.store_kv keys %{{.*}}, %{{.*}}[%{{.*}}, %{{.*}}] from %{{.*}} step 2 : tensor<16x32xf32>, !kv
    fi_tile.store_kv keys %b, %kv[%it, %one] from %one step 2 : tensor<16x32xf32>, !fi.ragged_kv<2x64xf32>
  }
  fi_tile.return
}
