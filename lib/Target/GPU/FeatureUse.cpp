//===- FeatureUse.cpp - what kernels use of their target ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What is used is what the text of a kernel has, whoever chose the instruction:
// fi or LLVM. Why something is not used follows from what the kernel does at
// level 2, and from nothing that a reader could not see there.
//
//===----------------------------------------------------------------------===//

#include "FeatureUse.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace fi;
using namespace fi::gpu;

//===----------------------------------------------------------------------===//
// What a kernel uses
//===----------------------------------------------------------------------===//

namespace {

/// Opcodes with all parts of a text that blanks separate, none of which begins
/// with "!": those must not be there.
struct Opcode {
  sm::Feature feature;
  llvm::StringLiteral parts;
};

constexpr Opcode kOpcodes[] = {
    {sm::MmaF16, "mma.sync m16n8k8 .f16.f16"},
    {sm::MmaF16K16, "mma.sync m16n8k16 .f16.f16"},
    {sm::MmaBF16, "mma.sync .bf16"},
    {sm::MmaTF32, "mma.sync .tf32"},
    {sm::MmaTF32, "cvt. .tf32"},
    {sm::MmaInt8, "mma.sync .s8"},
    {sm::MmaInt8, "mma.sync .u8"},
    {sm::MmaFP8, "mma.sync e4m3 !kind"},
    {sm::MmaFP8, "mma.sync e5m2 !kind"},
    {sm::FastMmaFP8, "mma.sync e4m3 !kind"},
    {sm::FastMmaFP8, "mma.sync e5m2 !kind"},
    {sm::MmaF8F6F4, "mma.sync kind::f8f6f4"},
    {sm::MmaBlockScale, "mma.sync block_scale"},
    {sm::Ldmatrix, "ldmatrix .b16"},
    {sm::LdmatrixB8, "ldmatrix .b8"},
    {sm::Stmatrix, "stmatrix"},
    {sm::Movmatrix, "movmatrix"},
    {sm::CpAsync, "cp.async.c"}, // .ca, .cg, .commit_group
    {sm::CpAsync, "cp.async.wait_"},
    {sm::L2Prefetch, "ld. L2::128B"},
    {sm::BulkCopy, "cp.async.bulk. !.tensor"},
    {sm::Tma, "cp.async.bulk.tensor"},
    {sm::TmaGather4, "cp.async.bulk.tensor gather4"},
    {sm::TmaMulticast, "cp.async.bulk.tensor multicast"},
    {sm::Wgmma, "wgmma."},
    {sm::Tcgen05, "tcgen05."},
    {sm::Tcgen05BlockScale, "tcgen05.mma block_scale"},
    {sm::Clusters, "barrier.cluster"},
    {sm::Clusters, "mapa."},
    {sm::Setmaxnreg, "setmaxnreg"},
    {sm::Mbarrier, "mbarrier"},
    {sm::MbarrierTx, "mbarrier. expect_tx"},
    {sm::MbarrierTx, "mbarrier. try_wait"},
    {sm::Elect, "elect.sync"},
    {sm::Griddepcontrol, "griddepcontrol"},
    {sm::Redux, "redux.sync !.f32"},
    {sm::ReduxF32, "redux.sync .f32"},
    {sm::CvtBF16x2, "cvt. bf16x2.f32"},
    {sm::CvtFP8, "cvt. e4m3x2"},
    {sm::CvtFP8, "cvt. e5m2x2"},
    {sm::CvtFP4, "cvt. e2m1x2"},
    {sm::FmaBF16x2, "fma. bf16x2"},
    {sm::Ex2F16x2, "ex2. .f16x2"},
    {sm::Ex2BF16x2, "ex2. bf16x2"},
    {sm::TanhF16x2, "tanh. .f16x2"},
    {sm::MaxNaN, "max.NaN .f32"},
    {sm::F32x2, "add. .f32x2"},
    {sm::F32x2, "mul. .f32x2"},
    {sm::F32x2, "fma. .f32x2"},
    {sm::FastF32x2, "add. .f32x2"},
    {sm::FastF32x2, "mul. .f32x2"},
    {sm::FastF32x2, "fma. .f32x2"},
    {sm::Global256, "ld.global .v8.b32"},
    {sm::Global256, "ld.global .v4.b64"},
    {sm::Global256, "st.global .v8.b32"},
    {sm::Global256, "st.global .v4.b64"},
    {sm::RedBF16x2, "red. bf16x2"},
    {sm::RedV4F32, "red. v4.f32"},
};

} // namespace

static bool matches(StringRef opcode, StringRef parts) {
  while (!parts.empty()) {
    auto [part, rest] = parts.split(' ');
    bool isForbidden = part.consume_front("!");
    if (opcode.contains(part) == isForbidden)
      return false;
    parts = rest;
  }
  return true;
}

static uint64_t findFeatures(StringRef opcode, size_t commas) {
  uint64_t mask = 0;
  for (const Opcode &known : kOpcodes)
    if (matches(opcode, known.parts))
      mask |= uint64_t(1) << known.feature;
  // The only one that operands tell.
  constexpr size_t kCommasOfThree = 3;
  if (commas == kCommasOfThree && opcode.ends_with(".f32") &&
      (opcode.starts_with("max.") || opcode.starts_with("min.")))
    mask |= uint64_t(1) << sm::Max3;
  return mask;
}

llvm::StringMap<uint64_t> fi::gpu::findFeatures(StringRef ptx) {
  llvm::StringMap<uint64_t> kernels;
  uint64_t *mask = nullptr;
  llvm::StringSet<> seen;
  StringRef line;
  while (!ptx.empty()) {
    std::tie(line, ptx) = ptx.split('\n');
    if (size_t at = line.find(".entry "); at != StringRef::npos) {
      StringRef name = line.substr(at + 7).take_until(
          [](char c) { return c == '(' || c == ' '; });
      mask = &kernels[name];
      seen.clear();
      continue;
    }
    // Text of inline assembly may have several in a line.
    while (mask && !line.empty()) {
      StringRef statement;
      std::tie(statement, line) = line.split(';');
      statement = statement.ltrim(" \t{");
      if (statement.starts_with("@"))
        statement =
            statement.drop_until([](char c) { return c == ' '; }).ltrim();
      if (statement.empty() || !llvm::isLower(statement.front()))
        continue;
      auto [opcode, operands] = statement.split(' ');
      opcode = opcode.take_until([](char c) { return c == '\t'; });
      size_t commas = operands.count(',');
      bool isMaximum = opcode.starts_with("max.") || opcode.starts_with("min.");
      if (isMaximum || seen.insert(opcode).second)
        *mask |= ::findFeatures(opcode, commas);
    }
  }
  return kernels;
}

//===----------------------------------------------------------------------===//
// What a kernel does
//===----------------------------------------------------------------------===//

KernelTraits::KernelTraits(tile::KernelOp kernel)
    : tileRows(kernel.getSchedule().getTileRows()) {
  auto see = [&](Type element, bool isRead) {
    bool isFP8 = isa<Float8E4M3FNType, Float8E5M2Type>(element);
    bool isFP4 = isa<Float4E2M1FNType>(element);
    (isRead ? readsFP8 : writesFP8) |= isFP8;
    (isRead ? readsFP4 : writesFP4) |= isFP4;
    readsInt8 |= isRead && element.isInteger(8);
    writesF16 |= !isRead && element.isF16();
    writesBF16 |= !isRead && element.isBF16();
  };
  auto multiply = [&](Type a, Type b) {
    Type first = getElementTypeOrSelf(a), second;
    if (auto buffer = dyn_cast<tile::BufType>(a))
      first = buffer.getElement();
    if (auto buffer = dyn_cast<tile::BufType>(b))
      second = buffer.getElement();
    hasProducts = true;
    ofF16 |= first.isF16();
    ofBF16 |= first.isBF16();
    ofF32 |= first.isF32();
    multipliesCodes |= second && isByteCode(first) && isByteCode(second);
  };
  auto copy = [&](bool isTensor) {
    hasCopies = true;
    hasTensorCopies |= isTensor;
  };
  auto seeView = [&](KVViewTypeInterface view, KVPart part) {
    hasPages |= view.getPageSize() != 0;
    see(view.getPartType(part), /*isRead=*/true);
    bool ofValues = part == KVPart::Values;
    if (BlockScaledType blocks = getBlockScaledType(view, ofValues)) {
      see(blocks.getStorage(), /*isRead=*/true);
      readsFP8Scales |= isa<Float8E4M3FNType>(blocks.getBy());
    }
  };
  kernel.walk([&](Operation *op) {
    if (auto dot = dyn_cast<tile::DotOp>(op)) {
      multiply(dot.getA().getType(), dot.getB().getType());
      hasWarpgroups |= dot.getWarpgroup();
    } else if (auto dot = dyn_cast<tile::DotStartOp>(op)) {
      multiply(dot.getA().getType(), dot.getB().getType());
      hasWarpgroups = true;
    } else if (auto load = dyn_cast<tile::LoadRowsOp>(op)) {
      see(getElementTypeOrSelf(load.getSource()), /*isRead=*/true);
    } else if (auto rows = dyn_cast<tile::CopyRowsOp>(op)) {
      Type element = getElementTypeOrSelf(rows.getSource());
      see(element, /*isRead=*/true);
      readsFP8Rows |= isa<Float8E4M3FNType, Float8E5M2Type>(element);
      copy(rows.getTma());
    } else if (auto load = dyn_cast<tile::LoadKVOp>(op)) {
      seeView(cast<KVViewTypeInterface>(load.getView().getType()),
              load.getPart());
    } else if (auto kv = dyn_cast<tile::CopyKVOp>(op)) {
      seeView(cast<KVViewTypeInterface>(kv.getView().getType()), kv.getPart());
      copy(kv.getTma());
    } else if (auto store = dyn_cast<tile::StoreRowsOp>(op)) {
      see(getElementTypeOrSelf(store.getTarget()), /*isRead=*/false);
    } else if (auto store = dyn_cast<tile::StoreKVOp>(op)) {
      see(getElementTypeOrSelf(store.getTile()), /*isRead=*/false);
      auto view = cast<KVViewTypeInterface>(store.getView().getType());
      see(view.getPartType(store.getPart()), /*isRead=*/false);
      if (BlockScaledType blocks =
              getBlockScaledType(view, store.getPart() == KVPart::Values))
        see(blocks.getStorage(), /*isRead=*/false);
    } else if (auto scales = dyn_cast<tile::StoreScalesOp>(op)) {
      writesFP8Scales |=
          isa<Float8E4M3FNType>(getElementTypeOrSelf(scales.getScales()));
    } else if (auto reduce = dyn_cast<tile::ReduceOp>(op)) {
      hasMaxima |= reduce.getKind() == tile::ReduceKind::Max;
    }
    hasRoles |= isa<tile::RoleOp>(op);
    hasStates |=
        isa<tile::StoreStateOp, tile::StoreMergedStateOp, tile::LoadStateOp>(
            op);
    hasExponents |= isa<math::Exp2Op, math::ExpOp>(op);
    hasMaxima |= isa<arith::MaximumFOp, arith::MaxNumFOp, tile::BlockMaxOp>(op);
  });
}

//===----------------------------------------------------------------------===//
// Why not
//===----------------------------------------------------------------------===//

namespace {

struct Reason {
  StringRef why;
  bool isIdle = false;
};

/// Nothing that the feature could do.
Reason idle(StringRef why) { return {why, true}; }

/// Of a product of warpgroups.
constexpr int64_t kWarpgroupRows = 64;

class Reasons {
public:
  Reasons(const sm::Target &chip, const KernelTraits &traits)
      : chip(chip), traits(traits) {}

  Reason of(sm::Feature feature) const {
    switch (feature) {
    case sm::MmaF16:
    case sm::MmaF16K16:
    case sm::MmaBF16:
    case sm::MmaTF32:
    case sm::MmaInt8:
    case sm::MmaFP8:
    case sm::FastMmaFP8:
    case sm::MmaF8F6F4:
    case sm::MmaBlockScale:
    case sm::Wgmma:
    case sm::Tcgen05:
    case sm::Tcgen05BlockScale:
      return traits.hasProducts ? ofProduct(feature)
                                : idle("the kernel has no products");
    case sm::Ldmatrix:
    case sm::LdmatrixB8:
    case sm::Movmatrix:
      return traits.hasProducts ? ofMatrices(feature)
                                : idle("the kernel has no products");
    case sm::CpAsync:
    case sm::BulkCopy:
    case sm::Tma:
    case sm::TmaGather4:
    case sm::TmaMulticast:
    case sm::Mbarrier:
    case sm::MbarrierTx:
    case sm::Setmaxnreg:
    case sm::Elect:
      return traits.hasCopies
                 ? ofCopies(feature)
                 : idle("each number goes from memory to registers once, so "
                        "nothing is copied to shared memory");
    case sm::CvtBF16x2:
    case sm::CvtFP8:
    case sm::CvtFP4:
      return ofConversions(feature);
    case sm::FmaBF16x2:
    case sm::Ex2F16x2:
    case sm::Ex2BF16x2:
    case sm::TanhF16x2:
    case sm::MaxNaN:
    case sm::Max3:
    case sm::F32x2:
    case sm::FastF32x2:
    case sm::Redux:
    case sm::ReduxF32:
      return ofArithmetic(feature);
    case sm::Stmatrix:
      return {"results go from registers to global memory"};
    case sm::L2Prefetch:
      return traits.hasCopies
                 ? Reason{"copies are of whole rows, and rings of them are "
                          "ahead already"}
                 : Reason{"rows are read once and whole, so that the next 128 "
                          "bytes are asked for anyway"};
    case sm::Clusters:
      return traits.hasStates ? Reason{"CTAs share nothing but states of split "
                                       "keys, in global memory"}
                              : Reason{"CTAs share nothing"};
    case sm::Griddepcontrol:
      return {"the kernel does not wait for launches in front of it itself"};
    case sm::Global256:
      return traits.hasCopies
                 ? Reason{"tiles are copied asynchronously, 16 bytes at a time"}
                 : Reason{"tensors need be aligned to 16 bytes, not to 32"};
    case sm::RedBF16x2:
    case sm::RedV4F32:
      return traits.hasStates
                 ? Reason{"states are merged in a fixed order, not by atomics"}
                 : idle("no two CTAs add to one number");
    }
    llvm_unreachable("a feature of the table");
  }

private:
  bool readsCodes() const {
    return traits.readsFP8 || traits.readsInt8 || traits.readsFP4;
  }

  Reason ofProduct(sm::Feature feature) const {
    bool ofHalves = traits.ofF16 || traits.ofBF16;
    switch (feature) {
    case sm::MmaF16:
    case sm::MmaF16K16:
      if (!traits.ofF16)
        return idle("no operand is of f16");
      if (traits.hasWarpgroups)
        return {"warpgroups multiply, from shared memory, by wgmma"};
      return feature == sm::MmaF16
                 ? Reason{"m16n8k16 does twice the work of an instruction of "
                          "m16n8k8"}
                 : Reason{"operands are widened to f32 first"};
    case sm::MmaBF16:
      if (!traits.ofBF16)
        return idle("no operand is of bf16");
      return {"warpgroups multiply, from shared memory, by wgmma"};
    case sm::MmaTF32:
      return idle("operands have 16 bits, which keep their numbers as they "
                  "are");
    case sm::MmaInt8:
      if (!traits.readsInt8)
        return idle("no operand is an integer");
      return {"codes of eight bits become numbers of the query's type: queries "
              "and weights are not rounded to integers"};
    case sm::MmaFP8:
    case sm::FastMmaFP8:
      if (!traits.readsFP8)
        return idle("no operand is stored as FP8");
      if (traits.readsFP8Rows && !chip.has(sm::FastMmaFP8))
        return {"the target has no tensor cores for it: ptxas would convert "
                "both operands to f16 at each product, and codes are converted "
                "once"};
      if (traits.readsFP8Rows)
        return {"keys are not of FP8, or not of a multiple of 32 columns"};
      return {"codes become numbers of the query's type: queries and weights "
              "are not rounded to FP8"};
    case sm::MmaF8F6F4:
      if (!traits.readsFP4 && !traits.readsFP8)
        return idle("no operand has fewer than 16 bits");
      return {"codes become numbers of the query's type before a product"};
    case sm::MmaBlockScale:
    case sm::Tcgen05BlockScale:
      if (!traits.readsFP4)
        return idle("no operand has scales of blocks");
      return {"scales of blocks are multiplied into numbers before a product: "
              "queries and weights have none"};
    case sm::Wgmma:
      if (!ofHalves)
        return {"products of f32 are of several parts, which stay in "
                "registers"};
      if (readsCodes())
        return {"codes become numbers in registers, and warpgroups read the "
                "second operand from shared memory"};
      if (traits.tileRows < kWarpgroupRows)
        return {"a tile has fewer rows than the 64 of a warpgroup"};
      return {"values are keys as well, or too wide for the registers of a "
              "warpgroup"};
    case sm::Tcgen05:
      return {"products are by mma.sync; tensor memory has no place at level 2 "
              "yet"};
    default:
      llvm_unreachable("of products");
    }
  }

  Reason ofMatrices(sm::Feature feature) const {
    switch (feature) {
    case sm::Ldmatrix:
      if (traits.hasWarpgroups)
        return {"warpgroups read shared memory themselves"};
      return {
          "operands are of 32 bits in shared memory, and ldmatrix moves 16"};
    case sm::LdmatrixB8:
      if (!readsCodes())
        return idle("operands have 16 bits or more");
      return {"codes are read by rows, in the order in which they become "
              "numbers"};
    default: // movmatrix
      return {"operands are transposed on the way from shared memory"};
    }
  }

  Reason ofCopies(sm::Feature feature) const {
    switch (feature) {
    case sm::CpAsync:
      return {"tensor copies move all tiles"};
    case sm::BulkCopy:
      return traits.hasTensorCopies
                 ? Reason{"copies are boxes of a tensor map"}
                 : Reason{"rows are padded or swizzled in shared memory, and "
                          "lie apart in global memory"};
    case sm::Tma:
      if (traits.hasRoles)
        return {"keys do not lie in boxes of a tensor map"};
      return {"all warps copy and multiply: without roles for warps copies are "
              "16 bytes of a lane each, by cp.async"};
    case sm::TmaGather4:
      return traits.hasTensorCopies ? Reason{"boxes are of the rows of a page"}
                                    : Reason{"the kernel has no tensor copies"};
    case sm::TmaMulticast:
      return {"there are no clusters"};
    case sm::Mbarrier:
    case sm::MbarrierTx:
      if (traits.hasRoles)
        return {"no tensor copies, whose bytes it counts"};
      return {"warps wait for groups of their own copies"};
    case sm::Setmaxnreg:
      return {"all warps do the same, with as many registers"};
    case sm::Elect:
      return traits.hasRoles ? Reason{"one lane is chosen by its number"}
                             : Reason{"all lanes copy"};
    default:
      llvm_unreachable("of copies");
    }
  }

  Reason ofConversions(sm::Feature feature) const {
    switch (feature) {
    case sm::CvtBF16x2:
      if (traits.writesBF16 || (traits.ofBF16 && traits.hasProducts))
        return {"no two numbers of a lane are rounded to bf16 side by side"};
      return idle("nothing is rounded to bf16");
    case sm::CvtFP8:
      if (traits.writesFP8 || traits.writesFP8Scales)
        return {"numbers are rounded to FP8 by arithmetic, as on targets "
                "without the instruction"};
      if (!traits.readsFP8 && !traits.readsFP8Scales)
        return idle("nothing is stored as FP8");
      if (traits.multipliesCodes)
        return {"tensor cores take the codes"};
      return {"two instructions of arithmetic make two codes of FP8 numbers of "
              "this type"};
    default: // cvt_fp4
      if (traits.writesFP4)
        return {"numbers are rounded to FP4 by arithmetic, as on targets "
                "without the instruction"};
      if (!traits.readsFP4)
        return idle("nothing is stored as FP4");
      return {"codes become numbers by arithmetic, which makes those of the "
              "query's type at once"};
    }
  }

  Reason ofArithmetic(sm::Feature feature) const {
    switch (feature) {
    case sm::FmaBF16x2:
      if (!traits.ofBF16 && !traits.writesBF16)
        return idle("nothing is of bf16");
      return {"sums are of f32"};
    case sm::Ex2F16x2:
    case sm::Ex2BF16x2:
      if (!traits.hasExponents)
        return idle("the kernel has no powers");
      return {"weights are of f32 until their sum is taken, and rounded once"};
    case sm::TanhF16x2:
      if (!traits.hasExponents)
        return idle("the kernel has no hyperbolic tangents");
      return {
          "functions are of f32, and a hyperbolic tangent is made of a power "
          "of two"};
    case sm::MaxNaN:
      if (!traits.hasMaxima)
        return idle("the kernel has no maxima");
      return {
          "no row makes a NaN of numbers, and what is none need not be handed "
          "on"};
    case sm::Max3:
      if (!traits.hasMaxima)
        return idle("the kernel has no maxima");
      return {"a later version of PTX than the target's spells it, and ptxas "
              "makes it of pairs of maxima where the machine has it"};
    case sm::F32x2:
    case sm::FastF32x2:
      if (!chip.has(sm::FastF32x2))
        return {"the target does one number after the other, and pairs would "
                "have to be put together first"};
      return idle("no two numbers that lie side by side have the same "
                  "arithmetic");
    case sm::Redux:
      return idle("nothing is reduced among lanes but numbers of f32");
    default: // redux_f32
      if (!traits.hasMaxima)
        return idle("the kernel has no maxima");
      return {
          "four lanes share a row, and the instruction reduces whole warps"};
    }
  }

  const sm::Target &chip;
  const KernelTraits &traits;
};

} // namespace

llvm::SmallVector<UnusedFeature>
fi::gpu::explainUnused(const sm::Target &chip, uint64_t used,
                       const KernelTraits &traits) {
  llvm::SmallVector<UnusedFeature> unused;
  Reasons reasons(chip, traits);
  for (const sm::FeatureEntry *entry : chip.getFeatures()) {
    auto feature = static_cast<sm::Feature>(entry->index);
    if (used >> feature & 1)
      continue;
    Reason reason = reasons.of(feature);
    unused.push_back({feature, reason.why, reason.isIdle});
  }
  return unused;
}

//===----------------------------------------------------------------------===//
// For manifests and people
//===----------------------------------------------------------------------===//

static SmallVector<StringRef> getNames(const sm::Target &chip, uint64_t mask) {
  SmallVector<StringRef> names;
  for (const sm::FeatureEntry *feature : chip.getFeatures())
    if (mask >> feature->index & 1)
      names.push_back(feature->name);
  return names;
}

/// Whether a kernel has nothing for a feature, and why it does not use it.
using UnusedKey = std::pair<unsigned, StringRef>;

std::string fi::gpu::setFeatures(tile::PackageOp package,
                                 const sm::Target &chip,
                                 ArrayRef<KernelAtLevel2> kernels,
                                 StringRef ptx) {
  Builder b(package.getContext());
  llvm::StringMap<uint64_t> found = findFeatures(ptx);
  SmallVector<Attribute> uses, unused;
  std::string text;
  llvm::raw_string_ostream os(text);
  // By reason and feature, the kernels.
  llvm::MapVector<UnusedKey, llvm::MapVector<StringRef, SmallVector<StringRef>>>
      byReason;
  for (const KernelAtLevel2 &kernel : kernels) {
    // Some are part of others by now.
    auto it = found.find(kernel.name);
    if (it == found.end())
      continue;
    uint64_t used = it->second;
    SmallVector<StringRef> names = getNames(chip, used);
    NamedAttrList entry;
    entry.set("symbol", b.getStringAttr(kernel.name));
    entry.set("features", b.getStrArrayAttr(names));
    uses.push_back(entry.getDictionary(b.getContext()));
    os << chip.name << ", kernel '" << kernel.name << "'\n  schedule: ";
    Attribute(kernel.schedule).print(os);
    os << "\n  uses: " << (names.empty() ? "nothing" : llvm::join(names, ", "))
       << "\n";
    llvm::MapVector<UnusedKey, SmallVector<StringRef>> ofKernel;
    for (const UnusedFeature &feature :
         explainUnused(chip, used, kernel.traits)) {
      StringRef name = sm::getFeature(feature.feature).name;
      UnusedKey key(feature.isIdle, feature.why);
      ofKernel[key].push_back(name);
      byReason[key][name].push_back(kernel.name);
    }
    for (bool isIdle : {false, true}) {
      os << (isIdle ? "  has nothing for:\n" : "  does not use:\n");
      for (auto &[key, features] : ofKernel)
        if (key.first == isIdle)
          os << "    " << llvm::join(features, ", ") << ": " << key.second
             << "\n";
    }
  }
  for (auto &[key, features] : byReason) {
    // Of one reason, features of the same kernels.
    llvm::MapVector<ArrayRef<StringRef>, SmallVector<StringRef>> groups;
    for (auto &[feature, users] : features)
      groups[users].push_back(feature);
    for (auto &[users, names] : groups) {
      NamedAttrList entry;
      entry.set("features", b.getStrArrayAttr(names));
      entry.set("why", b.getStringAttr(key.second));
      entry.set("idle", b.getBoolAttr(key.first));
      entry.set("kernels", b.getStrArrayAttr(users));
      unused.push_back(entry.getDictionary(b.getContext()));
    }
  }
  NamedAttrList entries(package.getManifest());
  NamedAttrList target(cast<DictionaryAttr>(entries.get("target")));
  target.set("uses", b.getArrayAttr(uses));
  target.set("unused", b.getArrayAttr(unused));
  entries.set("target", target.getDictionary(b.getContext()));
  package.setManifestAttr(entries.getDictionary(b.getContext()));
  return text;
}
