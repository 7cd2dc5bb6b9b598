//===- ProgramFuzzer.cpp - any text as a program -------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses and verifies; what is a program is printed, and must parse again.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FI.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"

using namespace mlir;

namespace {

struct Fuzzing {
  Fuzzing() : context(makeRegistry(), MLIRContext::Threading::DISABLED) {
    context.getDiagEngine().registerHandler([](Diagnostic &) {});
  }
  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registry.insert<fi::FIDialect, arith::ArithDialect, index::IndexDialect,
                    math::MathDialect, scf::SCFDialect>();
    return registry;
  }
  MLIRContext context;
};

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  // Types and attributes stay in a context for ever, so it is renewed at times.
  static std::unique_ptr<Fuzzing> fuzzing;
  static int uses = 0;
  if (!fuzzing || ++uses % 2000 == 0)
    fuzzing = std::make_unique<Fuzzing>();
  std::string text(reinterpret_cast<const char *>(data), size);
  ParserConfig config(&fuzzing->context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config);
  if (!module)
    return 0;
  std::string printed;
  llvm::raw_string_ostream(printed) << *module;
  if (!parseSourceString<ModuleOp>(printed, config))
    __builtin_trap();
  return 0;
}
