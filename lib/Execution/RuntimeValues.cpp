//===- RuntimeValues.cpp - values of backends for the runtime -----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "fi/Execution/RuntimeValues.h"
#include "fi/Support/RuntimeTypes.h"

using namespace fi;
using llvm::createStringError;
using llvm::Error;
using llvm::StringRef;

Error fi::toRuntimeTensor(const HostTensor &from, StringRef what,
                          fi_tensor &to) {
  std::optional<fi_dtype> type = toRuntimeType(from.getType());
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
