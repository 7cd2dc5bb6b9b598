//===- Parts.cpp - kernels of a module, one by one ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parts.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fi;

/// Whether several modules may have the op: a name of something elsewhere.
static bool isDeclaration(Operation &op) {
  if (auto function = dyn_cast<LLVM::LLVMFuncOp>(op))
    // What LLVM knows by name; others span lines in PTX.
    return function.isExternal() && function.getName().starts_with("llvm.");
  auto global = dyn_cast<LLVM::GlobalOp>(op);
  return global && global.getLinkage() == LLVM::Linkage::External &&
         !global.getValueOrNull() && global.getInitializerRegion().empty();
}

/// Whether all symbols that a kernel refers to are among `names`.
static bool refersOnlyTo(Operation *kernel, const llvm::StringSet<> &names) {
  auto check = [&](Operation *op) {
    std::optional<StringRef> name;
    if (auto address = dyn_cast<LLVM::AddressOfOp>(op))
      name = address.getGlobalName();
    else if (auto call = dyn_cast<LLVM::CallOp>(op))
      name = call.getCallee();
    return name && !names.contains(*name) ? WalkResult::interrupt()
                                          : WalkResult::advance();
  };
  return !kernel->walk(check).wasInterrupted();
}

std::vector<OwningOpRef<ModuleOp>>
fi::nvptx::splitKernels(OwningOpRef<ModuleOp> module) {
  SmallVector<Operation *> kernels, declarations;
  llvm::StringSet<> names;
  bool canSplit = true;
  for (Operation &op : *module->getBody()) {
    if (isDeclaration(op)) {
      declarations.push_back(&op);
      names.insert(cast<SymbolOpInterface>(op).getName());
    } else if (op.hasAttr(NVVM::NVVMDialect::getKernelFuncAttrName())) {
      kernels.push_back(&op);
    } else {
      canSplit = false;
    }
  }
  canSplit &= llvm::all_of(
      kernels, [&](Operation *kernel) { return refersOnlyTo(kernel, names); });
  std::vector<OwningOpRef<ModuleOp>> parts;
  if (!canSplit || kernels.size() < 2) {
    parts.push_back(std::move(module));
    return parts;
  }
  for (Operation *kernel : kernels) {
    ModuleOp part = ModuleOp::create(module->getLoc());
    part->setAttrs((*module)->getAttrs());
    for (Operation *declaration : declarations)
      part.push_back(declaration->clone());
    kernel->remove();
    part.push_back(kernel);
    parts.push_back(part);
  }
  return parts;
}

//===----------------------------------------------------------------------===//
// Text
//===----------------------------------------------------------------------===//

static constexpr llvm::StringLiteral kFile = "\t.file\t", kLoc = "\t.loc\t",
                                     kHeaderEnd = ".address_size";

/// Calls `use` with each line, its end included.
static void forEachLine(StringRef text,
                        llvm::function_ref<void(StringRef)> use) {
  while (!text.empty()) {
    size_t size = std::min(text.find('\n'), text.size() - 1) + 1;
    use(text.take_front(size));
    text = text.drop_front(size);
  }
}

std::string fi::nvptx::joinPTX(ArrayRef<std::string> texts) {
  if (texts.size() == 1)
    return texts.front();
  // Numbers of files, and what else stands below all functions.
  llvm::StringMap<unsigned> files;
  std::string table, sections;
  llvm::StringSet<> seen;
  std::string joined;
  for (size_t part = 0; part < texts.size(); ++part) {
    StringRef text = texts[part];
    if (part > 0)
      if (size_t end = text.find(kHeaderEnd); end != StringRef::npos)
        text = text.drop_front(text.find('\n', end)).ltrim('\n');
    // Files are named after the instructions that refer to them.
    llvm::DenseMap<unsigned, unsigned> renamed;
    bool isSame = true;
    forEachLine(text, [&](StringRef line) {
      unsigned number;
      if (!line.consume_front(kFile) || line.consumeInteger(10, number))
        return;
      auto [it, isNew] = files.try_emplace(line, files.size() + 1);
      if (isNew)
        table += (kFile + Twine(it->second) + line).str();
      renamed[number] = it->second;
      isSame &= number == it->second;
    });
    forEachLine(text, [&](StringRef line) {
      if (line.starts_with(kFile))
        return;
      if (line.starts_with("\t.section")) {
        if (seen.insert(line).second)
          sections += line;
        return;
      }
      if (line.starts_with(".extern ") && !seen.insert(line).second)
        return;
      StringRef rest = line;
      unsigned number;
      if (!isSame && rest.consume_front(kLoc) &&
          !rest.consumeInteger(10, number))
        joined += (kLoc + Twine(renamed.lookup(number)) + rest).str();
      else
        joined += line;
    });
  }
  return joined + sections + table;
}
