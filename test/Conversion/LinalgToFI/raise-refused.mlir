// RUN: fi-opt --fi-raise-attention --split-input-file --verify-diagnostics %s | FileCheck %s

// What looks like attention and is none, or none that fi has, stays as it was.
// CHECK-NOT: fi.attention

func.func @other_dimension(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
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
  %p = linalg.softmax dimension(1) ins(%g4 : tensor<4x7x20xf32>) outs(%e5 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %c6 = arith.constant 0.0 : f32
  %e7 = tensor.empty() : tensor<4x7x32xf32>
  %f8 = linalg.fill ins(%c6 : f32) outs(%e7 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the weights are normalised over another dimension than that of the keys}}
  %g9 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f8 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g9 : tensor<4x7x32xf32>
}

// -----

func.func @not_divided(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
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
  %c15 = arith.constant 0.0 : f32
  %e16 = tensor.empty() : tensor<4x7x32xf32>
  %f17 = linalg.fill ins(%c15 : f32) outs(%e16 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the weights are not divided by their sum}}
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g10, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f17 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  return %g18 : tensor<4x7x32xf32>
}

// -----

func.func @changed_weights(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>, %keep: tensor<4x7x20xf32>) -> tensor<4x7x32xf32> {
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
  %e17 = tensor.empty() : tensor<4x7x20xf32>
  %g18 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>, affine_map<(a, b, c) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%g16, %keep : tensor<4x7x20xf32>, tensor<4x7x20xf32>) outs(%e17 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.mulf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c19 = arith.constant 0.0 : f32
  %e20 = tensor.empty() : tensor<4x7x32xf32>
  %f21 = linalg.fill ins(%c19 : f32) outs(%e20 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the weights are changed behind the softmax}}
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

func.func @used_weights(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x20xf32> {
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
  // expected-remark @below {{not raised to fi.attention: the scores or weights are used by another operation}}
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g16, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f19 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  %u = tensor.extract_slice %g20[0, 0, 0] [4, 7, 20] [1, 1, 1] : tensor<4x7x32xf32> to tensor<4x7x20xf32>
  %w = arith.addf %u, %g16 : tensor<4x7x20xf32>
  return %w : tensor<4x7x20xf32>
}

// -----

func.func @used_scores(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x20xf32> {
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
  // expected-remark @below {{not raised to fi.attention: the scores or weights are used by another operation}}
  %g20 = linalg.generic {
      indexing_maps = [affine_map<(a, b, c, d) -> (a, b, d)>, affine_map<(a, b, c, d) -> (a, d, c)>, affine_map<(a, b, c, d) -> (a, b, c)>],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%g16, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%f19 : tensor<4x7x32xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %m = arith.mulf %i0, %i1 : f32
    %r = arith.addf %o, %m : f32
    linalg.yield %r : f32
  } -> tensor<4x7x32xf32>
  %u = tensor.extract_slice %g20[0, 0, 0] [4, 7, 20] [1, 1, 1] : tensor<4x7x32xf32> to tensor<4x7x20xf32>
  %w = arith.addf %u, %g4 : tensor<4x7x20xf32>
  return %w : tensor<4x7x20xf32>
}

// -----

func.func @other_maximum(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>, %other: tensor<4x7x20xf32>) -> tensor<4x7x32xf32> {
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
      ins(%other : tensor<4x7x20xf32>) outs(%f7 : tensor<4x7xf32>) {
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
  // expected-remark @below {{not raised to fi.attention: what is subtracted from the scores is the largest of others}}
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

func.func @other_sum(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>, %other: tensor<4x7xf32>) -> tensor<4x7x32xf32> {
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
      ins(%g10, %other : tensor<4x7x20xf32>, tensor<4x7xf32>) outs(%e15 : tensor<4x7x20xf32>) {
  ^bb0(%i0: f32, %i1: f32, %o: f32):
    %r = arith.divf %i0, %i1 : f32
    linalg.yield %r : f32
  } -> tensor<4x7x20xf32>
  %c17 = arith.constant 0.0 : f32
  %e18 = tensor.empty() : tensor<4x7x32xf32>
  %f19 = linalg.fill ins(%c17 : f32) outs(%e18 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  // expected-remark @below {{not raised to fi.attention: the weights are not divided by their sum}}
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
