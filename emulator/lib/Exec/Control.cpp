//===- Control.cpp - Branches, barriers and fences ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "fi-emulator/Emulator.h"

#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

void bra(Warp &w, const Inst &in, uint32_t m) { branch(w, m, in.aux); }
void buildBra(Builder &b) { b.inst.fn = bra; }

void brx(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *index = w.r32(in.o[0]);
  uint32_t targets[32] = {};
  for (unsigned i = 0; i < 32; ++i)
    if (m >> i & 1) {
      if (index[i] >= uint64_t(in.imm)) {
        report(w, in, int(ReportKind::InvalidInstruction), 1u << i,
               "index " + std::to_string(index[i]) +
                   " of 'brx.idx' is beyond the " + std::to_string(in.imm) +
                   " targets");
        return;
      }
      targets[i] = in.list[index[i]];
    }
  diverge(w, targets, m);
}
void buildBrx(Builder &b) { b.inst.fn = brx; }

void exitHandler(Warp &w, const Inst &, uint32_t m) { exitLanes(w, m); }
void buildExit(Builder &b) { b.inst.fn = exitHandler; }

void trap(Warp &w, const Inst &in, uint32_t m) {
  report(w, in, int(ReportKind::Trap), m, "trap");
}
void buildTrap(Builder &b) { b.inst.fn = trap; }

void nothing(Warp &, const Inst &, uint32_t) {}
void buildNothing(Builder &b) { b.inst.fn = nothing; }
/// Gives way to other warps.
void pause(Warp &w, const Inst &, uint32_t) {
  w.limit = 0;
  w.yielded = true;
}
void buildPause(Builder &b) { b.inst.fn = pause; }

/// Calls of functions without a body: what nvcc's runtime would print.
void callExtern(Warp &w, const Inst &in, uint32_t m) {
  report(w, in, int(ReportKind::Trap), m,
         in.aux ? "an assertion of the kernel failed"
                : "the function called here has no body");
}
void buildCall(Builder &b) {
  for (const Operand &op : b.ast.operands)
    if (op.kind == Operand::Name) {
      if (op.name != "__assertfail")
        return b.fail("function '" + std::string(op.name) +
                      "' has no body in this module");
      b.inst.aux = 1;
    }
  b.inst.fn = callExtern;
}

//===- Barriers -----------------------------------------------------------===//

// o: [d,] id, [count]. flags Aligned; aux: 0 sync, 1 arrive, 2 popc, 3 and, 4
// or.
void barrier(Warp &w, const Inst &in, uint32_t m) {
  if (in.flags & Inst::Aligned) {
    // Lanes that have exited or were never launched do not count.
    if (w.alive & ~m) {
      block(w, Wait::Converge, w.alive);
      return;
    }
  }
  bool red = in.aux >= 2;
  const uint32_t *o = in.ops() + (red ? 1 : 0);
  unsigned lane = unsigned(__builtin_ctz(m));
  uint32_t id = w.r32(o[0])[lane];
  bool counted = in.count;
  uint32_t count = counted ? w.r32(o[1])[lane] : 0;
  uint32_t p = red ? w.pred(o[counted ? 2 : 1]) : 0;
  barrierArrive(w, in, m, id, count, counted, in.aux != 1, red, p);
}
void buildBarrier(Builder &b) {
  std::string_view kind;
  bool aligned = b.ast.mnemonic == "bar";
  for (std::string_view g : b.match.groups) {
    if (g == "aligned")
      aligned = true;
    if (g == "sync" || g == "arrive" || g == "popc" || g == "and" || g == "or")
      kind = g;
  }
  b.inst.aux = kind == "sync"     ? 0
               : kind == "arrive" ? 1
               : kind == "popc"   ? 2
               : kind == "and"    ? 3
                                  : 4;
  bool red = b.inst.aux >= 2;
  size_t operands = b.ast.operands.size() - (red ? 2 : 0);
  b.inst.count = operands == 2;
  if (red && !b.inst.count)
    b.inst.o[2] = b.slots[2];
  if (aligned)
    b.inst.flags |= Inst::Aligned;
  b.inst.fn = barrier;
}

void warpBarrier(Warp &w, const Inst &in, uint32_t m) {
  const uint32_t *mask = w.r32(in.o[0]);
  uint32_t who = mask[__builtin_ctz(m)] & w.alive;
  if (who & ~m) {
    block(w, Wait::WarpBarrier, who);
    return;
  }
  warpSynced(w, m);
}
void buildWarpBarrier(Builder &b) { b.inst.fn = warpBarrier; }

/// aux: 0 cta, 1 gpu and beyond.
void fenceHandler(Warp &w, const Inst &in, uint32_t m) { fence(w, m, in.aux); }
void buildFence(Builder &b) {
  for (std::string_view g : b.match.groups)
    if (g == "gl" || g == "gpu" || g == "sys" || g == "cluster")
      b.inst.aux = 1;
  b.inst.fn = fenceHandler;
}

const Row rows[] = {
    {"bra", "[uni]", "l", 10, 0, buildBra},
    {"brx", "idx [uni]", "b32 l", 60, 30, buildBrx},
    {"call", "[uni]", "any any? any?", 10, 0, buildCall},
    {"exit", "", "", 10, 0, buildExit},
    {"ret", "[uni]", "", 10, 0, buildExit},
    {"trap", "", "", 10, 0, buildTrap},
    {"brkpt", "", "", 10, 0, buildTrap},
    {"nanosleep", "u32", "u32", 63, 70, buildPause},
    {"pmevent", "[mask]", "b32", 14, 0, buildNothing},
    {"griddepcontrol", "launch_dependents|wait", "", 78, 90, buildNothing},
    {"bar", "sync", "b32 b32?", 10, 0, buildBarrier},
    {"bar", "arrive", "b32 b32", 20, 20, buildBarrier},
    {"bar", "red popc u32", "=t b32 p", 20, 20, buildBarrier},
    {"bar", "red popc u32", "=t b32 b32 p", 20, 20, buildBarrier},
    {"bar", "red and|or pred", "=p b32 p", 20, 20, buildBarrier},
    {"bar", "red and|or pred", "=p b32 b32 p", 20, 20, buildBarrier},
    {"bar", "warp sync", "b32", 60, 30, buildWarpBarrier},
    {"bar", "cta sync", "b32 b32?", 78, 30, buildBarrier},
    {"bar", "cta arrive", "b32 b32", 78, 30, buildBarrier},
    {"bar", "cta red popc u32", "=t b32 p", 78, 30, buildBarrier},
    {"bar", "cta red popc u32", "=t b32 b32 p", 78, 30, buildBarrier},
    {"bar", "cta red and|or pred", "=p b32 p", 78, 30, buildBarrier},
    {"bar", "cta red and|or pred", "=p b32 b32 p", 78, 30, buildBarrier},
    {"barrier", "[cta] sync [aligned]", "b32 b32?", 60, 30, buildBarrier},
    {"barrier", "[cta] arrive [aligned]", "b32 b32", 60, 30, buildBarrier},
    {"barrier", "[cta] red popc [aligned] u32", "=t b32 p", 60, 30,
     buildBarrier},
    {"barrier", "[cta] red popc [aligned] u32", "=t b32 b32 p", 60, 30,
     buildBarrier},
    {"barrier", "[cta] red and|or [aligned] pred", "=p b32 p", 60, 30,
     buildBarrier},
    {"barrier", "[cta] red and|or [aligned] pred", "=p b32 b32 p", 60, 30,
     buildBarrier},
    {"membar", "cta|gl|sys", "", 10, 0, buildFence},
    {"fence", "[sc|acq_rel|acquire|release] $scope", "", 60, 70, buildFence},
};

} // namespace

void addControlRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
