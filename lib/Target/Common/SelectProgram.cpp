//===- SelectProgram.cpp - one program of a module ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/SelectProgram.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace fi;

template <typename Op> static std::string namesOf(ModuleOp module) {
  std::string names;
  for (Op op : module.getOps<Op>())
    names += " '" + op.getSymName().str() + "'";
  return names;
}

/// Leaves the chosen program in `module`, or the chosen package's check.
template <typename Op>
static llvm::Error choose(ModuleOp module, StringRef name, StringRef what) {
  SmallVector<Op> all(module.getOps<Op>());
  if (name.empty() && all.size() > 1)
    return llvm::createStringError("expected the name of one of the " + what +
                                   "s" + namesOf<Op>(module));
  if (!name.empty() &&
      llvm::none_of(all, [&](Op op) { return op.getSymName() == name; }))
    return llvm::createStringError("expected one of the " + what + "s" +
                                   namesOf<Op>(module) + ", but got '" + name +
                                   "'");
  for (Op op : all)
    if (!name.empty() && op.getSymName() != name)
      op.erase();
  return llvm::Error::success();
}

llvm::Expected<OwningOpRef<ModuleOp>> fi::selectProgram(ModuleOp original,
                                                        StringRef name) {
  OwningOpRef<ModuleOp> module = original.clone();
  bool isLevel1 = !module->getOps<ProgramOp>().empty();
  bool hasPackage = !module->getOps<tile::PackageOp>().empty();
  if (!isLevel1 && !hasPackage)
    return llvm::createStringError(
        "expected a module with an fi.program (or, at a later level, with its "
        "fi_tile.package), but got none");
  if (isLevel1) {
    if (llvm::Error error = choose<ProgramOp>(*module, name, "program"))
      return std::move(error);
    // Functions may call programs; no program calls a function.
    for (func::FuncOp function :
         llvm::make_early_inc_range(module->getOps<func::FuncOp>()))
      function.erase();
  } else if (auto packages = module->getOps<tile::PackageOp>();
             std::distance(packages.begin(), packages.end()) > 1) {
    // Kernels do not say whose they are.
    return llvm::createStringError(
        "expected one fi_tile.package at this level, but got" +
        namesOf<tile::PackageOp>(*module) + "; lower one program at a time");
  } else if (llvm::Error error =
                 choose<tile::PackageOp>(*module, name, "package")) {
    return std::move(error);
  }
  return module;
}
