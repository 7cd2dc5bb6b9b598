//===- Toy.td - the dialect of the example compiler -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TOY_TD
#define TOY_TD

include "mlir/IR/OpBase.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Toy_Dialect : Dialect {
  let name = "toy";
  let summary = "what the example compiler's front end makes";
  let cppNamespace = "::toy";
}

def Toy_Offsets : TensorRankOf<[I32], [1]>;
def Toy_Rows : TensorRankOf<[F32, F16, BF16], [3]>;

def Toy_SdpaOp : Op<Toy_Dialect, "sdpa", [Pure, AllTypesMatch<["query", "result"]>]> {
  let summary = "scaled dot-product attention of a batch of sequences";
  let description = [{
    `softmax(scale * q k^T + bias) v` for each head of each sequence. Rows of all
    sequences lie behind each other, [tokens, heads, dim]; the offsets, one more
    than there are sequences, say where each begins. Several heads of the query
    may share one of keys and values. `causal`: the last row stands at the last key,
    and rows see no later keys. `slopes`, one for each head: the bias is
    `slope * (key - row)`, in positions.

    Example:

    ```mlir
    %o = toy.sdpa %q rows(%qo) over %k, %v keys(%ko) causal scale(0.125)
        : tensor<?x8x64xf16>, tensor<?x2x64xf16>
    ```
  }];
  let arguments = (ins Toy_Rows:$query, Toy_Offsets:$queryOffsets,
                       Toy_Rows:$key, Toy_Rows:$value, Toy_Offsets:$keyOffsets,
                       Optional<TensorRankOf<[F32], [1]>>:$slopes,
                       UnitAttr:$causal, F32Attr:$scale);
  let results = (outs Toy_Rows:$result);
  let assemblyFormat = [{
    $query `rows` `(` $queryOffsets `:` type($queryOffsets) `)` `over` $key `,` $value
    `keys` `(` $keyOffsets `:` type($keyOffsets) `)` (`causal` $causal^)?
    `scale` `(` $scale `)` (`slopes` `(` $slopes^ `:` type($slopes) `)`)?
    attr-dict `:` type($query) `,` type($key) `,` type($value)
  }];
}

#endif // TOY_TD
