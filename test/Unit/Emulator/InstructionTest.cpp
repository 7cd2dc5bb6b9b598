//===- InstructionTest.cpp - Every row of the table -----------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Statements with their results, worked out by hand or by the host. %d, %q, %h
// and %p are destinations of 32, 64, 16 bits and a predicate: the one that a
// statement ends with is its result. All run in one kernel; a row of the table
// that neither they nor the CUDA kernels use fails the last test.
//
//===----------------------------------------------------------------------===//
#include "../../../emulator/lib/Decode/Table.h"
#include "InstructionCases.h"
#include "KernelCases.h"

#include <cstring>
#include <gtest/gtest.h>
#include <set>

namespace fi::emulator::test {
namespace {

std::string moduleOf(const InstructionCase *cases, size_t count,
                     const char *target) {
  std::string ptx = std::string(".version 9.0\n.target ") + target + R"(
.address_size 64
.global .align 16 .b8 gv[256];
.const .align 8 .b32 cv[2] = {7, 9};
.shared .align 16 .b8 sv[1024];
.visible .entry k(.param .u64 out, .param .u32 five)
{
.local .align 16 .b8 lv[64];
.reg .b64 %out, %g, %dyn;
.reg .b32 %t, %s;
ld.param.u64 %out, [out];
mov.u32 %t, %tid.x;
mad.wide.u32 %out, %t, 8, %out;
mov.u64 %g, gv;
mov.u32 %s, sv;
)";
  for (size_t i = 0; i < count; ++i) {
    std::string code = cases[i].code;
    size_t at = code.find_last_of("#");
    char result = code[at + 1];
    code = code.substr(0, at);
    ptx += "{\n.reg .b32 %d, %a, %b, %c, %e;\n.reg .b64 %q, %r, %u;\n"
           ".reg .b16 %h, %i;\n.reg .pred %p, %o;\n" +
           code + "\n";
    if (result == 'd')
      ptx += "cvt.u64.u32 %q, %d;\n";
    else if (result == 'h')
      ptx += "cvt.u64.u16 %q, %h;\n";
    else if (result == 'p')
      ptx += "selp.b64 %q, 1, 0, %p;\n";
    ptx += "st.global.u64 [%out+" + std::to_string(i * 256) +
           "], %q;\nbar.sync 0;\n}\n";
  }
  return ptx + "ret;\n}\n";
}

void expectResults(const InstructionCase *cases, size_t n, const char *target,
                   const Options &options) {
  std::string error;
  auto device = Device::create(target, options, error);
  ASSERT_TRUE(device) << error;
  Module *module =
      device->moduleLoad("cases.ptx", moduleOf(cases, n, target), error);
  ASSERT_TRUE(module) << error;
  const Function *f = module->getFunction("k", error);
  struct {
    uint64_t out;
    uint32_t five;
    uint32_t pad;
  } params{device->memAlloc(n * 256, error), 5, 0};
  LaunchConfig config;
  config.block = Dim3{32};
  config.params = &params;
  config.paramBytes = f->parameterBytes();
  LaunchResult r = device->launch(*f, config);
  EXPECT_EQ(r.error, "");
  for (const Report &report : r.reports)
    ADD_FAILURE() << report.str();
  std::vector<uint64_t> got(n * 32);
  ASSERT_TRUE(device->memcpyToHost(got.data(), params.out, n * 256, error))
      << error;
  for (size_t i = 0; i < n; ++i) {
    const InstructionCase &c = cases[i];
    uint32_t lane = c.lane;
    EXPECT_EQ(got[i * 32 + lane], c.expected)
        << c.code << ": got 0x" << std::hex << got[i * 32 + lane]
        << ", expected 0x" << c.expected;
  }
}

TEST(Instructions, HaveTheirResults) {
  expectResults(instructionCases, instructionCaseCount, "sm_100", {});
}
TEST(Instructions, HaveTheirResultsOnHopper) {
  for (bool check : {false, true})
    for (uint64_t seed : {0, 1, 2}) {
      Options options;
      options.check = check;
      options.seed = seed;
      expectResults(hopperCases, hopperCaseCount, "sm_90a", options);
    }
}

TEST(Instructions, CoverTheTable) {
  std::set<const CompiledRow *> used;
  auto collect = [&](const std::string &text) {
    PtxModule module;
    std::string error;
    ASSERT_TRUE(parseModule("m.ptx", text, module, error)) << error;
    for (const PtxFunction &f : module.functions)
      for (const AstInst &inst : f.body) {
        Match match;
        if (Table::get().match(inst, match, error))
          used.insert(match.row);
      }
  };
  collect(moduleOf(instructionCases, instructionCaseCount, "sm_100"));
  collect(moduleOf(hopperCases, hopperCaseCount, "sm_90a"));
  for (const char *name : {"basic", "matrix", "numeric", "tma", "wgmma"})
    collect(moduleText(name));
  for (const auto &row : Table::get().rows())
    EXPECT_TRUE(used.count(row.get())) << "no test of '" << row->row->mnemonic
                                       << " " << row->row->grammar << "'";
}

/// What must be refused, and the words that the message must have.
struct Refusal {
  const char *statement, *message;
};
const Refusal refusals[] = {
    {"frobnicate.b32 %a, %b;", "unknown instruction 'frobnicate.b32'"},
    {"add.rni.s32 %a, %b, %b;", "unknown modifier '.rni' of 'add.rni.s32'"},
    {"add.s32 %a, %b;", "operands"},
    {"max.xorsign.f32 %a, %b, %b;", "of 'max.xorsign.f32'"},
    {"max.abs.f32 %a, %b, %b;", "'max.abs.f32' has 3 operands"},
    {"add.s32 %q, %b, %b;", "expected a register of 32 bits"},
    {"add.s32 %nope, %b, %b;", "unknown register '%nope'"},
    {"mov.u32 %a, nowhere;", "unknown name 'nowhere'"},
    {"bra nowhere;", "unknown label 'nowhere'"},
    {"call nothing;", "unknown function 'nothing'"},
    {"ld.global.v2.u32 {%a, %b, %a}, [%q];", "expected 2 registers"},
    {"cp.async.cg.shared.global [%a], [%q], 8;", "expected 16"},
    {"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%a,%a,%a,%a}, "
     "{%a,%a}, "
     "{%a,%a}, {%a,%a,%a,%a};",
     "registers for a"},
    {"setp.lt.and.s32 %p, %a, %b;", "third source"},
    {"cvt.f32.s32 %a, %b;", "needs .rn"},
    {"lop3.b32 %a, %a, %a, %a, 256;", "0 to 255"},
    {"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%a}, [%a];", "'.x3'"},
    {"stmatrix.sync.aligned.m8n8.x1.shared.b16 [%a], {%b};", "needs sm_90"},
    {"mbarrier.init.shared.b64 [%p], 1;", "expected an address"},
    {"mbarrier.arrive.expect_tx.shared.b64 _, [%a], %b;", "needs sm_90"},
    {"wgmma.mma_async.sync.aligned.m64n12k16.f32.f16.f16 {%a}, %q, %q, 1, 1, "
     "1, "
     "0, 0;",
     "'.m64n12k16'"},
    {"setmaxnreg.inc.sync.aligned.u32 100;", "needs sm_90"},
};
TEST(Instructions, AreRefusedWithTheLine) {
  std::string error;
  auto device = Device::create("sm_90", {}, error);
  for (const Refusal &r : refusals) {
    std::string ptx =
        std::string(".version 8.0\n.target sm_80\n.address_size 64\n"
                    ".entry k()\n{\n.reg .b32 %a, %b;\n.reg .b64 %q;\n"
                    ".reg .pred %p;\n") +
        r.statement + "\n}\n";
    error.clear();
    EXPECT_FALSE(device->moduleLoad("bad.ptx", ptx, error)) << r.statement;
    EXPECT_NE(error.find("bad.ptx:9: "), std::string::npos) << error;
    EXPECT_NE(error.find(r.message), std::string::npos) << error;
  }
}

const Refusal hopperRefusals[] = {
    {"setmaxnreg.inc.sync.aligned.u32 100;", "multiple of 8 of 24 to 256"},
    {"mbarrier.arrive.shared::cluster.b64 %q, [%a];", "returns no state"},
    {"cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::"
     "bytes [%a], [%q, {%a, %a}], [%a];",
     "expected 3 coordinates"},
    {"cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::"
     "bytes [%a], [%q], [%a];",
     "expected a tensor map and coordinates"},
    {"cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%a], "
     "[%q], 16, [%a], %q;",
     "expected 4 operands"},
    {"cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.s32 [%q], [%a], "
     "16;",
     "does not exist"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%a,%b}, %q, %q, 1, 1, "
     "1, 0, 0;",
     "expected 4 registers for d"},
    {"wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%a,%b,%a,%b}, %q, %q, "
     "1, 1, 2, 0, 0;",
     "expected -1 or 1"},
    {"wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%a,%b,%a,%b}, %q, "
     "%q, 1, 1, 1, 0, 1;",
     "operands"},
    {"wgmma.wait_group.sync.aligned 9;", "expected 0 to 7"},
};
TEST(Instructions, AreRefusedOnHopper) {
  std::string error;
  auto device = Device::create("sm_90a", {}, error);
  for (const Refusal &r : hopperRefusals) {
    std::string ptx =
        std::string(".version 8.0\n.target sm_90a\n.address_size 64\n"
                    ".entry k()\n{\n.reg .b32 %a, %b;\n.reg .b64 %q;\n"
                    ".reg .pred %p;\n") +
        r.statement + "\n}\n";
    error.clear();
    EXPECT_FALSE(device->moduleLoad("bad.ptx", ptx, error)) << r.statement;
    EXPECT_NE(error.find("bad.ptx:9: "), std::string::npos) << error;
    EXPECT_NE(error.find(r.message), std::string::npos) << error;
  }
}

TEST(Instructions, NeedTheModulesVersion) {
  std::string error;
  auto device = Device::create("sm_80", {}, error);
  EXPECT_FALSE(device->moduleLoad("old.ptx",
                                  ".version 6.4\n.target sm_75\n.entry "
                                  "k()\n{\n.reg .b32 %a;\nredux.sync.add.u32 "
                                  "%a, %a, -1;\n}\n",
                                  error));
  EXPECT_NE(error.find("needs PTX 7.0, but the module is of 6.4"),
            std::string::npos)
      << error;
  EXPECT_FALSE(
      device->moduleLoad("new.ptx", ".version 8.0\n.target sm_90\n", error));
  EXPECT_NE(error.find("the module is for sm_90, but the device is sm_80"),
            std::string::npos)
      << error;
}

/// Time counts warp instructions, also within a turn of a warp, and goes on
/// from one launch to the next.
TEST(Instructions, TimeGoesOn) {
  std::string error;
  auto device = Device::create("sm_80", {}, error);
  Module *module = device->moduleLoad("time.ptx", R"(.version 7.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
  .reg .b64 %p, %a, %b, %c;
  .reg .b32 %r;
  ld.param.u64 %p, [out];
  mov.u64 %a, %clock64;
  mov.u32 %r, 1;
  add.u32 %r, %r, %r;
  mov.u64 %b, %clock64;
  mov.u64 %c, %globaltimer;
  st.global.u64 [%p], %a;
  st.global.u64 [%p+8], %b;
  st.global.u64 [%p+16], %c;
  mov.u32 %r, %clock;
  st.global.u32 [%p+24], %r;
  ret;
}
)",
                                      error);
  ASSERT_TRUE(module) << error;
  const Function *function = module->getFunction("k", error);
  ASSERT_TRUE(function) << error;
  uint64_t out = device->memAlloc(32, error), last = 0;
  for (int launch = 0; launch < 3; ++launch) {
    LaunchConfig config;
    config.params = &out;
    config.paramBytes = sizeof(out);
    LaunchResult result = device->launch(*function, config);
    ASSERT_TRUE(result.ok()) << result.error;
    uint64_t times[3];
    uint32_t low;
    std::memcpy(times, reinterpret_cast<void *>(out), sizeof(times));
    std::memcpy(&low, reinterpret_cast<void *>(out + 24), sizeof(low));
    EXPECT_EQ(times[1], times[0] + 3);
    EXPECT_EQ(times[2], times[1] + 1);
    EXPECT_EQ(low, times[2] + 4);
    if (launch)
      EXPECT_GT(times[0], last);
    last = low;
  }
}

} // namespace
} // namespace fi::emulator::test
