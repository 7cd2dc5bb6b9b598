//===- FIOperands.td - what operands of the fi dialect may be ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Constraints of operands that several files of operations share.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIOPERANDS_TD
#define FI_DIALECT_FI_IR_FIOPERANDS_TD

include "fi/Dialect/FI/IR/FITypes.td"

def FI_Index : AnyTypeOf<[I32, I64], "i32 or i64">;
// Tables, row pointers and positions: tensors are values, memrefs are places.
def FI_Table : AnyTypeOf<[RankedTensorOf<[I32, I64]>, MemRefOf<[I32, I64]>],
                         "tensor or memref of i32 or i64">;
def FI_Float : AnyTypeOf<[F32, F16, BF16], "f32, f16 or bf16">;
def FI_Rows : AnyTypeOf<[RankedTensorOf<[F32, F16, BF16]>,
                         MemRefOf<[F32, F16, BF16]>],
                        "tensor or memref of f32, f16 or bf16">;
// Those of a query: numbers of FP8 have their scale in that of the scores.
def FI_QueryRows : AnyTypeOf<[
    RankedTensorOf<[F32, F16, BF16, F8E4M3FN, F8E5M2]>,
    MemRefOf<[F32, F16, BF16, F8E4M3FN, F8E5M2]>],
    "tensor or memref of f32, f16, bf16, f8E4M3FN or f8E5M2">;
// What a pool of keys or values holds.
def FI_Pool : AnyTypeOf<[
    RankedTensorOf<[F32, F16, BF16, F8E4M3FN, F8E5M2, I8]>,
    MemRefOf<[F32, F16, BF16, F8E4M3FN, F8E5M2, I8]>],
    "tensor or memref of f32, f16, bf16, f8E4M3FN, f8E5M2 or i8">;
def FI_Scales : AnyTypeOf<[
    F32, RankedTensorOf<[F32, F8E4M3FN, F8E8M0FNU]>,
    MemRefOf<[F32, F8E4M3FN, F8E8M0FNU]>],
    "f32, or tensor or memref of f32, f8E4M3FN or f8E8M0FNU">;
def FI_Capture : AnyTypeOf<[AnyRankedTensor, AnyMemRef, AnySignlessInteger,
                            AnyFloat, Index],
                           "tensor, memref or scalar">;

#endif // FI_DIALECT_FI_IR_FIOPERANDS_TD
