// RUN: fi-opt --fi-raise-attention --split-input-file %s | FileCheck %s
// RUN: fi-opt --fi-raise-attention --fi-canonicalize --fi-analyze-masks --split-input-file %s | FileCheck %s --check-prefix=BOUNDS

// A causal mask by positions, of the scores before they are scaled; bounds are found.

// CHECK-LABEL: func @causal_select
// CHECK: fi.attention {{.*}} scale(2.500000e-01)
// CHECK-SAME: mask(
// CHECK: arith.cmpi sle
// BOUNDS: func @causal_select
// BOUNDS: bounds([{exact = true, hi = {{\[\[}}"q"]], lo = []}])
// CHECK-NOT: math.exp
func.func @causal_select(%q: tensor<4x12x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x12x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x12x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x12x20xf32>) -> tensor<4x12x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x12x32xf32>, tensor<4x20x32xf32>) outs(%f3 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %e5 = tensor.empty() : tensor<4x12x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4 : tensor<4x12x20xf32>) outs(%e5 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %n = arith.constant 8 : index
    %last = arith.addi %i, %n : index
    %c = arith.cmpi sle, %j, %last : index
    %h = arith.constant -3.40282347E+38 : f32
    %r = arith.select %c, %i0, %h : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %e7 = tensor.empty() : tensor<4x12x20xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g6 : tensor<4x12x20xf32>) outs(%e7 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 0.25 : f32
    %r = arith.mulf %i0, %k4 : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %c9 = arith.constant 0xFF800000 : f32
  %e10 = tensor.empty() : tensor<4x12xf32>
  %f11 = linalg.fill ins(%c9 : f32) outs(%e10 : tensor<4x12xf32>) -> tensor<4x12xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g8 : tensor<4x12x20xf32>) outs(%f11 : tensor<4x12xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x12xf32>
  %e13 = tensor.empty() : tensor<4x12x20xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g8, %g12 : tensor<4x12x20xf32>, tensor<4x12xf32>) outs(%e13 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %c15 = arith.constant 0.0 : f32
  %e16 = tensor.empty() : tensor<4x12xf32>
  %f17 = linalg.fill ins(%c15 : f32) outs(%e16 : tensor<4x12xf32>) -> tensor<4x12xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g14 : tensor<4x12x20xf32>) outs(%f17 : tensor<4x12xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x12xf32>
  %e19 = tensor.empty() : tensor<4x12x20xf32>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g14, %g18 : tensor<4x12x20xf32>, tensor<4x12xf32>) outs(%e19 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %c21 = arith.constant 0.0 : f32
  %e22 = tensor.empty() : tensor<4x12x32xf32>
  %f23 = linalg.fill ins(%c21 : f32) outs(%e22 : tensor<4x12x32xf32>) -> tensor<4x12x32xf32>
  %g24 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g20, %v : tensor<4x12x20xf32>, tensor<4x20x32xf32>) outs(%f23 : tensor<4x12x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x12x32xf32>
  return %g24 : tensor<4x12x32xf32>
}

// -----

// The same as a tensor that is added.

// CHECK-LABEL: func @causal_additive
// CHECK: fi.attention {{.*}} scale(2.500000e-01)
// CHECK-SAME: mask(
// CHECK: arith.cmpi sle
// BOUNDS: func @causal_additive
// BOUNDS: bounds([{exact = true, hi = {{\[\[}}"q"]], lo = []}])
// CHECK-NOT: math.exp
func.func @causal_additive(%q: tensor<4x12x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x12x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x12x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x12x20xf32>) -> tensor<4x12x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x12x32xf32>, tensor<4x20x32xf32>) outs(%f3 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %e5 = tensor.empty() : tensor<12x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}
      outs(%e5 : tensor<12x20xf32>) {
  ^bb0(%o: f32):
    %i = linalg.index 0 : index
    %j = linalg.index 1 : index
    %n = arith.constant 8 : index
    %last = arith.addi %i, %n : index
    %c = arith.cmpi sle, %j, %last : index
    %z = arith.constant 0.0 : f32
    %h = arith.constant 0xFF800000 : f32
    %r = arith.select %c, %z, %h : f32
    linalg.yield %r : f32
  } -> tensor<12x20xf32>
  %e7 = tensor.empty() : tensor<4x12x20xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4, %g6 : tensor<4x12x20xf32>, tensor<12x20xf32>) outs(%e7 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %e9 = tensor.empty() : tensor<4x12x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g8 : tensor<4x12x20xf32>) outs(%e9 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 0.25 : f32
    %r = arith.mulf %i0, %k4 : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %c11 = arith.constant 0xFF800000 : f32
  %e12 = tensor.empty() : tensor<4x12xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<4x12xf32>) -> tensor<4x12xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g10 : tensor<4x12x20xf32>) outs(%f13 : tensor<4x12xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x12xf32>
  %e15 = tensor.empty() : tensor<4x12x20xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g10, %g14 : tensor<4x12x20xf32>, tensor<4x12xf32>) outs(%e15 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<4x12xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<4x12xf32>) -> tensor<4x12xf32>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g16 : tensor<4x12x20xf32>) outs(%f19 : tensor<4x12xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x12xf32>
  %e21 = tensor.empty() : tensor<4x12x20xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g16, %g20 : tensor<4x12x20xf32>, tensor<4x12xf32>) outs(%e21 : tensor<4x12x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x12x20xf32>
  %c23 = arith.constant 0.0 : f32
  %e24 = tensor.empty() : tensor<4x12x32xf32>
  %f25 = linalg.fill ins(%c23 : f32) outs(%e24 : tensor<4x12x32xf32>) -> tensor<4x12x32xf32>
  %g26 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g22, %v : tensor<4x12x20xf32>, tensor<4x20x32xf32>) outs(%f25 : tensor<4x12x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x12x32xf32>
  return %g26 : tensor<4x12x32xf32>
}

// -----

// Named ops, keys that lie transposed, a mask of bits.

// CHECK-LABEL: func @named
// CHECK: linalg.transpose ins({{.*}} : tensor<4x32x20xf32>) outs({{.*}} : tensor<20x4x32xf32>) permutation = [2, 0, 1]
// CHECK: fi.attention {{.*}} captures(%[[m:.*]] = %{{.*}} : tensor<4x7x20xi1>
// CHECK-SAME: mask(%{{.*}}: index, %[[h:.*]]: index, %[[kh:.*]]: index,
// CHECK: fi.load %[[m]]
// CHECK-NOT: math.exp
func.func @named(%q: tensor<4x7x32xf32>, %k: tensor<4x32x20xf32>, %v: tensor<4x20x32xf32>, %mask: tensor<4x7x20xi1>) -> tensor<4x7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s = linalg.batch_matmul ins(%q, %k : tensor<4x7x32xf32>, tensor<4x32x20xf32>) outs(%f3 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %hidden = arith.constant dense<-1.0e9> : tensor<4x7x20xf32>
  %masked = arith.select %mask, %s, %hidden : tensor<4x7x20xi1>, tensor<4x7x20xf32>
  %e4 = tensor.empty() : tensor<4x7x20xf32>
  %p = linalg.softmax dimension(2) ins(%masked : tensor<4x7x20xf32>) outs(%e4 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %c5 = arith.constant 0.0 : f32
  %e6 = tensor.empty() : tensor<4x7x32xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f7 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  return %o : tensor<4x7x32xf32>
}

// -----

// The sum divides what comes of the values.

// CHECK-LABEL: func @divided_late
// CHECK: fi.attention {{.*}} scale(2.500000e-01)
// CHECK-NOT: math.exp
func.func @divided_late(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x7x32xf32>, tensor<4x20x32xf32>) outs(%f3 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e5 = tensor.empty() : tensor<4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4 : tensor<4x7x20xf32>) outs(%e5 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 0.25 : f32
    %r = arith.mulf %k4, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c7 = arith.constant 0xFF800000 : f32
  %e8 = tensor.empty() : tensor<4x7xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g6 : tensor<4x7x20xf32>) outs(%f9 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e11 = tensor.empty() : tensor<4x7x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g6, %g10 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e11 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<4x7xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g12 : tensor<4x7x20xf32>) outs(%f15 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<4x7x32xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g12, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f19 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  %e21 = tensor.empty() : tensor<4x7x32xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g20, %g16 : tensor<4x7x32xf32>, tensor<4x7xf32>) outs(%e21 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g22 : tensor<4x7x32xf32>
}

// -----

// Without a maximum, and divided late.

// CHECK-LABEL: func @no_maximum
// CHECK: fi.attention {{.*}} scale(2.500000e-01)
// CHECK-NOT: math.exp
func.func @no_maximum(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x7x32xf32>, tensor<4x20x32xf32>) outs(%f3 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e5 = tensor.empty() : tensor<4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4 : tensor<4x7x20xf32>) outs(%e5 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 0.25 : f32
    %r = arith.mulf %k4, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e7 = tensor.empty() : tensor<4x7x20xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g6 : tensor<4x7x20xf32>) outs(%e7 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = math.exp %i0 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c9 = arith.constant 0.0 : f32
  %e10 = tensor.empty() : tensor<4x7xf32>
  %f11 = linalg.fill ins(%c9 : f32) outs(%e10 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g8 : tensor<4x7x20xf32>) outs(%f11 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<4x7x32xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g8, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f15 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  %e17 = tensor.empty() : tensor<4x7x32xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g16, %g12 : tensor<4x7x32xf32>, tensor<4x7xf32>) outs(%e17 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g18 : tensor<4x7x32xf32>
}

// -----

// Powers of two, of scores times log2(e).

// CHECK-LABEL: func @base_two
// CHECK: fi.attention {{.*}} scale(2.500000e-01)
// CHECK-NOT: math.exp
func.func @base_two(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x7x32xf32>, tensor<4x20x32xf32>) outs(%f3 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e5 = tensor.empty() : tensor<4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4 : tensor<4x7x20xf32>) outs(%e5 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 0.25 : f32
    %r = arith.mulf %k4, %i0 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c7 = arith.constant 0xFF800000 : f32
  %e8 = tensor.empty() : tensor<4x7xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g6 : tensor<4x7x20xf32>) outs(%f9 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e11 = tensor.empty() : tensor<4x7x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g6, %g10 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e11 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %log2e = arith.constant 1.44269504 : f32
    %dk = arith.mulf %d, %log2e : f32
    %r = math.exp2 %dk : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<4x7xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g12 : tensor<4x7x20xf32>) outs(%f15 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e17 = tensor.empty() : tensor<4x7x20xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g12, %g16 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e17 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c19 = arith.constant 0.0 : f32
  %e20 = tensor.empty() : tensor<4x7x32xf32>
  %f21 = linalg.fill ins(%c19 : f32) outs(%e20 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g18, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f21 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g22 : tensor<4x7x32xf32>
}

// -----

// What else is done to scores is a score region: a scale that is a value, a soft cap.

// CHECK-LABEL: func @softcap
// CHECK: fi.attention {{.*}} scale(5.000000e-01) captures(%[[c:.*]] = %{{.*}} : f32) score(%[[s:.*]]: f32,
// CHECK: arith.mulf %[[s]], %[[c]]
// CHECK: math.tanh
// CHECK-NOT: math.exp
func.func @softcap(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>, %scale: f32) -> tensor<4x7x32xf32> {
  %e1 = tensor.empty() : tensor<4x20x32xf32>
  %g2 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<4x20x32xf32>) outs(%e1 : tensor<4x20x32xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %h = arith.constant 0.5 : f32
    %r = arith.mulf %i0, %h : f32
    linalg.yield %r : f32
  } -> tensor<4x20x32xf32>
  %c3 = arith.constant 0.0 : f32
  %e4 = tensor.empty() : tensor<4x7x20xf32>
  %f5 = linalg.fill ins(%c3 : f32) outs(%e4 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %g2 : tensor<4x7x32xf32>, tensor<4x20x32xf32>) outs(%f5 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e7 = tensor.empty() : tensor<4x7x20xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g6 : tensor<4x7x20xf32>) outs(%e7 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %s1 = arith.mulf %i0, %scale : f32
    %cap = arith.constant 5.0 : f32
    %x = arith.divf %s1, %cap : f32
    %t = math.tanh %x : f32
    %r = arith.mulf %t, %cap : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c9 = arith.constant 0xFF800000 : f32
  %e10 = tensor.empty() : tensor<4x7xf32>
  %f11 = linalg.fill ins(%c9 : f32) outs(%e10 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g8 : tensor<4x7x20xf32>) outs(%f11 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e13 = tensor.empty() : tensor<4x7x20xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g8, %g12 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e13 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c15 = arith.constant 0.0 : f32
  %e16 = tensor.empty() : tensor<4x7xf32>
  %f17 = linalg.fill ins(%c15 : f32) outs(%e16 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g14 : tensor<4x7x20xf32>) outs(%f17 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e19 = tensor.empty() : tensor<4x7x20xf32>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g14, %g18 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e19 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c21 = arith.constant 0.0 : f32
  %e22 = tensor.empty() : tensor<4x7x32xf32>
  %f23 = linalg.fill ins(%c21 : f32) outs(%e22 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %g24 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g20, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f23 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g24 : tensor<4x7x32xf32>
}

// -----

// One row of each request, a group of heads in the query alone, a mask of the batch.

// CHECK-LABEL: func @one_row
// CHECK: arith.constant dense<[0, 1, 2]>
// CHECK: fi.attention {{.*}} : tensor<2x1x1x20xf32>)
// CHECK: fi.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : tensor<2x1x1x20xf32>
// CHECK: tensor<2x8x32xf32> over
// CHECK-NOT: math.exp
func.func @one_row(%q: tensor<2x8x1x32xf32>, %k: tensor<2x2x20x32xf32>, %v: tensor<2x2x20x32xf32>, %mask: tensor<2x1x1x20xf32>) -> tensor<2x8x1x32xf32> {
  %q5 = tensor.expand_shape %q [[0], [1, 2], [3], [4]] output_shape [2, 2, 4, 1, 32] : tensor<2x8x1x32xf32> into tensor<2x2x4x1x32xf32>
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<2x2x4x1x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<2x2x4x1x20xf32>) -> tensor<2x2x4x1x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, e, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q5, %k : tensor<2x2x4x1x32xf32>, tensor<2x2x20x32xf32>) outs(%f3 : tensor<2x2x4x1x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1x20xf32>
  %e5 = tensor.empty() : tensor<2x2x4x1x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, 0, 0, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g4, %mask : tensor<2x2x4x1x20xf32>, tensor<2x1x1x20xf32>) outs(%e5 : tensor<2x2x4x1x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1x20xf32>
  %c7 = arith.constant 0xFF800000 : f32
  %e8 = tensor.empty() : tensor<2x2x4x1xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<2x2x4x1xf32>) -> tensor<2x2x4x1xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g6 : tensor<2x2x4x1x20xf32>) outs(%f9 : tensor<2x2x4x1xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1xf32>
  %e11 = tensor.empty() : tensor<2x2x4x1x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g6, %g10 : tensor<2x2x4x1x20xf32>, tensor<2x2x4x1xf32>) outs(%e11 : tensor<2x2x4x1x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1x20xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<2x2x4x1xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<2x2x4x1xf32>) -> tensor<2x2x4x1xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g12 : tensor<2x2x4x1x20xf32>) outs(%f15 : tensor<2x2x4x1xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1xf32>
  %e17 = tensor.empty() : tensor<2x2x4x1x20xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g12, %g16 : tensor<2x2x4x1x20xf32>, tensor<2x2x4x1xf32>) outs(%e17 : tensor<2x2x4x1x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1x20xf32>
  %c19 = arith.constant 0.0 : f32
  %e20 = tensor.empty() : tensor<2x2x4x1x32xf32>
  %f21 = linalg.fill ins(%c19 : f32) outs(%e20 : tensor<2x2x4x1x32xf32>) -> tensor<2x2x4x1x32xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, f, e)>, affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g18, %v : tensor<2x2x4x1x20xf32>, tensor<2x2x20x32xf32>) outs(%f21 : tensor<2x2x4x1x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x2x4x1x32xf32>
  %o4 = tensor.collapse_shape %g22 [[0], [1, 2], [3], [4]] : tensor<2x2x4x1x32xf32> into tensor<2x8x1x32xf32>
  return %o4 : tensor<2x8x1x32xf32>
}
