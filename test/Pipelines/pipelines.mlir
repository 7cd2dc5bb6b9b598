// Each pipeline is its passes, and the output of each stage is text that the next
// one reads.
// RUN: rm -rf %t && mkdir %t
// RUN: fi-opt %s --fi-prepare -o %t/fi.mlir
// RUN: fi-opt %s --fi-canonicalize --fi-analyze-masks --fi-choose-schedule | diff - %t/fi.mlir
// RUN: fi-opt %t/fi.mlir --fi-prepare | diff - %t/fi.mlir
// RUN: fi-opt %t/fi.mlir --fi-lower-to-tile -o %t/tile.mlir
// RUN: fi-opt %t/fi.mlir --pass-pipeline='builtin.module(fi-to-fi-tile,fi_tile.kernel(fi-tile-split-masked,fi-tile-online-softmax,fi-tile-legalize-dtypes,canonicalize,cse))' | diff - %t/tile.mlir
// RUN: fi-opt %t/tile.mlir --fi-lower-to-vector -o %t/vector.mlir
// RUN: fi-opt %t/tile.mlir --fi-tile-to-vector --canonicalize --cse --loop-invariant-code-motion | diff - %t/vector.mlir
// RUN: fi-opt %t/vector.mlir --fi-lower-to-llvm -o %t/llvm.mlir
// RUN: fi-opt %s --fi-prepare --fi-lower-to-tile --fi-lower-to-vector --fi-lower-to-llvm | diff - %t/llvm.mlir
// RUN: fi-opt %t/fi.mlir --emit-bytecode | fi-opt --fi-lower-to-tile | diff - %t/tile.mlir
// RUN: fi-opt %t/tile.mlir --emit-bytecode | fi-opt --fi-lower-to-vector | diff - %t/vector.mlir
// RUN: fi-opt %t/fi.mlir --verify-roundtrip -o /dev/null
// RUN: fi-opt %t/tile.mlir --verify-roundtrip -o /dev/null
// RUN: fi-opt %t/vector.mlir --verify-roundtrip -o /dev/null
// RUN: fi-opt %t/llvm.mlir --verify-roundtrip -o /dev/null
// RUN: FileCheck %s --check-prefix=FI < %t/fi.mlir
// RUN: FileCheck %s --check-prefix=TILE < %t/tile.mlir
// RUN: FileCheck %s --check-prefix=VECTOR < %t/vector.mlir
// RUN: FileCheck %s --check-prefix=LLVM < %t/llvm.mlir

// FI-NOT: #fi.causal
// FI: fi.attention
// FI: bounds([{exact = true
// FI-SAME: schedules(
// TILE-NOT: fi.program
// TILE: fi_tile.kernel
// TILE-NOT: fi_tile.update
// TILE: full step
// TILE: partial step
// VECTOR-NOT: fi_tile.kernel
// VECTOR: func.func @p_attention0
// VECTOR: vector.fma
// VECTOR: fi_tile.package @p
// LLVM: llvm.func @p_attention0
// LLVM-NOT: builtin.unrealized_conversion_cast
// LLVM-NOT: {{[ "](arith|vector|memref|scf|func)\.}}

!ix = tensor<?xi32>
!q = tensor<?x4x16xbf16>
!pool = memref<?x2x4x16xbf16>
!kv = !fi.paged_kv<4x2x16xbf16, HND>
module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
  fi.program @p plan(%qo: !ix, %ip: !ix, %pg: !ix, %last: !ix)
      run(%q: !q, %nk: tensor<?x2x16xf32>, %k: !pool, %v: !pool, %sink: tensor<4xf32>) -> (!q, tensor<?x4xf32>) {
    %kv = fi.view.paged %k, %v tables(%ip, %pg, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
    fi.append %nk, %nk rows(%qo : !ix) to %kv : tensor<?x2x16xf32>, tensor<?x2x16xf32> to !kv
    %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.25) sink(%sink : tensor<4xf32>)
        score(#fi.softcap<30.0>) mask(#fi.causal) : !q over !kv -> !q, tensor<?x4xf32>
    fi.return %o, %lse : !q, tensor<?x4xf32>
  }
}
