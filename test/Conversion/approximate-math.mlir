// Functions on vectors become arithmetic; none is left for the C library.
// RUN: fi-opt %s --fi-approximate-math | FileCheck %s

// CHECK-LABEL: func.func @functions
// CHECK-NOT: math.{{(exp|exp2|log|log2|log1p|tanh|sin|cos|tan|erf|atan|expm1|sinh|cosh)}}
// CHECK: return
func.func @functions(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.exp %x : vector<16xf32>
  %1 = math.exp2 %0 : vector<16xf32>
  %2 = math.log %1 : vector<16xf32>
  %3 = math.log2 %2 : vector<16xf32>
  %4 = math.tanh %3 : vector<16xf32>
  %5 = math.sin %4 : vector<16xf32>
  %6 = math.cos %5 : vector<16xf32>
  %7 = math.erf %6 : vector<16xf32>
  %8 = math.log1p %7 : vector<16xf32>
  %9 = math.expm1 %8 : vector<16xf32>
  %10 = math.tan %9 : vector<16xf32>
  return %10 : vector<16xf32>
}

// What the hardware has stays.
// CHECK-LABEL: func.func @roots
// CHECK: math.sqrt
// CHECK: math.absf
// CHECK: math.fma
func.func @roots(%x: vector<16xf32>) -> vector<16xf32> {
  %0 = math.sqrt %x : vector<16xf32>
  %1 = math.absf %0 : vector<16xf32>
  %2 = math.fma %1, %0, %x : vector<16xf32>
  return %2 : vector<16xf32>
}
