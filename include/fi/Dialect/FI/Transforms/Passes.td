//===- Passes.td - passes over the fi dialect -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Passes from level 1 to level 1.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_TRANSFORMS_PASSES_TD
#define FI_DIALECT_FI_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FICanonicalizePass : Pass<"fi-canonicalize"> {
  let summary = "writes every variant of attention as regions, in one form";
  let description = [{
    Short spellings become regions: a score attribute the score region; all mask
    attributes and the mask region one mask region. In regions constants are
    folded (also captured ones), common expressions merged, dead operations
    dropped, and operations ordered by use. Regions that change nothing (a mask
    that is true, a score region that yields its score, a transform that yields
    its arguments) are removed, equal captures merged, unused captures dropped.

    The text of the result is what kernels are cached by. Running the pass again
    changes nothing.
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::math::MathDialect",
                           "::mlir::index::IndexDialect",
                           "::mlir::scf::SCFDialect"];
}

def FIAnalyzeMasksPass : Pass<"fi-analyze-masks"> {
  let summary = "derives bounds on visible keys from masks";
  let description = [{
    Writes the attribute `bounds` of each `fi.attention` with a mask: terms, of
    which one must hold, with inclusive lower (`lo`) and upper (`hi`) bounds on the
    key's position as expressions over positions, heads and plan data, in the
    prefix form of the manifest. `exact` says whether they are sufficient. The
    plan finds by them which tiles of keys are empty, full or partial.

    Comparisons that are linear in the key's position are solved, also through
    division, min, max, select and scf.if, and through loads from plan data that
    is marked `{fi.sorted}`. A mask that cannot be bounded gets a remark, and its
    tiles are partial.
  }];
}

def FIChooseSchedulePass : Pass<"fi-choose-schedule", "::mlir::ModuleOp"> {
  let summary = "chooses the tiles of each attention for the module's target";
  let description = [{
    Writes the attribute `schedules` of each `fi.attention` that has none: one body
    for requests with few packed rows (decode), one for all others. A schedule that
    a user has written is kept. Nothing else is changed; docs/levels.md says what a
    kernel is compiled for and what stays run-time.

    Precondition: the module has `fi.target`.
  }];
}

def FISplitKVPass : Pass<"fi-split-kv"> {
  let summary = "cuts the keys of attentions where the plan may split them";
  let description = [{
    An `fi.attention` with a `split` attribute (or, with the option `policy`, any
    whose normaliser can be merged) becomes an attention over segments, the fold
    over them, and, where it returned outputs, `fi.finalize`, which takes the sink.

    Numeric effect: reassociates the sum over keys.

    ```mlir
    %o = fi.attention %q over %kv scale(0.125) split(#fi.split<balanced>) : ... -> !q
    ```
    becomes
    ```mlir
    %g = fi.segments over %kv split(#fi.split<balanced>) : !kv
    %p = fi.attention %q over %kv segments(%g) scale(0.125) : ... -> !segmented
    %s = fi.merge_segments %p by %g : !segmented -> !state
    %o = fi.finalize %s : !state -> !q
    ```
  }];
  let options = [
    Option<"policy", "policy", "std::string", "",
           "Split attentions without the attribute too: balanced, or the number of "
           "keys between cuts">
  ];
}

def FIOutlineProgramsPass : Pass<"fi-outline-programs", "::mlir::ModuleOp"> {
  let summary = "makes programs of the ops of fi in functions";
  let description = [{
    Ops of fi that views, states and segments connect become an `fi.program`, beside
    the function, and an `fi.plan` and an `fi.run` in their place. What they give is
    the same; the program is compiled as any other.

    Plan arguments are tables, offsets of rows, positions and origins; captured whole
    numbers that follow from constants and sizes of tensors; and captured arguments of
    the function that carry the attribute `fi.plan`. All others are run arguments.
    Scalar constants go into the program. Sizes of run arguments are told to the plan
    where no table tells them.

    Refused, by name: a view, a state or segments that other ops use or that leave
    their block, plan arguments that depend on the elements of run arguments or on
    memory (CAL6), and ops of other dialects in between that write to memory or need
    a result sooner.

    Numeric effect: none.

    ```mlir
    !q = tensor<14x4x16xf32>
    !t = tensor<14x2x16xf32>
    !kv = !fi.ragged_kv<2x16xf32>
    func.func @f(%q: !q, %k: !t, %v: !t) -> !q {
      %rows = arith.constant dense<[0, 7, 14]> : tensor<3xi32>
      %kv = fi.view.ragged %k, %v indptr(%rows : tensor<3xi32>) : !t, !t -> !kv
      %o = fi.attention %q rows(%rows : tensor<3xi32>) over %kv scale(0.25) : !q over !kv -> !q
      return %o : !q
    }
    ```
    becomes
    ```mlir
      %p = fi.plan @f_attention0(%rows : tensor<3xi32>)
      %e = tensor.empty() : !q
      %o = fi.run @f_attention0(%q, %k, %v : !q, !t, !t) by(%p) outs(%e : !q) -> !q
    ```
  }];
  let dependentDialects = ["::mlir::arith::ArithDialect",
                           "::mlir::memref::MemRefDialect",
                           "::mlir::tensor::TensorDialect"];
}

#endif // FI_DIALECT_FI_TRANSFORMS_PASSES_TD
