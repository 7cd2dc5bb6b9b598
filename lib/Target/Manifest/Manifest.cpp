//===- Manifest.cpp - a package's manifest as JSON ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/Manifest.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace fi;

/// unit is null.
static llvm::json::Value toJSON(Attribute attr) {
  if (auto boolean = dyn_cast<BoolAttr>(attr))
    return boolean.getValue();
  if (auto integer = dyn_cast<IntegerAttr>(attr))
    return integer.getInt();
  if (auto number = dyn_cast<FloatAttr>(attr))
    return number.getValueAsDouble();
  if (auto string = dyn_cast<StringAttr>(attr))
    return string.getValue();
  if (auto array = dyn_cast<ArrayAttr>(attr)) {
    llvm::json::Array result;
    for (Attribute element : array)
      result.push_back(toJSON(element));
    return result;
  }
  if (auto dictionary = dyn_cast<DictionaryAttr>(attr)) {
    llvm::json::Object result;
    for (NamedAttribute entry : dictionary)
      result[entry.getName().getValue()] = toJSON(entry.getValue());
    return result;
  }
  return nullptr;
}

void fi::printManifest(tile::PackageOp package, llvm::raw_ostream &os) {
  os << llvm::formatv("{0:2}", toJSON(package.getManifest())) << "\n";
}
