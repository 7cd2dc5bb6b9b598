//===- Machine.cpp - what a target attribute means for LLVM ---------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"
#include "fi/Target/CPU/CPUCompiler.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CrashRecoveryContext.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/TargetParser/Host.h"
#include <mutex>
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

using namespace mlir;
using namespace fi;
using namespace fi::cpu;

// The levels of the x86-64 ABI, each with what it adds.
static constexpr llvm::StringLiteral kLevel2[] = {"sse3", "ssse3", "sse4.1",
                                                  "sse4.2", "popcnt"};
static constexpr llvm::StringLiteral kLevel3[] = {
    "avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe"};
static constexpr llvm::StringLiteral kLevel4[] = {
    "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"};
static constexpr llvm::StringLiteral kBf16Dot = "avx512bf16";
static constexpr llvm::StringLiteral kAMX[] = {"amx-tile", "amx-bf16"};

static bool hasAll(const llvm::StringMap<bool> &host,
                   ArrayRef<llvm::StringLiteral> features) {
  return llvm::all_of(features, [&](StringRef f) { return host.lookup(f); });
}

StringRef fi::cpu::getLevel(TargetAttr target) {
  return target.getVectorBits() == 512   ? "x86-64-v4"
         : target.getVectorBits() == 256 ? "x86-64-v3"
                                         : "x86-64-v2";
}

SmallVector<StringRef> fi::cpu::getFeatures(TargetAttr target) {
  SmallVector<StringRef> features(std::begin(kLevel2), std::end(kLevel2));
  if (target.getVectorBits() >= 256)
    features.append(std::begin(kLevel3), std::end(kLevel3));
  if (target.getVectorBits() >= 512)
    features.append(std::begin(kLevel4), std::end(kLevel4));
  if (target.getBf16Dot())
    features.push_back(kBf16Dot);
  if (target.getAmx())
    features.append(std::begin(kAMX), std::end(kAMX));
  return features;
}

/// Asking the host takes a while, and it stays the same.
static const llvm::StringMap<bool> &getHostFeatures() {
  static const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  return features;
}

std::string fi::cpu::getTuning(TargetAttr target) {
  const llvm::StringMap<bool> &host = getHostFeatures();
  for (StringRef feature : getFeatures(target))
    if (!host.lookup(feature))
      return getLevel(target).str();
  return llvm::sys::getHostCPUName().str();
}

/// The kernel gives the tile registers to processes that ask for them.
static bool mayUseTiles() {
#ifdef __linux__
  constexpr int request = 0x1023, tileData = 18; // ARCH_REQ_XCOMP_PERM
  static const bool may = syscall(SYS_arch_prctl, request, tileData) == 0;
  return may;
#else
  return false;
#endif
}

TargetAttr fi::cpu::getHostTarget(MLIRContext *context) {
  // Asked for by whoever has a context, before there is a program in it.
  context->loadDialect<FIDialect>();
  const llvm::StringMap<bool> &host = getHostFeatures();
  bool has256 = hasAll(host, kLevel3);
  bool has512 = has256 && hasAll(host, kLevel4);
  return TargetAttr::get(context, StringAttr::get(context, "cpu"),
                         has512   ? 512
                         : has256 ? 256
                                  : 128,
                         has512 && host.lookup(kBf16Dot),
                         has512 && host.lookup(kBf16Dot) &&
                             hasAll(host, kAMX) && mayUseTiles());
}

llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
fi::cpu::createMachine(TargetAttr target, unsigned optLevel) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    LLVMInitializeX86AsmParser();
    llvm::CrashRecoveryContext::Enable();
  });
  llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string why;
  const llvm::Target *llvmTarget =
      llvm::TargetRegistry::lookupTarget(triple, why);
  if (!llvmTarget)
    return llvm::createStringError(why);
  std::string features;
  if (target.getBf16Dot())
    features = ("+" + kBf16Dot).str();
  if (target.getAmx())
    for (StringRef feature : kAMX)
      features += (",+" + feature).str();
  auto level = optLevel == 0   ? llvm::CodeGenOptLevel::None
               : optLevel == 1 ? llvm::CodeGenOptLevel::Less
                               : llvm::CodeGenOptLevel::Aggressive;
  return std::unique_ptr<llvm::TargetMachine>(llvmTarget->createTargetMachine(
      triple, getLevel(target), features, llvm::TargetOptions(),
      llvm::Reloc::PIC_, llvm::CodeModel::Small, level));
}
