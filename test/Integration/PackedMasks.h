//===- PackedMasks.h - masks of a bit for each row and key ------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_INTEGRATION_PACKEDMASKS_H
#define FI_TEST_INTEGRATION_PACKEDMASKS_H

#include "IntegrationTesting.h"
#include "fi/Support/Random.h"

namespace fi::test {

/// Bits of words of either width, one for each row and key, behind others and
/// beyond the end, alone and with a window: positions may lie before the first
/// bit.
inline void checkPackedMasks(AttentionText text, const std::string &tiles,
                             const std::vector<Request> &requests,
                             llvm::function_ref<void(Case &)> prepare,
                             llvm::ArrayRef<Planned> plans) {
  struct Words {
    const char *type, *width;
    DType stored;
  };
  for (const Words &words :
       {Words{"i32", "32", DType::I32}, Words{"i8", "8", DType::I8}})
    for (const char *masks : {"", "mask(#fi.window<left = 40, right = 3>)"}) {
      SCOPED_TRACE(std::string(words.type) + " " + masks);
      std::string word = words.type, type = "tensor<?x" + word + ">";
      text.clauses =
          "captures(%w = %words : " + type +
          ", %b = %begin : tensor<?xi32>)\n" + masks +
          maskRegion("%first = fi.load %b[%req] : tensor<?xi32>\n"
                     "%start = arith.index_cast %first : i32 to index\n"
                     "%keys = arith.constant 71 : index\n"
                     "%before = arith.muli %qp, %keys : index\n"
                     "%row = arith.addi %start, %before : index\n"
                     "%bit = arith.addi %row, %kp : index\n"
                     "%width = arith.constant " +
                     std::string(words.width) +
                     " : index\n"
                     "%at = arith.divui %bit, %width : index\n"
                     "%in = arith.remui %bit, %width : index\n"
                     "%by = arith.index_cast %in : index to " +
                     word + "\n%read = fi.load %w[%at] : " + type +
                     "\n%moved = arith.shrui %read, %by : " + word +
                     "\n%m = arith.trunci %moved : " + word +
                     " to i1\nfi.yield %m : i1") +
          tiles;
      text.planArguments = ", %begin: tensor<?xi32>";
      text.runArguments = ", %words: " + type;
      Case test(text.get(), requests);
      test.give("begin", integers({-1000, 0, 5, 3000, 64, 31}));
      Random random(11);
      // Too few for the last rows.
      HostTensor bits(words.stored, {900});
      for (int64_t i = 0; i < bits.getNumElements(); ++i)
        bits.setInteger({i}, static_cast<int32_t>(random.next()));
      test.give("words", bits);
      prepare(test);
      test.check(plans);
    }
}

} // namespace fi::test

#endif // FI_TEST_INTEGRATION_PACKEDMASKS_H
