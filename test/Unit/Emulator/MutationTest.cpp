//===- MutationTest.cpp - Broken kernels are reported ---------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each test takes a kernel that is right, takes one thing away, and wants the
// report that says so.
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"

#include <cctype>
#include <cstring>
#include <gtest/gtest.h>

namespace fi::emulator::test {
namespace {

/// Drops the n-th statement (from 0) of a kernel that contains `what`; with
/// `with`, replaces `what` by it instead.
std::string mutate(const std::string &module, const std::string &kernel,
                   const std::string &what, unsigned n = 0,
                   const char *with = nullptr) {
  std::string text = moduleText(module);
  size_t at = text.find(".entry " + kernel + "(");
  for (unsigned i = 0; at != std::string::npos; ++i) {
    at = text.find(what, at + 1);
    if (i == n)
      break;
  }
  EXPECT_NE(at, std::string::npos) << what << " of " << kernel;
  if (with)
    return text.replace(at, what.size(), with);
  size_t begin = text.rfind('\n', at) + 1, end = text.find(';', at);
  // Inline assembly has one statement a line.
  return text.replace(begin, end + 1 - begin, "");
}

LaunchResult run(const std::string &kernel, const std::string &ptx,
                 Options options = {}) {
  options.check = true;
  std::string error;
  for (const KernelCase &which : kernelCases())
    if (which.name() == kernel) {
      KernelCase c = which;
      auto device = Device::create(c.target, options, error);
      return runCase(*device, c, ptx);
    }
  return {};
}

bool has(const LaunchResult &r, ReportKind kind) {
  for (const Report &report : r.reports)
    if (report.kind == kind)
      return true;
  return false;
}
std::string all(const LaunchResult &r) {
  std::string text = r.error;
  for (const Report &report : r.reports)
    text += "\n" + report.str();
  return text;
}
#define EXPECT_REPORT(RESULT, KIND)                                            \
  do {                                                                         \
    const LaunchResult &launched = (RESULT);                                   \
    EXPECT_TRUE(has(launched, ReportKind::KIND)) << all(launched);             \
  } while (0)

TEST(Mutations, EveryBarrierOfTheTreeIsNeeded) {
  for (unsigned n : {0, 1})
    EXPECT_REPORT(
        run("reduce_tree", mutate("basic", "reduce_tree", "bar.sync", n)),
        Race);
}
TEST(Mutations, BarrierOfTheTranspose) {
  LaunchResult r = run("transpose_swizzle",
                       mutate("basic", "transpose_swizzle", "bar.sync"));
  EXPECT_TRUE(has(r, ReportKind::Race) ||
              has(r, ReportKind::UninitializedMemory))
      << all(r);
}
TEST(Mutations, BarriersOfTheProduct) {
  for (unsigned n : {0, 1})
    EXPECT_REPORT(run("gemm_f16", mutate("matrix", "gemm_f16", "bar.sync", n)),
                  Race);
}
TEST(Mutations, WaitOfTheProduct) {
  LaunchResult r =
      run("gemm_f16", mutate("matrix", "gemm_f16", "cp.async.wait_group", 0));
  LaunchResult s =
      run("gemm_f16", mutate("matrix", "gemm_f16", "cp.async.wait_group", 1));
  EXPECT_REPORT(r, PendingCopy);
  EXPECT_REPORT(s, PendingCopy);
}
TEST(Mutations, CommitOfThePipeline) {
  EXPECT_REPORT(run("gemm_bf16",
                    mutate("matrix", "gemm_bf16", "cp.async.commit_group", 0)),
                PendingCopy);
}
TEST(Mutations, WaitForOneGroupTooFew) {
  EXPECT_REPORT(run("async_pipeline",
                    mutate("matrix", "async_pipeline", "cp.async.wait_group 2",
                           0, "cp.async.wait_group 3")),
                PendingCopy);
}
TEST(Mutations, BarrierOfThePipeline) {
  EXPECT_REPORT(
      run("async_pipeline", mutate("matrix", "async_pipeline", "bar.sync")),
      Race);
}
TEST(Mutations, WarpBarrierBeforeLdmatrix) {
  EXPECT_REPORT(run("ldmatrix_layout",
                    mutate("matrix", "ldmatrix_layout", "bar.warp.sync")),
                Race);
}
TEST(Mutations, ShiftedStore) {
  EXPECT_REPORT(run("scan_block",
                    mutate("basic", "scan_block", "[%rd8], ", 0, "[%rd8+2], ")),
                Misaligned);
}
TEST(Mutations, FenceOfTheLastArriver) {
  std::string ptx = mutate("basic", "last_arriver", "membar.gl");
  EXPECT_REPORT(run("last_arriver", ptx), Race);
}
TEST(Mutations, FenceOfTheChain) {
  EXPECT_REPORT(
      run("chained_blocks", mutate("basic", "chained_blocks", "membar.gl", 1)),
      Race);
}
TEST(Mutations, ArriveOfTheProducer) {
  LaunchResult r = run("named_barriers",
                       mutate("matrix", "named_barriers", "bar.arrive", 0));
  EXPECT_TRUE(has(r, ReportKind::Deadlock) || has(r, ReportKind::Race))
      << all(r);
}
TEST(Mutations, SmallerAllocation) {
  Options options;
  options.check = true;
  std::string error;
  auto device = Device::create("sm_80", options, error);
  for (const KernelCase &which : kernelCases())
    if (which.kernel == "scan_block") {
      KernelCase c = which;
      c.arguments[1].words.resize(c.arguments[1].words.size() - 1);
      LaunchResult r = runCase(*device, c);
      ASSERT_TRUE(has(r, ReportKind::OutOfBounds)) << all(r);
      EXPECT_EQ(r.reports[0].thread[0], 699 % 256u);
      EXPECT_NE(
          r.reports[0].message.find("0 bytes after the end of an allocation"),
          std::string::npos)
          << all(r);
      // The line of the CUDA source.
      EXPECT_EQ(r.reports[0].place.file, "basic.cu");
      EXPECT_GT(r.reports[0].place.line, 0u);
    }
}

//===- Small programs -----------------------------------------------------===//

LaunchResult runText(const std::string &body, uint32_t threads = 32,
                     uint64_t steps = 0) {
  Options options;
  options.check = true;
  options.stepLimit = steps;
  std::string error;
  auto device = Device::create("sm_80", options, error);
  Module *m =
      device->moduleLoad("t.ptx",
                         ".version 8.0\n.target sm_80\n.address_size 64\n"
                         ".entry k(.param .u64 p)\n{\n.reg .b32 %r<9>;\n"
                         ".reg .b64 %rd<9>;\n.reg .pred %p<9>;\n"
                         ".shared .align 16 .b8 s[256];\n"
                         "ld.param.u64 %rd0, [p];\nmov.u32 %r0, %tid.x;\n" +
                             body + "\nret;\n}\n",
                         error);
  LaunchResult r;
  if (!m) {
    r.error = error;
    return r;
  }
  uint64_t p = device->memAlloc(256, error);
  LaunchConfig c;
  c.block = Dim3{threads};
  c.params = &p;
  c.paramBytes = 8;
  return device->launch(*m->getFunction("k", error), c);
}

TEST(Reports, UninitializedGlobal) {
  EXPECT_REPORT(runText("ld.global.u32 %r1, [%rd0];"), UninitializedMemory);
}
TEST(Reports, UninitializedShared) {
  EXPECT_REPORT(runText("ld.shared.u32 %r1, [s];"), UninitializedMemory);
}
TEST(Reports, UninitializedRegister) {
  EXPECT_REPORT(runText("add.u32 %r1, %r2, 1;"), UninitializedRegister);
  EXPECT_REPORT(runText("setp.lt.u32 %p1, %r0, 4;\n@%p1 mov.u32 %r1, 1;\n"
                        "add.u32 %r2, %r1, 1;"),
                UninitializedRegister);
}
TEST(Reports, AlignedInstructionOfHalfAWarp) {
  EXPECT_REPORT(
      runText("setp.lt.u32 %p1, %r0, 16;\n@%p1 bra L;\n"
              "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 "
              "{%r1,%r2,%r3,%r4},{%r0,%r0},{%r0},{%r0,%r0,%r0,%r0};\nL:"),
      Divergence);
}
TEST(Reports, BarrierThatOneWarpSkips) {
  EXPECT_REPORT(
      runText("setp.lt.u32 %p1, %r0, 32;\n@%p1 bra L;\nbar.sync 1, 64;\nL:",
              64),
      Deadlock);
}
TEST(Reports, BarrierCounts) {
  EXPECT_REPORT(runText("bar.sync 1, 33;"), BarrierMisuse);
  EXPECT_REPORT(
      runText("setp.lt.u32 %p1, %r0, 32;\n@%p1 bra L;\nbar.sync 1, 64;\nret;\n"
              "L:\nbar.sync 1, 96;",
              96),
      BarrierMisuse);
}
TEST(Reports, LanesThatWaitForLanesThatLeft) {
  EXPECT_REPORT(runText("setp.lt.u32 %p1, %r0, 16;\n@%p1 bra L;\n"
                        "shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;\nret;\nL:\n"
                        "bar.warp.sync -1;"),
                Deadlock);
}
TEST(Reports, EndlessLoop) {
  EXPECT_REPORT(runText("L: bra L;", 32, 100000), StepLimit);
}
TEST(Reports, Trap) { EXPECT_REPORT(runText("trap;"), Trap); }
TEST(Reports, LanesMayWaitForLanes) {
  // Lane 0 sets what the others wait for at a lower place in the text.
  LaunchResult r = runText("setp.eq.u32 %p1, %r0, 0;\n@%p1 bra SET;\n"
                           "WAIT:\nld.volatile.shared.u32 %r1, [s];\n"
                           "setp.ne.u32 %p2, %r1, 77;\n@%p2 bra WAIT;\nret;\n"
                           "SET:\nst.volatile.shared.u32 [s], 77;");
  EXPECT_EQ(r.error, "");
  EXPECT_FALSE(has(r, ReportKind::Deadlock)) << all(r);
}
TEST(Reports, NonCoherentRead) {
  EXPECT_REPORT(
      runText("st.global.u32 [%rd0], 1;\nld.global.nc.u32 %r1, [%rd0];"),
      NonCoherent);
}

} // namespace
} // namespace fi::emulator::test
