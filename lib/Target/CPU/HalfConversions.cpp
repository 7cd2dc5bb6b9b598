//===- HalfConversions.cpp - f16, bf16 on CPUs without instructions for it ===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Below x86-64-v3, LLVM converts f16 by calls of its compiler's run-time
// library, and where there is no AVX512-BF16 it narrows to bf16 so, which is
// also how it legalises a choice between two of them. A package brings the
// functions itself: whichever library has them is then of no interest. They are
// exact or round to nearest even.
//
//===----------------------------------------------------------------------===//

#include "LLVMCodegen.h"
#include "Machine.h"
#include "llvm/AsmParser/Parser.h"
#include "llvm/Support/SourceMgr.h"

using namespace fi;
using namespace fi::cpu;

static const char *const text = R"(
define hidden float @__extendhfsf2(half %x) nounwind {
  %h = bitcast half %x to i16
  %w = zext i16 %h to i32
  %s = and i32 %w, 32768
  %sign = shl i32 %s, 16
  %magnitude = and i32 %w, 32767
  ; Normal numbers get another bias of the exponent, infinities the largest one.
  %shifted = shl i32 %magnitude, 13
  %rebiased = add i32 %shifted, 939524096
  %largest = add i32 %rebiased, 939524096
  %isSpecial = icmp uge i32 %magnitude, 31744
  %normal = select i1 %isSpecial, i32 %largest, i32 %rebiased
  ; Subnormal ones are multiples of 2^-24.
  %count = uitofp i32 %magnitude to float
  %product = fmul float %count, 0x3E70000000000000
  %subnormal = bitcast float %product to i32
  %isSubnormal = icmp ult i32 %magnitude, 1024
  %bits = select i1 %isSubnormal, i32 %subnormal, i32 %normal
  %signed = or i32 %bits, %sign
  %result = bitcast i32 %signed to float
  ret float %result
}

define hidden half @__truncsfhf2(float %x) nounwind {
  %w = bitcast float %x to i32
  %s = lshr i32 %w, 16
  %sign = and i32 %s, 32768
  %magnitude = and i32 %w, 2147483647
  ; From 2^16: infinity, or a quiet NaN.
  %isNaN = icmp ugt i32 %magnitude, 2139095040
  %special = select i1 %isNaN, i32 32256, i32 31744
  %isSpecial = icmp uge i32 %magnitude, 1199570944
  ; Below 2^-14: the addition of 0.5 rounds to a multiple of 2^-24.
  %absolute = bitcast i32 %magnitude to float
  %sum = fadd float %absolute, 5.0e-1
  %sumBits = bitcast float %sum to i32
  %subnormal = sub i32 %sumBits, 1056964608
  %isSubnormal = icmp ult i32 %magnitude, 947912704
  ; Else the bias changes, and half a unit less one, or half a unit if the last
  ; bit that stays is odd, is added.
  %last = lshr i32 %magnitude, 13
  %odd = and i32 %last, 1
  %biased = add i32 %magnitude, -939520001
  %rounded = add i32 %biased, %odd
  %normal = lshr i32 %rounded, 13
  %small = select i1 %isSubnormal, i32 %subnormal, i32 %normal
  %bits = select i1 %isSpecial, i32 %special, i32 %small
  %signed = or i32 %bits, %sign
  %half = trunc i32 %signed to i16
  %result = bitcast i16 %half to half
  ret half %result
}

define hidden bfloat @__truncsfbf2(float %x) nounwind {
  %w = bitcast float %x to i32
  ; Half a unit less one, or half a unit if the last bit that stays is odd. What
  ; overflows becomes infinity.
  %last = lshr i32 %w, 16
  %odd = and i32 %last, 1
  %biased = add i32 %w, 32767
  %rounded = add i32 %biased, %odd
  ; A quiet NaN stays one.
  %quiet = or i32 %w, 4194304
  %isNaN = fcmp uno float %x, %x
  %bits = select i1 %isNaN, i32 %quiet, i32 %rounded
  %high = lshr i32 %bits, 16
  %narrow = trunc i32 %high to i16
  %result = bitcast i16 %narrow to bfloat
  ret bfloat %result
}
)";

llvm::Expected<ObjectCode> fi::cpu::compileHalfConversions(TargetAttr target) {
  ObjectCode object;
  llvm::LLVMContext context;
  llvm::SMDiagnostic diagnostic;
  std::unique_ptr<llvm::Module> ir =
      llvm::parseAssemblyString(text, diagnostic, context);
  if (!ir)
    return llvm::createStringError("conversions of narrow floats: " +
                                   diagnostic.getMessage());
  auto machine = createMachine(target, /*optLevel=*/2);
  if (!machine)
    return machine.takeError();
  ir->setTargetTriple((*machine)->getTargetTriple());
  ir->setDataLayout((*machine)->createDataLayout());
  llvm::raw_svector_ostream os(object);
  if (llvm::Error error = emitCode(*ir, target, /*optLevel=*/2,
                                   /*asAssembly=*/false, os))
    return std::move(error);
  return object;
}
