//===- FIBytecode.h - versions of fi's bytecode -----------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the dialects of fi share when they are read from and written to
// bytecode. Types and attributes go in field by field, never as text: text
// would be parsed by today's grammar before anything could ask for the version
// it was written by.
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FI_IR_FIBYTECODE_H
#define FI_DIALECT_FI_IR_FIBYTECODE_H

#include "mlir/Bytecode/BytecodeImplementation.h"
#include "mlir/IR/Diagnostics.h"

namespace fi {

/// The version that a file states for one dialect.
struct BytecodeVersion : public mlir::DialectVersion {
  explicit BytecodeVersion(uint64_t number) : number(number) {}
  uint64_t number;
};

/// Reads a dialect's version; a version that `newest` does not know is an
/// error.
inline std::unique_ptr<mlir::DialectVersion>
readBytecodeVersion(mlir::DialectBytecodeReader &reader,
                    llvm::StringRef dialect, uint64_t newest) {
  uint64_t number;
  if (failed(reader.readVarInt(number)))
    return nullptr;
  if (number == 0 || number > newest) {
    reader.emitError() << "expected bytecode of dialect '" << dialect
                       << "' of version 1 to " << newest << ", but got version "
                       << number << ": read it with the fi that wrote it, or a "
                       << "newer one";
    return nullptr;
  }
  return std::make_unique<BytecodeVersion>(number);
}

/// Reads an enumerant by the function that TableGen makes for it.
template <typename Enum>
mlir::LogicalResult
readEnum(mlir::DialectBytecodeReader &reader, llvm::StringRef what,
         llvm::function_ref<std::optional<Enum>(uint32_t)> symbolize,
         Enum &result) {
  uint64_t number;
  if (failed(reader.readVarInt(number)))
    return mlir::failure();
  std::optional<Enum> value;
  if (number <= UINT32_MAX)
    value = symbolize(static_cast<uint32_t>(number));
  if (!value)
    return reader.emitError()
           << "expected " << what << ", but got the number " << number;
  result = *value;
  return mlir::success();
}

} // namespace fi

#endif // FI_DIALECT_FI_IR_FIBYTECODE_H
