//===- Launch.h - One launch of a kernel ------------------------*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef FI_EMULATOR_MACHINE_LAUNCH_H
#define FI_EMULATOR_MACHINE_LAUNCH_H

#include "../Decode/Kernel.h"
#include "Memory.h"
#include "fi-emulator/Emulator.h"
#include <map>
#include <unordered_map>

namespace fi::emulator {

class Checker;
struct AsyncOp;
struct Mbarrier;
std::string hex32(uint32_t value);
constexpr uint32_t anyMbarrier = ~uint32_t(0);

/// Ends the cp.async of lanes that were issued before; `by`: the mbarrier that
/// tells of them.
void finishCopiesBefore(Warp &warp, uint32_t mask, uint32_t serial,
                        const Mbarrier *by);

/// Runs all blocks of a grid. Blocks are resident in order and take turns, so
/// that blocks that wait for each other make progress as on hardware.
class Launch {
public:
  Launch(const Kernel &kernel, const Options &options, MemoryMap &memory,
         const LaunchConfig &config, uint32_t resident, uint32_t generation);
  ~Launch();

  LaunchResult run();

  // For handlers, through the functions of Exec.h.
  void addReport(Warp &warp, uint32_t inst, ReportKind kind, uint32_t mask,
                 std::string message, uint64_t address = 0, int64_t other = -1);
  bool fatal(ReportKind kind) const;
  uint64_t random();

  const Kernel &kernel;
  const Options &options;
  MemoryMap &memory;
  const LaunchConfig &config;
  uint32_t generation;
  uint32_t warpsPerBlock = 0;
  std::unique_ptr<Checker> checker;
  bool countAccesses = false;
  bool stopped = false;
  Statistics statistics;
  std::vector<uint64_t> counts; // by instruction
  std::vector<uint8_t> params;
  uint64_t steps = 0;
  /// What time registers say: warp instructions of the device, those of earlier
  /// launches among them.
  uint64_t time() const {
    return startTime + steps + (turn ? uint64_t(turnLength - *turn) : 0);
  }
  uint64_t startTime = 0;

  Place placeOf(uint32_t inst) const;
  std::string describePosition(const Warp &warp) const;
  void wakeRegisters(Cta &cta);
  void warpExited(Warp &warp);
  void completeBarrier(Cta &cta, uint32_t id);
  void checkBarriers(Cta &cta);

  // mbarriers and bulk copies.
  void checkPhase(Cta &cta, Mbarrier &barrier);
  void arriveAt(Warp &warp, const Inst &in, unsigned lane, Mbarrier &barrier,
                uint32_t count, bool noComplete);
  void issueAsync(Warp &warp, AsyncOp &&op);
  void complete(Cta &cta, size_t index);
  /// The arrivals at mbarriers after the cp.async of a warp.
  void completeArrivals(Warp &warp);
  uint32_t failedTests = 0;

private:
  bool completeOne(Cta &cta);
  void completeDue(Cta &cta);
  void endAsync(Cta &cta);
  void idle(Cta &cta);
  uint32_t firstRegisters() const;
  std::string describeWait(const Warp &warp, const Fragment &fragment) const;
  void start(Cta &cta, uint64_t linear);
  bool runCta(Cta &cta, int64_t budget);
  template <bool Track> void runWarp(Warp &warp, int64_t quantum);
  /// Of the warp that runs: instructions of its turn, and what is left of them.
  int64_t turnLength = 0;
  const int64_t *turn = nullptr;
  bool select(Warp &warp);
  void deadlock(Cta &cta);
  void trackRegisters(Warp &warp, uint32_t pc, uint32_t mask);
  void trackProducts(Warp &warp, uint32_t pc);
  void finishStatistics();

  uint32_t resident;
  uint64_t randomState;
  std::vector<Report> reports;
  std::map<std::tuple<int, uint32_t, int64_t>, size_t> reportIndex;
  std::string error;
  std::vector<uint32_t> trackStart; // by instruction
  std::vector<std::unique_ptr<Cta>> pool;
};

} // namespace fi::emulator

#endif // FI_EMULATOR_MACHINE_LAUNCH_H
