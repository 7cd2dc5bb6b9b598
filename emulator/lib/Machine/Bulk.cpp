//===- Bulk.cpp - cp.async.bulk -------------------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A copy is cut into the rows of its box. Everything about it is checked when
// it is issued; bytes move when it is done: at a time of the seed's, when its
// group is waited for, or when nothing else in the block can go on. Copies are
// done in any order.
//
//===----------------------------------------------------------------------===//
#include "Async.h"
#include "Checker.h"
#include "TensorMap.h"

#include <algorithm>

namespace fi::emulator {

// A seed of 0 leaves a copy in flight for this long, if the block has other
// things to do; other seeds for up to as long as the second.
constexpr uint64_t longTime = 1 << 14, seededTime = 1 << 12;

namespace {

std::string hex(uint64_t v) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(v));
  return text;
}

/// What is wrong with a copy, as a report.
struct Issue {
  Warp &w;
  const Inst &in;
  unsigned lane;
  bool fail(ReportKind kind, const std::string &message, uint64_t address = 0) {
    w.launch->addReport(w, w.instIndex(in), kind, 1u << lane, message, address);
    return false;
  }
  bool shared(uint64_t &address, uint64_t bytes, uint32_t align,
              const char *what) {
    if ((address & windowMask) == sharedWindow)
      address &= ~windowMask;
    if (address % align)
      return fail(ReportKind::Misaligned,
                  std::string(what) + " at shared address " + hex(address) +
                      ", which is no multiple of " + std::to_string(align),
                  address);
    uint64_t end = uint64_t(sharedBase) + w.cta->sharedBytes;
    if (address < sharedBase || address > end || bytes > end - address)
      return fail(ReportKind::OutOfBounds,
                  std::string(what) + " of " + std::to_string(bytes) +
                      " bytes at shared address " + hex(address) +
                      "; the block has " + std::to_string(w.cta->sharedBytes) +
                      " bytes from " + hex(sharedBase),
                  address);
    return true;
  }
  bool global(uint64_t address, uint64_t bytes, bool write) {
    const Allocation *a = w.launch->memory.find(address, bytes);
    if (!a || (write && !a->writable))
      return fail(ReportKind::OutOfBounds,
                  std::string(write ? "write" : "read") + " of " +
                      std::to_string(bytes) + " bytes by a bulk copy at " +
                      (a ? hex(address) + ", which is read-only"
                         : w.launch->memory.describe(address)),
                  address);
    return true;
  }
};

/// The 128 bytes of a map; null: reported.
const uint8_t *mapBytes(Issue &issue, uint64_t address) {
  Launch &l = *issue.w.launch;
  uint64_t window = address & windowMask, at = address & ~windowMask;
  if (at % 64) {
    issue.fail(ReportKind::Misaligned,
               "tensor map at " + hex(address) + ", which is no multiple of 64",
               address);
    return nullptr;
  }
  uint64_t end = uint64_t(sharedBase) + issue.w.cta->sharedBytes;
  if (window == sharedWindow) {
    if (at >= sharedBase && at + tensorMapBytes <= end)
      return issue.w.cta->shared + (at - sharedBase);
  } else if (window == paramWindow) {
    if (at + tensorMapBytes <= l.params.size())
      return l.params.data() + at;
  } else if (window == 0 && l.memory.find(at, tensorMapBytes)) {
    return reinterpret_cast<const uint8_t *>(uintptr_t(at));
  }
  issue.fail(ReportKind::OutOfBounds,
             "tensor map at " + l.memory.describe(address), address);
  return nullptr;
}

/// Rows begin at multiples of sixteen bytes in global memory: strides are such
/// multiples, so the first coordinate decides.
bool coordinateAligned(Issue &issue, const TensorMap &map, int32_t c) {
  int64_t bytes = map.elementBytes(), at = c * bytes;
  if (at % 16 == 0)
    return true;
  return issue.fail(ReportKind::Misaligned,
                    "coordinate 0 of a tensor copy is " + std::to_string(c) +
                        " with elements of " + std::to_string(bytes) +
                        " bytes, which is byte " + std::to_string(at) +
                        " of a row; expected a multiple of 16 bytes, hence a "
                        "coordinate that is a multiple of " +
                        std::to_string(16 / bytes));
}

/// Only loads may begin before the first element of a dimension.
bool storesInside(Issue &issue, const int32_t *c, unsigned rank) {
  for (unsigned d = 0; d < rank; ++d)
    if (c[d] < 0)
      return issue.fail(
          ReportKind::OutOfBounds,
          "coordinate " + std::to_string(d) + " of a store to a tensor is " +
              std::to_string(c[d]) +
              "; expected none below 0, which loads alone may have");
  return true;
}

/// Rows of a box at coordinates `c`.
bool boxRows(Issue &issue, const TensorMap &map, const int32_t *c,
             uint32_t shared, AsyncOp &op) {
  uint32_t bytes = map.elementBytes();
  op.rowBytes = map.box[0] * bytes;
  op.total = map.boxBytes();
  op.swizzle = map.swizzleBits();
  op.fillsNaN = map.fill;
  uint32_t pitch = map.rowPitch();
  bool write = op.kind != BulkKind::Load && op.kind != BulkKind::Prefetch;
  uint32_t n[5] = {1, 1, 1, 1, 1}, at[5] = {};
  for (unsigned d = 1; d < map.rank; ++d)
    n[d] = map.count(d);
  uint64_t rows = uint64_t(n[1]) * n[2] * n[3] * n[4];
  int64_t begin = std::max<int64_t>(0, -int64_t(c[0]));
  int64_t end = std::min<int64_t>(map.box[0], int64_t(map.dims[0]) - c[0]);
  op.rows.reserve(rows);
  for (uint64_t r = 0; r < rows; ++r) {
    BulkRow row{0, shared + uint32_t(r) * pitch, 0, 0};
    uint64_t address = map.address;
    bool inside = end > begin;
    for (unsigned d = 1; d < map.rank; ++d) {
      int64_t x = int64_t(c[d]) + int64_t(at[d]) * map.elementStrides[d];
      inside &= x >= 0 && x < int64_t(map.dims[d]);
      address += uint64_t(x) * map.strides[d - 1];
    }
    if (inside) {
      row.global = address + uint64_t(c[0] + begin) * bytes;
      row.begin = uint32_t(begin) * bytes;
      row.bytes = uint32_t(end - begin) * bytes;
      if (!issue.global(row.global, row.bytes, write))
        return false;
    }
    op.rows.push_back(row);
    for (unsigned d = 1; d < map.rank && ++at[d] == n[d]; ++d)
      at[d] = 0;
  }
  return true;
}

/// Elements of a reduction by a tensor map.
Type reductionType(const TensorMap &map) {
  using T = TensorMapConfig::Type;
  switch (T(map.type)) {
  case T::U32:
    return Type::U32;
  case T::I32:
    return Type::S32;
  case T::U64:
    return Type::U64;
  case T::I64:
    return Type::S64;
  case T::F16:
    return Type::F16;
  case T::BF16:
    return Type::BF16;
  case T::F32:
  case T::F32Flushed:
    return Type::F32;
  case T::F64:
    return Type::F64;
  default:
    return Type::None;
  }
}

/// Reads the source into `data`, row by row as it lies in shared memory before
/// the swizzle.
void sample(Cta &cta, AsyncOp &op) {
  op.data.resize(op.total);
  uint8_t *d = op.data.data();
  const uint8_t *base = cta.shared - sharedBase;
  if (op.kind == BulkKind::Load) {
    for (const BulkRow &row : op.rows) {
      if (row.bytes != op.rowBytes) {
        std::memset(d, 0, op.rowBytes);
        // An H200 writes 0x7ff7 for bf16. That wider elements are NaNs of the
        // same sixteen bits again and again is a guess.
        if (op.fillsNaN)
          for (uint32_t i = 0; i < op.rowBytes; ++i)
            d[i] = i % 2 ? 0x7f : 0xf7;
      }
      if (row.bytes)
        std::memcpy(d + row.begin,
                    reinterpret_cast<const void *>(uintptr_t(row.global)),
                    row.bytes);
      d += op.rowBytes;
    }
  } else if (op.kind == BulkKind::Move) {
    std::memcpy(d, base + op.from, op.total);
  } else {
    forSharedLines(op, [&](uint32_t address) {
      std::memcpy(d, base + address, 16);
      d += 16;
    });
  }
  op.sampled = true;
}

/// Moves the bytes to their destination.
void deliver(Launch &l, Cta &cta, AsyncOp &op) {
  if (!op.sampled)
    sample(cta, op);
  const uint8_t *d = op.data.data();
  if (op.kind == BulkKind::Load || op.kind == BulkKind::Move) {
    uint8_t *base = cta.shared - sharedBase;
    forSharedLines(op, [&](uint32_t address) {
      std::memcpy(base + address, d, 16);
      d += 16;
    });
    return;
  }
  for (const BulkRow &row : op.rows) {
    auto *to = reinterpret_cast<uint8_t *>(uintptr_t(row.global));
    if (row.bytes && op.kind == BulkKind::Store)
      std::memcpy(to, d + row.begin, row.bytes);
    else if (row.bytes)
      reduceBytes(op.op, op.type, to, d + row.begin, row.bytes);
    if (row.bytes && !l.checker)
      if (Allocation *a = l.memory.find(row.global))
        markWritten(*a, row.global, row.bytes);
    d += op.rowBytes;
  }
}

} // namespace

void Launch::issueAsync(Warp &w, AsyncOp &&op) {
  Cta &cta = *w.cta;
  if (!cta.async)
    cta.async = std::make_shared<AsyncOps>();
  op.due = steps + (options.seed ? 1 + random() % seededTime : longTime);
  // Whether the source is read now or later is the seed's choice.
  if (!op.afterCopies && (options.seed == 0 || (random() & 1)))
    sample(cta, op);
  cta.async->nextDue = std::min(cta.async->nextDue, op.due);
  cta.async->ops.push_back(std::move(op));
}

void bulkCopy(Warp &w, const Inst &in, uint32_t mask, const BulkWords &b) {
  Launch &l = *w.launch;
  for (uint32_t left = mask; left && !l.stopped; left &= left - 1) {
    unsigned lane = unsigned(__builtin_ctz(left));
    Issue issue{w, in, lane};
    AsyncOp op;
    op.kind = b.kind;
    op.op = b.op;
    op.type = Type(b.type);
    op.warp = w.index;
    op.lanes = 1u << lane;
    op.inst = w.instIndex(in);
    op.group = w.bulkGroup[lane];
    uint64_t shared = b.kind == BulkKind::Prefetch ? 0 : b.shared.of(w, lane);
    if (b.rank) {
      const uint8_t *bytes = mapBytes(issue, b.global.of(w, lane));
      if (!bytes)
        continue;
      TensorMap map;
      std::memcpy(&map, bytes, sizeof(map));
      if (!map.valid()) {
        issue.fail(ReportKind::InvalidInstruction,
                   "there is no tensor map made by the emulator at " +
                       hex(b.global.of(w, lane)),
                   b.global.of(w, lane));
        continue;
      }
      if (std::string error;
          map.replaced && !checkTensorMap(configOf(map), error)) {
        issue.fail(ReportKind::InvalidInstruction,
                   error + ", after tensormap.replace");
        continue;
      }
      if (map.rank != b.rank) {
        issue.fail(ReportKind::InvalidInstruction,
                   "a copy of " + std::to_string(b.rank) +
                       " dimensions by a tensor map of " +
                       std::to_string(map.rank));
        continue;
      }
      int32_t c[5] = {};
      for (unsigned d = 0; d < b.rank; ++d)
        c[d] = int32_t(w.r32(b.coords[d])[lane]);
      if (!coordinateAligned(issue, map, c[0]))
        continue;
      if (b.kind == BulkKind::Prefetch)
        continue;
      if (b.kind != BulkKind::Load && !storesInside(issue, c, b.rank))
        continue;
      if (!issue.shared(shared, map.sharedBytes(), 128, "box") ||
          !boxRows(issue, map, c, uint32_t(shared), op))
        continue;
      if (b.kind == BulkKind::Reduce) {
        op.type = reductionType(map);
        if (op.op >= BulkOp::And)
          op.type = op.type == Type::U32   ? Type::B32
                    : op.type == Type::U64 ? Type::B64
                                           : Type::None;
        if (!bulkReductionExists(op.op, op.type)) {
          issue.fail(ReportKind::InvalidInstruction,
                     "this reduction does not exist for the elements of the "
                     "tensor map");
          continue;
        }
      }
    } else {
      if (b.kind == BulkKind::Prefetch)
        continue;
      uint64_t global = b.global.of(w, lane);
      uint32_t size = w.r32(b.size)[lane];
      if (size % 16) {
        issue.fail(ReportKind::Misaligned,
                   "a bulk copy of " + std::to_string(size) +
                       " bytes; expected a multiple of 16");
        continue;
      }
      if (!issue.shared(shared, size, 16, "bulk copy"))
        continue;
      if (b.kind == BulkKind::Move) {
        if (!issue.shared(global, size, 16, "bulk copy"))
          continue;
        op.from = uint32_t(global);
      } else {
        if (global % 16) {
          issue.fail(ReportKind::Misaligned,
                     "bulk copy at " + hex(global) +
                         ", which is no multiple of 16",
                     global);
          continue;
        }
        if (size && !issue.global(global, size, b.kind != BulkKind::Load))
          continue;
      }
      op.rowBytes = op.total = size;
      if (size)
        op.rows.push_back({global, uint32_t(shared), 0, size});
    }
    if (b.kind == BulkKind::Load || b.kind == BulkKind::Move) {
      uint64_t bar = b.barrier.of(w, lane);
      if (!issue.shared(bar, 8, 8, "mbarrier"))
        continue;
      op.barrier = uint32_t(bar);
      Mbarrier *m =
          w.cta->mbarriers ? w.cta->mbarriers->find(op.barrier) : nullptr;
      if (!m) {
        issue.fail(ReportKind::MbarrierFault,
                   "no mbarrier was initialised at " + hex(bar), bar);
        continue;
      }
      if (l.checker)
        l.checker->mbarrierUse(w, in, lane, *m);
      if (b.multicast && w.r32(b.multicast - 1)[lane] != 1) {
        issue.fail(ReportKind::InvalidInstruction,
                   "a multicast to other blocks than the own; clusters of "
                   "more than one block are not emulated");
        continue;
      }
    }
    if (l.checker)
      l.checker->bulkIssue(w, op, lane);
    l.issueAsync(w, std::move(op));
  }
}

void Launch::complete(Cta &cta, size_t index) {
  AsyncOps &async = *cta.async;
  // Arrivals of a thread come in their order: each mbarrier tells of the copies
  // between the arrival before and its own, not of earlier ones by itself.
  if (async.ops[index].afterCopies)
    for (size_t i = 0; i < index;) {
      const AsyncOp &other = async.ops[i], &op = async.ops[index];
      if (other.afterCopies && other.warp == op.warp &&
          (other.lanes & op.lanes) != 0) {
        complete(cta, i);
        --index;
      } else {
        ++i;
      }
    }
  AsyncOp op = std::move(async.ops[index]);
  async.ops.erase(async.ops.begin() + int64_t(index));
  Warp &w = cta.warps[op.warp];
  const Inst &in = kernel.code[op.inst];
  unsigned lane = unsigned(__builtin_ctz(op.lanes));
  if (op.afterCopies) {
    Mbarrier *m = cta.mbarriers ? cta.mbarriers->find(op.barrier) : nullptr;
    finishCopiesBefore(w, op.lanes, op.group, m);
    if (m)
      arriveAt(w, in, lane, *m, op.arrivals, false);
    return;
  }
  deliver(*this, cta, op);
  if (op.kind == BulkKind::Load || op.kind == BulkKind::Move) {
    Mbarrier *m = cta.mbarriers ? cta.mbarriers->find(op.barrier) : nullptr;
    if (checker)
      checker->bulkDone(w, op, m);
    if (!m) {
      addReport(w, op.inst, ReportKind::MbarrierFault, op.lanes,
                "the mbarrier at " + hex(op.barrier) +
                    " is no more when the copy is done",
                op.barrier);
      return;
    }
    m->bytes -= op.total;
    if (m->bytes < -int64_t((1 << 20) - 1))
      addReport(w, op.inst, ReportKind::MbarrierFault, op.lanes,
                "more bytes than an mbarrier counts: " + describe(*m),
                op.barrier);
    checkPhase(cta, *m);
    return;
  }
  // Stores are seen by whoever waits for their group: what is written stays
  // with the group until then.
}

void Launch::completeArrivals(Warp &w) {
  if (!w.cta->async)
    return;
  std::vector<AsyncOp> &ops = w.cta->async->ops;
  for (size_t i = 0; i < ops.size();) {
    if (ops[i].afterCopies && ops[i].warp == w.index)
      complete(*w.cta, i);
    else
      ++i;
  }
}

bool Launch::completeOne(Cta &cta) {
  if (!cta.async || cta.async->ops.empty())
    return false;
  size_t n = cta.async->ops.size();
  complete(cta, options.seed ? size_t(random() % n) : 0);
  return true;
}

void Launch::completeDue(Cta &cta) {
  AsyncOps &async = *cta.async;
  for (;;) {
    size_t found = async.ops.size();
    uint64_t next = ~uint64_t(0);
    for (size_t i = 0; i < async.ops.size(); ++i) {
      if (async.ops[i].due <= steps &&
          (found == async.ops.size() ||
           async.ops[i].due < async.ops[found].due))
        found = i;
      next = std::min(next, async.ops[i].due);
    }
    async.nextDue = next;
    if (found == async.ops.size())
      return;
    complete(cta, found);
  }
}

void Launch::endAsync(Cta &cta) {
  if (!cta.async)
    return;
  while (!cta.async->ops.empty()) {
    const AsyncOp &op = cta.async->ops.front();
    bool load = op.kind == BulkKind::Load || op.kind == BulkKind::Move;
    if (checker && load && !stopped)
      addReport(cta.warps[op.warp], op.inst, ReportKind::PendingCopy, op.lanes,
                "the block ends before this copy is known to be done: it was "
                "not waited for");
    complete(cta, 0);
  }
  if (checker)
    checker->endStores(cta);
}

void bulkCommit(Warp &w, uint32_t mask) {
  for (unsigned i = 0; i < 32; ++i)
    w.bulkGroup[i] += mask >> i & 1;
}

void bulkWait(Warp &w, const Inst &, uint32_t mask, uint32_t keep,
              bool readsOnly) {
  Launch &l = *w.launch;
  if (w.cta->async) {
    std::vector<AsyncOp> &ops = w.cta->async->ops;
    for (size_t i = 0; i < ops.size();) {
      AsyncOp &op = ops[i];
      unsigned lane = unsigned(__builtin_ctz(op.lanes));
      bool mine = !op.afterCopies && op.kind != BulkKind::Load &&
                  op.kind != BulkKind::Move && op.warp == w.index &&
                  (mask >> lane & 1) && w.bulkGroup[lane] > op.group &&
                  w.bulkGroup[lane] - op.group > keep;
      if (!mine) {
        ++i;
        continue;
      }
      if (!readsOnly) {
        l.complete(*w.cta, i);
        continue;
      }
      if (!op.sampled)
        sample(*w.cta, op);
      ++i;
    }
  }
  if (l.checker)
    l.checker->bulkWaited(w, mask, keep, readsOnly);
}

namespace {

/// The accesses of a map by one lane, for the checks.
void observeMap(Warp &w, const Inst &in, unsigned lane, uint64_t address,
                Access kind) {
  bool shared = (address & windowMask) == sharedWindow;
  Lanes lanes;
  if ((address & windowMask) == paramWindow || !w.observed)
    return;
  for (uint32_t b = 0; b < tensorMapBytes; b += 16) {
    lanes.address[lane] = (shared ? address & ~windowMask : address) + b;
    // The other lanes are not there.
    for (unsigned i = 0; i < 32; ++i)
      lanes.address[i] = lanes.address[lane];
    observe(w, in, shared ? Space::Shared : Space::Global, 1u << lane, 16, kind,
            lanes);
  }
}

} // namespace

void tensorMapReplace(Warp &w, const Inst &in, uint32_t mask,
                      const ReplaceWords &r) {
  for (uint32_t left = mask; left; left &= left - 1) {
    unsigned lane = unsigned(__builtin_ctz(left));
    Issue issue{w, in, lane};
    uint64_t address = r.at.of(w, lane);
    if (in.aux && (address & windowMask) == 0)
      address |= sharedWindow;
    auto *bytes = const_cast<uint8_t *>(mapBytes(issue, address));
    if (!bytes)
      return;
    if ((address & windowMask) == paramWindow) {
      issue.fail(ReportKind::OutOfBounds,
                 "tensormap.replace of a parameter, which is read-only");
      return;
    }
    TensorMap m;
    std::memcpy(&m, bytes, sizeof(m));
    if (!m.valid()) {
      issue.fail(ReportKind::InvalidInstruction,
                 "there is no tensor map made by the emulator at " +
                     hex(address),
                 address);
      return;
    }
    uint64_t v = r.wide ? w.r64(r.value)[lane] : w.r32(r.value)[lane];
    // Numbers of types in PTX: flushed f32 comes before f64 and bf16.
    static const uint8_t types[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};
    auto small = [&] { return uint8_t(std::min<uint64_t>(v, 255)); };
    switch (r.field) {
    case MapField::Address:
      m.address = v;
      break;
    case MapField::Rank:
      m.rank = uint8_t(std::min<uint64_t>(v, 254) + 1);
      break;
    case MapField::Box:
      m.box[r.ordinal] = uint16_t(std::min<uint64_t>(v, 65535));
      break;
    case MapField::Dim:
      m.dims[r.ordinal] = v;
      break;
    case MapField::Stride:
      m.strides[r.ordinal] = v;
      break;
    case MapField::ElementStride:
      m.elementStrides[r.ordinal] = small();
      break;
    case MapField::Type:
      m.type = v < 13 ? types[v] : 255;
      break;
    case MapField::Interleave:
      m.interleave = small();
      break;
    case MapField::Swizzle:
      m.swizzle = small();
      break;
    case MapField::Fill:
      m.fill = small();
      break;
    }
    m.replaced = 1;
    m.check = m.checksum();
    observeMap(w, in, lane, address, Access::Write);
    std::memcpy(bytes, &m, sizeof(m));
  }
}

void tensorMapCopy(Warp &w, const Inst &in, uint32_t mask,
                   const AddressWords &to, const AddressWords &from) {
  // All lanes give the same addresses, and one copy is made.
  unsigned lane = unsigned(__builtin_ctz(mask));
  Issue issue{w, in, lane};
  uint64_t source = from.of(w, lane), target = to.of(w, lane);
  if ((source & windowMask) == 0)
    source |= sharedWindow;
  const uint8_t *bytes = mapBytes(issue, source);
  if (!bytes || !issue.global(target, tensorMapBytes, true))
    return;
  observeMap(w, in, lane, source, Access::Read);
  observeMap(w, in, lane, target, Access::Write);
  std::memcpy(reinterpret_cast<void *>(uintptr_t(target)), bytes,
              tensorMapBytes);
}

void fenceProxy(Warp &w, uint32_t mask) {
  if (w.launch->checker)
    w.launch->checker->fenceProxy(w, mask);
}

} // namespace fi::emulator
