//===- FuzzContext.h - a context for texts of any origin --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A context with all dialects, which keeps the last error and notes each as an
// outcome.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_FUZZ_FUZZCONTEXT_H
#define FI_TEST_FUZZ_FUZZCONTEXT_H

#include "Fuzzing.h"
#include "fi/InitAll.h"
#include "fi/Support/File.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "fi/Target/GPU/GPUCompiler.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"

namespace fi::fuzzing {

/// Whether a text has a number of so many digits.
inline bool hasLongNumber(llvm::StringRef text, size_t digits) {
  size_t run = 0;
  for (char c : text) {
    run = llvm::isDigit(c) ? run + 1 : 0;
    if (run >= digits)
      return true;
  }
  return false;
}

/// Whether a text may run into faults of MLIR 22.1 that fi can do nothing
/// about: its reader of bytecode trusts what it reads, these ops' parsers
/// take a missing list of dimensions for one that is there, and that of
/// tensor.from_elements makes a type for each element of the result's.
inline bool hasKnownFault(llvm::StringRef text) {
  constexpr size_t kMillions = 7;
  if (text.contains("from_elements") && hasLongNumber(text, kMillions))
    return true;
  return text.starts_with("ML\xefR") || text.contains("linalg.broadcast") ||
         text.contains("linalg.transpose") || text.contains("linalg.reduce") ||
         text.contains("linalg.map");
}

struct FuzzContext {
  FuzzContext()
      : context(makeRegistry(), mlir::MLIRContext::Threading::DISABLED) {
    context.printOpOnDiagnostic(false);
    context.getDiagEngine().registerHandler([&](mlir::Diagnostic &diagnostic) {
      if (diagnostic.getSeverity() != mlir::DiagnosticSeverity::Error)
        return;
      lastError = diagnostic.str();
      note(lastError);
    });
  }

  /// Types and attributes stay in a context for ever, so it is renewed at
  /// times, between inputs.
  static FuzzContext &get() {
    static std::unique_ptr<FuzzContext> current;
    static int uses = 0;
    if (!current || ++uses % 2000 == 0)
      current = std::make_unique<FuzzContext>();
    current->lastError.clear();
    return *current;
  }

  /// An input as a module; null where it is none, or has a fault that is known.
  mlir::OwningOpRef<mlir::ModuleOp> parseInput(const uint8_t *data,
                                               size_t size) {
    llvm::StringRef text(reinterpret_cast<const char *>(data), size);
    if (hasKnownFault(text))
      return nullptr;
    mlir::OwningOpRef<mlir::ModuleOp> module = parse(text);
    if (!module && lastError.empty())
      fault("a text is refused without a sentence");
    return module;
  }

  /// As tools do.
  mlir::OwningOpRef<mlir::ModuleOp> parse(llvm::StringRef text) {
    if (llvm::Error error = fi::checkNesting(text, "x.mlir")) {
      lastError = llvm::toString(std::move(error));
      note(lastError);
      return nullptr;
    }
    return mlir::parseSourceString<mlir::ModuleOp>(text.str(), &context);
  }

  mlir::MLIRContext context;
  std::string lastError;

private:
  static mlir::DialectRegistry makeRegistry() {
    mlir::DialectRegistry registry;
    fi::registerAllDialects(registry);
    fi::cpu::registerCompiler(registry);
    fi::gpu::registerCompiler(registry);
    return registry;
  }
};

} // namespace fi::fuzzing

#endif // FI_TEST_FUZZ_FUZZCONTEXT_H
