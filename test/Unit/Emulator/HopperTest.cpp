//===- HopperTest.cpp - Tensor maps, shapes of wgmma, reports -------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "KernelCases.h"
#include "fi-emulator/fi_emulator.h"

#include <cstring>
#include <gtest/gtest.h>

namespace fi::emulator::test {
namespace {

//===- Tensor maps --------------------------------------------------------===//

TensorMapConfig goodMap() {
  TensorMapConfig m;
  m.type = TensorMapConfig::Type::F16;
  m.rank = 2;
  m.address = 4096;
  m.dims[0] = 128;
  m.dims[1] = 64;
  m.strides[0] = 256;
  m.box[0] = 64;
  m.box[1] = 32;
  m.swizzle = TensorMapConfig::Swizzle::Bytes128;
  return m;
}
struct BadMap {
  void (*change)(TensorMapConfig &);
  const char *message;
};
const BadMap badMaps[] = {
    {[](TensorMapConfig &m) { m.address = 4104; }, "aligned to 16"},
    {[](TensorMapConfig &m) { m.address = 0; }, "address"},
    {[](TensorMapConfig &m) { m.rank = 0; }, "rank of 1 to 5"},
    {[](TensorMapConfig &m) { m.rank = 6; }, "rank of 1 to 5"},
    {[](TensorMapConfig &m) { m.dims[1] = 0; }, "size of 1 to 2^32 of dimen"},
    {[](TensorMapConfig &m) { m.strides[0] = 264; }, "multiple of 16 bytes"},
    {[](TensorMapConfig &m) { m.strides[0] = uint64_t(1) << 40; },
     "less than 2^40"},
    {[](TensorMapConfig &m) { m.box[1] = 257; }, "box of 1 to 256 elements"},
    {[](TensorMapConfig &m) { m.box[1] = 0; }, "box of 1 to 256 elements"},
    {[](TensorMapConfig &m) { m.box[0] = 4; }, "multiple of 16 bytes"},
    {[](TensorMapConfig &m) { m.box[0] = 72; }, "at most 128 bytes"},
    {[](TensorMapConfig &m) { m.swizzle = TensorMapConfig::Swizzle::Bytes32; },
     "at most 32 bytes"},
    {[](TensorMapConfig &m) { m.elementStrides[1] = 9; }, "stride of 1 to 8"},
    {[](TensorMapConfig &m) { m.interleave = 1; }, "interleave"},
    {[](TensorMapConfig &m) {
       m.fill = 1;
       m.type = TensorMapConfig::Type::U16;
     },
     "floating-point"},
    {[](TensorMapConfig &m) { m.type = TensorMapConfig::Type(13); },
     "unknown element type"},
};
TEST(TensorMaps, AreRefusedAsByTheDriver) {
  alignas(64) uint8_t bytes[tensorMapBytes];
  std::string error;
  EXPECT_TRUE(encodeTensorMap(goodMap(), bytes, error)) << error;
  EXPECT_FALSE(encodeTensorMap(goodMap(), bytes + 8, error));
  for (const BadMap &bad : badMaps) {
    TensorMapConfig m = goodMap();
    bad.change(m);
    error.clear();
    EXPECT_FALSE(encodeTensorMap(m, bytes, error)) << bad.message;
    EXPECT_NE(error.find(bad.message), std::string::npos) << error;
  }
}

TEST(TensorMaps, AreTheSameInC) {
  alignas(64) uint8_t bytes[tensorMapBytes], same[tensorMapBytes];
  TensorMapConfig m = goodMap();
  std::string error;
  ASSERT_TRUE(encodeTensorMap(m, bytes, error)) << error;
  ASSERT_EQ(fi_emu_tensor_map_encode_tiled(
                same, uint32_t(m.type), m.rank, m.address, m.dims, m.strides,
                m.box, m.elementStrides, 0, uint32_t(m.swizzle), 0, 0),
            0)
      << fi_emu_last_error();
  EXPECT_EQ(std::memcmp(bytes, same, sizeof(bytes)), 0);
  EXPECT_EQ(fi_emu_tensor_map_encode_tiled(same, 6, 7, m.address, m.dims,
                                           m.strides, m.box, m.elementStrides,
                                           0, 3, 0, 0),
            1);
  EXPECT_NE(std::string(fi_emu_last_error()).find("rank"), std::string::npos);
}

//===- All shapes of wgmma ------------------------------------------------===//

struct Family {
  const char *types;
  uint32_t bytes, step, resultWords; // of n; words of d for n = 8
  const char *rest;
};
/// Both matrices along k, swizzled by 128 bytes: A at 1 KiB, B behind it.
std::string productText(const Family &f, uint32_t n, uint32_t depth) {
  uint32_t count = n / 8 * f.resultWords;
  std::string regs;
  for (uint32_t i = 0; i < count; ++i)
    regs += (i ? ", %r" : "%r") + std::to_string(100 + i);
  std::string text =
      ".version 8.0\n.target sm_90a\n.address_size 64\n"
      ".entry k(.param .u64 in, .param .u64 out)\n{\n"
      ".reg .b32 %r<300>;\n.reg .b64 %rd<9>;\n.reg .pred %p;\n"
      ".shared .align 1024 .b8 s[40960];\n"
      "ld.param.u64 %rd0, [in];\nld.param.u64 %rd1, [out];\n"
      "mov.u32 %r0, %tid.x;\nmov.u32 %r1, 0;\n"
      "COPY:\nmad.lo.u32 %r2, %r1, 128, %r0;\nshl.b32 %r2, %r2, 4;\n"
      "cvt.u64.u32 %rd2, %r2;\nadd.u64 %rd2, %rd2, %rd0;\n"
      "mov.u32 %r3, s;\nadd.u32 %r3, %r3, %r2;\n"
      "ld.global.v4.u32 {%r4, %r5, %r6, %r7}, [%rd2];\n"
      "st.shared.v4.u32 [%r3], {%r4, %r5, %r6, %r7};\n"
      "add.u32 %r1, %r1, 1;\nsetp.lt.u32 %p, %r1, 20;\n@%p bra COPY;\n"
      "fence.proxy.async;\nbar.sync 0;\nmov.u32 %r3, s;\nshr.u32 %r3, %r3, 4;\n"
      "cvt.u64.u32 %rd3, %r3;\nmov.u64 %rd4, 0x4000004000010000;\n"
      "or.b64 %rd3, %rd3, %rd4;\nadd.u64 %rd4, %rd3, 512;\n"
      "setp.ne.u32 %p, %r0, %r0;\nwgmma.fence.sync.aligned;\n"
      "wgmma.mma_async.sync.aligned.m64n" +
      std::to_string(n) + "k" + std::to_string(depth) + "." + f.types + " {" +
      regs + "}, %rd3, %rd4, %p" + f.rest + ";\n";
  // Once more, to the sum.
  text += "setp.eq.u32 %p, %r0, %r0;\n"
          "wgmma.mma_async.sync.aligned.m64n" +
          std::to_string(n) + "k" + std::to_string(depth) + "." + f.types +
          " {" + regs + "}, %rd3, %rd4, %p" + f.rest + ";\n";
  text += "wgmma.commit_group.sync.aligned;\n"
          "wgmma.wait_group.sync.aligned 0;\n"
          "mul.lo.u32 %r2, %r0, " +
          std::to_string(count * 4) +
          ";\ncvt.u64.u32 %rd2, %r2;\nadd.u64 %rd1, %rd1, %rd2;\n";
  for (uint32_t i = 0; i < count; ++i)
    text += "st.global.u32 [%rd1+" + std::to_string(4 * i) + "], %r" +
            std::to_string(100 + i) + ";\n";
  return text + "ret;\n}\n";
}

TEST(Wgmma, AllShapes) {
  const Family families[] = {
      {"f32.f16.f16", 2, 8, 4, ", 1, 1, 0, 0"},
      {"f16.f16.f16", 2, 8, 2, ", 1, 1, 0, 0"},
      {"f32.tf32.tf32", 4, 8, 4, ", 1, 1"},
      {"f32.e4m3.e4m3", 1, 8, 4, ", 1, 1"},
      {"s32.s8.s8", 1, 16, 4, ""},
  };
  std::string error;
  for (const Family &f : families) {
    uint32_t depth = 32 / f.bytes;
    // Elements are 1 or -1 (or 2 by n), as integers of few bits.
    std::vector<uint32_t> in(40960 / 4, 0);
    auto *memory = reinterpret_cast<uint8_t *>(in.data());
    Numbers numbers(51);
    std::vector<int> a(64 * depth), b(256 * depth);
    auto put = [&](uint32_t base, uint32_t row, uint32_t k, int v) {
      uint32_t at = base + row * 128 + k * f.bytes;
      at ^= (at / 128 % 8) * 16;
      uint32_t bits = f.bytes == 2        ? (v == 2   ? 0x4000
                                             : v == 1 ? 0x3c00
                                                      : 0xbc00)
                      : f.bytes == 4      ? (v == 2   ? 0x40000000u
                                             : v == 1 ? 0x3f800000u
                                                      : 0xbf800000u)
                      : f.types[0] == 's' ? uint32_t(v) & 255
                                          : (v == 2   ? 0x40
                                             : v == 1 ? 0x38
                                                      : 0xb8);
      std::memcpy(memory + at, &bits, f.bytes);
    };
    auto pick = [&] {
      uint32_t r = numbers.next() % 3;
      return r == 0 ? -1 : int(r);
    };
    for (uint32_t i = 0; i < 64 * depth; ++i)
      put(0, i / depth, i % depth, a[i] = pick());
    for (uint32_t i = 0; i < 256 * depth; ++i)
      put(8192, i / depth, i % depth, b[i] = pick());
    for (uint32_t n = f.step == 8 ? 8 : 8; n <= 256; n += 8) {
      if (f.step == 16 && n > 24 && n % 16)
        continue;
      Options options;
      options.check = n % 64 == 0;
      options.seed = n / 8;
      auto device = Device::create("sm_90a", options, error);
      Module *m = device->moduleLoad("p.ptx", productText(f, n, depth), error);
      ASSERT_TRUE(m) << error;
      uint32_t count = n / 8 * f.resultWords;
      uint64_t params[2] = {device->memAlloc(in.size() * 4, error),
                            device->memAlloc(128 * count * 4, error)};
      device->memcpyToDevice(params[0], in.data(), in.size() * 4, error);
      LaunchConfig c;
      c.block = Dim3{128};
      c.params = params;
      c.paramBytes = sizeof(params);
      LaunchResult r = device->launch(*m->getFunction("k", error), c);
      ASSERT_TRUE(r.ok()) << f.types << " " << n << r.error
                          << (r.reports.empty() ? "" : r.reports[0].str());
      std::vector<uint32_t> got(128 * count);
      device->memcpyToHost(got.data(), params[1], got.size() * 4, error);
      unsigned wrong = 0;
      for (uint32_t t = 0; t < 128; ++t)
        for (uint32_t i = 0; i < n / 2; ++i) {
          uint32_t row = t / 32 * 16 + t % 32 / 4 + (i >> 1 & 1) * 8;
          uint32_t column = i / 4 * 8 + t % 4 * 2 + (i & 1);
          int sum = 0;
          for (uint32_t k = 0; k < depth; ++k)
            sum += 2 * a[row * depth + k] * b[column * depth + k];
          float value;
          if (f.resultWords == 2) {
            uint32_t h = got[t * count + i / 2] >> (i & 1) * 16 & 0xffff;
            uint32_t bits = h & 0x7fff ? (h & 0x8000) << 16 |
                                             ((h >> 10 & 31) + 112) << 23 |
                                             (h & 0x3ff) << 13
                                       : 0;
            std::memcpy(&value, &bits, 4);
          } else if (f.types[0] == 's') {
            value = float(int32_t(got[t * count + i]));
          } else {
            std::memcpy(&value, &got[t * count + i], 4);
          }
          wrong += value != float(sum);
        }
      EXPECT_EQ(wrong, 0u) << f.types << " n " << n;
    }
  }
}

//===- Reports ------------------------------------------------------------===//

LaunchResult runText(const std::string &body, uint32_t threads = 32,
                     const char *directives = "", uint64_t seed = 0) {
  Options options;
  options.check = true;
  options.seed = seed;
  std::string error;
  auto device = Device::create("sm_90a", options, error);
  Module *m = device->moduleLoad(
      "t.ptx",
      std::string(".version 8.0\n.target sm_90a\n.address_size 64\n"
                  ".entry k(.param .u64 p)\n") +
          directives +
          "\n{\n.reg .b32 %r<90>;\n.reg .b64 %rd<9>;\n.reg .pred %p<9>;\n"
          ".shared .align 1024 .b8 s[16384];\n.shared .align 8 .b64 bar;\n"
          "ld.param.u64 %rd0, [p];\nmov.u32 %r0, %tid.x;\n"
          "mov.u32 %r1, s;\nmov.u32 %r2, bar;\n"
          "setp.eq.u32 %p0, %r0, 0;\n" +
          body + "\nret;\n}\n",
      error);
  LaunchResult r;
  if (!m) {
    r.error = error;
    return r;
  }
  uint64_t p = device->memAlloc(16384, error);
  std::vector<uint8_t> zeros(16384, 0);
  device->memcpyToDevice(p, zeros.data(), zeros.size(), error);
  LaunchConfig c;
  c.block = Dim3{threads};
  c.params = &p;
  c.paramBytes = 8;
  return device->launch(*m->getFunction("k", error), c);
}

std::string all(const LaunchResult &r) {
  std::string text = r.error;
  for (const Report &report : r.reports)
    text += "\n" + report.str();
  return text;
}
void expectReport(const LaunchResult &r, ReportKind kind,
                  const std::string &words) {
  for (const Report &report : r.reports)
    if (report.kind == kind && report.message.find(words) != std::string::npos)
      return;
  ADD_FAILURE() << "no " << nameOf(kind) << " with '" << words << "'" << all(r);
}

const std::string init1 =
    "@%p0 mbarrier.init.shared.b64 [%r2], 1;\nbar.sync 0;\n";
const std::string load16 =
    "@%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes "
    "[%r1], [%rd0], 16, [%r2];\n";
const std::string expect16 =
    "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 16;\n";
std::string waitFor(const std::string &parity) {
  return "{\nW:\nmbarrier.try_wait.parity.shared.b64 %p1, [%r2], " + parity +
         ";\n@!%p1 bra W;\n}\n";
}

TEST(HopperReports, Mbarriers) {
  expectReport(runText("mbarrier.arrive.shared.b64 %rd1, [%r2];"),
               ReportKind::MbarrierFault, "no mbarrier was initialised at");
  expectReport(runText(init1 + "@%p0 mbarrier.arrive.shared.b64 _, [%r2], 2;"),
               ReportKind::MbarrierFault, "2 arrivals at the mbarrier");
  expectReport(runText("@%p0 mbarrier.init.shared.b64 [%r2], 0;"),
               ReportKind::MbarrierFault, "count of 0");
  expectReport(runText(init1 + init1), ReportKind::MbarrierFault,
               "mbarrier.inval comes first");
  expectReport(
      runText(init1 + "@%p0 st.shared.u32 [%r2+4], 1;\n" + waitFor("1")),
      ReportKind::MbarrierFault, "was overwritten");
  expectReport(runText(init1 + "mbarrier.test_wait.parity.shared.b64 %p1, "
                               "[%r2], 2;"),
               ReportKind::MbarrierFault, "a parity of 2");
  // The state of a phase that is two behind.
  std::string arrive = "@%p0 mbarrier.arrive.shared.b64 _, [%r2];\n";
  expectReport(
      runText("mov.u64 %rd1, 0;\n" + init1 +
              "@%p0 mbarrier.arrive.shared.b64 %rd1, [%r2];\n" + arrive +
              "@%p0 mbarrier.test_wait.shared.b64 %p1, [%r2], %rd1;"),
      ReportKind::MbarrierFault, "neither the current nor the one before");
  expectReport(runText(init1 + "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, "
                               "[%r2], 2000000;"),
               ReportKind::MbarrierFault, "more bytes than");
  expectReport(runText("mbarrier.init.shared.b64 [%r2+4], 1;"),
               ReportKind::Misaligned, "mbarrier at");
  // Who did not see the initialisation.
  expectReport(runText("@%p0 mbarrier.init.shared.b64 [%r2], 1;\n"
                       "setp.lt.u32 %p2, %r0, 32;\n@%p2 bra L;\n" +
                           waitFor("1") + "L:",
                       64),
               ReportKind::Race, "mbarrier.init");
}

TEST(HopperReports, DeadlockNamesWhatIsPending) {
  LaunchResult r = runText(init1 + expect16 + waitFor("0"));
  expectReport(r, ReportKind::Deadlock,
               "phase 0 (parity 0), with 0 of 1 "
               "arrivals and 16 bytes pending");
  r = runText(init1 + waitFor("0"));
  expectReport(r, ReportKind::Deadlock,
               "with 1 of 1 arrivals and 0 bytes pending");
  // By tests that do not wait.
  r = runText(init1 + "W:\nmbarrier.test_wait.parity.shared.b64 %p1, [%r2], "
                      "0;\n@!%p1 bra W;\n");
  expectReport(r, ReportKind::Deadlock, "phase 0 (parity 0)");
  // More than was expected arrives.
  r = runText(init1 + "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%r2], 8;" +
              load16 + waitFor("0"));
  expectReport(r, ReportKind::Deadlock, "0 of 1 arrivals and -8 bytes");
}

/// Copies of a thread that ends, each with an mbarrier of its own: who waits
/// for the first has the first, in whatever order they are done.
TEST(HopperReports, ArrivalsAfterCopies) {
  const std::string before =
      "@%p0 mbarrier.init.shared.b64 [%r2], 1;\n"
      "@%p0 mbarrier.init.shared.b64 [%r1+8192], 1;\nbar.sync 0;\n"
      "setp.ge.u32 %p2, %r0, 32;\n@%p2 bra READ;\n"
      "@%p0 cp.async.cg.shared.global [%r1], [%rd0], 16;\n"
      "@%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [%r2];\n"
      "@%p0 cp.async.cg.shared.global [%r1+16], [%rd0+16], 16;\n"
      "@%p0 cp.async.mbarrier.arrive.noinc.shared.b64 [%r1+8192];\n"
      "bra END;\nREAD:\n" +
      waitFor("0");
  unsigned found = 0;
  for (uint64_t seed = 0; seed < 12; ++seed) {
    LaunchResult r =
        runText(before + "ld.shared.u32 %r3, [%r1];\nEND:", 64, "", seed);
    EXPECT_TRUE(r.ok()) << "seed " << seed << all(r);
    r = runText(before + "ld.shared.u32 %r3, [%r1+16];\nEND:", 64, "", seed);
    for (const Report &report : r.reports)
      found += report.kind == ReportKind::Race ||
               report.kind == ReportKind::PendingCopy;
  }
  EXPECT_GE(found, 12u);
}

TEST(HopperReports, BulkCopies) {
  for (uint64_t seed : {0, 1, 2}) {
    // Right.
    LaunchResult r = runText(init1 + expect16 + load16 + waitFor("0") +
                                 "ld.shared.u32 %r3, [%r1];",
                             32, "", seed);
    EXPECT_TRUE(r.ok()) << all(r);
    // Not waited for.
    expectReport(
        runText(init1 + expect16 + load16 + "ld.shared.u32 %r3, [%r1];", 32, "",
                seed),
        ReportKind::PendingCopy, "read of memory that an");
  }
  expectReport(runText(init1 + expect16 + load16), ReportKind::PendingCopy,
               "the block ends");
  expectReport(runText(init1 + "@%p0 cp.async.bulk.shared::cluster.global."
                               "mbarrier::complete_tx::bytes [%r1+8], [%rd0], "
                               "16, [%r2];"),
               ReportKind::Misaligned, "no multiple of 16");
  expectReport(runText(init1 + "@%p0 cp.async.bulk.shared::cluster.global."
                               "mbarrier::complete_tx::bytes [%r1], [%rd0], "
                               "24, [%r2];"),
               ReportKind::Misaligned, "a bulk copy of 24 bytes");
  expectReport(runText(init1 + "@%p0 cp.async.bulk.shared::cluster.global."
                               "mbarrier::complete_tx::bytes [%r1], "
                               "[%rd0+16376], 16, [%r2];"),
               ReportKind::Misaligned, "");
  expectReport(runText(init1 + "@%p0 cp.async.bulk.shared::cluster.global."
                               "mbarrier::complete_tx::bytes [%r1], "
                               "[%rd0+16384], 16, [%r2];"),
               ReportKind::OutOfBounds, "bulk copy");
  expectReport(runText(init1 + "@%p0 cp.async.bulk.tensor.2d.shared::cluster."
                               "global.mbarrier::complete_tx::bytes [%r1], "
                               "[%rd0, {%r0, %r0}], [%r2];"),
               ReportKind::InvalidInstruction, "no tensor map");
  // A store whose source nobody wrote, and one that is still being read.
  std::string store = "@%p0 cp.async.bulk.global.shared::cta.bulk_group "
                      "[%rd0], [%r1], 16;\n@%p0 cp.async.bulk.commit_group;\n";
  std::string write = "@%p0 st.shared.v4.u32 [%r1], {%r0, %r0, %r0, %r0};\n";
  std::string fence = "@%p0 fence.proxy.async;\n";
  std::string wait = "@%p0 cp.async.bulk.wait_group.read 0;\n";
  EXPECT_TRUE(runText(write + fence + store + wait + write).ok())
      << all(runText(write + fence + store + wait + write));
  expectReport(runText(store + wait), ReportKind::UninitializedMemory,
               "shared memory");
  expectReport(runText(write + fence + store + write + wait),
               ReportKind::PendingCopy, "is still reading");
  expectReport(runText(write + store + wait), ReportKind::ProxyFence, "");
  expectReport(runText(write + fence + store), ReportKind::PendingCopy,
               "wait_group is missing");
  // A fence of one lane does not cover what another wrote without meeting it.
  std::string other = "setp.eq.u32 %p2, %r0, 1;\n@%p2 st.shared.v4.u32 [%r1], "
                      "{%r0, %r0, %r0, %r0};\n";
  std::string meet = "bar.warp.sync -1;\n";
  EXPECT_TRUE(runText(other + meet + fence + store + wait).ok())
      << all(runText(other + meet + fence + store + wait));
  expectReport(runText(other + fence + meet + store + wait),
               ReportKind::ProxyFence, "");
  expectReport(runText(other + fence + store + wait), ReportKind::Race, "");
}

KernelCase caseOf(const std::string &name) {
  for (const KernelCase &c : kernelCases())
    if (c.name() == name)
      return c;
  ADD_FAILURE() << "no case " << name;
  return {};
}

/// Coordinate 0 that is no multiple of 16 bytes: an error with and without
/// checks, of loads and stores, inside the tensor and outside.
TEST(HopperReports, FirstCoordinates) {
  struct {
    const char *name;
    size_t argument;
    int32_t coordinate;
    const char *message;
    ReportKind kind = ReportKind::Misaligned;
  } bad[] = {
      {"box_edges", 5, -7,
       "coordinate 0 of a tensor copy is -7 with elements of 2 bytes, which is "
       "byte -14 of a row; expected a multiple of 16 bytes, hence a coordinate "
       "that is a multiple of 8"},
      {"box_1d", 5, 900, "is 900 with elements of 1 bytes"},
      {"box_outside", 5, -101, "is -101 with elements of 4 bytes"},
      {"box_5d", 5, 1, "a coordinate that is a multiple of 2"},
      {"store_edges", 2, 9, "is 9 with elements of 2 bytes"},
      {"store_edges", 3, -1,
       "coordinate 1 of a store to a tensor is -1; expected none below 0",
       ReportKind::OutOfBounds},
      {"store_edges", 2, -8, "coordinate 0 of a store to a tensor is -8",
       ReportKind::OutOfBounds},
  };
  for (const auto &b : bad)
    for (bool check : {false, true}) {
      const auto &cases = kernelCases();
      auto found =
          std::find_if(cases.begin(), cases.end(),
                       [&](const KernelCase &c) { return c.name() == b.name; });
      ASSERT_NE(found, cases.end()) << b.name;
      KernelCase c = *found;
      c.arguments[b.argument].scalar = uint32_t(b.coordinate);
      Options options;
      options.check = check;
      std::string error;
      auto device = Device::create("sm_90a", options, error);
      expectReport(runCase(*device, c), b.kind, b.message);
    }
}

/// 40 rows of 64 bytes take 40 spans of 128 bytes, which must be there.
TEST(HopperReports, NarrowBoxesBeyondTheEnd) {
  for (uint32_t bytes : {2560, 5120}) {
    KernelCase c = caseOf("box_swizzle128_rows64");
    ASSERT_GT(c.arguments.size(), 2u);
    c.arguments[2].scalar = 49152 - bytes;
    std::string error;
    auto device = Device::create("sm_90a", {}, error);
    LaunchResult r = runCase(*device, c);
    if (bytes == 5120)
      EXPECT_TRUE(r.ok()) << all(r);
    else
      expectReport(r, ReportKind::OutOfBounds, "box of 5120 bytes");
  }
}

TEST(HopperReports, OneLaneArrivesForOthers) {
  // Warp 0 reads, its lane 0 arrives; warp 1 overwrites after that.
  auto text = [](const char *meet) {
    return init1 +
           "st.shared.u32 [%r1+4], %r0;\n" // lanes overwrite each other
           "bar.sync 0;\nsetp.lt.u32 %p2, %r0, 32;\n@!%p2 bra OTHER;\n"
           "ld.shared.u32 %r3, [%r1+4];\n" +
           meet + "@%p0 mbarrier.arrive.shared.b64 _, [%r2];\nret;\nOTHER:\n" +
           waitFor("0") +
           "setp.eq.u32 %p3, %r0, 32;\n"
           "@%p3 st.shared.u32 [%r1+4], 7;\n";
  };
  auto races = [](const LaunchResult &r) {
    unsigned n = 0;
    for (const Report &report : r.reports)
      n += report.kind == ReportKind::Race &&
           report.message.find("a read") != std::string::npos;
    return n;
  };
  EXPECT_EQ(races(runText(text("bar.warp.sync -1;\n"), 64)), 0u);
  EXPECT_EQ(races(runText(text(""), 64)), 1u);
}

std::string product(const char *registers = "{%r10, %r11, %r12, %r13}") {
  return std::string("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 ") +
         registers + ", %rd1, %rd1, %p3, 1, 1, 0, 0;\n";
}
TEST(HopperReports, Wgmma) {
  std::string ready =
      "shl.b32 %r4, %r0, 4;\nadd.u32 %r4, %r4, %r1;\n"
      "st.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};\n"
      "add.u32 %r4, %r4, 2048;\nst.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};\n"
      "add.u32 %r4, %r4, 2048;\nst.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};\n"
      "add.u32 %r4, %r4, 2048;\nst.shared.v4.u32 [%r4], {%r0, %r0, %r0, %r0};\n"
      "fence.proxy.async;\nbar.sync 0;\nshr.u32 %r4, %r1, 4;\n"
      "cvt.u64.u32 %rd1, %r4;\nmov.u64 %rd2, 0x4000004000010000;\n"
      "or.b64 %rd1, %rd1, %rd2;\nsetp.ne.u32 %p3, %r0, %r0;\n";
  std::string fence = "wgmma.fence.sync.aligned;\n",
              commit = "wgmma.commit_group.sync.aligned;\n",
              wait = "wgmma.wait_group.sync.aligned 0;\n";
  std::string use = "add.u32 %r20, %r10, 1;\n";
  for (uint64_t seed : {0, 1, 2, 3}) {
    LaunchResult r =
        runText(ready + fence + product() + commit + wait + use, 128, "", seed);
    EXPECT_TRUE(r.ok()) << all(r);
    expectReport(
        runText(ready + fence + product() + commit + use + wait, 128, "", seed),
        ReportKind::WgmmaFault,
        "'%r10' is read while a wgmma in flight has it as accumulator");
    expectReport(runText(ready + fence + product() + commit +
                             "st.shared.u32 [%r1], 1;\n" + wait,
                         128, "", seed),
                 ReportKind::PendingCopy, "is still reading");
  }
  expectReport(
      runText(ready + fence + "mov.u32 %r11, 0;\n" + product() + commit + wait,
              128),
      ReportKind::WgmmaFault, "'%r11' was touched since the last");
  expectReport(runText(ready + fence + product() + commit, 128),
               ReportKind::WgmmaFault, "wgmma.wait_group is missing");
  expectReport(runText(ready + product() + commit + wait, 128),
               ReportKind::WgmmaFault, "no wgmma.fence before");
  // A of registers may not be written before the product is done.
  std::string registers = "mov.u32 %r30, 0;\nmov.u32 %r31, 0;\nmov.u32 %r32, "
                          "0;\nmov.u32 %r33, 0;\n" +
                          fence +
                          "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
                          "{%r10, %r11, %r12, %r13}, {%r30, %r31, %r32, %r33}, "
                          "%rd1, %p3, 1, 1, 0;\n" +
                          commit;
  EXPECT_TRUE(
      runText(ready + registers + wait + "mov.u32 %r31, 1;\n", 128).ok());
  expectReport(runText(ready + registers + "mov.u32 %r31, 1;\n" + wait, 128),
               ReportKind::WgmmaFault, "as source");
  // Half a group, other descriptors, products that one warp skips.
  expectReport(runText(ready + fence + product() + commit + wait, 64),
               ReportKind::WgmmaFault, "in no warpgroup");
  expectReport(runText(ready +
                           "shr.u32 %r5, %r0, 5;\ncvt.u64.u32 %rd3, %r5;\n"
                           "add.u64 %rd1, %rd1, %rd3;\n" +
                           fence + product() + commit + wait,
                       128),
               ReportKind::WgmmaFault, "different descriptors");
  // Beyond the block's memory, and up to its end.
  expectReport(runText(ready + "mov.u64 %rd1, 0x4000004000010440;\n" + fence +
                           product() + commit + wait,
                       128),
               ReportKind::OutOfBounds, "wgmma reads shared memory");
  LaunchResult skipped =
      runText(ready + "setp.lt.u32 %p4, %r0, 96;\n@!%p4 bra L;\n" + fence +
                  product() + commit + wait + "L:",
              128);
  EXPECT_FALSE(skipped.ok());
  expectReport(runText(ready + "or.b64 %rd1, %rd1, 0x2000000000000;\n" + fence +
                           product() + commit + wait,
                       128),
               ReportKind::WgmmaFault, "base offset");
}

TEST(HopperReports, ClustersAreRefused) {
  EXPECT_TRUE(runText("", 32, ".reqnctapercluster 1, 1, 1").ok());
  EXPECT_NE(all(runText("", 32, ".explicitcluster\n.reqnctapercluster 2, 1, 1"))
                .find("t.ptx:6: clusters of more than one block"),
            std::string::npos);
}

TEST(HopperReports, Registers) {
  const char *bounds = ".maxntid 128\n.minnctapersm 1";
  // 65536 for 128 threads: the most that a thread has.
  EXPECT_TRUE(runText("setmaxnreg.dec.sync.aligned.u32 40;\n"
                      "setmaxnreg.inc.sync.aligned.u32 80;",
                      128, bounds)
                  .ok());
  expectReport(runText("setmaxnreg.dec.sync.aligned.u32 40;\n"
                       "setmaxnreg.dec.sync.aligned.u32 80;",
                       128, bounds),
               ReportKind::RegisterFault, "but the warp has 40");
  expectReport(
      runText("setmaxnreg.inc.sync.aligned.u32 240;", 128, ".maxnreg 128"),
      ReportKind::Deadlock, "waiting for registers: 0");
}

} // namespace
} // namespace fi::emulator::test
