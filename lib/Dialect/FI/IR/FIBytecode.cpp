//===- FIBytecode.cpp - the fi dialect in bytecode ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each type and attribute is a code and its parameters in order. Codes are
// never reused. A change of what follows a code needs a new version, and a
// reader that asks for the version it reads.
//
//===----------------------------------------------------------------------===//

#include "fi/Dialect/FI/IR/FIBytecode.h"
#include "fi/Dialect/FI/IR/FI.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace fi;

/// Version 1: the first.
/// Version 2: fi.attention has a group of operands more, the last, and views of
/// pages and of tokens one of scales.
/// Version 3: so have views of latents and of blocks.
static constexpr uint64_t kVersion = 3;

namespace {

enum class TypeCode : uint64_t {
  PagedKV,
  RaggedKV,
  State,
  Segments,
  TwoTablesKV, // as PagedKV
  LatentKV,
  BsrKV,
  Scaled,
  BlockScaled,
  Plan
};
enum class AttrCode : uint64_t {
  Softmax,
  Causal,
  Window,
  Any,
  Softcap,
  Target,
  Schedule,
  Split,
  WarpSchedule,
  Sum,
  Sigmoid,
  KVPart,
  RoleSchedule,
  TensorSchedule,
  /// A number, and as many of a schedule's fields.
  CountedSchedule
};

/// Bits of a target's features.
constexpr uint64_t kBf16Dot = 1, kAmx = 2;

struct FIBytecodeInterface : BytecodeDialectInterface {
  FIBytecodeInterface(Dialect *dialect) : BytecodeDialectInterface(dialect) {}

  //===--------------------------------------------------------------------===//
  // Versions
  //===--------------------------------------------------------------------===//

  void writeVersion(DialectBytecodeWriter &writer) const override {
    writer.writeVarInt(kVersion);
  }
  std::unique_ptr<DialectVersion>
  readVersion(DialectBytecodeReader &reader) const override {
    return readBytecodeVersion(reader, getDialect()->getNamespace(), kVersion);
  }
  /// Where ops of older versions become ops of this one. Those of others do
  /// by being read: the sizes of operand groups that they do not state are 0.
  LogicalResult
  upgradeFromVersion(Operation *op,
                     const DialectVersion &version) const override {
    return success(static_cast<const BytecodeVersion &>(version).number <=
                   kVersion);
  }

  //===--------------------------------------------------------------------===//
  // Types
  //===--------------------------------------------------------------------===//

  LogicalResult writeType(Type type,
                          DialectBytecodeWriter &writer) const override {
    auto code = [&](TypeCode code) {
      writer.writeVarInt(static_cast<uint64_t>(code));
    };
    return llvm::TypeSwitch<Type, LogicalResult>(type)
        .Case([&](PagedKVType kv) {
          code(kv.getTwoTables() ? TypeCode::TwoTablesKV : TypeCode::PagedKV);
          for (int64_t size : {kv.getPage(), kv.getHeads(), kv.getDim(),
                               kv.getValueDimension()})
            writer.writeSignedVarInt(size);
          writer.writeType(kv.getElement());
          writer.writeType(kv.getValueElement());
          writer.writeVarInt(static_cast<uint64_t>(kv.getOrder()));
          writer.writeType(kv.getIndex());
          writer.writeOwnedBool(kv.getDense());
          writer.writeOwnedBool(kv.getFused());
          return success();
        })
        .Case([&](RaggedKVType kv) {
          code(TypeCode::RaggedKV);
          for (int64_t size :
               {kv.getHeads(), kv.getDim(), kv.getValueDimension()})
            writer.writeSignedVarInt(size);
          writer.writeType(kv.getElement());
          writer.writeType(kv.getValueElement());
          writer.writeVarInt(static_cast<uint64_t>(kv.getOrder()));
          writer.writeType(kv.getIndex());
          return success();
        })
        .Case([&](LatentKVType kv) {
          code(TypeCode::LatentKV);
          for (int64_t size : {kv.getLatent(), kv.getTail(), kv.getPage()})
            writer.writeSignedVarInt(size);
          writer.writeType(kv.getElement());
          writer.writeType(kv.getIndex());
          writer.writeOwnedBool(kv.getDense());
          return success();
        })
        .Case([&](BsrKVType kv) {
          code(TypeCode::BsrKV);
          for (int64_t size : {kv.getColumns(), kv.getHeads(), kv.getDim(),
                               kv.getValueDimension(), kv.getRows()})
            writer.writeSignedVarInt(size);
          writer.writeType(kv.getElement());
          writer.writeType(kv.getValueElement());
          writer.writeVarInt(static_cast<uint64_t>(kv.getOrder()));
          writer.writeType(kv.getIndex());
          return success();
        })
        .Case([&](StateType state) {
          code(TypeCode::State);
          for (int64_t size :
               {state.getRows(), state.getHeads(), state.getDim()})
            writer.writeSignedVarInt(size);
          writer.writeType(state.getElement());
          writer.writeAttribute(state.getNormaliser());
          writer.writeOwnedBool(state.getSegmented());
          return success();
        })
        .Case([&](SegmentsType) {
          code(TypeCode::Segments);
          return success();
        })
        .Case([&](ScaledType scaled) {
          code(TypeCode::Scaled);
          writer.writeType(scaled.getStorage());
          writer.writeVarInt(static_cast<uint64_t>(scaled.getGranularity()));
          writer.writeType(scaled.getBy());
          return success();
        })
        .Case([&](BlockScaledType blocks) {
          code(TypeCode::BlockScaled);
          writer.writeType(blocks.getStorage());
          writer.writeSignedVarInt(blocks.getBlock());
          writer.writeType(blocks.getBy());
          writer.writeVarInt(static_cast<uint64_t>(blocks.getGranularity()));
          return success();
        })
        .Case([&](PlanType) {
          code(TypeCode::Plan);
          return success();
        })
        .Default([](Type) { return failure(); });
  }

  Type readType(DialectBytecodeReader &reader) const override {
    uint64_t code;
    if (failed(reader.readVarInt(code)))
      return {};
    switch (static_cast<TypeCode>(code)) {
    case TypeCode::PagedKV:
    case TypeCode::TwoTablesKV:
      return readPagedKV(reader,
                         static_cast<TypeCode>(code) == TypeCode::TwoTablesKV);
    case TypeCode::LatentKV:
      return readLatentKV(reader);
    case TypeCode::BsrKV:
      return readBsrKV(reader);
    case TypeCode::RaggedKV:
      return readRaggedKV(reader);
    case TypeCode::State:
      return readState(reader);
    case TypeCode::Segments:
      return SegmentsType::get(getContext());
    case TypeCode::Scaled:
      return readScaled(reader);
    case TypeCode::BlockScaled:
      return readBlockScaled(reader);
    case TypeCode::Plan:
      return PlanType::get(getContext());
    }
    reader.emitError()
        << "expected the code of a type of dialect 'fi', but got " << code;
    return {};
  }

  Type readPagedKV(DialectBytecodeReader &reader, bool twoTables) const {
    int64_t page, heads, dim, valueDim;
    Type element, valueElement, index;
    HeadOrder order;
    bool dense, fused;
    if (failed(reader.readSignedVarInt(page)) ||
        failed(reader.readSignedVarInt(heads)) ||
        failed(reader.readSignedVarInt(dim)) ||
        failed(reader.readSignedVarInt(valueDim)) ||
        failed(reader.readType(element)) ||
        failed(reader.readType(valueElement)) ||
        failed(readOrder(reader, order)) || failed(reader.readType(index)) ||
        failed(reader.readBool(dense)) || failed(reader.readBool(fused)))
      return {};
    return PagedKVType::getChecked(
        [&] { return reader.emitError(); }, getContext(), page, heads, dim,
        valueDim, element, valueElement, order, index, dense, fused, twoTables);
  }

  Type readLatentKV(DialectBytecodeReader &reader) const {
    int64_t latent, tail, page;
    Type element, index;
    bool dense;
    if (failed(reader.readSignedVarInt(latent)) ||
        failed(reader.readSignedVarInt(tail)) ||
        failed(reader.readSignedVarInt(page)) ||
        failed(reader.readType(element)) || failed(reader.readType(index)) ||
        failed(reader.readBool(dense)))
      return {};
    return LatentKVType::getChecked([&] { return reader.emitError(); },
                                    getContext(), latent, tail, element, page,
                                    index, dense);
  }

  Type readBsrKV(DialectBytecodeReader &reader) const {
    int64_t columns, heads, dim, valueDim, rows;
    Type element, valueElement, index;
    HeadOrder order;
    if (failed(reader.readSignedVarInt(columns)) ||
        failed(reader.readSignedVarInt(heads)) ||
        failed(reader.readSignedVarInt(dim)) ||
        failed(reader.readSignedVarInt(valueDim)) ||
        failed(reader.readSignedVarInt(rows)) ||
        failed(reader.readType(element)) ||
        failed(reader.readType(valueElement)) ||
        failed(readOrder(reader, order)) || failed(reader.readType(index)))
      return {};
    return BsrKVType::getChecked([&] { return reader.emitError(); },
                                 getContext(), columns, heads, dim, valueDim,
                                 element, valueElement, order, index, rows);
  }

  Type readRaggedKV(DialectBytecodeReader &reader) const {
    int64_t heads, dim, valueDim;
    Type element, valueElement, index;
    HeadOrder order;
    if (failed(reader.readSignedVarInt(heads)) ||
        failed(reader.readSignedVarInt(dim)) ||
        failed(reader.readSignedVarInt(valueDim)) ||
        failed(reader.readType(element)) ||
        failed(reader.readType(valueElement)) ||
        failed(readOrder(reader, order)) || failed(reader.readType(index)))
      return {};
    return RaggedKVType::getChecked([&] { return reader.emitError(); },
                                    getContext(), heads, dim, valueDim, element,
                                    valueElement, order, index);
  }

  Type readState(DialectBytecodeReader &reader) const {
    int64_t rows, heads, dim;
    Type element;
    NormaliserAttrInterface normaliser;
    bool segmented;
    if (failed(reader.readSignedVarInt(rows)) ||
        failed(reader.readSignedVarInt(heads)) ||
        failed(reader.readSignedVarInt(dim)) ||
        failed(reader.readType(element)) ||
        failed(reader.readAttribute(normaliser)) ||
        failed(reader.readBool(segmented)))
      return {};
    return StateType::getChecked([&] { return reader.emitError(); },
                                 getContext(), rows, heads, dim, element,
                                 normaliser, segmented);
  }

  Type readScaled(DialectBytecodeReader &reader) const {
    Type storage, by;
    Granularity granularity;
    if (failed(reader.readType(storage)) ||
        failed(readEnum<Granularity>(
            reader, "what shares a scale",
            [](uint32_t number) { return symbolizeGranularity(number); },
            granularity)) ||
        failed(reader.readType(by)))
      return {};
    return ScaledType::getChecked([&] { return reader.emitError(); },
                                  getContext(), storage, granularity, by);
  }

  Type readBlockScaled(DialectBytecodeReader &reader) const {
    Type storage, by;
    int64_t block;
    Granularity granularity;
    if (failed(reader.readType(storage)) ||
        failed(reader.readSignedVarInt(block)) || failed(reader.readType(by)) ||
        failed(readEnum<Granularity>(
            reader, "what shares a scale",
            [](uint32_t number) { return symbolizeGranularity(number); },
            granularity)))
      return {};
    return BlockScaledType::getChecked([&] { return reader.emitError(); },
                                       getContext(), storage, block, by,
                                       granularity);
  }

  static LogicalResult readOrder(DialectBytecodeReader &reader,
                                 HeadOrder &order) {
    return readEnum<HeadOrder>(
        reader, "an order of tokens and heads",
        [](uint32_t number) { return symbolizeHeadOrder(number); }, order);
  }

  //===--------------------------------------------------------------------===//
  // Attributes
  //===--------------------------------------------------------------------===//

  LogicalResult writeAttribute(Attribute attr,
                               DialectBytecodeWriter &writer) const override {
    auto code = [&](AttrCode code) {
      writer.writeVarInt(static_cast<uint64_t>(code));
    };
    auto bound = [&](std::optional<int64_t> value) {
      writer.writeOwnedBool(value.has_value());
      if (value)
        writer.writeSignedVarInt(*value);
    };
    return llvm::TypeSwitch<Attribute, LogicalResult>(attr)
        .Case([&](SoftmaxAttr softmax) {
          code(AttrCode::Softmax);
          writer.writeVarInt(static_cast<uint64_t>(softmax.getBase()));
          return success();
        })
        .Case([&](SumAttr) {
          code(AttrCode::Sum);
          return success();
        })
        .Case([&](SigmoidAttr sigmoid) {
          code(AttrCode::Sigmoid);
          writer.writeOptionalAttribute(sigmoid.getBias());
          return success();
        })
        .Case([&](KVPartAttr part) {
          code(AttrCode::KVPart);
          writer.writeVarInt(static_cast<uint64_t>(part.getValue()));
          return success();
        })
        .Case([&](CausalAttr) {
          code(AttrCode::Causal);
          return success();
        })
        .Case([&](WindowAttr window) {
          code(AttrCode::Window);
          bound(window.getLeft());
          bound(window.getRight());
          return success();
        })
        .Case([&](AnyAttr any) {
          code(AttrCode::Any);
          writer.writeAttributes(any.getMasks());
          return success();
        })
        .Case([&](SoftcapAttr softcap) {
          code(AttrCode::Softcap);
          writer.writeAttribute(softcap.getCap());
          return success();
        })
        .Case([&](TargetAttr target) {
          code(AttrCode::Target);
          writer.writeAttribute(target.getKind());
          writer.writeSignedVarInt(target.getVectorBits());
          writer.writeVarInt((target.getBf16Dot() ? kBf16Dot : 0) |
                             (target.getAmx() ? kAmx : 0));
          return success();
        })
        .Case([&](ScheduleAttr s) {
          code(s.getLate()        ? AttrCode::CountedSchedule
               : s.getTma()       ? AttrCode::TensorSchedule
               : s.getLoadWarps() ? AttrCode::RoleSchedule
               : s.getWarps()     ? AttrCode::WarpSchedule
                                  : AttrCode::Schedule);
          if (s.getLate()) {
            int64_t fields[] = {
                s.getTileRows(), s.getTileKeys(),  s.getMr(),
                s.getNr(),       s.getLanes(),     s.getMaxRows(),
                s.getStream(),   s.getWarps(),     s.getKeyWarps(),
                s.getStages(),   s.getLoadWarps(), s.getWgmma(),
                s.getRotate(),   s.getTurns(),     s.getTma(),
                s.getLate()};
            writer.writeVarInt(std::size(fields));
            for (int64_t field : fields)
              writer.writeSignedVarInt(field);
            return success();
          }
          for (int64_t field :
               {s.getTileRows(), s.getTileKeys(), s.getMr(), s.getNr(),
                s.getLanes(), s.getMaxRows(), s.getStream()})
            writer.writeSignedVarInt(field);
          if (s.getWarps())
            for (int64_t field : {s.getWarps(), s.getKeyWarps(), s.getStages()})
              writer.writeSignedVarInt(field);
          if (s.getLoadWarps())
            for (int64_t field :
                 {s.getLoadWarps(), s.getWgmma(), s.getRotate(), s.getTurns()})
              writer.writeSignedVarInt(field);
          if (s.getTma())
            writer.writeSignedVarInt(s.getTma());
          return success();
        })
        .Case([&](SplitAttr split) {
          code(AttrCode::Split);
          writer.writeSignedVarInt(split.getKeys());
          return success();
        })
        .Default([](Attribute) { return failure(); });
  }

  Attribute readAttribute(DialectBytecodeReader &reader) const override {
    uint64_t code;
    if (failed(reader.readVarInt(code)))
      return {};
    auto emitError = [&] { return reader.emitError(); };
    MLIRContext *context = getContext();
    switch (static_cast<AttrCode>(code)) {
    case AttrCode::Softmax: {
      LseBase base;
      if (failed(readEnum<LseBase>(
              reader, "the base of a log-sum-exp",
              [](uint32_t number) { return symbolizeLseBase(number); }, base)))
        return {};
      return SoftmaxAttr::get(context, base);
    }
    case AttrCode::Sum:
      return SumAttr::get(context);
    case AttrCode::Sigmoid: {
      FloatAttr bias;
      if (failed(reader.readOptionalAttribute(bias)))
        return {};
      return SigmoidAttr::getChecked(emitError, context, bias);
    }
    case AttrCode::KVPart: {
      KVPart part;
      if (failed(readEnum<KVPart>(
              reader, "keys, values or tails",
              [](uint32_t number) { return symbolizeKVPart(number); }, part)))
        return {};
      return KVPartAttr::get(context, part);
    }
    case AttrCode::Causal:
      return CausalAttr::get(context);
    case AttrCode::Window: {
      std::optional<int64_t> left, right;
      if (failed(readBound(reader, left)) || failed(readBound(reader, right)))
        return {};
      return WindowAttr::getChecked(emitError, context, left, right);
    }
    case AttrCode::Any: {
      SmallVector<Attribute> masks;
      if (failed(reader.readAttributes(masks)))
        return {};
      return AnyAttr::getChecked(emitError, context,
                                 ArrayRef<Attribute>(masks));
    }
    case AttrCode::Softcap: {
      FloatAttr cap;
      if (failed(reader.readAttribute(cap)))
        return {};
      return SoftcapAttr::getChecked(emitError, context, cap);
    }
    case AttrCode::Target: {
      StringAttr kind;
      int64_t bits;
      uint64_t features;
      if (failed(reader.readAttribute(kind)) ||
          failed(reader.readSignedVarInt(bits)) ||
          failed(reader.readVarInt(features)))
        return {};
      if (features & ~(kBf16Dot | kAmx)) {
        emitError() << "expected features of a target among the bits "
                    << (kBf16Dot | kAmx) << ", but got " << features;
        return {};
      }
      return TargetAttr::getChecked(emitError, context, kind, bits,
                                    (features & kBf16Dot) != 0,
                                    (features & kAmx) != 0);
    }
    case AttrCode::Schedule:
    case AttrCode::WarpSchedule:
    case AttrCode::RoleSchedule:
    case AttrCode::TensorSchedule:
    case AttrCode::CountedSchedule: {
      int64_t fields[16] = {};
      uint64_t count = code == uint64_t(AttrCode::Schedule)       ? 7
                       : code == uint64_t(AttrCode::WarpSchedule) ? 10
                       : code == uint64_t(AttrCode::RoleSchedule) ? 14
                                                                  : 15;
      if (code == uint64_t(AttrCode::CountedSchedule)) {
        if (failed(reader.readVarInt(count)))
          return {};
        if (count > std::size(fields)) {
          emitError() << "expected a schedule of at most " << std::size(fields)
                      << " numbers, but got " << count;
          return {};
        }
      }
      for (int64_t &field : llvm::MutableArrayRef(fields).take_front(count))
        if (failed(reader.readSignedVarInt(field)))
          return {};
      return ScheduleAttr::getChecked(
          emitError, context, fields[0], fields[1], fields[2], fields[3],
          fields[4], fields[5], fields[6], fields[7], fields[8], fields[9],
          fields[10], fields[11], fields[12], fields[13], fields[14],
          fields[15]);
    }
    case AttrCode::Split: {
      int64_t keys;
      if (failed(reader.readSignedVarInt(keys)))
        return {};
      return SplitAttr::getChecked(emitError, context, keys);
    }
    }
    emitError() << "expected the code of an attribute of dialect 'fi', but got "
                << code;
    return {};
  }

  static LogicalResult readBound(DialectBytecodeReader &reader,
                                 std::optional<int64_t> &bound) {
    bool present;
    int64_t value;
    if (failed(reader.readBool(present)))
      return failure();
    if (!present)
      return success();
    if (failed(reader.readSignedVarInt(value)))
      return failure();
    bound = value;
    return success();
  }
};

} // namespace

void FIDialect::registerBytecode() { addInterfaces<FIBytecodeInterface>(); }
