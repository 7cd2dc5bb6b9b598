//===- HopperMutationTest.cpp - Broken kernels of sm_90a are reported -----===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Kernels of tma.cu and wgmma.cu with one statement dropped or replaced. A
// table says what must be reported; and of every statement that orders
// something, none may be dropped without a report unless the results stay right
// in every order.
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <gtest/gtest.h>

namespace fi::emulator::test {
namespace {

/// Where a kernel begins and ends in its module.
std::pair<size_t, size_t> rangeOf(const std::string &text,
                                  const std::string &kernel) {
  size_t begin = text.find(".entry " + kernel + "(");
  size_t end = text.find("\n.visible .entry ", begin);
  return {begin, end == std::string::npos ? text.size() : end};
}

/// The module with the n-th statement (from 0) of a kernel that contains `what`
/// replaced; empty if there are not so many. A statement has a line.
std::string mutate(const KernelCase &c, const std::string &what, unsigned n,
                   const std::string &with) {
  std::string text = moduleText(c.module);
  auto [begin, end] = rangeOf(text, c.kernel);
  size_t at = begin;
  for (unsigned i = 0; i <= n; ++i) {
    at = text.find(what, at + 1);
    if (at == std::string::npos || at >= end)
      return {};
  }
  size_t first = text.rfind('\n', at) + 1, last = text.find(';', at);
  std::string old = text.substr(first, last + 1 - first);
  std::string fresh = with;
  // `&` is the statement itself; `A>B` changes A to B in it.
  if (size_t arrow = with.find('>'); arrow != std::string::npos) {
    std::string from = with.substr(0, arrow), to = with.substr(arrow + 1);
    size_t place = old.find(from);
    if (place == std::string::npos)
      return {};
    fresh = old;
    fresh.replace(place, from.size(), to);
  }
  return text.replace(first, old.size(), fresh);
}

const KernelCase &caseOf(const std::string &name) {
  for (const KernelCase &c : kernelCases())
    if (c.name() == name)
      return c;
  ADD_FAILURE() << "no case " << name;
  return kernelCases()[0];
}

struct Outcome {
  LaunchResult result;
  bool right = false;
  bool has(ReportKind kind) const {
    for (const Report &r : result.reports)
      if (r.kind == kind)
        return true;
    return false;
  }
  std::string text() const {
    std::string all = result.error;
    for (const Report &r : result.reports)
      all += "\n" + r.str();
    return all.substr(0, 3000);
  }
};
Outcome run(const KernelCase &which, const std::string &ptx, uint64_t seed) {
  Options options;
  options.check = true;
  options.seed = seed;
  options.stepLimit = 2000000;
  options.maxReports = 10;
  std::string error;
  auto device = Device::create(which.target, options, error);
  KernelCase c = which;
  Outcome o;
  o.result = runCase(*device, c, ptx);
  for (const KernelArgument &a : c.arguments)
    if (a.isOutput)
      o.right = a.words == c.expected;
  return o;
}

const char *const passes = "setp.eq.u32 p, 0, 0;";
using K = ReportKind;
/// One after another, until one is reported: compilers repeat loops.
constexpr unsigned anyOf = ~0u;
struct Mutation {
  const char *kernel, *what;
  unsigned n;
  const char *with;
  std::vector<ReportKind> kinds; // one of them; none: it is right
};
const Mutation mutations[] = {
    // Waits that are not there.
    {"tensor_store", "try_wait", 0, passes, {K::PendingCopy}},
    {"bulk_ring", "wait_group.read", 0, "", {K::PendingCopy}},
    {"tensor_store", "wait_group.read", 0, "", {K::PendingCopy}},
    {"gemm_ring", "wait_group.sync.aligned 1", 1, "", {K::PendingCopy}},
    {"gemm_ring", "wait_group.sync.aligned 0", 0, "", {K::WgmmaFault}},
    // One group too few.
    {"gemm_ring",
     "wait_group.sync.aligned 1",
     1,
     "aligned 1>aligned 2",
     {K::PendingCopy}},
    {"bulk_ring", "wait_group.read 1", 0, "read 1>read 2", {K::PendingCopy}},
    // Fences.
    {"tensor_store", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"tensor_reduce", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"bulk_ring", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"bulk_reduce", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"gemm_roles", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"box_plain", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"wgmma_f16_k128", "fence.proxy.async", 0, "", {K::ProxyFence}},
    {"wgmma_f16_k128", "wgmma.fence", 0, "", {K::WgmmaFault}},
    {"gemm_roles", "wgmma.fence", 0, "", {K::WgmmaFault}},
    // Barriers around the initialisation, and before a store.
    {"tensor_store", "bar.sync", 0, "", {K::Race, K::MbarrierFault}},
    {"bulk_ring", "bar.sync", 0, "", {K::Race, K::MbarrierFault}},
    {"tensor_store", "bar.sync", 1, "", {K::Race}},
    {"bulk_ring", "bar.warp.sync", 0, "", {K::Race}},
    {"gemm_ring", "bar.sync", anyOf, "", {K::Race, K::PendingCopy}},
    // Bytes.
    {"bulk_ring", "bulk.shared::cluster", 0, "1024>512", {K::Deadlock}},
    {"bulk_ring",
     "bulk.shared::cluster",
     0,
     "1024>1040",
     {K::PendingCopy, K::Race, K::MbarrierFault, K::Deadlock}},
    {"gemm_ring", "bulk.tensor.2d", anyOf, "", {K::Deadlock}},
    {"gemm_roles", "bulk.tensor.2d.shared", 2, "", {K::Deadlock}},
    // Parity.
    {"bulk_ring",
     "try_wait",
     0,
     "mbarrier.try_wait.parity.shared::cta.b64 p, "
     "[%r154], 0;",
     {K::Deadlock}},
    {"mbarrier_states",
     "try_wait",
     1,
     "mbarrier.try_wait.parity.shared::cta.b64 p, [%r13], 1;",
     {K::Deadlock, K::Race, K::PendingCopy, K::UninitializedMemory}},
    // Arrivals.
    {"bulk_ring", "mbarrier.arrive.shared", 0, "", {K::Deadlock}},
    {"mbarrier_states", "mbarrier.arrive.noinc", 0, "", {K::Deadlock}},
    {"mbarrier_states",
     "mbarrier.arrive.noinc",
     0,
     ".noinc>",
     {K::Race, K::Deadlock, K::PendingCopy}},
    // A slot that is another's.
    {"gemm_roles",
     "bulk.tensor.2d.shared",
     2,
     "[%r399]>[%r395]",
     {K::PendingCopy, K::Race}},
    // Registers.
    {"gemm_roles", "setmaxnreg.dec", 0, "24>32", {K::Deadlock}},
    {"gemm_roles", "setmaxnreg.inc", anyOf, "240>232", {}},
    {"gemm_roles", "setmaxnreg.dec", 0, "", {K::Deadlock}},
    {"gemm_roles", "setmaxnreg.dec", 0, "24>200", {K::RegisterFault}},
};

TEST(HopperMutations, AreReported) {
  for (const Mutation &m : mutations) {
    const KernelCase &c = caseOf(m.kernel);
    bool found = false;
    std::string last;
    for (unsigned n = m.n == anyOf ? 0 : m.n; !found; ++n) {
      std::string ptx = mutate(c, m.what, n, m.with);
      if (ptx.empty())
        break;
      Outcome o = run(c, ptx, 0);
      found = m.kinds.empty() && o.result.ok() && o.right;
      for (ReportKind kind : m.kinds)
        found |= o.has(kind);
      last = (o.right ? "right" : "wrong") + o.text();
      if (m.n != anyOf)
        break;
    }
    EXPECT_TRUE(found) << m.kernel << ": " << m.what << " " << int(m.n)
                       << " -> " << m.with << ", " << last;
  }
}

/// No statement that orders something can be dropped without a report, unless
/// everything stays right.
TEST(HopperMutations, NothingIsLostInSilence) {
  unsigned reported = 0, harmless = 0;
  for (const char *name : {"tensor_store", "tensor_reduce", "bulk_ring",
                           "bulk_reduce", "mbarrier_states", "gemm_ring",
                           "gemm_roles", "wgmma_f16_m128_b", "box_edges"}) {
    const KernelCase &c = caseOf(name);
    struct Kind {
      const char *what, *with;
    } kinds[] = {{"bar.sync", ""},       {"bar.warp.sync", ""},
                 {"try_wait", passes},   {"fence.", ""},
                 {"wait_group", ""},     {"commit_group", ""},
                 {"mbarrier.arrive", ""}};
    for (const Kind &k : kinds)
      for (unsigned n = 0;; ++n) {
        std::string ptx = mutate(c, k.what, n, k.with);
        if (ptx.empty())
          break;
        bool found = false;
        for (uint64_t seed = 0; seed < 3 && !found; ++seed) {
          Outcome o = run(c, ptx, seed);
          found = !o.result.ok();
          if (!found) {
            EXPECT_TRUE(o.right) << name << " without " << k.what << " " << n
                                 << ", seed " << seed;
          }
        }
        ++(found ? reported : harmless);
      }
  }
  // Harmless are copies of loops that are not reached, waits for phases that
  // are over, fences.
  EXPECT_GT(reported, 2 * harmless);
}

} // namespace
} // namespace fi::emulator::test
