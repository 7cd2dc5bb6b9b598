//===- Passes.td - conversions between fi's levels ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_CONVERSION_PASSES_TD
#define FI_CONVERSION_PASSES_TD

include "mlir/Pass/PassBase.td"

def FIToFITile : Pass<"fi-to-fi-tile", "::mlir::ModuleOp"> {
  let summary = "Convert programs to tile kernels and a manifest";
  let description = [{
    Each op of a `fi.program` that computes becomes a stage: for fi.attention one
    kernel per schedule (and one that merges split states), for other ops one
    kernel. Query heads that share a KV head are packed into rows; regions are
    inlined, elementwise on tiles. The program is replaced by its kernels and a
    `fi_tile.package` that holds the manifest.

    Precondition: fi-canonicalize, fi-choose-schedule. Numeric effect: none.

    ```mlir
    %o = fi.attention %q over %kv scale(0.125) schedules([#fi.schedule<...>]) : ...
    ```
    becomes
    ```mlir
    fi_tile.kernel @p_attention0_rows16(...) schedule(#fi.schedule<...>) { ... }
    fi_tile.package @p {...}
    ```
  }];
  let dependentDialects = [
    "::fi::tile::FITileDialect", "::mlir::scf::SCFDialect",
    "::mlir::tensor::TensorDialect", "::mlir::memref::MemRefDialect"
  ];
}

def FITileToVector : Pass<"fi-tile-to-vector", "::mlir::ModuleOp"> {
  let summary = "Convert tile kernels to loops over vectors, for the CPU";
  let description = [{
    Tiles become buffers in a scratch arena; products become register
    microkernels; runs of elementwise work and row reductions become loops over
    rows with values in vectors. The manifest learns the scratch bytes.

    Precondition: no normaliser ops (fi-tile-online-softmax), dtypes legal for the
    target (fi-tile-legalize-dtypes). Numeric effect: reassociates row sums; exp2 is
    replaced by a polynomial of 0.66 ulp.
  }];
  let dependentDialects = [
    "::mlir::func::FuncDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect", "::mlir::x86vector::X86VectorDialect",
    "::mlir::amx::AMXDialect",
    "::mlir::ub::UBDialect"
  ];
}

def FITileToNVVM : Pass<"fi-tile-to-nvvm", "::mlir::ModuleOp"> {
  let summary = "Convert placed tile kernels to NVVM";
  let description = [{
    A tile becomes the vector of the registers that one lane holds of it, a buffer its
    place in shared memory; products become mma.sync on fragments that ldmatrix
    reads, copies become cp.async, row reductions end in shuffles.

    Precondition: fi-tile-assign-layouts, fi-tile-allocate, fi-tile-lower-channels.
    Numeric effect: exp2 and log2 are the approximations of PTX; row sums are
    reassociated.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::NVVM::NVVMDialect", "::mlir::scf::SCFDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def FIApproximateMath : Pass<"fi-approximate-math"> {
  let summary = "Replace functions on vectors by polynomials";
  let description = [{
    exp, log, tanh, sine and the like on vectors of f32 become the polynomials that
    upstream has for them, instead of one call per element of the C library.

    Numeric effect: a few ulp in each function (spec NUM4).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::vector::VectorDialect"
  ];
}

def FIConvertToLLVM : Pass<"fi-convert-to-llvm", "::mlir::LLVM::LLVMFuncOp"> {
  let summary = "Convert what is left in a GPU kernel to the llvm dialect";
  let description = [{
    Arithmetic, vectors and control flow inside a function of the llvm dialect, in one
    walk: a pass for each dialect costs as many walks and as many casts between them.

    Precondition: vectors of one dimension (fi-tile-to-nvvm). Numeric effect: none.
  }];
  let dependentDialects = [
    "::mlir::cf::ControlFlowDialect", "::mlir::LLVM::LLVMDialect"
  ];
}

def FIConvertHostToLLVM : Pass<"fi-convert-host-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert what is left in functions for a CPU to the llvm dialect";
  let description = [{
    Functions, memory, loops, arithmetic and vectors of any number of dimensions: vectors
    and views of memory are taken apart by a greedy rewrite, then everything is converted
    in one walk, which costs less than a pass for each dialect. Patterns are made once for
    a pass, also if it runs on many modules.

    Precondition: none. Numeric effect: none.

    ```mlir
    func.func @twice(%m: memref<?xf32>, %i: index) {
      %x = vector.load %m[%i] : memref<?xf32>, vector<8xf32>
      %y = arith.addf %x, %x : vector<8xf32>
      vector.store %y, %m[%i] : memref<?xf32>, vector<8xf32>
      return
    }
    ```
    becomes an llvm.func of llvm.load, llvm.fadd and llvm.store.
  }];
  let dependentDialects = [
    "::mlir::LLVM::LLVMDialect", "::mlir::affine::AffineDialect",
    "::mlir::amx::AMXDialect", "::mlir::arith::ArithDialect",
    "::mlir::cf::ControlFlowDialect", "::mlir::memref::MemRefDialect",
    "::mlir::scf::SCFDialect", "::mlir::vector::VectorDialect",
    "::mlir::x86vector::X86VectorDialect"
  ];
}

def FIRaiseAttention : Pass<"fi-raise-attention"> {
  let summary = "Find attention in tensor code and write it as fi.attention";
  let description = [{
    softmax(scale * Q K^T + mask) V, in the forms that front ends lower it to: named
    and generic ops of linalg, elementwise ops on tensors, linalg.softmax, with
    reshapes, transpositions, broadcasts and roundings anywhere between.

    Scales that are numbers are taken from queries, keys or scores. A select or an
    additive mask that is 0 or at most -65504 by a condition becomes a mask region,
    of which fi-analyze-masks finds bounds; everything else that is done to scores a
    score region, which reads tensors and computes what is elementwise. Keys and
    values that are broadcast over heads become those of fewer heads. Where there is
    a batch, its entries are requests. Queries, keys and values are transposed to
    [tokens, heads, dim] where they do not lie so.

    What has a normalised exponential and is not taken gets a remark that says why.

    Numeric effect: reassociates; roundings between the products are left out. A row
    whose keys are all masked gives 0, instead of NaN or the mean of the values.

    ```mlir
    %s = linalg.batch_matmul_transpose_b ins(%q, %k) ... ; scale, add, softmax
    %o = linalg.batch_matmul ins(%p, %v : tensor<8x?x?xf32>, tensor<8x?x64xf32>) ...
    ```
    becomes
    ```mlir
    %view = fi.view.ragged %k1, %v1 : ... -> !fi.ragged_kv<8x64xf32>
    %o1 = fi.attention %q1 over %view scale(0.125) captures(%c = %mask : ...)
        score(...) {...} : ...
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::fi::FIDialect", "::mlir::linalg::LinalgDialect",
    "::mlir::math::MathDialect", "::mlir::tensor::TensorDialect"
  ];
}

def FICallsToLLVM : Pass<"fi-calls-to-llvm", "::mlir::ModuleOp"> {
  let summary = "Convert plans and runs of programs to calls of the runtime";
  let description = [{
    fi.plan and fi.run on memrefs become calls of `fi_call_plan` and `fi_call_run`
    (fi-runtime/fi_call.h), which find the program by its name among those that the
    process has registered; a plan is given back at the end of its block. What the
    calls are given are arrays of numbers on the stack.

    The result is of arith, memref and llvm; conversions of these to llvm come after.

    Precondition: memrefs (one-shot-bufferize), before loops become branches. Numeric
    effect: none.
  }];
  let options = [
    Option<"erasePrograms", "erase-programs", "bool", "false",
           "Erase the programs of the module: they are compiled elsewhere">
  ];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::LLVM::LLVMDialect",
    "::mlir::memref::MemRefDialect"
  ];
}

#endif // FI_CONVERSION_PASSES_TD
