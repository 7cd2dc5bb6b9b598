//===- Parallel.cpp - work side by side -----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Support/Parallel.h"
#include "llvm/Support/Threading.h"
#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

void fi::parallelFor(size_t count, llvm::function_ref<void(size_t)> work,
                     size_t threads) {
  std::atomic<size_t> next = 0;
  auto take = [&] {
    for (size_t i; (i = next++) < count;)
      work(i);
  };
  if (threads == 0)
    threads = llvm::hardware_concurrency().compute_thread_count();
  std::vector<std::thread> others;
  for (size_t i = 1; i < std::min(count, threads); ++i)
    others.emplace_back(take);
  take();
  for (std::thread &other : others)
    other.join();
}
