//===- ProgramFuzzer.cpp - any text as a module of any level -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Parses and verifies; what is a module is printed in both forms and written as
// bytecode, and must come back as the same.
//
//===----------------------------------------------------------------------===//

#include "FuzzContext.h"
#include "mlir/Bytecode/BytecodeWriter.h"

using namespace mlir;
using namespace fi::fuzzing;

static std::string print(ModuleOp module, bool isGeneric = false) {
  std::string text;
  llvm::raw_string_ostream os(text);
  OpPrintingFlags flags;
  if (isGeneric)
    flags.printGenericOpForm();
  module->print(os, flags);
  return text;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  FuzzContext &fuzzing = FuzzContext::get();
  OwningOpRef<ModuleOp> module = fuzzing.parseInput(data, size);
  if (!module)
    return 0;
  note("parsed");
  std::string printed = print(*module), bytes;
  llvm::raw_string_ostream os(bytes);
  if (failed(writeBytecodeToFile(*module, os)))
    fault("a module cannot be written as bytecode");
  for (auto &[what, again] :
       {std::pair<const char *, std::string>{
            "generic", print(*module, /*isGeneric=*/true)},
        {"bytecode", bytes},
        {"custom", printed}}) {
    OwningOpRef<ModuleOp> other =
        parseSourceString<ModuleOp>(again, &fuzzing.context);
    if (!other)
      fault(std::string("what was printed does not parse again, ") + what +
            ": " + fuzzing.lastError);
    // Names that stand for numbers in one text may be names in the next.
    std::string second = print(*other);
    if (second != printed && what == std::string("custom")) {
      OwningOpRef<ModuleOp> third =
          parseSourceString<ModuleOp>(second, &fuzzing.context);
      printed = third ? print(*third) : "";
    }
    if (second != printed)
      fault(std::string("what was printed comes back as something else, ") +
            what);
  }
  return 0;
}
