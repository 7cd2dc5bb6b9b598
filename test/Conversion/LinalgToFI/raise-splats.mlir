// RUN: fi-opt --fi-raise-attention --split-input-file %s | FileCheck %s

// A scale that is a tensor of one number is a number.

// CHECK-LABEL: func @splat
// CHECK: fi.attention %{{.*}} over %{{.*}} scale(1.800000e-01) : tensor<7x4x32xf32>
func.func @splat(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c = arith.constant 0.18 : f32
  %scale = tensor.splat %c : tensor<4x7x20xf32>
  %t0 = tensor.empty() : tensor<4x32x20xf32>
  %kt = linalg.transpose ins(%k : tensor<4x20x32xf32>) outs(%t0 : tensor<4x32x20xf32>) permutation = [0, 2, 1]
  %s0 = tensor.empty() : tensor<4x7x20xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s2 = linalg.batch_matmul ins(%q, %kt : tensor<4x7x32xf32>, tensor<4x32x20xf32>) outs(%s1 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s = arith.mulf %s2, %scale : tensor<4x7x20xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x7x20xf32>) outs(%s0 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %o0 = tensor.empty() : tensor<4x7x32xf32>
  %o1 = linalg.fill ins(%zero : f32) outs(%o0 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%o1 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  return %o : tensor<4x7x32xf32>
}

// -----

// A division by a constant of no dimensions, broadcast.

// CHECK-LABEL: func @broadcast
// CHECK: fi.attention %{{.*}} over %{{.*}} scale(2.500000e-01) : tensor<7x4x32xf32>
func.func @broadcast(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>) -> tensor<4x7x32xf32> {
  %zero = arith.constant 0.0 : f32
  %c = arith.constant 4.0 : f32
  %c0 = tensor.from_elements %c : tensor<f32>
  %t0 = tensor.empty() : tensor<4x32x20xf32>
  %kt = linalg.transpose ins(%k : tensor<4x20x32xf32>) outs(%t0 : tensor<4x32x20xf32>) permutation = [0, 2, 1]
  %s0 = tensor.empty() : tensor<4x7x20xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s2 = linalg.batch_matmul ins(%q, %kt : tensor<4x7x32xf32>, tensor<4x32x20xf32>) outs(%s1 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %scale = linalg.broadcast ins(%c0 : tensor<f32>) outs(%s0 : tensor<4x7x20xf32>) dimensions = [0, 1, 2]
  %s = arith.divf %s2, %scale : tensor<4x7x20xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x7x20xf32>) outs(%s0 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %o0 = tensor.empty() : tensor<4x7x32xf32>
  %o1 = linalg.fill ins(%zero : f32) outs(%o0 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%o1 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  return %o : tensor<4x7x32xf32>
}

// -----

// A scale that is known when the function runs is a captured number, not a tensor.

// CHECK-LABEL: func @scalar
// CHECK: fi.attention %{{.*}} captures(%[[C:.*]] = %{{.*}} : f32) score(
// CHECK: arith.mulf %s, %[[C]] : f32
func.func @scalar(%q: tensor<4x7x32xf32>, %k: tensor<4x20x32xf32>, %v: tensor<4x20x32xf32>, %c: f32) -> tensor<4x7x32xf32> {
  %zero = arith.constant 0.0 : f32
  %scale = tensor.splat %c : tensor<4x7x20xf32>
  %t0 = tensor.empty() : tensor<4x32x20xf32>
  %kt = linalg.transpose ins(%k : tensor<4x20x32xf32>) outs(%t0 : tensor<4x32x20xf32>) permutation = [0, 2, 1]
  %s0 = tensor.empty() : tensor<4x7x20xf32>
  %s1 = linalg.fill ins(%zero : f32) outs(%s0 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s2 = linalg.batch_matmul ins(%q, %kt : tensor<4x7x32xf32>, tensor<4x32x20xf32>) outs(%s1 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %s = arith.mulf %s2, %scale : tensor<4x7x20xf32>
  %p = linalg.softmax dimension(2) ins(%s : tensor<4x7x20xf32>) outs(%s0 : tensor<4x7x20xf32>) -> tensor<4x7x20xf32>
  %o0 = tensor.empty() : tensor<4x7x32xf32>
  %o1 = linalg.fill ins(%zero : f32) outs(%o0 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  %o = linalg.batch_matmul ins(%p, %v : tensor<4x7x20xf32>, tensor<4x20x32xf32>) outs(%o1 : tensor<4x7x32xf32>) -> tensor<4x7x32xf32>
  return %o : tensor<4x7x32xf32>
}
