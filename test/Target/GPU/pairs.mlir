// Pairs of f32 where the target multiplies them in the time of one, and none where it takes
// them apart again. ptxas contracts pairs that say that they must not be, so sums of
// products are single numbers unless their flags allow it.
// RUN: fi-translate --fi-to-ptx --target=sm_100a %s | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: fi-translate --fi-to-ptx --target=sm_120a %s | FileCheck %s --check-prefixes=CHECK,SINGLE
// RUN: fi-translate --fi-to-ptx --target=sm_100a --fi-opt-level=3 %s | FileCheck %s --check-prefixes=CHECK,PAIRS
// RUN: fi-translate --fi-to-ptx --target=sm_100a --fi-opt-level=0 %s | FileCheck %s

// CHECK-LABEL: .entry exact(
// PAIRS: mul.rn.ftz.f32x2
// SINGLE-NOT: f32x2
// CHECK-NOT: fma
// CHECK-NOT: add.rn.ftz.f32x2
// CHECK: add.rn.ftz.f32 {{.*}};
// CHECK-NOT: fma
// CHECK-NOT: add.rn.ftz.f32x2
// CHECK: ret;
llvm.func @exact(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %q = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, vector<4xf32>
  %x = llvm.load volatile %p : !llvm.ptr<1> -> vector<4xf32>
  %y = llvm.load volatile %q : !llvm.ptr<1> -> vector<4xf32>
  %product = llvm.fmul %x, %y : vector<4xf32>
  %sum = llvm.fadd %product, %x : vector<4xf32>
  llvm.store %sum, %p : vector<4xf32>, !llvm.ptr<1>
  llvm.return
}

// CHECK-LABEL: .entry contracted(
// PAIRS-COUNT-2: fma.rn.ftz.f32x2
// SINGLE-COUNT-4: fma.rn.ftz.f32 {{.*}};
// CHECK: ret;
llvm.func @contracted(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %q = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, vector<4xf32>
  %x = llvm.load volatile %p : !llvm.ptr<1> -> vector<4xf32>
  %y = llvm.load volatile %q : !llvm.ptr<1> -> vector<4xf32>
  %product = llvm.fmul %x, %y {fastmathFlags = #llvm.fastmath<contract>} : vector<4xf32>
  %sum = llvm.fadd %product, %x {fastmathFlags = #llvm.fastmath<contract>} : vector<4xf32>
  llvm.store %sum, %p : vector<4xf32>, !llvm.ptr<1>
  llvm.return
}

// Sums alone are pairs.
// CHECK-LABEL: .entry sums(
// PAIRS-COUNT-2: add.{{(rn.)?}}ftz.f32x2
// SINGLE-NOT: f32x2
// CHECK: ret;
llvm.func @sums(%p: !llvm.ptr<1>) attributes {nvvm.kernel} {
  %q = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, vector<4xf32>
  %x = llvm.load volatile %p : !llvm.ptr<1> -> vector<4xf32>
  %y = llvm.load volatile %q : !llvm.ptr<1> -> vector<4xf32>
  %sum = llvm.fadd %x, %y : vector<4xf32>
  llvm.store %sum, %p : vector<4xf32>, !llvm.ptr<1>
  llvm.return
}
