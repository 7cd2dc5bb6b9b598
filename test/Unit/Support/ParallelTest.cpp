//===- ParallelTest.cpp - work side by side -------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Parallel.h"
#include "gtest/gtest.h"
#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

using namespace fi;

namespace {

TEST(Parallel, EachNumberOnce) {
  for (size_t count : {0, 1, 2, 100})
    for (size_t threads : {0, 1, 3, 200}) {
      std::vector<std::atomic<int>> calls(count);
      parallelFor(count, [&](size_t i) { ++calls[i]; }, threads);
      for (std::atomic<int> &call : calls)
        EXPECT_EQ(call, 1) << count << " on " << threads;
    }
}

// A thread alone is the caller's; of several each waits for the others here.
TEST(Parallel, ThreadsAsAsked) {
  std::mutex mutex;
  std::set<std::thread::id> ids;
  parallelFor(
      50,
      [&](size_t) {
        std::lock_guard<std::mutex> lock(mutex);
        ids.insert(std::this_thread::get_id());
      },
      1);
  EXPECT_EQ(ids, std::set<std::thread::id>{std::this_thread::get_id()});

  std::atomic<int> arrived = 0;
  parallelFor(
      3,
      [&](size_t) {
        ++arrived;
        while (arrived < 3)
          std::this_thread::yield();
      },
      3);
  EXPECT_EQ(arrived, 3);
}

} // namespace
