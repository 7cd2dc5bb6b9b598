//===- RuntimeValues.cpp - values of backends for the runtime -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "fi/Execution/RuntimeValues.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

/// The runtime has no f64.
static std::optional<fi_dtype> toRuntime(DType type) {
  switch (type) {
  case DType::F32:
    return FI_F32;
  case DType::F16:
    return FI_F16;
  case DType::BF16:
    return FI_BF16;
  case DType::I32:
    return FI_I32;
  case DType::I64:
    return FI_I64;
  case DType::I8:
    return FI_I8;
  case DType::I1:
    return FI_I1;
  case DType::F8E4M3FN:
    return FI_F8E4M3FN;
  case DType::F8E5M2:
    return FI_F8E5M2;
  case DType::F8E8M0FNU:
    return FI_F8E8M0FNU;
  case DType::F64:
    break;
  }
  return std::nullopt;
}

Error fi::toRuntimeTensor(const HostTensor &from, StringRef what,
                          fi_tensor &to) {
  std::optional<fi_dtype> type = toRuntime(from.getType());
  if (!type)
    return createStringError("'" + what + "': the runtime has no " +
                             fi::getName(from.getType()));
  to = {from.getData(), *type, static_cast<int32_t>(from.getRank()),
        from.getShape().data(), from.getStrides().data()};
  return Error::success();
}

Error fi::toRuntimeValues(const Signature &signature,
                          llvm::ArrayRef<HostValue> arguments, bool isPlan,
                          llvm::SmallVectorImpl<fi_value> &out) {
  for (auto [info, argument] : llvm::zip(signature.arguments, arguments)) {
    if (info.isPlan != isPlan)
      continue;
    fi_value value = {};
    switch (argument.getKind()) {
    case HostValue::Kind::Tensor:
      value.kind = FI_VALUE_TENSOR;
      if (Error error =
              toRuntimeTensor(argument.getTensor(), info.name, value.as.tensor))
        return error;
      break;
    case HostValue::Kind::Float:
      value.kind = FI_VALUE_FLOAT;
      value.as.f32 = static_cast<float>(argument.getNumber());
      break;
    case HostValue::Kind::Integer:
      value.kind = FI_VALUE_INTEGER;
      value.as.i64 = argument.getInteger();
      break;
    }
    out.push_back(value);
  }
  return Error::success();
}
