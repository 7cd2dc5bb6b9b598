// Inline assembly is convergent: the optimiser neither copies a `.aligned`
// instruction into both sides of a branch where lanes part, nor merges two.
// RUN: fi-translate --fi-to-ptx --target=sm_90a --no-locations %s | FileCheck %s
// RUN: fi-translate --fi-to-llvmir --target=sm_90a --no-locations --fi-opt-level=0 %s -o %t.ll
// RUN: FileCheck %s --check-prefix=IR --input-file=%t.ll
// IR-COUNT-3: call {{.*}}asm{{.*}} #[[ATTR:[0-9]+]]
// IR: attributes #[[ATTR]] = {{{.*}}convergent

// Without the mark it does both, so this test can fail.
// RUN: sed 's/convergent/nounwind/' %t.ll | opt -O3 -S | FileCheck %s --check-prefix=BROKEN
// BROKEN-LABEL: define {{.*}}@copied
// BROKEN-COUNT-2: wgmma.wait_group.sync.aligned
// BROKEN-LABEL: define {{.*}}@merged
// BROKEN-COUNT-1: shfl.sync.bfly.b32
// BROKEN-NOT: shfl.sync.bfly.b32

module {
  // CHECK-LABEL: .entry copied
  // CHECK-COUNT-1: wgmma.wait_group.sync.aligned
  // CHECK-NOT: wgmma.wait_group.sync.aligned
  llvm.func @copied(%out: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %c = llvm.icmp "slt" %tid, %n : i32
    llvm.cond_br %c, ^then, ^join
  ^then:
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.store volatile %one, %out : i32, !llvm.ptr<1>
    llvm.br ^join
  ^join:
    llvm.inline_asm has_side_effects asm_dialect = att "wgmma.wait_group.sync.aligned 0;", "~{memory}" : () -> ()
    llvm.cond_br %c, ^last, ^end
  ^last:
    llvm.store volatile %n, %out : i32, !llvm.ptr<1>
    llvm.br ^end
  ^end:
    llvm.return
  }

  // CHECK-LABEL: .entry merged
  // CHECK-COUNT-2: shfl.sync.bfly.b32
  // CHECK-NOT: shfl.sync.bfly.b32
  llvm.func @merged(%out: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel} {
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %c = llvm.icmp "slt" %tid, %n : i32
    llvm.cond_br %c, ^then, ^else
  ^then:
    %x = llvm.inline_asm asm_dialect = att "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "=r,r" %tid : (i32) -> i32
    llvm.br ^join(%x : i32)
  ^else:
    %y = llvm.inline_asm asm_dialect = att "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;", "=r,r" %tid : (i32) -> i32
    llvm.br ^join(%y : i32)
  ^join(%z: i32):
    llvm.store %z, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}
