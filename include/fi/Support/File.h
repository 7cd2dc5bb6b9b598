//===- File.h - whole files and JSON, with errors worth reading -*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Reads a file as a whole, writes one through a temporary in its directory so
// that a reader never meets half of it, and parses JSON of any origin. Errors
// are one sentence that names the file.
//
//===----------------------------------------------------------------------===//

#ifndef FI_SUPPORT_FILE_H
#define FI_SUPPORT_FILE_H

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include <memory>

namespace fi {

/// The whole file; `-` is standard input.
llvm::Expected<std::unique_ptr<llvm::MemoryBuffer>>
readFile(llvm::StringRef path);

/// Writes a file by `write`: complete, or as it was before. `-` is standard
/// output.
llvm::Error writeFile(llvm::StringRef path,
                      llvm::function_ref<void(llvm::raw_ostream &)> write);

/// Parses JSON text of any origin. Arrays and objects may be nested 64 deep,
/// which bounds the parser's stack. `name` is the file's name in messages.
llvm::Expected<llvm::json::Value> parseJson(llvm::StringRef text,
                                            llvm::StringRef name);

/// Refuses MLIR text whose brackets are nested more than 256 deep. MLIR's
/// parser descends on the stack and would end the process.
llvm::Error checkNesting(llvm::StringRef text, llvm::StringRef name);

} // namespace fi

#endif // FI_SUPPORT_FILE_H
