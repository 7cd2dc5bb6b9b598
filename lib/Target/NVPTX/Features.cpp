//===- Features.cpp - what a module asks of a version of PTX --------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A target's version of PTX has the chip and what all kernels use. Some
// instructions of the chip came later: a kernel with one of them gets the
// version that has it, and so the driver that it needs; others do not.
//
// Instructions are found by how they are spelled: names of operations of the
// nvvm dialect and of intrinsics, text of inline assembly.
//
//===----------------------------------------------------------------------===//

#include "fi/Target/CodegenSupport.h"
#include "fi/Target/NVPTX/EmitPTX.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/Regex.h"

using namespace mlir;
using namespace fi;
using namespace fi::nvptx;

namespace {

struct Spelling {
  sm::Feature feature;
  const char *pattern;
};

/// Features that came after the first version for some target that has them.
constexpr Spelling kSpellings[] = {
    {sm::MmaFP8, "(^|[^g])mma[.].*e(4m3|5m2)"},
    {sm::MmaF8F6F4, "mma[.].*kind::f8f6f4"},
    {sm::MmaBlockScale, "mma[.].*block_scale"},
    {sm::LdmatrixB8, "ldmatrix.*[.](b8|b6x16|b4x16)"},
    {sm::Stmatrix, "stmatrix"},
    {sm::Movmatrix, "movmatrix"},
    {sm::Tma, "cp[.]async[.]bulk[.]tensor"},
    {sm::TmaGather4, "gather4"},
    {sm::BulkCopy, "cp[.]async[.]bulk"},
    {sm::Wgmma, "wgmma"},
    {sm::Tcgen05, "tcgen05"},
    {sm::Tcgen05BlockScale, "tcgen05[.]mma.*block(16|32)"},
    {sm::Clusters, "cluster"},
    {sm::Setmaxnreg, "setmax(nreg|register)"},
    {sm::MbarrierTx, "mbarrier[.].*(_tx|try_wait)"},
    {sm::Elect, "elect[.]sync"},
    {sm::Griddepcontrol, "griddepcontrol"},
    {sm::ReduxF32, "redux.*f(min|max|32)"},
    {sm::CvtFP8, "e(4m3|5m2)x2|to[.]f8x2"},
    {sm::CvtFP4, "(e2m1|e2m3|e3m2)x2|to[.]f[46]x2"},
    {sm::Ex2BF16x2, "ex2[.].*bf16x2"},
    {sm::Max3, "m(ax|in)3|max[.]f32 [^,]*,[^,]*,[^,;]*,"},
    {sm::F32x2, "(add|mul|fma)[.].*f32x2"},
    {sm::RedBF16x2, "(^|[^a])red[.].*bf16x2"},
    {sm::RedV4F32, "(^|[^a])red[.].*v4[.]f32"},
};

} // namespace

/// How an op's instruction is spelled; empty for ops that have no such.
static std::string spell(Operation *op) {
  if (auto call = dyn_cast<LLVM::CallIntrinsicOp>(op))
    return call.getIntrin().str();
  if (auto text = dyn_cast<LLVM::InlineAsmOp>(op))
    return text.getAsmString().str();
  if (auto text = dyn_cast<NVVM::InlinePtxOp>(op))
    return text.getPtxCode().str();
  if (op->getName().getDialectNamespace() != "nvvm")
    return {};
  std::string spelled = op->getName().stripDialect().str();
  // Its types decide which of them it is.
  if (auto product = dyn_cast<NVVM::MmaOp>(op)) {
    llvm::raw_string_ostream os(spelled);
    for (std::optional<NVVM::MMATypes> type :
         {product.getMultiplicandAPtxType(), product.getMultiplicandBPtxType()})
      if (type)
        os << "." << NVVM::stringifyMMATypes(*type);
  }
  if (auto load = dyn_cast<NVVM::LdMatrixOp>(op)) {
    llvm::raw_string_ostream os(spelled);
    os << "." << NVVM::stringifyLdStMatrixEltType(load.getEltType());
  }
  return spelled;
}

llvm::Expected<unsigned> fi::nvptx::choosePTX(ModuleOp module,
                                              const sm::Target &target,
                                              unsigned asked) {
  llvm::MapVector<StringRef, Operation *> spellings;
  llvm::StringMap<Operation *> seen;
  module.walk([&](Operation *op) {
    std::string spelled = spell(op);
    if (!spelled.empty())
      if (auto [entry, isNew] = seen.try_emplace(spelled, op); isNew)
        spellings[entry->first()] = op;
  });
  unsigned version = target.ptx;
  const sm::FeatureEntry *latest = nullptr;
  Operation *user = nullptr;
  for (const Spelling &known : kSpellings) {
    const sm::FeatureEntry &feature = sm::getFeature(known.feature);
    // What the chip lacks no version gives it.
    if (feature.ptx <= version || !target.has(known.feature))
      continue;
    llvm::Regex pattern(known.pattern);
    for (auto &[text, op] : spellings)
      if (pattern.match(text)) {
        version = feature.ptx;
        latest = &feature;
        user = op;
        break;
      }
  }
  if (!asked)
    return version;
  if (llvm::Error error = sm::checkPTX(target, asked))
    return std::move(error);
  if (asked < version)
    return makeError(user, Twine("expected a PTX version of at least ") +
                               sm::formatPTX(version) + ", the first with " +
                               latest->name + " (" + latest->summary +
                               "), but got " + sm::formatPTX(asked));
  return asked;
}
