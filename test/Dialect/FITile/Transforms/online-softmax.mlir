// Normaliser ops become tile arithmetic: softmax in its online form, in base 2.
// RUN: fi-opt %s --fi-tile-online-softmax | FileCheck %s
// RUN: fi-opt %s --fi-tile-online-softmax | FileCheck %s --check-prefix=GONE
// GONE-NOT: fi_tile.{{(init|update|fold|finalize|merge|sink)}}

#schedule = #fi.schedule<tile_rows = 8, tile_keys = 16, mr = 4, nr = 1>
#two = #fi.softmax<base = 2>
#e = #fi.softmax<base = e>

// CHECK-LABEL: fi_tile.kernel @update
fi_tile.kernel @update(%q: memref<?x2x16xf32>, %v: memref<?x2x32xf32>, %o: memref<?x2x32xf32>, %l: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %scores = fi_tile.load_rows %q[%it] group 2 : memref<?x2x16xf32> -> tensor<8x16xf32>
    // CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<8x32xf32>
    // CHECK-DAG: arith.constant dense<0xFF800000> : tensor<8x1xf32>
    // CHECK-DAG: arith.constant dense<0.000000e+00> : tensor<8x4xf32>
    %i:3 = fi_tile.init(#two) : tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x4xf32>
    // CHECK: fi_tile.for_keys %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[M:.*]] = %{{.*}}, %[[L:.*]] = %{{.*}}) ->
    %r:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %i#0, %m = %i#1, %sum = %i#2) -> (tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x4xf32>) {
      %values = arith.constant dense<1.0> : tensor<16x32xf32>
      // log2(e), then the new maximum, where it has moved by more than 8.
      // CHECK: %[[LOG2E:.*]] = arith.constant dense<1.44269502> : tensor<8x16xf32>
      // CHECK: %[[X:.*]] = arith.mulf %{{.*}}, %[[LOG2E]]
      // CHECK: %[[TOP:.*]] = fi_tile.reduce max %[[X]] : tensor<8x16xf32> -> tensor<8x1xf32>
      // CHECK: %[[EIGHT:.*]] = arith.constant dense<8.000000e+00> : tensor<8x1xf32>
      // CHECK: %[[REACH:.*]] = arith.addf %[[M]], %[[EIGHT]]
      // CHECK: %[[STAYS:.*]] = arith.cmpf ole, %[[TOP]], %[[REACH]]
      // CHECK: %[[NEW:.*]] = arith.select %[[STAYS]], %[[M]], %[[TOP]]
      // CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[NEW]], %{{.*}}
      // CHECK: %[[SUB:.*]] = arith.select %[[NONE]]
      // CHECK: arith.subf %[[M]], %[[SUB]]
      // CHECK: %[[F:.*]] = math.exp2 %{{.*}} fastmath<afn> : tensor<8x1xf32>
      // CHECK: %[[W:.*]] = math.exp2 %{{.*}} fastmath<afn> : tensor<8x16xf32>
      // CHECK: arith.mulf %[[L]]
      // CHECK: fi_tile.reduce add %[[W]] : tensor<8x16xf32> -> tensor<8x4xf32>
      // CHECK: %[[SCALED:.*]] = arith.mulf %[[ACC]]
      // CHECK: %[[NEXT:.*]] = fi_tile.dot %[[W]], %{{.*}} acc(%[[SCALED]])
      // CHECK: fi_tile.yield %[[NEXT]], %[[NEW]]
      %u:3 = fi_tile.update #two scores(%scores) values(%values) into(%acc, %m, %sum) : tensor<8x16xf32>, tensor<16x32xf32> into tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x4xf32>
      fi_tile.yield %u#0, %u#1, %u#2 : tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x4xf32>
    }
    // CHECK: fi_tile.reduce add %{{.*}} : tensor<8x4xf32> -> tensor<8x1xf32>
    // CHECK: %[[LOG:.*]] = math.log2
    %output, %statistic = fi_tile.finalize #two %r#0, %r#1, %r#2 : tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x4xf32> -> tensor<8x32xf32>, tensor<8x1xf32>
    fi_tile.store_rows %output, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
    fi_tile.store_rows %statistic, %l[%it] group 2 : tensor<8x1xf32>, memref<?x2xf32>
  }
  fi_tile.return
}

// A constant scale and log2(e) become one factor, also behind a mask.
// CHECK-LABEL: fi_tile.kernel @scales
fi_tile.kernel @scales(%q: memref<?x2x16xf32>, %o: memref<?x2x32xf32>, %scale: f32, %work: !fi_tile.work) schedule(#schedule) {
  %ok = arith.constant dense<true> : tensor<8x16xi1>
  %values = arith.constant dense<1.0> : tensor<16x32xf32>
  %acc, %m, %l = fi_tile.init(#two) : tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  fi_tile.for_items %it in %work {
    // CHECK: %[[S:.*]] = fi_tile.load_rows
    %s = fi_tile.load_rows %q[%it] group 2 : memref<?x2x16xf32> -> tensor<8x16xf32>
    %half = arith.constant dense<0.5> : tensor<8x16xf32>
    %scaled = arith.mulf %s, %half : tensor<8x16xf32>
    %hidden = fi_tile.mask %scaled where %ok : tensor<8x16xf32>, tensor<8x16xi1>
    // CHECK: %[[ONE:.*]] = arith.constant dense<0.72134751> : tensor<8x16xf32>
    // CHECK: %[[X:.*]] = arith.mulf %[[S]], %[[ONE]]
    // CHECK: fi_tile.mask %[[X]]
    %u:3 = fi_tile.update #two scores(%hidden) values(%values) into(%acc, %m, %l) : tensor<8x16xf32>, tensor<16x32xf32> into tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x1xf32>
    fi_tile.store_rows %u#0, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
    // CHECK: arith.mulf %scale, %{{.*}} : f32
    %splat = tensor.splat %scale : tensor<8x16xf32>
    %scaled2 = arith.mulf %s, %splat : tensor<8x16xf32>
    %u2:3 = fi_tile.update #two scores(%scaled2) values(%values) into(%acc, %m, %l) : tensor<8x16xf32>, tensor<16x32xf32> into tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x1xf32>
    fi_tile.store_rows %u2#0, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}

// Values in bf16: the weights are rounded to it.
// CHECK-LABEL: fi_tile.kernel @narrow
fi_tile.kernel @narrow(%q: memref<?x2x16xf32>, %o: memref<?x2x32xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %values = arith.constant dense<1.0> : tensor<16x32xbf16>
  %acc, %m, %l = fi_tile.init(#two) : tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  fi_tile.for_items %it in %work {
    %s = fi_tile.load_rows %q[%it] group 2 : memref<?x2x16xf32> -> tensor<8x16xf32>
    // CHECK: %[[W:.*]] = math.exp2 %{{.*}} : tensor<8x16xf32>
    // CHECK: %[[N:.*]] = arith.truncf %[[W]] : tensor<8x16xf32> to tensor<8x16xbf16>
    // CHECK: fi_tile.dot %[[N]], %{{.*}} acc(
    %u:3 = fi_tile.update #two scores(%s) values(%values) into(%acc, %m, %l) : tensor<8x16xf32>, tensor<16x32xbf16> into tensor<8x32xf32>, tensor<8x1xf32>, tensor<8x1xf32>
    fi_tile.store_rows %u#0, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
  }
  fi_tile.return
}

// Base e: to base 2 and back.
// CHECK-LABEL: fi_tile.kernel @states
fi_tile.kernel @states(%o: memref<?x2x32xf32>, %l: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %o[%it] group 1 : memref<?x2x32xf32> -> tensor<8x32xf32>
    %b = fi_tile.load_rows %l[%it] group 1 : memref<?x2xf32> -> tensor<8x1xf32>
    // CHECK: arith.constant dense<1.44269502> : tensor<8x1xf32>
    // CHECK: math.log2
    // CHECK: arith.constant dense<0.693147182> : tensor<8x1xf32>
    // CHECK: arith.addf {{.*}} : tensor<8x32xf32>
    %m, %s = fi_tile.merge #e(%a, %b), (%a, %b) : tensor<8x32xf32>, tensor<8x1xf32>
    %sink = arith.constant dense<2.0> : tensor<8x1xf32>
    // CHECK: math.exp2
    // CHECK: arith.mulf {{.*}} : tensor<8x32xf32>
    %m2, %s2 = fi_tile.sink #e %m, %s, %sink : tensor<8x32xf32>, tensor<8x1xf32>
    fi_tile.store_rows %m2, %o[%it] group 1 : tensor<8x32xf32>, memref<?x2x32xf32>
    fi_tile.store_rows %s2, %l[%it] group 1 : tensor<8x1xf32>, memref<?x2xf32>
  }
  fi_tile.return
}

// Kinds that add keep nothing beside the accumulator; the statistic is 0.
// CHECK-LABEL: fi_tile.kernel @adds
fi_tile.kernel @adds(%q: memref<?x2x16xf32>, %o: memref<?x2x32xf32>, %l: memref<?x2xf32>, %work: !fi_tile.work) schedule(#schedule) {
  %values = arith.constant dense<1.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %work {
    // CHECK: %[[S:.*]] = fi_tile.load_rows
    %s = fi_tile.load_rows %q[%it] group 2 : memref<?x2x16xf32> -> tensor<8x16xf32>
    %i = fi_tile.init(#fi.sum) : tensor<8x32xf32>
    // CHECK: %[[HIDDEN:.*]] = arith.cmpf oeq, %[[S]], %{{.*}} : tensor<8x16xf32>
    // CHECK: %[[W:.*]] = arith.select %[[HIDDEN]], %{{.*}}, %[[S]]
    // CHECK: %[[A:.*]] = fi_tile.dot %[[W]], %{{.*}} acc(
    %a = fi_tile.update #fi.sum scores(%s) values(%values) into(%i) : tensor<8x16xf32>, tensor<16x32xf32> into tensor<8x32xf32>
    // CHECK: %[[BIAS:.*]] = arith.constant dense<-2.000000e+00> : tensor<8x16xf32>
    // CHECK: %[[X:.*]] = arith.addf %[[S]], %[[BIAS]]
    // CHECK: %[[ABS:.*]] = math.absf %[[X]]
    // CHECK: %[[T:.*]] = math.exp2
    // CHECK: %[[PART:.*]] = arith.divf
    // CHECK: %[[V:.*]] = arith.select %{{.*}}, %[[PART]], %{{.*}}
    // CHECK: fi_tile.dot %[[V]], %{{.*}} acc(%[[A]])
    %b = fi_tile.update #fi.sigmoid<bias = -2.0> scores(%s) values(%values) into(%a) : tensor<8x16xf32>, tensor<16x32xf32> into tensor<8x32xf32>
    // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8x1xf32>
    %c, %sc = fi_tile.finalize #fi.sum %b : tensor<8x32xf32> -> tensor<8x32xf32>, tensor<8x1xf32>
    // CHECK: %[[SUM:.*]] = arith.addf
    %d, %sd = fi_tile.merge #fi.sum (%c, %sc), (%b, %sc) : tensor<8x32xf32>, tensor<8x1xf32>
    // A statistic of -inf stands for no state.
    // CHECK: %[[NONE:.*]] = arith.cmpf oeq, %[[ZERO]], %{{.*}} : tensor<8x1xf32>
    // CHECK: %[[WEIGHT:.*]] = arith.select %[[NONE]], %{{.*}} : tensor<8x1xi1>
    // CHECK: %[[WIDE:.*]] = fi_tile.broadcast %[[WEIGHT]]
    // CHECK: %[[FOLDED:.*]] = math.fma %[[SUM]], %[[WIDE]]
    %e = fi_tile.fold #fi.sum (%d, %sd) into (%b) : tensor<8x32xf32>, tensor<8x1xf32> into tensor<8x32xf32>
    // CHECK: fi_tile.store_rows %[[FOLDED]]
    // CHECK: fi_tile.store_rows %[[ZERO]]
    fi_tile.store_rows %e, %o[%it] group 2 : tensor<8x32xf32>, memref<?x2x32xf32>
    fi_tile.store_rows %sd, %l[%it] group 2 : tensor<8x1xf32>, memref<?x2xf32>
  }
  fi_tile.return
}
