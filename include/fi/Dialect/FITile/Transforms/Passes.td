//===- Passes.td - passes over the fi_tile dialect ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_TRANSFORMS_PASSES_TD
#define FI_DIALECT_FITILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FITileOnlineSoftmax : Pass<"fi-tile-online-softmax", "::fi::tile::KernelOp"> {
  let summary = "Write normalisers out as tile arithmetic";
  let description = [{
    `fi_tile.init`, `update`, `finalize`, `merge` and `sink` become what the
    normaliser's interface builds. For softmax that is the online form with a
    running maximum, in base 2. The update's product with the values is rounded to
    their type first.

    Numeric effect: changes base (natural to 2).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::fi::tile::FITileDialect"
  ];
}

def FITileSplitMasked : Pass<"fi-tile-split-masked", "::fi::tile::KernelOp"> {
  let summary = "Peel full tiles from partial ones";
  let description = [{
    A `fi_tile.for_keys` over all tiles becomes one over the full tiles, in which
    `fi_tile.mask` is its scores, and one over the partial tiles.

    Numeric effect: none.

    ```mlir
    %r = fi_tile.for_keys %t in %it all step 64 iter_args(%a = %i) -> (...) { ... fi_tile.mask ... }
    ```
    becomes
    ```mlir
    %f = fi_tile.for_keys %t in %it full step 64 iter_args(%a = %i) -> (...) { ... }
    %r = fi_tile.for_keys %t in %it partial step 64 iter_args(%a = %f) -> (...) { ... fi_tile.mask ... }
    ```
  }];
}

def FITileLegalizeDtypes : Pass<"fi-tile-legalize-dtypes", "::fi::tile::KernelOp"> {
  let summary = "Decide where narrow floats are widened";
  let description = [{
    Operands of products that the target cannot multiply (f16; bf16 without a
    bf16 dot product) are widened to f32 where they are loaded, and weights are
    not rounded.

    Numeric effect: removes the rounding of weights where they are widened.
  }];
  let options = [
    Option<"bf16Dot", "bf16-dot", "bool", "false",
           "The target multiplies bf16 pairs and accumulates in f32">
  ];
}

#endif // FI_DIALECT_FITILE_TRANSFORMS_PASSES_TD
