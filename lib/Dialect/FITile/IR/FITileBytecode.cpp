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
#include "fi/Dialect/FITile/IR/Layouts.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;
using namespace fi::tile;

/// Version 1: the first. Version 2: columns of rows that are loaded and stored.
/// Version 3: roles, products of warpgroups, tiles by their order.
/// Version 4: tensor copies.
/// Version 5: marks.
static constexpr uint64_t kVersion = 5;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

/// Whether a file is of a version or a later one.
static bool isSince(DialectBytecodeReader &reader, uint64_t number) {
  FailureOr<const DialectVersion *> version =
      reader.getDialectVersion<FITileDialect>();
  return failed(version) ||
         static_cast<const BytecodeVersion *>(*version)->number >= number;
}
/// Whether a file's ops have columns.
static bool hasColumns(DialectBytecodeReader &reader) {
  return isSince(reader, 2);
}

template <typename Properties>
static LogicalResult readRowProperties(DialectBytecodeReader &reader,
                                       Properties &properties) {
  if (failed(reader.readAttribute(properties.group)))
    return failure();
  if (!hasColumns(reader))
    return success(); // see upgradeFromVersion
  return failure(failed(reader.readOptionalAttribute(properties.step)) ||
                 failed(reader.readSparseArray(MutableArrayRef<int32_t>(
                     properties.operandSegmentSizes))));
}

template <typename Properties>
static void writeRowProperties(DialectBytecodeWriter &writer,
                               const Properties &properties) {
  writer.writeAttribute(properties.group);
  writer.writeOptionalAttribute(properties.step);
  writer.writeSparseArray(ArrayRef<int32_t>(properties.operandSegmentSizes));
}

LogicalResult LoadRowsOp::readProperties(DialectBytecodeReader &reader,
                                         OperationState &state) {
  return readRowProperties(reader, state.getOrAddProperties<Properties>());
}
void LoadRowsOp::writeProperties(DialectBytecodeWriter &writer) {
  writeRowProperties(writer, getProperties());
}

LogicalResult StoreRowsOp::readProperties(DialectBytecodeReader &reader,
                                          OperationState &state) {
  return readRowProperties(reader, state.getOrAddProperties<Properties>());
}
void StoreRowsOp::writeProperties(DialectBytecodeWriter &writer) {
  writeRowProperties(writer, getProperties());
}

LogicalResult StoreKVOp::readProperties(DialectBytecodeReader &reader,
                                        OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readAttribute(properties.part)))
    return failure();
  return hasColumns(reader) ? reader.readOptionalAttribute(properties.step)
                            : success();
}
void StoreKVOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeAttribute(getProperties().part);
  writer.writeOptionalAttribute(getProperties().step);
}

LogicalResult DotOp::readProperties(DialectBytecodeReader &reader,
                                    OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readOptionalAttribute(properties.transpose)))
    return failure();
  return isSince(reader, 3) ? reader.readOptionalAttribute(properties.warpgroup)
                            : success();
}
void DotOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeOptionalAttribute(getProperties().transpose);
  writer.writeOptionalAttribute(getProperties().warpgroup);
}

LogicalResult ForKeysOp::readProperties(DialectBytecodeReader &reader,
                                        OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readAttribute(properties.part)) ||
      failed(reader.readAttribute(properties.step)))
    return failure();
  return isSince(reader, 3) ? reader.readOptionalAttribute(properties.selection)
                            : success();
}
void ForKeysOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeAttribute(getProperties().part);
  writer.writeAttribute(getProperties().step);
  writer.writeOptionalAttribute(getProperties().selection);
}

LogicalResult ChannelOp::readProperties(DialectBytecodeReader &reader,
                                        OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readOptionalAttribute(properties.offset)))
    return failure();
  return isSince(reader, 3) ? reader.readOptionalAttribute(properties.barriers)
                            : success();
}
void ChannelOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeOptionalAttribute(getProperties().offset);
  writer.writeOptionalAttribute(getProperties().barriers);
}

LogicalResult CopyRowsOp::readProperties(DialectBytecodeReader &reader,
                                         OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readAttribute(properties.group)))
    return failure();
  return isSince(reader, 4) ? reader.readOptionalAttribute(properties.tma)
                            : success();
}
void CopyRowsOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeAttribute(getProperties().group);
  writer.writeOptionalAttribute(getProperties().tma);
}

LogicalResult CopyKVOp::readProperties(DialectBytecodeReader &reader,
                                       OperationState &state) {
  auto &properties = state.getOrAddProperties<Properties>();
  if (failed(reader.readAttribute(properties.part)) ||
      failed(reader.readSparseArray(
          MutableArrayRef<int32_t>(properties.operandSegmentSizes))))
    return failure();
  return isSince(reader, 4) ? reader.readOptionalAttribute(properties.tma)
                            : success();
}
void CopyKVOp::writeProperties(DialectBytecodeWriter &writer) {
  writer.writeAttribute(getProperties().part);
  writer.writeSparseArray(
      ArrayRef<int32_t>(getProperties().operandSegmentSizes));
  writer.writeOptionalAttribute(getProperties().tma);
}

//===----------------------------------------------------------------------===//
// Types and attributes
//===----------------------------------------------------------------------===//

namespace {

enum class TypeCode : uint64_t { Work, Item, Buf, Chan, Cursor, Future };
enum class AttrCode : uint64_t {
  Field,
  Part,
  KVPart, // an attribute of fi now
  ReduceKind,
  Frag,
  Slice,
  Partial,
  Smem,
  PanelSmem,
  Selection,
  Arrival,
  MarkKind
};

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
  /// Where ops of older versions become ops of this one. Those of version 1
  /// have no sizes of operand groups where `part` alone was optional.
  LogicalResult
  upgradeFromVersion(Operation *top,
                     const DialectVersion &version) const override {
    uint64_t number = static_cast<const BytecodeVersion &>(version).number;
    if (number < 2)
      top->walk([](Operation *op) {
        if (auto load = dyn_cast<LoadRowsOp>(op))
          load.getProperties().setOperandSegmentSizes({1, 1, 0, 0});
        else if (auto store = dyn_cast<StoreRowsOp>(op))
          store.getProperties().setOperandSegmentSizes(
              {1, 1, 1, op->getNumOperands() == 4, 0, 0});
      });
    return success(number <= kVersion);
  }

  LogicalResult writeType(Type type,
                          DialectBytecodeWriter &writer) const override {
    auto code = [&](TypeCode value) {
      writer.writeVarInt(static_cast<uint64_t>(value));
      return success();
    };
    return llvm::TypeSwitch<Type, LogicalResult>(type)
        .Case([&](WorkType) { return code(TypeCode::Work); })
        .Case([&](ItemType) { return code(TypeCode::Item); })
        .Case([&](CursorType) { return code(TypeCode::Cursor); })
        .Case([&](BufType buffer) {
          (void)code(TypeCode::Buf);
          writer.writeVarInt(buffer.getRows());
          writer.writeVarInt(buffer.getColumns());
          writer.writeType(buffer.getElement());
          writer.writeAttribute(buffer.getLayout());
          return success();
        })
        .Case([&](ChanType channel) {
          (void)code(TypeCode::Chan);
          writer.writeType(channel.getBuffer());
          writer.writeVarInt(channel.getDepth());
          return success();
        })
        .Case([&](FutureType future) {
          (void)code(TypeCode::Future);
          writer.writeType(future.getTile());
          return success();
        })
        .Default([](Type) { return failure(); });
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
    case TypeCode::Cursor:
      return CursorType::get(getContext());
    case TypeCode::Buf: {
      int64_t rows, columns;
      Type element;
      SmemAttr layout;
      if (failed(readSize(reader, rows)) || failed(readSize(reader, columns)) ||
          failed(reader.readType(element)) ||
          failed(reader.readAttribute(layout)))
        return {};
      return BufType::getChecked([&] { return reader.emitError(); },
                                 getContext(), rows, columns, element, layout);
    }
    case TypeCode::Chan: {
      BufType buffer;
      int64_t depth;
      if (failed(reader.readType(buffer)) || failed(readSize(reader, depth)))
        return {};
      return ChanType::getChecked([&] { return reader.emitError(); },
                                  getContext(), buffer, depth);
    }
    case TypeCode::Future: {
      RankedTensorType tile;
      if (failed(reader.readType(tile)))
        return {};
      return FutureType::get(getContext(), tile);
    }
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
        .Case([&](ReduceKindAttr a) {
          return write(AttrCode::ReduceKind, a.getValue());
        })
        .Case([&](SelectionAttr a) {
          return write(AttrCode::Selection, a.getValue());
        })
        .Case([&](ArrivalAttr a) {
          return write(AttrCode::Arrival, a.getValue());
        })
        .Case([&](MarkKindAttr a) {
          return write(AttrCode::MarkKind, a.getValue());
        })
        .Case([&](FragAttr a) {
          (void)write(AttrCode::Frag, a.getAtom());
          writer.writeVarInt(a.getRepRows());
          writer.writeVarInt(a.getRepColumns());
          writer.writeVarInt(a.getWarps());
          if (isRowAtom(a.getAtom()))
            writer.writeVarInt(a.getColumnWarps());
          return success();
        })
        .Case([&](SliceAttr a) {
          (void)write(AttrCode::Slice, a.getDim());
          writer.writeAttribute(a.getParent());
          return success();
        })
        .Case([&](PartialAttr a) {
          writer.writeVarInt(static_cast<uint64_t>(AttrCode::Partial));
          writer.writeAttribute(a.getParent());
          return success();
        })
        .Case([&](SmemAttr a) {
          (void)write(a.getPanel() ? AttrCode::PanelSmem : AttrCode::Smem,
                      a.getPitch());
          writer.writeVarInt(a.getSwizzle());
          if (a.getPanel())
            writer.writeVarInt(a.getPanel());
          return success();
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

  static LogicalResult readSize(DialectBytecodeReader &reader, int64_t &size) {
    uint64_t number;
    if (failed(reader.readVarInt(number)))
      return failure();
    size = static_cast<int64_t>(number); // verifiers bound it
    return success();
  }

  Attribute readFrag(DialectBytecodeReader &reader) const {
    Atom atom;
    int64_t rows, columns, warps, columnWarps = 1;
    std::optional<Atom> (*symbolize)(uint32_t) = symbolizeAtom;
    if (failed(
            readEnum<Atom>(reader, "an atom of fragments", symbolize, atom)) ||
        failed(readSize(reader, rows)) || failed(readSize(reader, columns)) ||
        failed(readSize(reader, warps)) ||
        (isRowAtom(atom) && failed(readSize(reader, columnWarps))))
      return {};
    return FragAttr::getChecked([&] { return reader.emitError(); },
                                getContext(), atom, rows, columns, warps,
                                columnWarps);
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
    case AttrCode::Selection:
      return readEnumAttr<SelectionAttr, Selection>(
          reader, "tiles of an item by their order", symbolizeSelection);
    case AttrCode::Arrival:
      return readEnumAttr<ArrivalAttr, Arrival>(
          reader, "what has become of a buffer", symbolizeArrival);
    case AttrCode::MarkKind:
      return readEnumAttr<MarkKindAttr, MarkKind>(
          reader, "a kind of time stamp", symbolizeMarkKind);
    case AttrCode::Frag:
      return readFrag(reader);
    case AttrCode::Slice: {
      int64_t dim;
      FragAttr parent;
      if (failed(readSize(reader, dim)) || failed(reader.readAttribute(parent)))
        return {};
      return SliceAttr::getChecked([&] { return reader.emitError(); },
                                   getContext(), dim, parent);
    }
    case AttrCode::Partial: {
      FragAttr parent;
      if (failed(reader.readAttribute(parent)))
        return {};
      return PartialAttr::get(getContext(), parent);
    }
    case AttrCode::Smem:
    case AttrCode::PanelSmem: {
      int64_t pitch, swizzle, panel = 0;
      if (failed(readSize(reader, pitch)) || failed(readSize(reader, swizzle)))
        return {};
      if (static_cast<AttrCode>(code) == AttrCode::PanelSmem &&
          failed(readSize(reader, panel)))
        return {};
      return SmemAttr::getChecked([&] { return reader.emitError(); },
                                  getContext(), pitch, swizzle, panel);
    }
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
