//===- FITileBytecode.cpp - the fi_tile dialect in bytecode ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As lib/Dialect/FI/IR/FIBytecode.cpp: codes are never reused, and what follows
// them changes with the version only.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FIBytecode.h"
#include "fi/Dialect/FITile/IR/FITile.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Version 1: the first.
static constexpr uint64_t kVersion = 1;

namespace {

enum class TypeCode : uint64_t { Work, Item };
enum class AttrCode : uint64_t { Field, Part, KVPart, ReduceKind };

struct FITileBytecodeInterface : BytecodeDialectInterface {
  FITileBytecodeInterface(Dialect *dialect)
      : BytecodeDialectInterface(dialect) {}

  void writeVersion(DialectBytecodeWriter &writer) const override {
    writer.writeVarInt(kVersion);
  }
  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    return readBytecodeVersion(reader, getDialect()->getNamespace(), kVersion);
  }
  /// Where ops of older versions become ops of this one. There are none older.
  LogicalResult
  upgradeFromVersion(Operation *op,
                     const DialectVersion &version) const override {
    return success(static_cast<const BytecodeVersion &>(version).number <=
                   kVersion);
  }

  LogicalResult writeType(Type type,
                          DialectBytecodeWriter &writer) const override {
    if (!isa<WorkType, ItemType>(type))
      return failure();
    writer.writeVarInt(static_cast<uint64_t>(
        isa<WorkType>(type) ? TypeCode::Work : TypeCode::Item));
    return success();
  }

  Type readType(DialectBytecodeReader &reader) const override {
    uint64_t code;
    if (failed(reader.readVarInt(code)))
      return {};
    switch (static_cast<TypeCode>(code)) {
    case TypeCode::Work:
      return WorkType::get(getContext());
    case TypeCode::Item:
      return ItemType::get(getContext());
    }
    reader.emitError()
        << "expected the code of a type of dialect 'fi_tile', but "
           "got "
        << code;
    return {};
  }

  LogicalResult writeAttribute(Attribute attr,
                               DialectBytecodeWriter &writer) const override {
    auto write = [&](AttrCode code, auto value) {
      writer.writeVarInt(static_cast<uint64_t>(code));
      writer.writeVarInt(static_cast<uint64_t>(value));
      return success();
    };
    return llvm::TypeSwitch<Attribute, LogicalResult>(attr)
        .Case([&](FieldAttr a) { return write(AttrCode::Field, a.getValue()); })
        .Case([&](PartAttr a) { return write(AttrCode::Part, a.getValue()); })
        .Case(
            [&](KVPartAttr a) { return write(AttrCode::KVPart, a.getValue()); })
        .Case([&](ReduceKindAttr a) {
          return write(AttrCode::ReduceKind, a.getValue());
        })
        .Default([](Attribute) { return failure(); });
  }

  template <typename AttrT, typename Enum>
  Attribute readEnumAttr(DialectBytecodeReader &reader, StringRef what,
                         std::optional<Enum> (*symbolize)(uint32_t)) const {
    Enum value;
    if (failed(readEnum<Enum>(reader, what, symbolize, value)))
      return {};
    return AttrT::get(getContext(), value);
  }

  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    uint64_t code;
    if (failed(reader.readVarInt(code)))
      return {};
    switch (static_cast<AttrCode>(code)) {
    case AttrCode::Field:
      return readEnumAttr<FieldAttr, Field>(reader, "a field of a work item",
                                            symbolizeField);
    case AttrCode::Part:
      return readEnumAttr<PartAttr, Part>(reader, "a part of an item's keys",
                                          symbolizePart);
    case AttrCode::KVPart:
      return readEnumAttr<KVPartAttr, KVPart>(reader, "keys or values",
                                              symbolizeKVPart);
    case AttrCode::ReduceKind:
      return readEnumAttr<ReduceKindAttr, ReduceKind>(
          reader, "a kind of row reduction", symbolizeReduceKind);
    }
    reader.emitError() << "expected the code of an attribute of dialect "
                          "'fi_tile', but got "
                       << code;
    return {};
  }
};

} // namespace

void FITileDialect::registerBytecode() {
  addInterfaces<FITileBytecodeInterface>();
}
