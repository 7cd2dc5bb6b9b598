//===- ScalarRegions.h - regions of scalars in ops of fi --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What ops with regions that work on scalars share: the clauses in which they
// are spelled and their checks.
//
//===----------------------------------------------------------------------===//

#ifndef FI_LIB_DIALECT_FI_IR_SCALARREGIONS_H
#define FI_LIB_DIALECT_FI_IR_SCALARREGIONS_H

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/IR/OpImplementation.h"

namespace fi {

/// Operands of one clause, to be resolved when all types are known.
struct Clause {
  llvm::SmallVector<mlir::OpAsmParser::UnresolvedOperand> operands;
  llvm::SmallVector<mlir::Type> types;
};

/// `keyword(%x : type)`
mlir::ParseResult parseTypedClause(mlir::OpAsmParser &parser,
                                   llvm::StringRef keyword, Clause &clause);

using ArgumentList = llvm::SmallVectorImpl<mlir::OpAsmParser::Argument>;

/// `captures(%a = %x : type, ...)`
mlir::ParseResult parseCaptures(mlir::OpAsmParser &parser, Clause &clause,
                                ArgumentList &bindings);

/// `pair<half>`
mlir::ParseResult parsePairing(mlir::OpAsmParser &parser,
                               mlir::OperationState &result,
                               mlir::StringAttr name);

/// `%x: type, ...) { ... }`, behind `keyword(`; the captures follow the
/// arguments.
mlir::ParseResult
parseScalarRegion(mlir::OpAsmParser &parser, mlir::Region &region,
                  llvm::ArrayRef<mlir::OpAsmParser::Argument> bindings);

/// A transform that is spelled as an attribute, until types are known.
struct TransformSpelling {
  mlir::Attribute attr;
  llvm::SMLoc loc;

  /// Makes the region of it, where there is one, for `dims` paired elements.
  mlir::ParseResult build(mlir::OpAsmParser &parser, mlir::Region &region,
                          mlir::TypeRange captures, int64_t dims) const;
};
/// A region of pairs or an attribute that stands for one, behind `keyword(`.
mlir::ParseResult
parseTransform(mlir::OpAsmParser &parser, mlir::Region &region,
               llvm::ArrayRef<mlir::OpAsmParser::Argument> bindings,
               TransformSpelling &spelling);

/// `outs(%a, %b : types)`
mlir::ParseResult parseDestinations(mlir::OpAsmParser &parser, Clause &outs);
void printDestinations(mlir::OpAsmPrinter &printer, mlir::ValueRange outs);

/// ` pair<half> captures(...)`: captures get one name in all regions, that of
/// `first`, the first region which is there.
void printCaptures(mlir::OpAsmPrinter &printer, mlir::ValueRange captures,
                   mlir::Region *first);
/// ` keyword(arguments) { ... }`
void printScalarRegion(mlir::OpAsmPrinter &printer, llvm::StringRef keyword,
                       mlir::Region &region, mlir::Region *first,
                       size_t captures);

/// `pair<half> dims(64) captures(...)`, as ops print and parse it that
/// transform rows.
struct PairNames {
  mlir::StringAttr pairing, dims;
};
mlir::ParseResult parsePairClauses(mlir::OpAsmParser &parser,
                                   mlir::OperationState &result,
                                   PairNames names, Clause &captures,
                                   ArgumentList &bindings);

/// Names of the arguments of a region that transforms pairs.
void nameTransformArguments(mlir::Region &region,
                            mlir::OpAsmSetValueNameFn setName);

/// ATT11 to ATT13: one block with these arguments and then the captures, these
/// results, and scalar ops in it.
mlir::LogicalResult
verifyScalarRegion(mlir::Operation *op, mlir::Region &region,
                   llvm::StringRef name, mlir::TypeRange arguments,
                   mlir::TypeRange captures, mlir::TypeRange results);
/// The same of a region that transforms pairs.
mlir::LogicalResult verifyTransform(mlir::Operation *op, mlir::Region &region,
                                    llvm::StringRef name,
                                    mlir::TypeRange captures);
/// `dims` of rows of `dim` elements, by the rule.
mlir::LogicalResult verifyPairedDims(mlir::Operation *op,
                                     std::optional<int64_t> dims, int64_t dim,
                                     llvm::StringRef rule);

} // namespace fi

#endif // FI_LIB_DIALECT_FI_IR_SCALARREGIONS_H
