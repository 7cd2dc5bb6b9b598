//===- CompanionTesting.h - companions on all backends ----------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_COMPANIONTESTING_H
#define FI_TEST_INTEGRATION_COMPANIONTESTING_H

#include "CompanionTexts.h"
#include "EmulatedExecutor.h"

namespace fi::test {

/// On all backends that there are.
inline void check(
    const std::string &text, std::vector<Request> requests,
    llvm::function_ref<void(Case &)> prepare = [](Case &) {}) {
  SCOPED_TRACE(text);
  static const Planned plans[] = {{1}, {3}};
  const std::pair<const char *, Case::Maker> backends[] = {
      {"cpu", {}}, {"interpreter", interpret}, {"emulated", emulate}};
  for (const auto &[name, maker] : backends) {
    SCOPED_TRACE(name);
    Case test(text, requests);
    test.setOptLevel(0);
    if (maker)
      test.on(maker);
    prepare(test);
    test.check(plans);
  }
}

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_COMPANIONTESTING_H
