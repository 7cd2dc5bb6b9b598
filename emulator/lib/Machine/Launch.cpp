//===- Launch.cpp - Scheduling blocks, warps and fragments ----------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A block runs until it is done or its turn is over, then the next; all
// resident blocks take turns. Within a block warps take turns. Within a warp
// the fragment with the lowest place in the text runs, and fragments at one
// place become one: that is where structured code reconverges. A fragment that
// goes on for long while others wait lets them pass, so that lanes may wait for
// lanes.
//
//===----------------------------------------------------------------------===//
#include "Launch.h"

#include "Async.h"
#include "Checker.h"
#include <algorithm>
#include <chrono>
#include <ctime>

namespace fi::emulator {
namespace {

constexpr int64_t blockTurn = 1 << 16;
constexpr int64_t warpTurn = 256;
constexpr int64_t fragmentTurn = 2000;
/// So often waits for mbarriers time out before nothing can be expected.
constexpr uint32_t patience = 4;

/// Of this thread; other work on the machine does not count.
double processorSeconds() {
#ifdef CLOCK_THREAD_CPUTIME_ID
  timespec t;
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0)
    return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
#endif
  return double(std::clock()) / CLOCKS_PER_SEC;
}

} // namespace

Launch::Launch(const Kernel &kernel, const Options &options, MemoryMap &memory,
               const LaunchConfig &config, uint32_t resident,
               uint32_t generation)
    : kernel(kernel), options(options), memory(memory), config(config),
      generation(generation), resident(resident),
      randomState(options.seed * 0x9e3779b97f4a7c15ull + 0x1234567) {
  uint32_t threads = config.block.x * config.block.y * config.block.z;
  warpsPerBlock = (threads + 31) / 32;
  counts.assign(kernel.code.size(), 0);
  countAccesses = options.countAccesses;
  if (options.check)
    checker = std::make_unique<Checker>(*this);
  params.resize(std::max<size_t>(config.paramBytes, 8));
  if (config.paramBytes)
    std::memcpy(params.data(), config.params, config.paramBytes);
  trackStart.assign(kernel.code.size() + 1, 0);
  for (const Kernel::Tracked &t : kernel.tracked)
    ++trackStart[t.inst + 1];
  for (size_t i = 1; i < trackStart.size(); ++i)
    trackStart[i] += trackStart[i - 1];
}

Launch::~Launch() = default;

uint64_t Launch::random() {
  // splitmix64
  uint64_t z = randomState += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

//===- Reports ------------------------------------------------------------===//

Place Launch::placeOf(uint32_t inst) const {
  Place place;
  const AstInst *ast = kernel.source[inst];
  const PtxModule &module = kernel.module->ast;
  place.ptxLine = ast->line;
  if (ast->line) {
    size_t at = 0;
    for (uint32_t i = 1; i < ast->line && at != std::string::npos; ++i) {
      at = module.text.find('\n', at);
      at = at == std::string::npos ? at : at + 1;
    }
    if (at != std::string::npos) {
      size_t end = module.text.find('\n', at);
      place.ptx = module.text.substr(at, end - at);
      size_t first = place.ptx.find_first_not_of(" \t");
      place.ptx.erase(0, first == std::string::npos ? place.ptx.size() : first);
      while (!place.ptx.empty() &&
             (place.ptx.back() == '\r' || place.ptx.back() == ' '))
        place.ptx.pop_back();
    }
  }
  auto fileOf = [&](uint32_t index) {
    auto it = module.files.find(index);
    return it == module.files.end() ? std::string() : it->second;
  };
  int32_t loc = ast->loc;
  if (loc >= 0 && module.locations[size_t(loc)].line != 0) {
    const SourceLoc &l = module.locations[size_t(loc)];
    place.file = fileOf(l.file);
    place.line = l.line;
    place.column = l.column;
    int32_t outer = l.inlinedAt;
    for (int n = 0; outer >= 0 && n < 32; ++n) {
      const SourceLoc &o = module.locations[size_t(outer)];
      place.inlinedAt.push_back(fileOf(o.file) + ":" + std::to_string(o.line));
      outer = o.inlinedAt;
    }
  }
  return place;
}

bool Launch::fatal(ReportKind kind) const {
  switch (kind) {
  case ReportKind::Divergence:
  case ReportKind::BarrierMisuse:
  case ReportKind::Deadlock:
  case ReportKind::StepLimit:
  case ReportKind::InvalidInstruction:
  case ReportKind::Trap:
  case ReportKind::MbarrierFault:
  case ReportKind::RegisterFault:
    return true;
  case ReportKind::OutOfBounds:
  case ReportKind::Misaligned:
    return !options.check;
  default:
    return false;
  }
}

void Launch::addReport(Warp &warp, uint32_t inst, ReportKind kind,
                       uint32_t mask, std::string message, uint64_t address,
                       int64_t other) {
  auto key = std::make_tuple(int(kind), inst, other);
  auto [it, isNew] = reportIndex.try_emplace(key, reports.size());
  if (!isNew) {
    ++reports[it->second].count;
  } else if (reports.size() < options.maxReports) {
    Report r;
    r.kind = kind;
    r.message = std::move(message);
    r.place = placeOf(inst);
    if (other >= 0) {
      r.hasOther = true;
      r.other = placeOf(uint32_t(other));
    }
    r.kernel = std::string(kernel.function->name);
    r.block = {warp.cta->id[0], warp.cta->id[1], warp.cta->id[2]};
    r.warp = warp.index;
    r.lanes = mask;
    uint32_t t = warp.index * 32 + (mask ? uint32_t(__builtin_ctz(mask)) : 0);
    r.thread = {t % config.block.x, t / config.block.x % config.block.y,
                t / config.block.x / config.block.y};
    r.address = address;
    reports.push_back(std::move(r));
  } else {
    it->second = reports.size() - 1;
    stopped = true;
  }
  if (fatal(kind) || options.stopAtFirst)
    stopped = true;
  warp.limit = 0;
}

void report(Warp &warp, const Inst &in, int kind, uint32_t mask,
            const std::string &message) {
  warp.launch->addReport(warp, warp.instIndex(in), ReportKind(kind), mask,
                         message);
}

std::string Launch::describePosition(const Warp &warp) const {
  std::string text = "warp " + std::to_string(warp.index) + ":";
  for (const Fragment &f : warp.fragments) {
    uint32_t pc = f.pc;
    if (f.wait == Wait::Barrier && pc > 0)
      --pc;
    text += " lanes " + hex32(f.mask) + " at ";
    if (pc >= kernel.code.size()) {
      text += "the end";
      continue;
    }
    Place place = placeOf(pc);
    text +=
        "PTX line " + std::to_string(place.ptxLine) + " (" + place.ptx + ")";
    if (place.line)
      text += " [" + place.file + ":" + std::to_string(place.line) + "]";
    text += describeWait(warp, f) + ";";
  }
  return text;
}

std::string Launch::describeWait(const Warp &w, const Fragment &f) const {
  if (f.wait == Wait::Registers)
    return ", waiting for registers: " + std::to_string(w.cta->freeRegisters) +
           " a thread of a warp are free";
  if (f.wait == Wait::Products)
    return ", waiting for the other warps of the warpgroup to issue a product";
  if (f.wait != Wait::Mbarrier)
    return {};
  const Mbarrier *m =
      w.cta->mbarriers ? w.cta->mbarriers->find(f.barrier) : nullptr;
  return ", waiting for " + (m ? describe(*m) : "several mbarriers");
}

void Launch::deadlock(Cta &cta) {
  // Waits that timed out stand where they stood.
  for (Warp &w : cta.warps)
    for (Fragment &f : w.fragments)
      if (f.timedOut && f.wait == Wait::None)
        f.wait = Wait::Mbarrier;
  std::string text = "no warp of the block can go on:";
  Warp *first = nullptr;
  size_t shown = 0;
  for (Warp &w : cta.warps) {
    if (!w.alive)
      continue;
    if (!first)
      first = &w;
    if (shown++ < 64)
      text += "\n    " + describePosition(w);
  }
  uint32_t exited = uint32_t(cta.warps.size()) - cta.liveWarps;
  if (exited)
    text += "\n    " + std::to_string(exited) + " warps have exited";
  const Fragment &f = first->fragments.front();
  uint32_t pc = f.wait == Wait::Barrier && f.pc ? f.pc - 1 : f.pc;
  addReport(*first, std::min(pc, uint32_t(kernel.code.size() - 1)),
            ReportKind::Deadlock, f.mask, text);
}

template <bool Track> void Launch::runWarp(Warp &w, int64_t quantum) {
  const Inst *code = kernel.code.data();
  uint64_t *count = counts.data();
  int64_t left = quantum;
  while (left > 0 && w.alive && !stopped && !w.yielded) {
    if (!select(w))
      return;
    int64_t slice =
        w.fragments.size() > 1 ? std::min(left, fragmentTurn) : left;
    int64_t n = slice;
    turnLength = slice;
    turn = &n;
    do {
      uint32_t pc = w.pc;
      const Inst &in = code[pc];
      w.pc = pc + 1;
      ++count[pc];
      uint32_t m = w.active;
      if (in.guard != noGuard)
        m &= w.pred(in.guard);
      if constexpr (Track) {
        trackRegisters(w, pc, m);
        if (!kernel.touches.empty())
          trackProducts(w, pc);
      }
      if (m)
        in.fn(w, in, m);
      --n;
    } while (w.pc < w.limit && n > 0);
    turn = nullptr;
    left -= slice - n;
    steps += uint64_t(slice - n);
    if (!w.alive)
      break;
    Fragment &f = w.fragments[w.current];
    f.pc = w.pc;
    f.mask = w.active;
    f.wait = w.wait;
    f.members = w.waitMembers;
    f.barrier = w.waitBarrier;
    f.expired = n <= 0 && w.fragments.size() > 1;
    w.wait = Wait::None;
    if (!f.mask) {
      f = w.fragments.back();
      w.fragments.pop_back();
    }
  }
}

void Launch::trackRegisters(Warp &w, uint32_t pc, uint32_t mask) {
  uint32_t begin = trackStart[pc], end = trackStart[pc + 1];
  if (begin == end)
    return;
  for (uint32_t i = begin; i < end; ++i) {
    const Kernel::Tracked &t = kernel.tracked[i];
    uint32_t &written = w.writtenRegisters[t.index];
    if (t.write) {
      written |= mask;
    } else if (mask & ~written) {
      addReport(w, pc, ReportKind::UninitializedRegister, mask & ~written,
                "register '" + kernel.trackedNames[t.index] +
                    "' is read before it is written");
      written |= mask;
      w.limit = 0;
    }
  }
}

//===- Blocks -------------------------------------------------------------===//

void Launch::start(Cta &cta, uint64_t linear) {
  cta.linear = uint32_t(linear);
  cta.id[0] = uint32_t(linear % config.grid.x);
  cta.id[1] = uint32_t(linear / config.grid.x % config.grid.y);
  cta.id[2] = uint32_t(linear / config.grid.x / config.grid.y);
  uint32_t threads = config.block.x * config.block.y * config.block.z;
  uint32_t total = kernel.dynamicOffset() + config.dynamicShared;
  // 0xff bytes: NaNs in every format, so that what was not written shows.
  cta.sharedMemory.assign(total + 16, 0xff);
  cta.shared =
      cta.sharedMemory.data() +
      (16 - reinterpret_cast<uintptr_t>(cta.sharedMemory.data()) % 16) % 16;
  cta.sharedBytes = total;
  cta.localMemory.assign(size_t(kernel.localBytes) * 32 * warpsPerBlock, 0xff);
  size_t words = size_t(kernel.slots) * 32;
  cta.registers.resize(words * warpsPerBlock + 16);
  cta.predicates.assign(size_t(kernel.predicates) * warpsPerBlock, 0);
  cta.barriers.assign(16, Barrier());
  cta.mbarriers.reset();
  cta.async.reset();
  cta.freeRegisters = cta.idleRounds = 0;
  cta.warps.resize(warpsPerBlock);
  cta.liveWarps = warpsPerBlock;
  cta.nextWarp = 0;
  uint32_t *base =
      cta.registers.data() +
      (64 - reinterpret_cast<uintptr_t>(cta.registers.data()) % 64) % 64 / 4;
  for (uint32_t i = 0; i < warpsPerBlock; ++i) {
    Warp &w = cta.warps[i];
    w = Warp();
    w.regs = base + words * i;
    w.preds = cta.predicates.data() + size_t(kernel.predicates) * i;
    w.preds[1] = fullMask;
    w.index = i;
    w.cta = &cta;
    w.launch = this;
    w.observed = checker || countAccesses;
    w.maxRegisters = firstRegisters();
    w.code = kernel.code.data();
    w.local = cta.localMemory.data() + size_t(kernel.localBytes) * 32 * i;
    uint32_t lanes = std::min(32u, threads - i * 32);
    w.launched = lanes == 32 ? fullMask : (1u << lanes) - 1;
    w.alive = w.active = w.launched;
    Fragment f;
    f.mask = w.launched;
    w.fragments.push_back(f);
    std::fill(w.regs, w.regs + size_t(kernel.registerSlots) * 32, 0xfffdead5u);
    std::copy(kernel.constants.begin(), kernel.constants.end(),
              w.regs + size_t(kernel.registerSlots) * 32);
    w.writtenRegisters.assign(kernel.trackedNames.size(), 0);
    for (const Kernel::SpecialSlot &s : kernel.specials)
      for (uint32_t lane = 0; lane < 32; ++lane) {
        uint64_t v = specialValue(w, uint32_t(s.which), lane);
        if (s.wide)
          w.r64(s.slot)[lane] = v;
        else
          w.r32(s.slot)[lane] = uint32_t(v);
      }
  }
  if (checker)
    checker->startBlock(cta);
}

/// What the compiler gives a thread where setmaxnreg may be used; 0: unknown.
uint32_t Launch::firstRegisters() const {
  const PtxFunction &f = *kernel.function;
  if (f.maxRegisters)
    return f.maxRegisters;
  const uint32_t *t = f.reqThreads[0] ? f.reqThreads : f.maxThreads;
  uint64_t threads = uint64_t(t[0]) * t[1] * t[2];
  if (!f.minBlocks || !threads)
    return 0;
  return uint32_t(
      std::min<uint64_t>(256, 65536 / (threads * f.minBlocks) / 8 * 8));
}

uint64_t specialValue(Warp &w, uint32_t which, uint32_t lane) {
  const Launch &l = *w.launch;
  uint32_t t = w.index * 32 + lane;
  Dim3 b = l.config.block, g = l.config.grid;
  switch (Special(which)) {
  case Special::TidX:
    return t % b.x;
  case Special::TidY:
    return t / b.x % b.y;
  case Special::TidZ:
    return t / b.x / b.y;
  case Special::NtidX:
    return b.x;
  case Special::NtidY:
    return b.y;
  case Special::NtidZ:
    return b.z;
  case Special::CtaidX:
    return w.cta->id[0];
  case Special::CtaidY:
    return w.cta->id[1];
  case Special::CtaidZ:
    return w.cta->id[2];
  case Special::NctaidX:
    return g.x;
  case Special::NctaidY:
    return g.y;
  case Special::NctaidZ:
    return g.z;
  case Special::Laneid:
    return lane;
  case Special::Warpid:
    return w.index;
  case Special::Nwarpid:
    return l.options.threadsPerMultiprocessor / 32;
  case Special::Smid:
    return w.cta->slot % l.options.multiprocessors;
  case Special::Nsmid:
    return l.options.multiprocessors;
  case Special::Gridid:
    return l.generation;
  case Special::LanemaskEq:
    return 1u << lane;
  case Special::LanemaskLe:
    return lane == 31 ? fullMask : (2u << lane) - 1;
  case Special::LanemaskLt:
    return (1u << lane) - 1;
  case Special::LanemaskGe:
    return fullMask << lane;
  case Special::LanemaskGt:
    return lane == 31 ? 0 : fullMask << (lane + 1);
  case Special::DynamicSmem:
    return l.config.dynamicShared;
  case Special::TotalSmem:
    return w.cta->sharedBytes;
  case Special::WarpSize:
    return 32;
  case Special::One:
    return 1;
  case Special::Zero:
    return 0;
  case Special::Clock:
  case Special::GlobalTimerLo:
    return uint32_t(l.time());
  case Special::ClockHi:
  case Special::GlobalTimerHi:
    return l.time() >> 32;
  case Special::Clock64:
  case Special::GlobalTimer:
    return l.time();
  }
  return 0;
}

void Launch::warpExited(Warp &w) {
  // Copies in flight end with the warp.
  waitCopies(w, kernel.code[0], fullMask, 0);
  wgmmaEnd(w);
  w.fragments.clear();
  if (--w.cta->liveWarps == 0)
    endAsync(*w.cta);
  checkBarriers(*w.cta);
}

bool Launch::runCta(Cta &cta, int64_t budget) {
  uint64_t end = steps + uint64_t(budget);
  bool track =
      checker && !(kernel.trackedNames.empty() && kernel.touches.empty());
  while (cta.liveWarps && !stopped && steps < end) {
    bool ran = false, yielded = false;
    for (uint32_t i = 0; i < cta.warps.size() && !stopped; ++i) {
      uint32_t at = cta.nextWarp;
      cta.nextWarp = (at + 1) % uint32_t(cta.warps.size());
      if (options.seed)
        at = uint32_t((at + random() % cta.warps.size()) % cta.warps.size());
      Warp &w = cta.warps[at];
      if (!w.alive)
        continue;
      uint64_t before = steps;
      int64_t turn = options.seed ? int64_t(1 + random() % warpTurn) : warpTurn;
      w.yielded = false;
      if (track)
        runWarp<true>(w, turn);
      else
        runWarp<false>(w, turn);
      ran |= steps != before;
      yielded |= w.yielded;
      if (cta.async && steps >= cta.async->nextDue && cta.liveWarps)
        completeDue(cta);
    }
    if (options.stepLimit && steps > options.stepLimit && !stopped &&
        cta.liveWarps) {
      for (Warp &w : cta.warps)
        if (w.alive) {
          const Fragment &f = w.fragments.front();
          addReport(w, std::min(f.pc, uint32_t(kernel.code.size() - 1)),
                    ReportKind::StepLimit, f.mask,
                    "the launch has run " + std::to_string(steps) +
                        " warp instructions; " + describePosition(w));
          break;
        }
      return false;
    }
    if (!ran && cta.liveWarps && !stopped) {
      // A round of a seeded order may miss the only warp that can go on.
      bool any = false;
      for (Warp &w : cta.warps)
        if (w.alive && !stopped) {
          uint64_t before = steps;
          w.yielded = false;
          if (track)
            runWarp<true>(w, 1);
          else
            runWarp<false>(w, 1);
          any |= steps != before;
        }
      if (!any && cta.liveWarps && !stopped && !completeOne(cta)) {
        idle(cta);
        break;
      }
    }
    // Warps that sleep wait for what another block does.
    if (yielded)
      break;
  }
  return cta.liveWarps == 0;
}

void Launch::idle(Cta &cta) {
  bool timed = false;
  for (Warp &w : cta.warps)
    for (Fragment &f : w.fragments)
      if (f.wait == Wait::Mbarrier) {
        // A try_wait ends some time, with or without the phase.
        f.wait = Wait::None;
        f.timedOut = timed = true;
      }
  if (timed && cta.idleRounds < patience) {
    ++cta.idleRounds;
    return;
  }
  if (!timed) {
    deadlock(cta);
    stopped = true;
  }
}

LaunchResult Launch::run() {
  auto begin = std::chrono::steady_clock::now();
  double beginProcessor = processorSeconds();
  LaunchResult result;
  uint64_t blocks = uint64_t(config.grid.x) * config.grid.y * config.grid.z;
  uint64_t next = 0;
  std::vector<Cta *> active, idle;
  std::vector<uint64_t> order;
  if (options.seed) {
    // Blocks begin in any order.
    order.resize(blocks);
    for (uint64_t i = 0; i < blocks; ++i)
      order[i] = i;
    for (uint64_t i = blocks; i > 1; --i)
      std::swap(order[i - 1], order[random() % i]);
  }
  size_t turn = 0;
  while (!stopped && (next < blocks || !active.empty())) {
    Cta *cta;
    if (turn >= active.size()) {
      if (next < blocks && active.size() < resident) {
        if (idle.empty()) {
          pool.push_back(std::make_unique<Cta>());
          pool.back()->slot = uint32_t(pool.size() - 1);
          idle.push_back(pool.back().get());
        }
        cta = idle.back();
        idle.pop_back();
        start(*cta, order.empty() ? next : order[next]);
        ++next;
        active.push_back(cta);
        turn = active.size() - 1;
      } else {
        turn = 0;
        continue;
      }
    }
    cta = active[turn];
    if (runCta(*cta, blockTurn)) {
      active.erase(active.begin() + int64_t(turn));
      idle.push_back(cta);
    } else {
      ++turn;
      // Another block may still do what this one waits for.
      bool stuck = next >= blocks || active.size() >= resident;
      for (const Cta *c : active)
        stuck &= c->idleRounds >= patience;
      if (stuck && !stopped) {
        deadlock(*cta);
        stopped = true;
      }
    }
  }
  finishStatistics();
  statistics.seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  statistics.processorSeconds = processorSeconds() - beginProcessor;
  result.statistics = std::move(statistics);
  result.reports = std::move(reports);
  for (const Report &r : result.reports)
    if (fatal(r.kind) && result.error.empty())
      result.error = r.str();
  return result;
}

void Launch::finishStatistics() {
  std::map<std::string, uint64_t> by;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (!counts[i])
      continue;
    statistics.warpInstructions += counts[i];
    const AstInst &ast = *kernel.source[i];
    std::string name(ast.mnemonic);
    if (name == "ld" || name == "st" || name == "atom" || name == "red" ||
        name == "cp")
      for (std::string_view m : ast.modifiers)
        if (m == "global" || m == "shared" || m == "shared::cta" ||
            m == "local" || m == "param" || m == "const" || m == "async") {
          name += "." + std::string(m == "shared::cta" ? "shared" : m);
          break;
        }
    by[name] += counts[i];
  }
  for (auto &[name, n] : by)
    statistics.byMnemonic.push_back({name, n});
}

} // namespace fi::emulator
