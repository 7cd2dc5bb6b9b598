//===- ThreadPool.h - The worker threads of the process --------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Persistent threads that help the calling thread through one job at a time. A
// job must be correct with any number of participants, the caller alone
// included: threads that wake late or are busy with another caller's job cost
// speed only.
//
//===----------------------------------------------------------------------===//
#ifndef FI_RUNTIME_LAUNCH_THREADPOOL_H
#define FI_RUNTIME_LAUNCH_THREADPOOL_H

#include <cstdint>

namespace fi::runtime {

/// CPUs that this process may use.
int32_t defaultWorkers();

/// Makes sure that threads for jobs of that many workers exist, as far as the
/// system gives them.
void reserveWorkers(int32_t workers);

/// Work that several threads share. `participate` is called once by each thread
/// that takes part, with different numbers below `workers`; the caller has 0.
class Job {
public:
  virtual void participate(int32_t participant) = 0;

protected:
  ~Job() = default;
};

/// Runs the job and returns when no thread takes part any more. If the threads
/// are busy with another job, the caller does it alone.
void runJob(Job &job, int32_t workers);

/// One round of waiting for another thread: spins first, then yields.
class Backoff {
public:
  void wait();

private:
  int32_t rounds = 0;
};

} // namespace fi::runtime

#endif // FI_RUNTIME_LAUNCH_THREADPOOL_H
