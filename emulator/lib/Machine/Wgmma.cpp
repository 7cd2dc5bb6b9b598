//===- Wgmma.cpp - Products of warpgroups in flight -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A warp computes its sixteen rows itself, when the product is issued or, by
// the seed, when one of the four waits for it. Shared memory is read then;
// registers with A are read at the issue. A product is one operation of the
// warpgroup: it cannot end before all four have issued it, and who has waited
// for it knows that all of it has been read. The four must execute the same
// products with the same descriptors, which is checked as they come.
//
//===----------------------------------------------------------------------===//
#include "Wgmma.h"
#include "Checker.h"

#include <algorithm>

namespace fi::emulator {
namespace {

WgmmaState &stateOf(Warp &w) {
  if (w.wgmma)
    return *w.wgmma;
  w.wgmma = std::make_shared<WgmmaState>();
  size_t first = w.index / 4 * 4;
  for (size_t i = first; i < first + 4 && i < w.cta->warps.size(); ++i)
    if (i != w.index && w.cta->warps[i].wgmma)
      w.wgmma->group = w.cta->warps[i].wgmma->group;
  if (!w.wgmma->group) {
    w.wgmma->group = std::make_shared<Warpgroup>();
    if (w.launch->checker)
      w.wgmma->group->agent = w.launch->checker->newAgent(*w.cta);
  }
  return *w.wgmma;
}

void fault(Warp &w, uint32_t inst, const std::string &message,
           int64_t other = -1) {
  w.launch->addReport(w, inst, ReportKind::WgmmaFault, fullMask, message, 0,
                      other);
}

/// The sixteen bytes of shared memory that a warp's part of a product reads.
std::vector<uint32_t> linesOf(const WgmmaForm &form, const WgmmaOp &op) {
  std::vector<uint32_t> lines;
  uint32_t per = 16 / form.bytes;
  auto add = [&](const MatrixLayout &m, uint32_t from, uint32_t count) {
    if (m.alongK) {
      for (uint32_t r = from; r < from + count; ++r)
        for (uint32_t e = 0; e < form.k; e += per)
          lines.push_back(m.at(r, e));
    } else {
      for (uint32_t k = 0; k < form.k; ++k)
        for (uint32_t e = from; e < from + count; e += per)
          lines.push_back(m.at(k, e));
    }
  };
  if (!form.fromRegisters)
    add(op.a, op.rank * 16, 16);
  add(op.b, 0, form.n);
  return lines;
}

/// Whether all that a matrix may take lies in [begin, end): quick, and false
/// where only the sixteen bytes themselves can tell.
bool surelyInside(const MatrixLayout &m, uint32_t last, uint32_t depth,
                  uint64_t begin, uint64_t end) {
  // The last row of eight and the last sixteen bytes of a row.
  uint32_t rows = m.alongK ? last : depth - 1;
  uint32_t c = (m.alongK ? depth - 1 : last) / m.elements;
  uint64_t most =
      uint64_t(m.start) + 7 * m.pitch + uint64_t(rows / 8) * m.group +
      std::min(c, m.chunks - 1) * 16 + uint64_t(c / m.chunks) * m.next + 16;
  // The swizzle moves within 128 bytes.
  uint64_t least = m.start;
  if (m.swizzle) {
    least &= ~uint64_t(127);
    most = (most + 127) & ~uint64_t(127);
  }
  return least >= begin && most <= end;
}

void compute(Warp &w, const WgmmaOp &op) {
  const Inst &in = w.code[op.inst];
  const WgmmaForm &form = *reinterpret_cast<const WgmmaForm *>(in.list);
  form.compute(w, in, form, op);
}

/// The product is done, for all warps that have issued it.
void finish(Warp &w, Warpgroup &g, uint64_t serial) {
  Warpgroup::Entry &e = g.entries[size_t(serial - g.first)];
  if (e.finished)
    return;
  e.finished = true;
  size_t first = w.index / 4 * 4;
  for (size_t i = first; i < first + 4; ++i) {
    Warp &other = w.cta->warps[i];
    if (!other.wgmma)
      continue;
    for (WgmmaState::InFlight &f : other.wgmma->inFlight)
      if (f.op.serial == serial) {
        if (!f.computed)
          compute(other, f.op);
        f.computed = true;
        if (w.launch->checker)
          w.launch->checker->wgmmaDone(w, f.op.inst, f.lines, g.agent, serial);
        f.lines.clear();
      }
  }
}

void retire(Warp &w, WgmmaState::InFlight &f) {
  Warpgroup &g = *w.wgmma->group;
  uint64_t serial = f.op.serial;
  finish(w, g, serial);
  if (w.launch->checker)
    w.launch->checker->wgmmaObserve(w, g.agent, serial);
  ++g.entries[size_t(serial - g.first)].retired;
  while (!g.entries.empty() && g.entries.front().retired == 4) {
    if (g.spare.size() < 8) {
      g.spare.push_back(std::move(g.entries.front().panel));
      g.spare.back().clear();
    }
    g.entries.pop_front();
    ++g.first;
  }
}

/// With checks: from now on registers are watched.
void watchRegisters(Warp &w, WgmmaState &s) {
  size_t n = w.launch->kernel.registerNames.size();
  if (!w.launch->checker || s.touched.size() == n)
    return;
  s.touched.resize(n, 0);
  s.held.resize(n, 0);
  s.heldBy.resize(n, 0);
}

/// The registers that products in flight hold, again.
void holdAgain(Warp &w, WgmmaState &s) {
  std::fill(s.held.begin(), s.held.end(), 0);
  const Kernel &kernel = w.launch->kernel;
  for (const WgmmaState::InFlight &f : s.inFlight) {
    const WgmmaForm &form =
        *reinterpret_cast<const WgmmaForm *>(w.code[f.op.inst].list);
    uint32_t at = kernel.touchStart[f.op.inst];
    uint32_t count = form.countD + (form.fromRegisters ? 4 : 0);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t reg = kernel.touches[at + i] >> 1;
      s.held[reg] |= i < form.countD ? 1 : 2;
      s.heldBy[reg] = f.op.inst;
    }
  }
}

bool wholeGroup(Warp &w, const Inst &in) {
  if ((w.index | 3) < w.cta->warps.size())
    return true;
  wgmmaRefuse(w, in,
              "the warp is in no warpgroup: the block has " +
                  std::to_string(w.cta->warps.size()) +
                  " warps, and groups are of four");
  return false;
}

} // namespace

void wgmmaRefuse(Warp &w, const Inst &in, const std::string &message) {
  fault(w, w.instIndex(in), message);
  w.launch->stopped = true;
}

bool matrixLayout(uint64_t d, uint32_t elementBytes, bool transposed,
                  MatrixLayout &out, const char *&error) {
  uint32_t leading = uint32_t(d >> 16 & 0x3fff) << 4;
  uint32_t stride = uint32_t(d >> 32 & 0x3fff) << 4;
  out.start = uint32_t(d & 0x3fff) << 4;
  out.elements = 16 / elementBytes;
  out.alongK = !transposed;
  if (d >> 49 & 7) {
    error = "a matrix descriptor with a base offset is not emulated: the "
            "pattern of the swizzle begins at a multiple of its size";
    return false;
  }
  uint32_t mode = uint32_t(d >> 62); // 128, 64, 32 bytes: 1, 2, 3
  if (mode == 0) {
    out.swizzle = 0;
    out.chunks = 1;
    out.pitch = 16;
    // Along k: groups of rows by the stride, the next chunk by the leading
    // offset. Across, the other way round.
    out.group = transposed ? leading : stride;
    out.next = transposed ? stride : leading;
    return true;
  }
  out.chunks = 16u >> mode;
  out.pitch = 16 * out.chunks;
  out.swizzle = out.pitch - 16;
  out.group = stride;
  out.next = leading;
  // Along k a product reads 32 bytes, which lie in one row of the pattern.
  if (!transposed)
    out.chunks = 64;
  return true;
}

const uint8_t *sharedBytesOf(Warp &w) { return w.cta->shared - sharedBase; }

uint32_t *wgmmaPanel(Warp &w, const WgmmaOp &op, size_t words, bool &fresh) {
  Warpgroup &g = *w.wgmma->group;
  Warpgroup::Entry &e = g.entries[size_t(op.serial - g.first)];
  fresh = e.panel.empty();
  if (fresh) {
    if (!g.spare.empty()) {
      e.panel = std::move(g.spare.back());
      g.spare.pop_back();
    }
    e.panel.resize(words);
  }
  return e.panel.data();
}

void wgmmaIssue(Warp &w, const Inst &in, const WgmmaForm &form, WgmmaOp &op) {
  Launch &l = *w.launch;
  uint32_t inst = w.instIndex(in);
  if (!wholeGroup(w, in))
    return;
  WgmmaState &s = stateOf(w);
  Warpgroup &g = *s.group;
  op.inst = inst;
  op.group = s.groupNumber;
  op.rank = w.index % 4;
  op.serial = s.serial++;
  if (op.serial - g.first == g.entries.size()) {
    Warpgroup::Entry e;
    e.inst = inst;
    std::copy_n(op.descriptors, 2, e.descriptors);
    g.entries.push_back(std::move(e));
  }
  Warpgroup::Entry &e = g.entries[size_t(op.serial - g.first)];
  if (++e.issued == 4)
    for (size_t i = w.index / 4 * 4; i < w.index / 4 * 4 + 4; ++i)
      for (Fragment &f : w.cta->warps[i].fragments)
        if (f.wait == Wait::Products)
          f.wait = Wait::None;
  if (e.inst != inst || e.descriptors[0] != op.descriptors[0] ||
      e.descriptors[1] != op.descriptors[1]) {
    wgmmaRefuse(w, in,
                e.inst != inst
                    ? "the warps of a warpgroup execute different products"
                    : "the warps of a warpgroup give different descriptors to "
                      "the same product");
    return;
  }
  // Everything that is read lies in the block's memory.
  uint64_t begin = sharedBase, end = begin + w.cta->sharedBytes;
  bool inside = surelyInside(op.b, form.n - 1, form.k, begin, end) &&
                (form.fromRegisters ||
                 surelyInside(op.a, op.rank * 16 + 15, form.k, begin, end));
  std::vector<uint32_t> lines;
  if (l.checker || !inside)
    lines = linesOf(form, op);
  uint32_t least = ~0u, most = 0;
  if (!inside)
    for (uint32_t a : lines) {
      least = std::min(least, a);
      most = std::max(most, a);
    }
  if (!inside && (least < begin || uint64_t(most) + 16 > end)) {
    l.addReport(w, inst, ReportKind::OutOfBounds, fullMask,
                "wgmma reads shared memory from " + hex32(least) + " to " +
                    hex32(most + 16) + "; the block has " +
                    std::to_string(w.cta->sharedBytes) + " bytes from " +
                    hex32(sharedBase),
                least);
    l.stopped = true;
    return;
  }
  if (!s.fenced)
    fault(w, inst, "the first product of the warp has no wgmma.fence before");
  s.fenced = true;
  if (l.checker) {
    const Kernel &kernel = l.kernel;
    uint32_t at = kernel.touchStart[inst];
    uint32_t count = form.countD + (form.fromRegisters ? 4 : 0);
    watchRegisters(w, s);
    for (uint32_t i = 0; i < count; ++i) {
      uint32_t reg = kernel.touches[at + i] >> 1;
      if (s.touched[reg] > s.lastFence) {
        fault(w, inst,
              "register '" + kernel.registerNames[reg] +
                  "' was touched since the last wgmma.fence");
        s.lastFence = s.step;
      }
      if (i < form.countD ? s.held[reg] & 2 : s.held[reg] & 1)
        fault(w, inst,
              "register '" + kernel.registerNames[reg] +
                  "' is an accumulator of one product in flight and a source "
                  "of another",
              int64_t(s.heldBy[reg]));
      s.held[reg] |= i < form.countD ? 1 : 2;
      s.heldBy[reg] = inst;
    }
    l.checker->wgmmaReads(w, in, lines);
  }
  if (s.inFlight.empty())
    s.late = l.options.seed && (l.random() & 1);
  s.inFlight.push_back({op, !s.late, {}});
  if (l.checker)
    s.inFlight.back().lines = std::move(lines);
  if (!s.late)
    compute(w, op);
}

void wgmmaFence(Warp &w, const Inst &in) {
  if (!wholeGroup(w, in))
    return;
  WgmmaState &s = stateOf(w);
  s.fenced = true;
  watchRegisters(w, s);
  s.lastFence = s.step;
}

void wgmmaCommit(Warp &w, const Inst &in) {
  if (wholeGroup(w, in))
    ++stateOf(w).groupNumber;
}

void wgmmaWait(Warp &w, const Inst &in, uint32_t keep) {
  if (!wholeGroup(w, in))
    return;
  WgmmaState &s = stateOf(w);
  bool any = false;
  while (!s.inFlight.empty()) {
    WgmmaState::InFlight &f = s.inFlight.front();
    if (!(s.groupNumber > f.op.group && s.groupNumber - f.op.group > keep))
      break;
    // A product is one operation of the group: it begins when all four are
    // here.
    const Warpgroup &g = *s.group;
    if (g.entries[size_t(f.op.serial - g.first)].issued < 4) {
      block(w, Wait::Products, 0);
      break;
    }
    retire(w, f);
    s.inFlight.pop_front();
    any = true;
  }
  if (any && w.launch->checker)
    holdAgain(w, s);
}

/// A warp ends.
void wgmmaEnd(Warp &w) {
  if (!w.wgmma)
    return;
  WgmmaState &s = *w.wgmma;
  Launch &l = *w.launch;
  if (!s.inFlight.empty() && l.checker && !l.stopped)
    fault(w, s.inFlight.front().op.inst,
          "the warp ends while this product is in flight: "
          "wgmma.wait_group is missing");
  while (!s.inFlight.empty()) {
    retire(w, s.inFlight.front());
    s.inFlight.pop_front();
  }
  // Products that this warp never came to.
  Warpgroup &g = *s.group;
  size_t mine = size_t(s.serial - g.first);
  if (!l.stopped && mine < g.entries.size())
    l.addReport(w, g.entries[mine].inst, ReportKind::Divergence, fullMask,
                "other warps of the warpgroup execute this product, but this "
                "one has ended");
}

//===- Registers ----------------------------------------------------------===//

void Launch::trackProducts(Warp &w, uint32_t pc) {
  WgmmaState *s = w.wgmma.get();
  if (!s || s->touched.empty())
    return;
  ++s->step;
  if (kernel.products[pc])
    return;
  for (uint32_t i = kernel.touchStart[pc]; i < kernel.touchStart[pc + 1]; ++i) {
    uint32_t reg = kernel.touches[i] >> 1;
    bool write = kernel.touches[i] & 1;
    s->touched[reg] = s->step;
    if (s->held[reg] && ((s->held[reg] & 1) || write)) {
      addReport(w, pc, ReportKind::WgmmaFault, w.active,
                "register '" + kernel.registerNames[reg] + "' is " +
                    (write ? "written" : "read") +
                    " while a wgmma in flight has it as " +
                    (s->held[reg] & 1 ? "accumulator" : "source") +
                    ": wgmma.wait_group comes first",
                0, int64_t(s->heldBy[reg]));
      s->held[reg] = 0;
    }
  }
}

//===- setmaxnreg ---------------------------------------------------------===//

void setMaxRegisters(Warp &w, const Inst &in, uint32_t count, bool increase) {
  if (!w.maxRegisters)
    return;
  Launch &l = *w.launch;
  Cta &cta = *w.cta;
  uint32_t now = w.maxRegisters;
  if (increase ? count < now : count > now) {
    l.addReport(w, w.instIndex(in), ReportKind::RegisterFault, fullMask,
                std::string("setmaxnreg.") + (increase ? "inc" : "dec") +
                    " to " + std::to_string(count) +
                    " registers, but the warp has " + std::to_string(now));
    return;
  }
  if (increase) {
    if (cta.freeRegisters < count - now)
      return block(w, Wait::Registers, 0);
    cta.freeRegisters -= count - now;
  } else {
    cta.freeRegisters += now - count;
    l.wakeRegisters(cta);
  }
  w.maxRegisters = count;
}

void Launch::wakeRegisters(Cta &cta) {
  cta.idleRounds = 0;
  for (Warp &other : cta.warps)
    for (Fragment &f : other.fragments)
      if (f.wait == Wait::Registers)
        f.wait = Wait::None;
}

} // namespace fi::emulator
