//===- ThreadPool.cpp - The worker threads of the process -----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One gate word admits threads to the current job: a sequence number, an open
// bit and the number of helpers inside. The caller opens it, takes part, closes
// it, and waits until everybody has left; so a job may live on its stack.
//
//===----------------------------------------------------------------------===//
#include "ThreadPool.h"

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <system_error>
#include <thread>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fi::runtime {
namespace {

void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Rounds that an idle helper spins before it sleeps: a few tens of
/// microseconds, the time between two layers.
constexpr int32_t idleSpins = 1000;

class Pool {
public:
  ~Pool() {
    {
      std::lock_guard<std::mutex> lock(sleepMutex);
      stopping.store(true);
    }
    wake.notify_all();
    for (std::thread &thread : threads)
      thread.join();
  }

  void reserve(int32_t workers) {
    if (int32_t(reserved.load(std::memory_order_acquire)) >= workers - 1)
      return;
    std::lock_guard<std::mutex> lock(growMutex);
    while (int32_t(threads.size()) < workers - 1) {
      int32_t helper = int32_t(threads.size());
      try {
        threads.emplace_back([this, helper] { help(helper); });
      } catch (const std::system_error &) {
        break; // the caller does their share
      }
      reserved.store(int32_t(threads.size()), std::memory_order_release);
    }
  }

  void run(Job &job, int32_t workers) {
    if (workers <= 1 || !jobMutex.try_lock()) {
      job.participate(0);
      return;
    }
    std::lock_guard<std::mutex> lock(jobMutex, std::adopt_lock);
    current = &job;
    helpers.store(workers - 1, std::memory_order_relaxed);
    uint64_t sequence = (gate.load(std::memory_order_relaxed) >> 32) + 1;
    gate.store(sequence << 32 | openBit); // sequentially consistent: see help()
    if (sleepers.load() > 0) {
      // Under the mutex, a helper is either before its check or asleep.
      std::lock_guard<std::mutex> sleepLock(sleepMutex);
      wake.notify_all();
    }
    job.participate(0);
    gate.fetch_and(~openBit);
    Backoff backoff;
    while ((gate.load(std::memory_order_acquire) & insideMask) != 0)
      backoff.wait();
  }

private:
  static constexpr uint64_t openBit = uint64_t(1) << 31;
  static constexpr uint64_t insideMask = openBit - 1;

  /// True if `word` announces a job that this helper has not seen.
  bool wanted(uint64_t word, uint64_t seen, int32_t helper) const {
    return (word & openBit) && (word >> 32) != seen &&
           helper < helpers.load(std::memory_order_relaxed);
  }

  /// Enters the open job, if there is one newer than `seen`.
  bool enter(uint64_t &seen, int32_t helper) {
    uint64_t word = gate.load(std::memory_order_acquire);
    while (wanted(word, seen, helper))
      if (gate.compare_exchange_weak(word, word + 1,
                                     std::memory_order_acq_rel)) {
        seen = word >> 32;
        return true;
      }
    return false;
  }

  void help(int32_t helper) {
    uint64_t seen = 0;
    while (true) {
      bool inside = enter(seen, helper);
      for (int32_t i = 0; !inside && i < idleSpins; ++i) {
        pause();
        inside = enter(seen, helper);
      }
      if (!inside) {
        std::unique_lock<std::mutex> lock(sleepMutex);
        sleepers.fetch_add(1);
        // The caller stores the gate, then reads sleepers; this thread adds
        // itself, then reads the gate: one of them sees the other.
        wake.wait(lock, [&] {
          return stopping.load() || wanted(gate.load(), seen, helper);
        });
        sleepers.fetch_sub(1);
        if (stopping.load())
          return;
        continue;
      }
      current->participate(helper + 1);
      gate.fetch_sub(1, std::memory_order_acq_rel);
    }
  }

  std::atomic<uint64_t> gate{0};
  std::atomic<int32_t> sleepers{0};
  std::atomic<int32_t> reserved{0};
  std::atomic<bool> stopping{false};
  // Written by the caller before it opens the gate, read after seeing it open.
  Job *current = nullptr;
  std::atomic<int32_t> helpers{0};
  std::mutex jobMutex, growMutex, sleepMutex;
  std::condition_variable wake;
  std::vector<std::thread> threads;
};

/// The process's pool. After a fork the child has none of the threads: it gets
/// a new pool and leaves the old memory alone.
struct PoolHolder {
  std::atomic<Pool *> pool{new Pool};
  PoolHolder() {
    pthread_atfork(nullptr, nullptr, [] { holder().pool.store(new Pool); });
  }
  ~PoolHolder() { delete pool.load(); }
  static PoolHolder &holder() {
    static PoolHolder instance;
    return instance;
  }
};

Pool &thePool() { return *PoolHolder::holder().pool.load(); }

} // namespace

int32_t defaultWorkers() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0 && CPU_COUNT(&set) > 0)
    return CPU_COUNT(&set);
  unsigned count = std::thread::hardware_concurrency();
  return count ? int32_t(count) : 1;
}

void reserveWorkers(int32_t workers) { thePool().reserve(workers); }

void runJob(Job &job, int32_t workers) {
  if (workers <= 1) {
    job.participate(0);
    return;
  }
  Pool &pool = thePool();
  pool.reserve(workers); // does nothing, except after a fork
  pool.run(job, workers);
}

void Backoff::wait() {
  if (++rounds < 2000)
    pause();
  else
    std::this_thread::yield();
}

} // namespace fi::runtime
