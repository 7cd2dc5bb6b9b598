//===- PtxasTest.cpp - what ptxas prints ----------------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "fi/Target/NVPTX/Ptxas.h"
#include "gmock/gmock.h"
#include <cstdlib>

using namespace fi;
using namespace fi::nvptx;
using llvm::toString;

static const char *const output =
    "ptxas info    : (C7510) Potential Performance Loss: wgmma.mma_async "
    "instructions are serialized due to insufficient register resources for "
    "the wgmma pipeline in the function 'attend'\n"
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function 'merge' for 'sm_90a'\n"
    "ptxas info    : Function properties for merge\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 10 registers, used 0 barriers, 376 bytes cmem[0]\n"
    "ptxas info    : Compiling entry function 'attend' for 'sm_90a'\n"
    "ptxas info    : Function properties for helper\n"
    "    96 bytes stack frame, 4 bytes spill stores, 4 bytes spill loads\n"
    "ptxas info    : Function properties for attend\n"
    "    48 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 168 registers, used 3 barriers, 4096 bytes smem, 384 "
    "bytes cmem[0]\n"
    "ptxas /tmp/k.ptx, line 7; warning : Double is not supported. Demoting to "
    "float\n";

TEST(Ptxas, ResourcesOfEachKernel) {
  Assembly assembly;
  readPtxasOutput(output, assembly);
  ASSERT_EQ(assembly.kernels.size(), 2u);
  EXPECT_EQ(assembly.kernels[0].kernel, "merge");
  EXPECT_EQ(assembly.kernels[0].registers, 10u);
  EXPECT_EQ(assembly.kernels[0].staticShared, 0u);
  const KernelResources &attend = assembly.kernels[1];
  EXPECT_EQ(attend.kernel, "attend");
  EXPECT_EQ(attend.registers, 168u);
  EXPECT_EQ(attend.barriers, 3u);
  EXPECT_EQ(attend.stack, 48u);
  EXPECT_EQ(attend.spillStores, 12u);
  EXPECT_EQ(attend.spillLoads, 16u);
  EXPECT_EQ(attend.staticShared, 4096u);
  EXPECT_THAT(
      assembly.warnings,
      testing::ElementsAre(
          testing::StartsWith("(C7510) Potential Performance Loss: wgmma"),
          "Double is not supported. Demoting to float"));
}

TEST(Ptxas, OutputOfNoKernels) {
  Assembly assembly;
  readPtxasOutput("", assembly);
  readPtxasOutput("ptxas info    : Function properties for\n 3 bytes stack "
                  "frame\nptxas info    : Used x registers\n\n",
                  assembly);
  EXPECT_TRUE(assembly.kernels.empty());
  EXPECT_TRUE(assembly.warnings.empty());
}

TEST(Ptxas, TheEnvironmentDecides) {
  const char *before = std::getenv("FI_PTXAS");
  std::string kept = before ? before : "";
  setenv("FI_PTXAS", "", 1);
  auto none = findPtxas();
  ASSERT_TRUE(bool(none));
  EXPECT_EQ(*none, "");
  setenv("FI_PTXAS", "/bin/sh", 1);
  auto named = findPtxas();
  ASSERT_TRUE(bool(named));
  EXPECT_EQ(*named, "/bin/sh");
  EXPECT_EQ(toString(getPtxasVersion("/bin/true").takeError()),
            "expected '/bin/true' to be ptxas, but it does not tell a version");
  setenv("FI_PTXAS", "/no/such/ptxas", 1);
  EXPECT_EQ(toString(findPtxas().takeError()),
            "expected FI_PTXAS to name ptxas, or to be empty for none, but got "
            "'/no/such/ptxas', which is no program");
  EXPECT_THAT(
      toString(
          assemble("", *sm::lookup("sm_80"), "/no/such/ptxas").takeError()),
      testing::StartsWith("cannot run '/no/such/ptxas': "));
  if (before)
    setenv("FI_PTXAS", kept.c_str(), 1);
  else
    unsetenv("FI_PTXAS");
}
