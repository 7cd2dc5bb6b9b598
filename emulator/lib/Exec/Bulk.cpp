//===- Bulk.cpp - mbarrier, cp.async.bulk, proxies ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "fi-emulator/Emulator.h"

#include "Async.h"
#include "Lanes.h"

namespace fi::emulator::FI_EMU_ISA {
namespace {

void nothing(Warp &, const Inst &, uint32_t) {}
void buildNothing(Builder &b) { b.inst.fn = nothing; }

/// The n-th address of an instruction, whose first slot is `at`.
AddressWords addressWords(const Builder &b, size_t n, size_t at) {
  return {b.slots[at], b.widths[at] == 8, uint32_t(b.addends[n])};
}

//===- mbarrier -----------------------------------------------------------===//

/// Behind Inst::list.
struct MbarrierWords {
  AddressWords address;
  uint32_t state; // slot + 1 of a destination
  uint32_t count; // slot + 1; none: 1
  uint32_t bytes; // slot + 1
};
const MbarrierWords &wordsOf(const Inst &in) {
  return *reinterpret_cast<const MbarrierWords *>(in.list);
}
void addressesOf(Warp &w, const MbarrierWords &b, uint64_t *out) {
  for (unsigned i = 0; i < 32; ++i)
    out[i] = b.address.of(w, i);
}
void keep(Builder &b, const MbarrierWords &words) {
  std::vector<uint32_t> raw(sizeof(words) / 4);
  std::memcpy(raw.data(), &words, sizeof(words));
  b.keep(std::move(raw));
}
bool allowSharedOrGeneric(Builder &b) {
  if (!b.addressIsVariable || b.addressSpace == Space::Shared)
    return true;
  b.fail("expected a variable in shared memory in '" +
         std::string(b.ast.mnemonic) + "'");
  return false;
}

void init(Warp &w, const Inst &in, uint32_t m) {
  const MbarrierWords &b = wordsOf(in);
  uint64_t address[32];
  addressesOf(w, b, address);
  mbarrierInit(w, in, m, address, w.r32(b.count - 1));
}
void inval(Warp &w, const Inst &in, uint32_t m) {
  uint64_t address[32];
  addressesOf(w, wordsOf(in), address);
  mbarrierInval(w, in, m, address);
}
void buildInit(Builder &b) {
  if (!allowSharedOrGeneric(b))
    return;
  bool isInit = b.is(0, "init");
  keep(b, {addressWords(b, 0, 0), 0, isInit ? b.slots[1] + 1 : 0, 0});
  b.inst.fn = isInit ? init : inval;
}

// aux: 1 arrives, 2 expects, 4 drops, 8 does not complete, 16 releases.
enum : uint32_t { Arrives = 1, Expects = 2, Drops = 4, Partial = 8, Rel = 16 };
void arrive(Warp &w, const Inst &in, uint32_t m) {
  const MbarrierWords &b = wordsOf(in);
  uint64_t address[32], state[32];
  addressesOf(w, b, address);
  uint32_t ones[32];
  for (uint32_t &v : ones)
    v = 1;
  MbarrierArrive what;
  what.arrives = in.aux & Arrives;
  what.expects = in.aux & Expects;
  what.drops = in.aux & Drops;
  what.noComplete = in.aux & Partial;
  what.releases = in.aux & Rel;
  mbarrierArrive(w, in, m, address, what, b.count ? w.r32(b.count - 1) : ones,
                 b.bytes ? w.r32(b.bytes - 1) : ones, state);
  if (b.state)
    lanes(w.r64(b.state - 1), m, [&](unsigned i) { return state[i]; });
}
void complete(Warp &w, const Inst &in, uint32_t m) {
  const MbarrierWords &b = wordsOf(in);
  uint64_t address[32];
  addressesOf(w, b, address);
  mbarrierComplete(w, in, m, address, w.r32(b.bytes - 1));
}
void buildArrive(Builder &b) {
  if (!allowSharedOrGeneric(b))
    return;
  std::string_view what = b.group(0);
  uint32_t aux = Rel;
  bool cluster = false;
  for (std::string_view g : b.match.groups) {
    if (g == "arrive" || g == "arrive_drop")
      aux |= Arrives;
    if (g == "arrive_drop")
      aux |= Drops;
    if (g == "expect_tx")
      aux |= Expects;
    if (g == "noComplete")
      aux |= Partial;
    if (g == "relaxed")
      aux &= ~uint32_t(Rel);
    cluster |= g == "shared::cluster";
  }
  MbarrierWords words{};
  bool returns = aux & Arrives;
  if (returns && cluster && b.ast.operands[0].kind != Operand::Sink)
    return b.fail("an arrival at '.shared::cluster' returns no state; expected "
                  "'_'");
  if (returns && b.ast.operands[0].kind != Operand::Sink)
    words.state = b.slots[0] + 1;
  size_t at = returns ? 1 : 0;
  words.address = addressWords(b, 0, at);
  if (b.ast.operands.size() > at + 1)
    (aux & Expects || what == "complete_tx" ? words.bytes : words.count) =
        b.slots[at + 1] + 1;
  if (what == "expect_tx" || what == "complete_tx")
    words.bytes = b.slots[1] + 1;
  keep(b, words);
  b.inst.aux = aux;
  b.inst.fn = what == "complete_tx" ? complete : arrive;
}

// o of the words: state is the predicate, count the state or parity. aux: 1
// parity, 2 waits, 4 acquires.
void test(Warp &w, const Inst &in, uint32_t m) {
  const MbarrierWords &b = wordsOf(in);
  uint64_t address[32], values[32];
  addressesOf(w, b, address);
  for (unsigned i = 0; i < 32; ++i)
    values[i] = in.aux & 1 ? w.r32(b.count - 1)[i] : w.r64(b.count - 1)[i];
  uint32_t done;
  if (mbarrierTest(w, in, m, address, values, in.aux & 1, in.aux & 2,
                   in.aux & 4, done))
    w.setPred(b.state - 1, done, m);
}
void buildTest(Builder &b) {
  if (!allowSharedOrGeneric(b))
    return;
  b.inst.aux = 4;
  for (std::string_view g : b.match.groups) {
    if (g == "parity")
      b.inst.aux |= 1;
    if (g == "try_wait")
      b.inst.aux |= 2;
    if (g == "relaxed")
      b.inst.aux &= ~4u;
  }
  keep(b, {addressWords(b, 0, 1), b.slots[0] + 1, b.slots[2] + 1, 0});
  b.inst.fn = test;
}

void pendingCount(Warp &w, const Inst &in, uint32_t m) {
  const uint64_t *s = w.r64(in.o[1]);
  lanes(w.r32(in.o[0]), m, [&](unsigned i) { return mbarrierPending(s[i]); });
}
void buildPendingCount(Builder &b) { b.inst.fn = pendingCount; }

void afterCopies(Warp &w, const Inst &in, uint32_t m) {
  uint64_t address[32];
  addressesOf(w, wordsOf(in), address);
  mbarrierAfterCopies(w, in, m, address, in.aux);
}
void buildAfterCopies(Builder &b) {
  if (!allowSharedOrGeneric(b))
    return;
  keep(b, {addressWords(b, 0, 0), 0, 0, 0});
  b.inst.aux = b.is(3, "noinc");
  b.inst.fn = afterCopies;
}

//===- Bulk copies --------------------------------------------------------===//

void bulk(Warp &w, const Inst &in, uint32_t m) {
  bulkCopy(w, in, m, *reinterpret_cast<const BulkWords *>(in.list));
}
Type bulkType(Builder &b) {
  for (std::string_view g : b.match.groups)
    if (parseType(g) != Type::None)
      return parseType(g);
  return Type::None;
}
/// Operands in the order of the AST: the slots where each begins.
void buildBulk(Builder &b) {
  BulkWords words{};
  bool load = false, toGlobal = false, prefetch = false, hint = false,
       multicast = false, fromGlobal = false;
  for (size_t i = 0; i < b.match.groups.size(); ++i) {
    std::string_view g = b.match.groups[i];
    if (g.size() == 2 && g[1] == 'd' && g[0] >= '1' && g[0] <= '5')
      words.rank = uint32_t(g[0] - '0');
    load |= g == "mbarrier::complete_tx::bytes";
    toGlobal |= g == "bulk_group";
    prefetch |= g == "prefetch";
    hint |= g == "L2::cache_hint";
    multicast |= g == "multicast::cluster";
    fromGlobal |= g == "global";
    static const std::pair<const char *, BulkOp> ops[] = {
        {"add", BulkOp::Add}, {"min", BulkOp::Min}, {"max", BulkOp::Max},
        {"inc", BulkOp::Inc}, {"dec", BulkOp::Dec}, {"and", BulkOp::And},
        {"or", BulkOp::Or},   {"xor", BulkOp::Xor}};
    for (auto &[name, op] : ops)
      if (g == name)
        words.op = op;
  }
  words.kind = prefetch                   ? BulkKind::Prefetch
               : load && fromGlobal       ? BulkKind::Load
               : load                     ? BulkKind::Move
               : words.op != BulkOp::None ? BulkKind::Reduce
                                          : BulkKind::Store;
  if (words.op != BulkOp::None && !words.rank) {
    Type type = bulkType(b);
    words.type = uint32_t(type);
    if (!bulkReductionExists(words.op, type))
      return b.fail("this reduction does not exist for elements of this type");
    bool narrow = type == Type::F16 || type == Type::BF16;
    bool noftz = false;
    for (std::string_view g : b.match.groups)
      noftz |= g == "noftz";
    if (narrow && words.op == BulkOp::Add && !noftz)
      return b.fail("an addition of f16 or bf16 needs .noftz");
  }
  // Operands: addresses in order, a size, coordinates behind a tensor map.
  size_t at = 0, address = 0, operand = 0;
  auto takeAddress = [&](AddressWords &to) {
    to = addressWords(b, address++, at++);
    ++operand;
  };
  auto takeTensor = [&] {
    if (b.counts[operand] != words.rank + 1) {
      b.fail("expected " + std::to_string(words.rank) +
             " coordinates behind the tensor map, but got " +
             std::to_string(b.counts[operand] - 1));
      return false;
    }
    words.global = addressWords(b, address++, at++);
    for (uint32_t i = 0; i < words.rank; ++i)
      words.coords[i] = b.slots[at++];
    ++operand;
    return true;
  };
  if (words.rank) {
    if (load) {
      takeAddress(words.shared);
      if (!takeTensor())
        return;
      takeAddress(words.barrier);
    } else {
      if (!takeTensor())
        return;
      if (!prefetch)
        takeAddress(words.shared);
    }
  } else {
    AddressWords to{}, from{};
    if (!prefetch)
      takeAddress(to);
    takeAddress(from);
    words.size = b.slots[at++];
    ++operand;
    if (load)
      takeAddress(words.barrier);
    words.shared = load ? to : from;
    words.global = load || prefetch ? from : to;
  }
  (void)toGlobal;
  if (words.kind != BulkKind::Move && !words.global.wide)
    return b.fail("expected a global address of 64 bits in a bulk copy");
  size_t left = b.ast.operands.size() - operand;
  if (left != size_t(multicast) + size_t(hint))
    return b.fail("expected " + std::to_string(operand + multicast + hint) +
                  " operands of a bulk copy with these modifiers, but got " +
                  std::to_string(b.ast.operands.size()));
  if (multicast)
    words.multicast = b.slots[at++] + 1;
  if (hint && b.widths[at] != 8)
    return b.fail("expected a cache policy of 64 bits as last operand of a "
                  "bulk copy");
  std::vector<uint32_t> raw(sizeof(words) / 4);
  std::memcpy(raw.data(), &words, sizeof(words));
  b.keep(std::move(raw));
  b.inst.fn = bulk;
}

void commit(Warp &w, const Inst &, uint32_t m) { bulkCommit(w, m); }
void buildCommit(Builder &b) { b.inst.fn = commit; }
void wait(Warp &w, const Inst &in, uint32_t m) {
  bulkWait(w, in, m, in.aux, in.count);
}
void buildWait(Builder &b) {
  const Operand &n = b.ast.operands[0];
  if (n.kind != Operand::Int || n.value < 0)
    return b.fail(
        "expected the number of groups in 'cp.async.bulk.wait_group'");
  b.inst.aux = uint32_t(n.value);
  b.inst.count = b.has(3);
  b.inst.fn = wait;
}

void proxyFence(Warp &w, const Inst &in, uint32_t m) {
  // What is written to global memory is not followed from proxy to proxy.
  if (!in.aux)
    fenceProxy(w, m);
}
void buildProxyFence(Builder &b) {
  b.inst.aux = b.is(2, "global");
  b.inst.fn = proxyFence;
}

//===- tensormap ----------------------------------------------------------===//

void replace(Warp &w, const Inst &in, uint32_t m) {
  ReplaceWords words = *reinterpret_cast<const ReplaceWords *>(in.list);
  tensorMapReplace(w, in, m, words);
}
void buildReplace(Builder &b) {
  static const char *const names[] = {
      "global_address", "rank",           "box_dim",  "global_dim",
      "global_stride",  "element_stride", "elemtype", "interleave_layout",
      "swizzle_mode",   "fill_mode"};
  ReplaceWords words{};
  for (uint32_t i = 0; i < std::size(names); ++i)
    if (b.is(2, names[i]))
      words.field = MapField(i);
  bool ordered =
      words.field >= MapField::Box && words.field <= MapField::ElementStride;
  if (b.ast.operands.size() != (ordered ? 3 : 2))
    return b.fail("expected " + std::to_string(ordered ? 3 : 2) +
                  " operands of 'tensormap.replace' of this field");
  if (ordered) {
    const Operand &n = b.ast.operands[1];
    int64_t most = words.field == MapField::Stride ? 3 : 4;
    if (n.kind != Operand::Int || n.value < 0 || n.value > most)
      return b.fail("expected a dimension of 0 to " + std::to_string(most) +
                    " in 'tensormap.replace'");
    words.ordinal = uint32_t(n.value);
  }
  bool wide =
      words.field == MapField::Address || words.field == MapField::Stride;
  words.value = b.slots.back();
  words.wide = b.widths.back() == 8;
  if (words.wide != wide || b.is(5, "b64") != wide)
    return b.fail(std::string("expected a value of ") + (wide ? "64" : "32") +
                  " bits for this field in 'tensormap.replace'");
  words.at = addressWords(b, 0, 0);
  // An address in the window of shared memory.
  b.inst.aux = b.is(3, "shared::cta");
  std::vector<uint32_t> raw(sizeof(words) / 4);
  std::memcpy(raw.data(), &words, sizeof(words));
  b.keep(std::move(raw));
  b.inst.fn = replace;
}
/// Behind Inst::list: to, from.
void copyMap(Warp &w, const Inst &in, uint32_t m) {
  const auto *a = reinterpret_cast<const AddressWords *>(in.list);
  if (wholeWarp(w, in, m))
    tensorMapCopy(w, in, m, a[0], a[1]);
}
void buildCopyMap(Builder &b) {
  const Operand &n = b.ast.operands[2];
  if (n.kind != Operand::Int || n.value != 128)
    return b.fail("expected 128 as size of 'tensormap.cp_fenceproxy'");
  AddressWords a[2] = {addressWords(b, 0, 0), addressWords(b, 1, 1)};
  std::vector<uint32_t> raw(sizeof(a) / 4);
  std::memcpy(raw.data(), a, sizeof(a));
  b.keep(std::move(raw));
  b.inst.fn = copyMap;
}

#define DIM "1d|2d|3d|4d|5d"
#define OPS "add|min|max|inc|dec|and|or|xor"
#define SHARED "[shared|shared::cta]"
#define ANYSHARED "[shared|shared::cta|shared::cluster]"
const Row rows[] = {
    {"mbarrier", "init " SHARED " b64", "m b32", 70, 80, buildInit},
    {"mbarrier", "inval " SHARED " b64", "m", 70, 80, buildInit},
    {"mbarrier",
     "expect_tx|complete_tx [relaxed] [cta|cluster] " ANYSHARED " b64", "m b32",
     80, 90, buildArrive},
    {"mbarrier",
     "arrive|arrive_drop [release|relaxed] [cta|cluster] " ANYSHARED " b64",
     "=b64 m b32?", 70, 80, buildArrive},
    {"mbarrier",
     "arrive|arrive_drop expect_tx [release|relaxed] [cta|cluster] " ANYSHARED
     " b64",
     "=b64 m b32", 80, 90, buildArrive},
    {"mbarrier", "arrive|arrive_drop noComplete [release] [cta] " SHARED " b64",
     "=b64 m b32", 70, 80, buildArrive},
    {"mbarrier", "test_wait [acquire|relaxed] [cta|cluster] " SHARED " b64",
     "=p m b64", 70, 80, buildTest},
    {"mbarrier",
     "test_wait parity [acquire|relaxed] [cta|cluster] " SHARED " b64",
     "=p m b32", 71, 80, buildTest},
    {"mbarrier", "try_wait [acquire|relaxed] [cta|cluster] " SHARED " b64",
     "=p m b64 b32?", 78, 90, buildTest},
    {"mbarrier",
     "try_wait parity [acquire|relaxed] [cta|cluster] " SHARED " b64",
     "=p m b32 b32?", 78, 90, buildTest},
    {"mbarrier", "pending_count b64", "=b32 b64", 70, 80, buildPendingCount},
    {"cp", "async mbarrier arrive [noinc] " SHARED " b64", "m", 70, 80,
     buildAfterCopies},
    {"cp",
     "async bulk shared::cluster|shared::cta global "
     "mbarrier::complete_tx::bytes [multicast::cluster] [L2::cache_hint]",
     "m m b32 m any? any?", 80, 90, buildBulk},
    {"cp",
     "async bulk shared::cluster shared::cta mbarrier::complete_tx::bytes",
     "m m b32 m", 80, 90, buildBulk},
    {"cp", "async bulk global shared::cta bulk_group [L2::cache_hint]",
     "m m b32 any?", 80, 90, buildBulk},
    {"cp",
     "reduce async bulk global shared::cta bulk_group [L2::cache_hint] " OPS
     " [noftz] f16|bf16|b32|u32|s32|b64|u64|s64|f32|f64",
     "m m b32 any?", 80, 90, buildBulk},
    {"cp", "async bulk prefetch L2 global [L2::cache_hint]", "m b32 any?", 80,
     90, buildBulk},
    {"cp",
     "async bulk tensor " DIM
     " shared::cluster|shared::cta global [tile] mbarrier::complete_tx::bytes "
     "[multicast::cluster] [L2::cache_hint]",
     "m tm m any? any?", 80, 90, buildBulk},
    {"cp",
     "async bulk tensor " DIM
     " global shared::cta [tile] bulk_group [L2::cache_hint]",
     "tm m any?", 80, 90, buildBulk},
    {"cp",
     "reduce async bulk tensor " DIM " global shared::cta " OPS
     " [tile] bulk_group [L2::cache_hint]",
     "tm m any?", 80, 90, buildBulk},
    {"cp",
     "async bulk prefetch tensor " DIM " L2 global [tile] [L2::cache_hint]",
     "tm any?", 80, 90, buildBulk},
    {"cp", "async bulk commit_group", "", 80, 90, buildCommit},
    {"cp", "async bulk wait_group [read]", "u32", 80, 90, buildWait},
    {"tensormap",
     "replace tile "
     "global_address|rank|box_dim|global_dim|global_stride|element_stride|"
     "elemtype|interleave_layout|swizzle_mode|fill_mode [global|shared::cta] "
     "b1024 b32|b64",
     "m any any?", 83, 90, buildReplace},
    {"tensormap",
     "cp_fenceproxy global shared::cta tensormap::generic release $scope sync "
     "aligned",
     "m m b32", 83, 90, buildCopyMap},
    {"prefetch", "[const|param] tensormap", "m", 80, 90, buildNothing},
    {"fence", "proxy async [global|shared::cta|shared::cluster]", "", 80, 90,
     buildProxyFence},
    {"fence", "proxy alias", "", 75, 70, buildNothing},
    {"fence", "mbarrier_init release cluster", "", 80, 90, buildNothing},
    {"fence", "proxy tensormap::generic release $scope", "", 83, 90,
     buildNothing},
    {"fence", "proxy tensormap::generic acquire $scope", "m b32", 83, 90,
     buildNothing},
};
#undef DIM
#undef OPS
#undef SHARED
#undef ANYSHARED

} // namespace

void addBulkRows(Table &table) { table.add(rows, std::size(rows)); }

} // namespace fi::emulator::FI_EMU_ISA
