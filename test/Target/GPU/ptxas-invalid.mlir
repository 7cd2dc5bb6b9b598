// What ptxas refuses is an error at the line of the input.
// REQUIRES: ptxas
// RUN: not fi-translate --fi-to-ptx --print-resources --target=sm_80 %s 2>&1 | FileCheck %s
// CHECK: fi-translate: error: {{.*}}ptxas-invalid.mlir:[[#@LINE+3]]: ptxas refuses kernels for sm_80 at line {{[0-9]+}} of the PTX: {{.*}}WGMMA
module {
  llvm.func @k() attributes {nvvm.kernel} {
    llvm.inline_asm has_side_effects asm_dialect = att "wgmma.fence.sync.aligned;", "" : () -> ()
    llvm.return
  }
}
