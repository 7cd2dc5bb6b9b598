// RUN: fi-opt --fi-raise-attention --split-input-file --verify-diagnostics %s | FileCheck %s

// What looks like attention and is none, or none that fi has, stays as it was.
// CHECK-NOT: fi.attention

func.func @two_products(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>, %q2: tensor<4x7x32xf32>, %k2: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
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
  %c5 = arith.constant 0.0 : f32
  %e6 = tensor.empty() : tensor<4x7x20xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q2, %k2 : tensor<4x7x32xf32>, tensor<4x20x32xf32>) outs(%f7 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e9 = tensor.empty() : tensor<4x7x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4, %g8 : tensor<4x7x20xf32>, tensor<4x7x20xf32>) outs(%e9 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.addf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c11 = arith.constant 0xFF800000 : f32
  %e12 = tensor.empty() : tensor<4x7xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g10 : tensor<4x7x20xf32>) outs(%f13 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e15 = tensor.empty() : tensor<4x7x20xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g10, %g14 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e15 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<4x7xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g16 : tensor<4x7x20xf32>) outs(%f19 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e21 = tensor.empty() : tensor<4x7x20xf32>
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g16, %g20 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e21 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c23 = arith.constant 0.0 : f32
  %e24 = tensor.empty() : tensor<4x7x32xf32>
  %f25 = linalg.fill ins(%c23 : f32) outs(%e24 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the scores are made of more than one product}}
  %g26 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g22, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f25 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g26 : tensor<4x7x32xf32>
}

// -----

func.func @no_product(%s: tensor<4x7x20xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %c1 = arith.constant 0xFF800000 : f32
  %e2 = tensor.empty() : tensor<4x7xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<4x7x20xf32>) outs(%f3 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e5 = tensor.empty() : tensor<4x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %g4 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e5 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c7 = arith.constant 0.0 : f32
  %e8 = tensor.empty() : tensor<4x7xf32>
  %f9 = linalg.fill ins(%c7 : f32) outs(%e8 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g6 : tensor<4x7x20xf32>) outs(%f9 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e11 = tensor.empty() : tensor<4x7x20xf32>
  %g12 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g6, %g10 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e11 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c13 = arith.constant 0.0 : f32
  %e14 = tensor.empty() : tensor<4x7x32xf32>
  %f15 = linalg.fill ins(%c13 : f32) outs(%e14 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the scores are no products of queries and keys}}
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g12, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f15 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g16 : tensor<4x7x32xf32>
}

// -----

func.func @odd_dims(%q: tensor<4x7x12xf32>, %k: tensor<4x20x12xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x7x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x7x12xf32>, tensor<4x20x12xf32>) outs(%f3 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c5 = arith.constant 0xFF800000 : f32
  %e6 = tensor.empty() : tensor<4x7xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g4 : tensor<4x7x20xf32>) outs(%f7 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e9 = tensor.empty() : tensor<4x7x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4, %g8 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e9 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c11 = arith.constant 0.0 : f32
  %e12 = tensor.empty() : tensor<4x7xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g10 : tensor<4x7x20xf32>) outs(%f13 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e15 = tensor.empty() : tensor<4x7x20xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g10, %g14 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e15 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<4x7x32xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: expected head dims that are multiples of 8 up to 512, but got 12 [KV2]}}
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g16, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f19 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g20 : tensor<4x7x32xf32>
}

// -----

func.func @doubles(%q: tensor<4x7x32xf64>, %k: tensor<4x20x32xf64>, %v: tensor<4x20x32xf64>) -> tensor<4x7x32xf64> {
  %c1 = arith.constant 0.0 : f64
  %e2 = tensor.empty() : tensor<4x7x20xf64>
  %f3 = linalg.fill ins(%c1 : f64) outs(%e2 : tensor<4x7x20xf64>) -> tensor<4x7x20xf64>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x7x32xf64>, tensor<4x20x32xf64>) outs(%f3 : tensor<4x7x20xf64>) {
  ^bb0(%i0: f64, %i1: f64, %o: f64):
    %m = arith.mulf %i0, %i1 : f64
    %r = arith.addf %o, %m : f64
    linalg.yield %r : f64
  } -> tensor<4x7x20xf64>
  %e5 = tensor.empty() : tensor<4x7x20xf64>
  %p = linalg.softmax dimension(2) ins(%g4 : tensor<4x7x20xf64>) outs(%e5 : tensor<4x7x20xf64>) -> tensor<4x7x20xf64>
  %c6 = arith.constant 0.0 : f64
  %e7 = tensor.empty() : tensor<4x7x32xf64>
  %f8 = linalg.fill ins(%c6 : f64) outs(%e7 : tensor<4x7x32xf64>) -> tensor<4x7x32xf64>
  // expected-remark @below {{not raised to fi.attention: expected elements of f32, f16 or bf16, but got f64}}
  %g9 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x7x20xf64>, tensor<4x20x32xf64>) outs(%f8 : tensor<4x7x32xf64>) {
  ^bb0(%i0: f64, %i1: f64, %o: f64):
    %m = arith.mulf %i0, %i1 : f64
    %r = arith.addf %o, %m : f64
    linalg.yield %r : f64
  } -> tensor<4x7x32xf64>
  return %g9 : tensor<4x7x32xf64>
}

// -----

func.func @open_heads(%q: tensor<2x?x7x32xf32>, %k: tensor<2x?x20x32xf32>, %v: tensor<2x?x20x32xf32>) -> tensor<2x?x7x32xf32> {
  %c1 = arith.constant 1 : index
  %d2 = tensor.dim %q, %c1 : tensor<2x?x7x32xf32>
  %c3 = arith.constant 0.0 : f32
  %e4 = tensor.empty(%d2) : tensor<2x?x7x20xf32>
  %f5 = linalg.fill ins(%c3 : f32) outs(%e4 : tensor<2x?x7x20xf32>) -> tensor<2x?x7x20xf32>
  %g6 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, d, e)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<2x?x7x32xf32>, tensor<2x?x20x32xf32>) outs(%f5 : tensor<2x?x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x?x7x20xf32>
  %e7 = tensor.empty(%d2) : tensor<2x?x7x20xf32>
  %p = linalg.softmax dimension(3) ins(%g6 : tensor<2x?x7x20xf32>) outs(%e7 : tensor<2x?x7x20xf32>) -> tensor<2x?x7x20xf32>
  %c8 = arith.constant 0.0 : f32
  %e9 = tensor.empty(%d2) : tensor<2x?x7x32xf32>
  %f10 = linalg.fill ins(%c8 : f32) outs(%e9 : tensor<2x?x7x32xf32>) -> tensor<2x?x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the number of heads or columns is not known}}
  %g11 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d, e) -> (a, b, c, e)>, affine_map<(a, b, c, d, e) -> (a, b, e, d)>, affine_map<(a, b, c, d, e) -> (a, b, c, d)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<2x?x7x20xf32>, tensor<2x?x20x32xf32>) outs(%f10 : tensor<2x?x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<2x?x7x32xf32>
  return %g11 : tensor<2x?x7x32xf32>
}

// -----

func.func @other_heads(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<20x32xf32>) -> tensor<4x7x32xf32> {
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
  %c5 = arith.constant 0xFF800000 : f32
  %e6 = tensor.empty() : tensor<4x7xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g4 : tensor<4x7x20xf32>) outs(%f7 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e9 = tensor.empty() : tensor<4x7x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4, %g8 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e9 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c11 = arith.constant 0.0 : f32
  %e12 = tensor.empty() : tensor<4x7xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g10 : tensor<4x7x20xf32>) outs(%f13 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e15 = tensor.empty() : tensor<4x7x20xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g10, %g14 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e15 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<4x7x32xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: keys and values differ in their batch or heads}}
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g16, %v : tensor<4x7x20xf32>, tensor<20x32xf32>) outs(%f19 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g20 : tensor<4x7x32xf32>
}

// -----

func.func @scaled_values(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
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
  %c5 = arith.constant 0xFF800000 : f32
  %e6 = tensor.empty() : tensor<4x7xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g4 : tensor<4x7x20xf32>) outs(%f7 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.maximumf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e9 = tensor.empty() : tensor<4x7x20xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g4, %g8 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e9 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %d = arith.subf %i0, %i1 : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c11 = arith.constant 0.0 : f32
  %e12 = tensor.empty() : tensor<4x7xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<4x7xf32>) -> tensor<4x7xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g10 : tensor<4x7x20xf32>) outs(%f13 : tensor<4x7xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %r = arith.addf %i0, %o : f32
    linalg.yield %r : f32
  } -> tensor<4x7xf32>
  %e15 = tensor.empty() : tensor<4x7x20xf32>
  %g16 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g10, %g14 : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e15 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e17 = tensor.empty() : tensor<4x20x32xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%v : tensor<4x20x32xf32>) outs(%e17 : tensor<4x20x32xf32>) {
  ^bb0(%i0: f32, %o: f32):
    %h = arith.constant 0.5 : f32
    %r = arith.mulf %i0, %h : f32
    linalg.yield %r : f32
  } -> tensor<4x20x32xf32>
  %c19 = arith.constant 0.0 : f32
  %e20 = tensor.empty() : tensor<4x7x32xf32>
  %f21 = linalg.fill ins(%c19 : f32) outs(%e20 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the values are scaled}}
  %g22 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g16, %g18 : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f21 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g22 : tensor<4x7x32xf32>
}

// -----

func.func @doubled(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
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
    %x0 = arith.addf %i0, %i0 : f32
    %x1 = arith.addf %x0, %x0 : f32
    %x2 = arith.addf %x1, %x1 : f32
    %x3 = arith.addf %x2, %x2 : f32
    %x4 = arith.addf %x3, %x3 : f32
    %x5 = arith.addf %x4, %x4 : f32
    %x6 = arith.addf %x5, %x5 : f32
    %x7 = arith.addf %x6, %x6 : f32
    %x8 = arith.addf %x7, %x7 : f32
    %x9 = arith.addf %x8, %x8 : f32
    %x10 = arith.addf %x9, %x9 : f32
    %r = arith.addf %x10, %x10 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e7 = tensor.empty() : tensor<4x7x20xf32>
  %p = linalg.softmax dimension(2) ins(%g6 : tensor<4x7x20xf32>) outs(%e7 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %c8 = arith.constant 0.0 : f32
  %e9 = tensor.empty() : tensor<4x7x32xf32>
  %f10 = linalg.fill ins(%c8 : f32) outs(%e9 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: more than 256 operations change the scores}}
  %g11 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f10 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g11 : tensor<4x7x32xf32>
}

// -----

func.func @doubled_often(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
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
    %x0 = arith.addf %i0, %i0 : f32
    %x1 = arith.addf %x0, %x0 : f32
    %x2 = arith.addf %x1, %x1 : f32
    %x3 = arith.addf %x2, %x2 : f32
    %x4 = arith.addf %x3, %x3 : f32
    %x5 = arith.addf %x4, %x4 : f32
    %x6 = arith.addf %x5, %x5 : f32
    %x7 = arith.addf %x6, %x6 : f32
    %x8 = arith.addf %x7, %x7 : f32
    %x9 = arith.addf %x8, %x8 : f32
    %x10 = arith.addf %x9, %x9 : f32
    %x11 = arith.addf %x10, %x10 : f32
    %x12 = arith.addf %x11, %x11 : f32
    %x13 = arith.addf %x12, %x12 : f32
    %x14 = arith.addf %x13, %x13 : f32
    %x15 = arith.addf %x14, %x14 : f32
    %x16 = arith.addf %x15, %x15 : f32
    %x17 = arith.addf %x16, %x16 : f32
    %x18 = arith.addf %x17, %x17 : f32
    %x19 = arith.addf %x18, %x18 : f32
    %x20 = arith.addf %x19, %x19 : f32
    %x21 = arith.addf %x20, %x20 : f32
    %x22 = arith.addf %x21, %x21 : f32
    %x23 = arith.addf %x22, %x22 : f32
    %x24 = arith.addf %x23, %x23 : f32
    %x25 = arith.addf %x24, %x24 : f32
    %x26 = arith.addf %x25, %x25 : f32
    %x27 = arith.addf %x26, %x26 : f32
    %x28 = arith.addf %x27, %x27 : f32
    %x29 = arith.addf %x28, %x28 : f32
    %x30 = arith.addf %x29, %x29 : f32
    %x31 = arith.addf %x30, %x30 : f32
    %x32 = arith.addf %x31, %x31 : f32
    %x33 = arith.addf %x32, %x32 : f32
    %x34 = arith.addf %x33, %x33 : f32
    %x35 = arith.addf %x34, %x34 : f32
    %x36 = arith.addf %x35, %x35 : f32
    %x37 = arith.addf %x36, %x36 : f32
    %x38 = arith.addf %x37, %x37 : f32
    %x39 = arith.addf %x38, %x38 : f32
    %x40 = arith.addf %x39, %x39 : f32
    %x41 = arith.addf %x40, %x40 : f32
    %x42 = arith.addf %x41, %x41 : f32
    %x43 = arith.addf %x42, %x42 : f32
    %x44 = arith.addf %x43, %x43 : f32
    %x45 = arith.addf %x44, %x44 : f32
    %x46 = arith.addf %x45, %x45 : f32
    %x47 = arith.addf %x46, %x46 : f32
    %x48 = arith.addf %x47, %x47 : f32
    %x49 = arith.addf %x48, %x48 : f32
    %x50 = arith.addf %x49, %x49 : f32
    %x51 = arith.addf %x50, %x50 : f32
    %x52 = arith.addf %x51, %x51 : f32
    %x53 = arith.addf %x52, %x52 : f32
    %x54 = arith.addf %x53, %x53 : f32
    %x55 = arith.addf %x54, %x54 : f32
    %x56 = arith.addf %x55, %x55 : f32
    %x57 = arith.addf %x56, %x56 : f32
    %x58 = arith.addf %x57, %x57 : f32
    %x59 = arith.addf %x58, %x58 : f32
    %x60 = arith.addf %x59, %x59 : f32
    %x61 = arith.addf %x60, %x60 : f32
    %x62 = arith.addf %x61, %x61 : f32
    %r = arith.addf %x62, %x62 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %e7 = tensor.empty() : tensor<4x7x20xf32>
  %p = linalg.softmax dimension(2) ins(%g6 : tensor<4x7x20xf32>) outs(%e7 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %c8 = arith.constant 0.0 : f32
  %e9 = tensor.empty() : tensor<4x7x32xf32>
  %f10 = linalg.fill ins(%c8 : f32) outs(%e9 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the scores are no products of queries and keys}}
  %g11 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f10 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g11 : tensor<4x7x32xf32>
}

// -----

func.func @empty(%q: tensor<4x0x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x0x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<4x0x20xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<4x0x20xf32>) -> tensor<4x0x20xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, c, d)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<4x0x32xf32>, tensor<4x20x32xf32>) outs(%f3 : tensor<4x0x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x0x20xf32>
  %e5 = tensor.empty() : tensor<4x0x20xf32>
  %p = linalg.softmax dimension(2) ins(%g4 : tensor<4x0x20xf32>) outs(%e5 : tensor<4x0x20xf32>) -> tensor<4x0x20xf32>
  %c6 = arith.constant 0.0 : f32
  %e7 = tensor.empty() : tensor<4x0x32xf32>
  %f8 = linalg.fill ins(%c6 : f32) outs(%e7 : tensor<4x0x32xf32>) -> tensor<4x0x32xf32>
  // expected-remark @below {{not raised to fi.attention: a dimension has size 0}}
  %g9 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x0x20xf32>, tensor<4x20x32xf32>) outs(%f8 : tensor<4x0x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x0x32xf32>
  return %g9 : tensor<4x0x32xf32>
}

// -----

// A gated layer has exponentials and products, too, and gets no remark.
func.func @gate(%x: tensor<7x32xf32>, %g: tensor<32x64xf32>, %u: tensor<32x64xf32>, %d: tensor<64x32xf32>) -> tensor<7x32xf32> {
  %c1 = arith.constant 0.0 : f32
  %e2 = tensor.empty() : tensor<7x64xf32>
  %f3 = linalg.fill ins(%c1 : f32) outs(%e2 : tensor<7x64xf32>) -> tensor<7x64xf32>
  %g4 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (c, b)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<7x32xf32>, tensor<32x64xf32>) outs(%f3 : tensor<7x64xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<7x64xf32>
  %c5 = arith.constant 0.0 : f32
  %e6 = tensor.empty() : tensor<7x64xf32>
  %f7 = linalg.fill ins(%c5 : f32) outs(%e6 : tensor<7x64xf32>) -> tensor<7x64xf32>
  %g8 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (c, b)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %u : tensor<7x32xf32>, tensor<32x64xf32>) outs(%f7 : tensor<7x64xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<7x64xf32>
  %e9 = tensor.empty() : tensor<7x64xf32>
  %g10 = linalg.generic {
      indexing_maps = [affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>, affine_map<(a, b) -> (a, b)>],
      iterator_types = ["parallel", "parallel"]}
      ins(%g4, %g8 : tensor<7x64xf32>, tensor<7x64xf32>) outs(%e9 : tensor<7x64xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %n = arith.negf %i0 : f32
    %e = math.exp %n : f32
    %one = arith.constant 1.0 : f32
    %s = arith.addf %e, %one : f32
    %t = arith.divf %i0, %s : f32
    %r = arith.mulf %t, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<7x64xf32>
  %c11 = arith.constant 0.0 : f32
  %e12 = tensor.empty() : tensor<7x32xf32>
  %f13 = linalg.fill ins(%c11 : f32) outs(%e12 : tensor<7x32xf32>) -> tensor<7x32xf32>
  %g14 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, c)>, affine_map<(a, b, c) -> (c, b)>, affine_map<(a, b, c) -> (a, b)>],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%g10, %d : tensor<7x64xf32>, tensor<64x32xf32>) outs(%f13 : tensor<7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<7x32xf32>
  return %g14 : tensor<7x32xf32>
}
