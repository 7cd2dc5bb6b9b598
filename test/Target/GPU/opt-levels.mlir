// What LLVM does to kernels by --fi-opt-level. Addresses are lowered as they are to stay:
// level 1 keeps them in the loop, and level 2 moves before it what does not change. Both
// leave out passes of the code generator, which level 3 runs.
// RUN: fi-translate --fi-to-ptx --target=sm_80 --no-locations %s | FileCheck %s --check-prefixes=CHECK,KEPT
// RUN: fi-translate --fi-to-ptx --target=sm_80 --no-locations --fi-opt-level=1 %s | FileCheck %s --check-prefixes=CHECK,KEPT
// RUN: fi-translate --fi-to-ptx --target=sm_80 --no-locations --fi-opt-level=2 %s | FileCheck %s --check-prefixes=CHECK,MOVED
// RUN: fi-translate --fi-to-ptx --target=sm_80 --fi-opt-level=1 --debug-pass=Arguments %s -o %t.1.ptx 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: fi-translate --fi-to-ptx --target=sm_80 --fi-opt-level=2 --debug-pass=Arguments %s -o %t.2.ptx 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: fi-translate --fi-to-ptx --target=sm_80 --fi-opt-level=3 --debug-pass=Arguments %s -o %t.3.ptx 2>&1 | FileCheck %s --check-prefix=ALL

// SHORT-NOT: -slsr
// SHORT-NOT: -loop-reduce
// SHORT-NOT: -early-machinelicm
// SHORT: -nvptx-isel
// SHORT-NOT: -early-machinelicm
// SHORT: -nvptx-asm-printer

// ALL: -slsr
// ALL-SAME: -loop-reduce
// ALL-SAME: -nvptx-isel
// ALL-SAME: -early-machinelicm
// ALL-SAME: -nvptx-asm-printer

// CHECK-LABEL: .entry walk(
// MOVED: mul.lo
// KEPT-NOT: mul.lo
// CHECK: $L__BB0_1:
// KEPT: mul.lo
// KEPT: mul.lo
// MOVED: mul.lo
// MOVED-NOT: mul.lo
// CHECK: bra
module {
  llvm.func @walk(%out: !llvm.ptr<1>, %stride: i32, %n: i32, %a: i32, %b: i32) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%zero : i32)
  ^body(%i: i32):
    %row = llvm.mul %i, %stride : i32
    %same = llvm.mul %a, %b : i32
    %at = llvm.getelementptr %out[%row] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %value = llvm.xor %same, %i : i32
    llvm.store volatile %value, %at : i32, !llvm.ptr<1>
    %next = llvm.add %i, %one : i32
    %again = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %again, ^body(%next : i32), ^end
  ^end:
    llvm.return
  }
}
