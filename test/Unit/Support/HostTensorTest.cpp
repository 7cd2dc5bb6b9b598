//===- HostTensorTest.cpp - elements of tensors in memory -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/HostTensor.h"
#include "gtest/gtest.h"
#include <cmath>
#include <limits>

using namespace fi;

/// Any float has a whole number: no conversion is undefined.
TEST(HostTensor, WholeNumbersOfFloats) {
  auto read = [](double number, DType type) {
    char memory[8];
    writeFloat(memory, type, number);
    return readInteger(memory, type);
  };
  for (DType type : {DType::F32, DType::F64}) {
    EXPECT_EQ(read(-2.5, type), -2);
    EXPECT_EQ(read(0x1p64, type), std::numeric_limits<int64_t>::max());
    EXPECT_EQ(read(0x1p63, type), std::numeric_limits<int64_t>::max());
    EXPECT_EQ(read(-0x1p63, type), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(read(-INFINITY, type), std::numeric_limits<int64_t>::min());
    EXPECT_EQ(read(NAN, type), 0);
  }
  EXPECT_EQ(read(INFINITY, DType::F8E5M2), std::numeric_limits<int64_t>::max());
}
