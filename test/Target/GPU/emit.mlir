// A kernel of nvvm ops in PTX, and assembled.
// RUN: fi-translate --fi-to-ptx --target=sm_80 %s -o %t.ptx
// RUN: FileCheck %s --input-file=%t.ptx
// RUN: %if ptxas %{ %ptxas -arch sm_80 %t.ptx -o %t.cubin %}
// The same bytes twice.
// RUN: fi-translate --fi-to-ptx --target=sm_80 %s | cmp - %t.ptx

// The target may stand in the module as well.
// RUN: sed 's/^module /module attributes {fi.target = #fi.target<sm_80>} /' %s > %t.with-target.mlir
// RUN: fi-translate --fi-to-ptx %t.with-target.mlir --no-locations -o %t.without
// RUN: FileCheck %s --check-prefix=PLAIN --input-file=%t.without
// PLAIN-NOT: .loc
// PLAIN-NOT: .file
// Locations change no instruction.
// RUN: grep -vE '^[[:space:]]*(\.loc|\.file|//)|^\$L__tmp|^\$L__func|^[[:space:]]*(\.section|\{|\})|^[[:space:]]*$' %t.ptx > %t.a
// RUN: grep -vE '^[[:space:]]*(\.loc|\.file|//)|^\$L__tmp|^\$L__func|^[[:space:]]*(\.section|\{|\})|^[[:space:]]*$' %t.without > %t.b
// RUN: diff %t.a %t.b

// Each target has the version of PTX of the table, and a later one by option.
// RUN: fi-translate --fi-to-ptx --target=sm_90a %s | FileCheck %s --check-prefix=HOPPER
// HOPPER: .version 8.0
// HOPPER: .target sm_90a
// RUN: fi-translate --fi-to-ptx --target=sm_86 --ptx-version=80 %s | FileCheck %s --check-prefix=LATER
// LATER: .version 8.0
// LATER: .target sm_86

// CHECK: .version 7.4
// CHECK: .target sm_80{{$}}
// CHECK: .address_size 64
// CHECK: .visible .entry scale(
// CHECK-COUNT-3: .param .u64
// CHECK: .reqntid 128
module {
  llvm.mlir.global external @shared() {addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>

  llvm.func @scale(%out: !llvm.ptr<1>, %in: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %i = llvm.zext %tid : i32 to i64
    %in_range = llvm.icmp "slt" %i, %n : i64
    llvm.cond_br %in_range, ^body, ^end
  ^body:
    // CHECK: .loc 1 [[#@LINE+3]]
    // CHECK-NEXT: ld.global
    %x = llvm.getelementptr %in[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    %v = llvm.load %x : !llvm.ptr<1> -> f32
    %two = llvm.mlir.constant(2.0 : f32) : f32
    %three = llvm.mlir.constant(3.0 : f32) : f32
    // Contracted where the flags say so.
    // CHECK: fma.rn.ftz.f32
    %a = llvm.fmul %v, %two {fastmathFlags = #llvm.fastmath<contract>} : f32
    %b = llvm.fadd %a, %three {fastmathFlags = #llvm.fastmath<contract>} : f32
    // And not where they do not: ptxas must not contract them either.
    // CHECK: mul.rn.ftz.f32
    // CHECK: add.rn.ftz.f32
    %c = llvm.fmul %b, %v : f32
    %d = llvm.fadd %c, %three : f32
    // CHECK: ex2.approx.ftz.f32
    %e = llvm.intr.exp2(%d) : (f32) -> f32
    // CHECK: st.global
    %y = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
    llvm.store %e, %y : f32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }
}
