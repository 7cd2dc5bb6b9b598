// A package for a GPU from kernels of the nvvm dialect and their manifest.
// RUN: rm -rf %t.pkg %t.again %t.plain %t.none
// RUN: env FI_PTXAS= fi-translate --fi-to-package %s -o %t.none 2>&1 | FileCheck %s --check-prefix=NOTE
// NOTE: fi-translate: note: the package has no machine code: ptxas is not there; the driver assembles the PTX
// RUN: ls %t.none | FileCheck %s --check-prefix=PLAIN-FILES
// PLAIN-FILES: checksums
// PLAIN-FILES-NEXT: kernels.ptx
// PLAIN-FILES-NEXT: manifest.json
// PLAIN-FILES-NOT: {{.}}
// RUN: FileCheck %s --check-prefixes=MANIFEST --input-file=%t.none/manifest.json
// RUN: fi-translate --fi-to-package --no-cubin %s -o %t.plain
// RUN: diff -r %t.plain %t.none

// RUN: %if ptxas %{ fi-translate --fi-to-package --print-resources --emit-timing %s -o %t.pkg 2>&1 | FileCheck %s --check-prefix=REPORT %}
// REPORT-DAG: attend: {{[0-9]+}} registers, 0 bytes of stack, 0 bytes of spill stores, 0 bytes of spill loads, 0 bytes of static shared memory, 1 barriers
// REPORT-DAG: merge: {{[0-9]+}} registers
// REPORT: prepare {{.*}} ms, lower {{.*}} ms, convert {{.*}} ms, translate {{.*}} ms, optimise {{.*}} ms, generate {{.*}} ms, assemble {{.*}} ms, total {{[0-9.]+}} ms{{$}}
// RUN: %if ptxas %{ ls %t.pkg | FileCheck %s --check-prefix=FILES %}
// FILES: checksums
// FILES-NEXT: kernels.cubin
// FILES-NEXT: kernels.ptx
// FILES-NEXT: manifest.json
// FILES-NOT: {{.}}
// RUN: %if ptxas %{ cd %t.pkg && sha256sum -c checksums %}
// RUN: %if ptxas %{ FileCheck %s --check-prefixes=MANIFEST,CUBIN --input-file=%t.pkg/manifest.json %}
// The same bytes again, machine code too; and a package is replaced by a package.
// RUN: %if ptxas %{ fi-translate --fi-to-package %s -o %t.again %}
// RUN: %if ptxas %{ fi-translate --fi-to-package %s -o %t.again %}
// RUN: %if ptxas %{ diff -r %t.pkg %t.again %}

// The launch of the manifest is kept, and completed by the kernel.
// MANIFEST: "launch": {
// MANIFEST-NEXT: "ctas_per_sm": 2,
// MANIFEST-NEXT: "grid": "persistent",
// MANIFEST-NEXT: "shared": 98304,
// MANIFEST-NEXT: "threads": 128
// MANIFEST: "scratch": 0,
// MANIFEST-NEXT: "symbol": "attend"
// MANIFEST: "launch": {
// MANIFEST-NEXT: "grid": "items",
// MANIFEST-NEXT: "shared": 0,
// MANIFEST-NEXT: "threads": 64
// MANIFEST: "symbol": "merge"
// MANIFEST: "target": {
// MANIFEST-NEXT: "chip": "sm_80",
// CUBIN-NEXT: "cubin": {
// CUBIN-NEXT: "chip": "sm_80",
// CUBIN-NEXT: "kernels": [
// CUBIN: "registers": {{[0-9]+}},
// CUBIN-NEXT: "spill_loads": 0,
// CUBIN: "symbol": "attend"
// CUBIN: "ptxas": "{{[0-9]+\.[0-9.]+}}"
// MANIFEST: "driver": 11040,
// MANIFEST: "features": [
// MANIFEST: "cp_async",
// MANIFEST: "kind": "cuda",
// MANIFEST: "ptx": "7.4"

module attributes {fi.target = #fi.target<sm_80>} {
  fi_tile.package @scale {manifest = 1, abi = 1, program = "scale", target = {kind = "cuda"},
      stages = [{op = "attention", bodies = [{symbol = "attend", launch = {shared = 98304, grid = "persistent", ctas_per_sm = 2}, scratch = 7}],
                 merge = {symbol = "merge"}}]}

  llvm.func @attend(%out: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32, 4>} {
    nvvm.barrier
    llvm.store %n, %out : i64, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @merge(%out: !llvm.ptr<1>, %n: i64) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 64>} {
    llvm.store %n, %out : i64, !llvm.ptr<1>
    llvm.return
  }
}
