// RUN: fi-opt --fi-raise-attention --split-input-file %s | FileCheck %s

// As torch-mlir lowers scaled_dot_product_attention: heads in the batch, a copy of the
// keys transposed, the scores scaled, an additive mask broadcast over heads.

#all = affine_map<(b, i, j) -> (b, i, j)>
#row = affine_map<(b, i, j) -> (b, i, 0)>
#mask = affine_map<(b, i, j) -> (0, i, j)>
#transposed = affine_map<(b, c, j) -> (b, j, c)>

// CHECK-LABEL: func @torch
// CHECK-SAME: %[[q:.*]]: tensor<4x7x32xf32>, %[[k:.*]]: tensor<4x20x32xf32>, %[[v:.*]]: tensor<4x20x16xf32>, %[[m:.*]]: tensor<1x7x20xf32>
// CHECK-DAG: %[[q1:.*]] = linalg.transpose ins(%[[q]] : tensor<4x7x32xf32>) outs({{.*}} : tensor<7x4x32xf32>) permutation = [1, 0, 2]
// CHECK-DAG: %[[k1:.*]] = linalg.transpose ins(%[[k]] : tensor<4x20x32xf32>) outs({{.*}} : tensor<20x4x32xf32>) permutation = [1, 0, 2]
// CHECK-DAG: %[[v1:.*]] = linalg.transpose ins(%[[v]] : tensor<4x20x16xf32>) outs({{.*}} : tensor<20x4x16xf32>) permutation = [1, 0, 2]
// CHECK: %[[kv:[0-9]+]] = fi.view.ragged %[[k1]], %[[v1]] :
// CHECK: %[[o:[0-9]+]] = fi.attention %[[q1]] over %[[kv]] scale(0.17677{{[0-9]*}})
// CHECK-SAME: captures(%[[c:.*]] = %[[m]] : tensor<1x7x20xf32>
// CHECK-SAME: score(%[[s:.*]]: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[qp:.*]]: index, %[[kp:.*]]: index)
// CHECK: %[[i:.*]] = arith.subi %[[qp]],
// CHECK: %[[x:.*]] = fi.load %[[c]][%{{.*}}, %[[i]], %[[kp]]]
// CHECK: arith.addf %[[s]], %[[x]]
// CHECK: linalg.transpose ins(%[[o]] : tensor<7x4x16xf32>) outs({{.*}} : tensor<4x7x16xf32>) permutation = [1, 0, 2]
// CHECK-NOT: math.exp
func.func @torch(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>,
                 %v: tensor<4x20x16xf32>, %mask: tensor<1x7x20xf32>) -> tensor<4x7x16xf32> {
  %zero = arith.constant 0.0 : f32
  %lowest = arith.constant 0xFF800000 : f32
  %scale = arith.constant 0.17677669 : f32
  %et = tensor.empty() : tensor<4x32x20xf32>
  %kt = linalg.generic {indexing_maps = [#transposed, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%k : tensor<4x20x32xf32>) outs(%et : tensor<4x32x20xf32>) {
  ^bb0(%in: f32, %out: f32):
    linalg.yield %in : f32
  } -> tensor<4x32x20xf32>
  %es = tensor.empty() : tensor<4x7x20xf32>
  %fs = linalg.fill ins(%zero : f32) outs(%es : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s = linalg.batch_matmul ins(%q, %kt : tensor<4x7x32xf32>, tensor<4x32x20xf32>)
      outs(%fs : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %scaled = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s : tensor<4x7x20xf32>) outs(%es : tensor<4x7x20xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.mulf %in, %scale : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %masked = linalg.generic {indexing_maps = [#all, #mask, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%scaled, %mask : tensor<4x7x20xf32>, tensor<1x7x20xf32>) outs(%es : tensor<4x7x20xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.addf %in, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %er = tensor.empty() : tensor<4x7x1xf32>
  %fm = linalg.fill ins(%lowest : f32) outs(%er : tensor<4x7x1xf32>) -> tensor<4x7x1xf32>
  %max = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%masked : tensor<4x7x20xf32>) outs(%fm : tensor<4x7x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.maximumf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<4x7x1xf32>
  %centred = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%masked, %max : tensor<4x7x20xf32>, tensor<4x7x1xf32>) outs(%es : tensor<4x7x20xf32>) {
  ^bb0(%in: f32, %m: f32, %out: f32):
    %r = arith.subf %in, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e = linalg.generic {indexing_maps = [#all, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%centred : tensor<4x7x20xf32>) outs(%es : tensor<4x7x20xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = math.exp %in : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %fr = linalg.fill ins(%zero : f32) outs(%er : tensor<4x7x1xf32>) -> tensor<4x7x1xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%e : tensor<4x7x20xf32>) outs(%fr : tensor<4x7x1xf32>) {
  ^bb0(%in: f32, %out: f32):
    %r = arith.addf %in, %out : f32
    linalg.yield %r : f32
  } -> tensor<4x7x1xf32>
  %p = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%e, %sum : tensor<4x7x20xf32>, tensor<4x7x1xf32>) outs(%es : tensor<4x7x20xf32>) {
  ^bb0(%in: f32, %d: f32, %out: f32):
    %r = arith.divf %in, %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %eo = tensor.empty() : tensor<4x7x16xf32>
  %fo = linalg.fill ins(%zero : f32) outs(%eo : tensor<4x7x16xf32>) -> tensor<4x7x16xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x16xf32>)
      outs(%fo : tensor<4x7x16xf32>) -> tensor<4x7x16xf32>
  return %o : tensor<4x7x16xf32>
}

// -----

// A model in bf16 with its softmax in f32: products accumulate in f32, weights are
// rounded. Entries of the batch are requests.

// CHECK-LABEL: func @bf16
// CHECK-DAG: arith.constant dense<[0, 7, 14]> : tensor<3xi32>
// CHECK-DAG: arith.constant dense<[0, 20, 40]> : tensor<3xi32>
// CHECK-DAG: linalg.transpose ins({{.*}} : tensor<2x4x7x32xbf16>) outs({{.*}} : tensor<2x7x4x32xbf16>) permutation = [0, 2, 1, 3]
// CHECK-DAG: tensor.collapse_shape {{.*}} {{\[}}[0, 1], [2], [3]] : tensor<2x7x4x32xbf16> into tensor<14x4x32xbf16>
// CHECK: fi.attention {{.*}} rows({{.*}} : tensor<3xi32>) over {{.*}} scale(2.500000e-01)
// CHECK-SAME: tensor<14x4x32xbf16> over !kv -> tensor<14x4x16xf32>
// CHECK-NOT: math.exp
func.func @bf16(%q: tensor<2x4x7x32xbf16>, %k: tensor<2x4x20x32xbf16>, %v: tensor<2x4x20x16xbf16>) -> tensor<2x4x7x16xbf16> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<2x4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<2x4x7x20xf32>) -> tensor<2x4x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x4x7x32xbf16>, tensor<2x4x20x32xbf16>) outs(%f3 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: bf16, %i1: bf16, %o: f32):
    %w0 = arith.extf %i0 : bf16 to f32
    %w1 = arith.extf %i1 : bf16 to f32
    %m = arith.mulf %w0, %w1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %e5 = tensor.empty() : tensor<2x4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g4 : tensor<2x4x7x20xf32>) outs(%e5 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 4.0 : f32
    %r = arith.divf %i0, %k4 : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c7 = arith.constant 0xFF800000 : f32
  %e8 = tensor.empty() : tensor<2x4x7xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g6 : tensor<2x4x7x20xf32>) outs(%f9 : tensor<2x4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7xf32>
  %e11 = tensor.empty() : tensor<2x4x7x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g6, %g10 : tensor<2x4x7x20xf32>, tensor<2x4x7xf32>) outs(%e11 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<2x4x7xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g12 : tensor<2x4x7x20xf32>) outs(%f15 : tensor<2x4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7xf32>
  %e17 = tensor.empty() : tensor<2x4x7x20xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g12, %g16 : tensor<2x4x7x20xf32>, tensor<2x4x7xf32>) outs(%e17 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %e19 = tensor.empty() : tensor<2x4x7x20xbf16>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g18 : tensor<2x4x7x20xf32>) outs(%e19 : tensor<2x4x7x20xbf16>) {
  ^bb0(%i0: f32, %o: bf16):
    %r = arith.truncf %i0 : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x4x7x20xbf16>
  %c21 = arith.constant 0.0 : f32
  %e22 = tensor.empty() : tensor<2x4x7x16xf32>
  %f23 = linalg.fill ins(%c21 : f32) outs(%e22 : tensor<2x4x7x16xf32>) -> tensor<2x4x7x16xf32>
  %g24 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, e, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g20, %v : tensor<2x4x7x20xbf16>, tensor<2x4x20x16xbf16>) outs(%f23 : tensor<2x4x7x16xf32>) {
  ^bb0(%i0: bf16, %i1: bf16, %o: f32):
    %w0 = arith.extf %i0 : bf16 to f32
    %w1 = arith.extf %i1 : bf16 to f32
    %m = arith.mulf %w0, %w1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x16xf32>
  %e25 = tensor.empty() : tensor<2x4x7x16xbf16>
  %g26 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g24 : tensor<2x4x7x16xf32>) outs(%e25 : tensor<2x4x7x16xbf16>) {
  ^bb0(%i0: f32, %o: bf16):
    %r = arith.truncf %i0 : f32 to bf16
    linalg.yield %r : bf16
  } -> tensor<2x4x7x16xbf16>
  return %g26 : tensor<2x4x7x16xbf16>
}

// -----

// Open sizes of the batch, of queries and keys; the query is scaled; reductions and
// broadcasts are ops of their own, as of StableHLO.

// CHECK-LABEL: func @open_sizes
// CHECK: tensor.generate
// CHECK: fi.view.ragged {{.*}} indptr({{.*}} : tensor<?xi32>) : tensor<?x4x32xf32>, tensor<?x4x32xf32>
// CHECK: fi.attention {{.*}} rows({{.*}} : tensor<?xi32>) over {{.*}} scale(1.250000e-01) : tensor<?x4x32xf32>
// CHECK: tensor.expand_shape {{.*}} {{\[}}[0, 1], [2], [3]] output_shape {{.*}} : tensor<?x4x32xf32> into tensor<?x?x4x32xf32>
// CHECK-NOT: math.exp
func.func @open_sizes(%q: tensor<?x4x?x32xf32> {test.shape = array<i64: 3, 4, 5, 32>}, %k: tensor<?x4x?x32xf32> {test.shape = array<i64: 3, 4, 9, 32>}, %v: tensor<?x4x?x32xf32> {test.shape = array<i64: 3, 4, 9, 32>}) -> tensor<?x4x?x32xf32> {
  %c1 = arith.constant 0 : index
  %d2 = tensor.dim %q, %c1 : tensor<?x4x?x32xf32>
  %c3 = arith.constant 2 : index
  %d4 = tensor.dim %q, %c3 : tensor<?x4x?x32xf32>
  %c5 = arith.constant 2 : index
  %d6 = tensor.dim %k, %c5 : tensor<?x4x?x32xf32>
  %e7 = tensor.empty(%d2, %d4) : tensor<?x4x?x32xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%q : tensor<?x4x?x32xf32>) outs(%e7 : tensor<?x4x?x32xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k8 = arith.constant 0.125 : f32
    %r = arith.mulf %i0, %k8 : f32
    linalg.yield %r : f32
  } -> tensor<?x4x?x32xf32>
  %c9 = arith.constant 0.0 : f32
  %e10 = tensor.empty(%d2, %d4, %d6) : tensor<?x4x?x?xf32>
  %f11 = linalg.fill ins(%c9 : f32) outs(%e10 : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g8, %k : tensor<?x4x?x32xf32>, tensor<?x4x?x32xf32>) outs(%f11 : tensor<?x4x?x?xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x4x?x?xf32>
  %c13 = arith.constant 0xFF800000 : f32
  %e14 = tensor.empty(%d2, %d4) : tensor<?x4x?xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %max = linalg.reduce { arith.maximumf } ins(%g12 : tensor<?x4x?x?xf32>) outs(%f15 : tensor<?x4x?xf32>) dimensions = [3]
  %e16 = tensor.empty(%d2, %d4, %d6) : tensor<?x4x?x?xf32>
  %maxes = linalg.broadcast ins(%max : tensor<?x4x?xf32>) outs(%e16 : tensor<?x4x?x?xf32>) dimensions = [3]
  %centred = linalg.sub ins(%g12, %maxes : tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) outs(%e16 : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %exps = linalg.exp ins(%centred : tensor<?x4x?x?xf32>) outs(%e16 : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty(%d2, %d4) : tensor<?x4x?xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<?x4x?xf32>) -> tensor<?x4x?xf32>
  %sum = linalg.reduce { arith.addf } ins(%exps : tensor<?x4x?x?xf32>) outs(%f19 : tensor<?x4x?xf32>) dimensions = [3]
  %sums = linalg.broadcast ins(%sum : tensor<?x4x?xf32>) outs(%e16 : tensor<?x4x?x?xf32>) dimensions = [3]
  %p = linalg.div ins(%exps, %sums : tensor<?x4x?x?xf32>, tensor<?x4x?x?xf32>) outs(%e16 : tensor<?x4x?x?xf32>) -> tensor<?x4x?x?xf32>
  %c20 = arith.constant 0.0 : f32
  %e21 = tensor.empty(%d2, %d4) : tensor<?x4x?x32xf32>
  %f22 = linalg.fill ins(%c20 : f32) outs(%e21 : tensor<?x4x?x32xf32>) -> tensor<?x4x?x32xf32>
  %g23 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, e, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<?x4x?x?xf32>, tensor<?x4x?x32xf32>) outs(%f22 : tensor<?x4x?x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<?x4x?x32xf32>
  return %g23 : tensor<?x4x?x32xf32>
}

// -----

// Grouped heads: keys and values are broadcast over the heads of a group, and reshaped.

// CHECK-LABEL: func @grouped
// CHECK: fi.view.ragged {{.*}} : tensor<20x2x32xf32>, tensor<20x2x32xf32> ->
// CHECK: fi.attention {{.*}} : tensor<7x8x32xf32> over
// CHECK-NOT: math.exp
func.func @grouped(%q: tensor<1x8x7x32xf32>, %k: tensor<1x2x20x32xf32>, %v: tensor<1x2x20x32xf32>) -> tensor<1x8x7x32xf32> {
  %e1 = tensor.empty() : tensor<1x2x4x20x32xf32>
  %b2 = linalg.broadcast ins(%k : tensor<1x2x20x32xf32>) outs(%e1 : tensor<1x2x4x20x32xf32>) dimensions = [2]
  %b3 = tensor.collapse_shape %b2 [[0], [1, 2], [3], [4]] : tensor<1x2x4x20x32xf32> into tensor<1x8x20x32xf32>
  %e4 = tensor.empty() : tensor<1x2x4x20x32xf32>
  %b5 = linalg.broadcast ins(%v : tensor<1x2x20x32xf32>) outs(%e4 : tensor<1x2x4x20x32xf32>) dimensions = [2]
  %b6 = tensor.collapse_shape %b5 [[0], [1, 2], [3], [4]] : tensor<1x2x4x20x32xf32> into tensor<1x8x20x32xf32>
  %c7 = arith.constant 0.0 : f32
  %e8 = tensor.empty() : tensor<1x8x7x20xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<1x8x7x20xf32>) -> tensor<1x8x7x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %b3 : tensor<1x8x7x32xf32>, tensor<1x8x20x32xf32>) outs(%f9 : tensor<1x8x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7x20xf32>
  %e11 = tensor.empty() : tensor<1x8x7x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g10 : tensor<1x8x7x20xf32>) outs(%e11 : tensor<1x8x7x20xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %k4 = arith.constant 0.25 : f32
    %r = arith.mulf %i0, %k4 : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7x20xf32>
  %c13 = arith.constant 0xFF800000 : f32
  %e14 = tensor.empty() : tensor<1x8x7xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<1x8x7xf32>) -> tensor<1x8x7xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g12 : tensor<1x8x7x20xf32>) outs(%f15 : tensor<1x8x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7xf32>
  %e17 = tensor.empty() : tensor<1x8x7x20xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g12, %g16 : tensor<1x8x7x20xf32>, tensor<1x8x7xf32>) outs(%e17 : tensor<1x8x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7x20xf32>
  %c19 = arith.constant 0.0 : f32
  %e20 = tensor.empty() : tensor<1x8x7xf32>
  %f21 = linalg.fill ins(%c19 : f32) outs(%e20 : tensor<1x8x7xf32>) -> tensor<1x8x7xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g18 : tensor<1x8x7x20xf32>) outs(%f21 : tensor<1x8x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7xf32>
  %e23 = tensor.empty() : tensor<1x8x7x20xf32>
  %g24 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g18, %g22 : tensor<1x8x7x20xf32>, tensor<1x8x7xf32>) outs(%e23 : tensor<1x8x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7x20xf32>
  %c25 = arith.constant 0.0 : f32
  %e26 = tensor.empty() : tensor<1x8x7x32xf32>
  %f27 = linalg.fill ins(%c25 : f32) outs(%e26 : tensor<1x8x7x32xf32>) -> tensor<1x8x7x32xf32>
  %g28 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, e, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g24, %b6 : tensor<1x8x7x20xf32>, tensor<1x8x20x32xf32>) outs(%f27 : tensor<1x8x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<1x8x7x32xf32>
  return %g28 : tensor<1x8x7x32xf32>
}

// -----

// The same in five dimensions; a bias of heads, which are collapsed there.

// CHECK-LABEL: func @grouped_five
// CHECK: fi.view.ragged {{.*}} : tensor<40x2x32xf32>, tensor<40x2x32xf32> ->
// CHECK: fi.attention {{.*}} scale(1.000000e+00) captures({{.*}} : tensor<6x1x20xf32>)
// CHECK: fi.load {{.*}} : tensor<6x1x20xf32>
// CHECK: tensor<14x6x32xf32> over
// CHECK-NOT: math.exp
func.func @grouped_five(%q: tensor<2x2x3x7x32xf32>, %k: tensor<2x2x20x32xf32>, %v: tensor<2x2x20x32xf32>, %bias: tensor<6x1x20xf32>) -> tensor<2x2x3x7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<2x2x3x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<2x2x3x7x20xf32>) -> tensor<2x2x3x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, e, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x2x3x7x32xf32>, tensor<2x2x20x32xf32>) outs(%f3 : tensor<2x2x3x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7x20xf32>
  %b5 = tensor.expand_shape %bias [[0, 1], [2], [3]] output_shape [2, 3, 1, 20] : tensor<6x1x20xf32> into tensor<2x3x1x20xf32>
  %e6 = tensor.empty() : tensor<2x2x3x7x20xf32>
  %g7 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (b, c, 0, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g4, %b5 : tensor<2x2x3x7x20xf32>, tensor<2x3x1x20xf32>) outs(%e6 : tensor<2x2x3x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7x20xf32>
  %c8 = arith.constant 0xFF800000 : f32
  %e9 = tensor.empty() : tensor<2x2x3x7xf32>
  %f10 = linalg.fill ins(%c8 : f32) outs(%e9 : tensor<2x2x3x7xf32>) -> tensor<2x2x3x7xf32>
  %g11 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g7 : tensor<2x2x3x7x20xf32>) outs(%f10 : tensor<2x2x3x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7xf32>
  %e12 = tensor.empty() : tensor<2x2x3x7x20xf32>
  %g13 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g7, %g11 : tensor<2x2x3x7x20xf32>, tensor<2x2x3x7xf32>) outs(%e12 : tensor<2x2x3x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7x20xf32>
  %c14 = arith.constant 0.0 : f32
  %e15 = tensor.empty() : tensor<2x2x3x7xf32>
  %f16 = linalg.fill ins(%c14 : f32) outs(%e15 : tensor<2x2x3x7xf32>) -> tensor<2x2x3x7xf32>
  %g17 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g13 : tensor<2x2x3x7x20xf32>) outs(%f16 : tensor<2x2x3x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7xf32>
  %e18 = tensor.empty() : tensor<2x2x3x7x20xf32>
  %g19 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]}
      ins(%g13, %g17 : tensor<2x2x3x7x20xf32>, tensor<2x2x3x7xf32>) outs(%e18 : tensor<2x2x3x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7x20xf32>
  %c20 = arith.constant 0.0 : f32
  %e21 = tensor.empty() : tensor<2x2x3x7x32xf32>
  %f22 = linalg.fill ins(%c20 : f32) outs(%e21 : tensor<2x2x3x7x32xf32>) -> tensor<2x2x3x7x32xf32>
  %g23 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e, f) -> (a, b, c, d, f)>, affine_map<(a, b, c, d, e, f) -> (a, b, f, e)>, affine_map<(a, b, c, d, e, f) -> (a, b, c, d, e)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g19, %v : tensor<2x2x3x7x20xf32>, tensor<2x2x20x32xf32>) outs(%f22 : tensor<2x2x3x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x2x3x7x32xf32>
  return %g23 : tensor<2x2x3x7x32xf32>
}

// -----

// Keys and values of one head; tokens before heads: nothing is transposed.

// CHECK-LABEL: func @one_head
// CHECK-NOT: linalg.transpose
// CHECK: fi.view.ragged {{.*}} : tensor<40x1x32xf32>, tensor<40x1x32xf32> ->
// CHECK: fi.attention {{.*}} : tensor<14x4x32xf32> over
// CHECK-NOT: linalg.transpose
// CHECK-NOT: math.exp
func.func @one_head(%q: tensor<2x7x4x32xf32>, %k: tensor<2x20x32xf32>, %v: tensor<2x20x32xf32>) -> tensor<2x7x4x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<2x4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<2x4x7x20xf32>) -> tensor<2x4x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, c, b, e)>, affine_map<(a, b, c, d, e) -> (a, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x7x4x32xf32>, tensor<2x20x32xf32>) outs(%f3 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c5 = arith.constant 0xFF800000 : f32
  %e6 = tensor.empty() : tensor<2x4x7xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g4 : tensor<2x4x7x20xf32>) outs(%f7 : tensor<2x4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7xf32>
  %e9 = tensor.empty() : tensor<2x4x7x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g4, %g8 : tensor<2x4x7x20xf32>, tensor<2x4x7xf32>) outs(%e9 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c11 = arith.constant 0.0 : f32
  %e12 = tensor.empty() : tensor<2x4x7xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g10 : tensor<2x4x7x20xf32>) outs(%f13 : tensor<2x4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7xf32>
  %e15 = tensor.empty() : tensor<2x4x7x20xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g10, %g14 : tensor<2x4x7x20xf32>, tensor<2x4x7xf32>) outs(%e15 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<2x7x4x32xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<2x7x4x32xf32>) -> tensor<2x7x4x32xf32>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, c, b, e)>, affine_map<(a, b, c, d, e) -> (a, e, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%g16, %v : tensor<2x4x7x20xf32>, tensor<2x20x32xf32>) outs(%f19 : tensor<2x7x4x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x7x4x32xf32>
  return %g20 : tensor<2x7x4x32xf32>
}

// -----

// Batch and heads are collapsed for the products, and the mask is of the batch.

// CHECK-LABEL: func @collapsed
// CHECK: fi.attention {{.*}} rows({{.*}} : tensor<3xi32>) over
// CHECK: fi.load {{.*}} : tensor<2x1x7x20xf32>
// CHECK-NOT: math.exp
func.func @collapsed(%q: tensor<2x4x7x32xf32>, %k: tensor<2x4x20x32xf32>, %v: tensor<2x4x20x32xf32>, %mask: tensor<2x1x7x20xf32>) -> tensor<2x4x7x32xf32> {
  %q3 = tensor.collapse_shape %q [[0, 1], [2], [3]] : tensor<2x4x7x32xf32> into tensor<8x7x32xf32>
  %k3 = tensor.collapse_shape %k [[0, 1], [2], [3]] : tensor<2x4x20x32xf32> into tensor<8x20x32xf32>
  %v3 = tensor.collapse_shape %v [[0, 1], [2], [3]] : tensor<2x4x20x32xf32> into tensor<8x20x32xf32>
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<8x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<8x7x20xf32>) -> tensor<8x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q3, %k3 : tensor<8x7x32xf32>, tensor<8x20x32xf32>) outs(%f3 : tensor<8x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<8x7x20xf32>
  %s4 = tensor.expand_shape %g4 [[0, 1], [2], [3]] output_shape [2, 4, 7, 20] : tensor<8x7x20xf32> into tensor<2x4x7x20xf32>
  %e5 = tensor.empty() : tensor<2x4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, 0, c, d)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%s4, %mask : tensor<2x4x7x20xf32>, tensor<2x1x7x20xf32>) outs(%e5 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c7 = arith.constant 0xFF800000 : f32
  %e8 = tensor.empty() : tensor<2x4x7xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g6 : tensor<2x4x7x20xf32>) outs(%f9 : tensor<2x4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7xf32>
  %e11 = tensor.empty() : tensor<2x4x7x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g6, %g10 : tensor<2x4x7x20xf32>, tensor<2x4x7xf32>) outs(%e11 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<2x4x7xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<2x4x7xf32>) -> tensor<2x4x7xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g12 : tensor<2x4x7x20xf32>) outs(%f15 : tensor<2x4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7xf32>
  %e17 = tensor.empty() : tensor<2x4x7x20xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>, affine_map<(a, b, c, d) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel"]}
      ins(%g12, %g16 : tensor<2x4x7x20xf32>, tensor<2x4x7xf32>) outs(%e17 : tensor<2x4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<2x4x7x20xf32>
  %p3 = tensor.collapse_shape %g18 [[0, 1], [2], [3]] : tensor<2x4x7x20xf32> into tensor<8x7x20xf32>
  %c19 = arith.constant 0.0 : f32
  %e20 = tensor.empty() : tensor<8x7x32xf32>
  %f21 = linalg.fill ins(%c19 : f32) outs(%e20 : tensor<8x7x32xf32>) -> tensor<8x7x32xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p3, %v3 : tensor<8x7x20xf32>, tensor<8x20x32xf32>) outs(%f21 : tensor<8x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<8x7x32xf32>
  %o4 = tensor.expand_shape %g22 [[0, 1], [2], [3]] output_shape [2, 4, 7, 32] : tensor<8x7x32xf32> into tensor<2x4x7x32xf32>
  return %o4 : tensor<2x4x7x32xf32>
}
