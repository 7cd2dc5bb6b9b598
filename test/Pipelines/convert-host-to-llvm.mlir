// All dialects of a function in one pass: vectors of two dimensions, transfers of
// them, views of memory with strides (whose offsets become affine maps), loops.
// RUN: fi-opt %s --fi-convert-host-to-llvm | FileCheck %s

// CHECK-NOT: builtin.unrealized_conversion_cast
// CHECK-NOT: {{[ "](affine|arith|cf|func|index|math|memref|scf|ub|vector)\.}}
// CHECK-LABEL: llvm.func @rows(
// CHECK: llvm.cond_br
// CHECK: llvm.intr.fmuladd({{.*}}) : (vector<8xf32>, vector<8xf32>, vector<8xf32>) -> vector<8xf32>
// CHECK: llvm.return
func.func @rows(%m: memref<?x16xf32>, %n: index, %s: f32) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  %pad = arith.constant 0.0 : f32
  %v = memref.subview %m[%n, 8] [2, 8] [1, 1]
      : memref<?x16xf32> to memref<2x8xf32, strided<[16, 1], offset: ?>>
  %b = vector.broadcast %s : f32 to vector<2x8xf32>
  scf.for %i = %zero to %n step %one {
    %x = vector.transfer_read %m[%i, %zero], %pad {in_bounds = [true, true]}
        : memref<?x16xf32>, vector<2x8xf32>
    %y = vector.fma %x, %b, %x : vector<2x8xf32>
    %z = math.absf %y : vector<2x8xf32>
    vector.transfer_write %z, %v[%zero, %zero] {in_bounds = [true, true]}
        : vector<2x8xf32>, memref<2x8xf32, strided<[16, 1], offset: ?>>
    %k = index.add %n, %i
    memref.store %s, %m[%k, %one] : memref<?x16xf32>
  }
  return
}
