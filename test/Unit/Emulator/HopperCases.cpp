//===- HopperCases.cpp - Statements of sm_90a with their results ----------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "InstructionCases.h"

namespace fi::emulator::test {

// Each case has an mbarrier of its own, since checks follow them by address.
#define LANE0                                                                  \
  "setp.eq.u32 %o, %t, 0; mov.u32 %d, 0; mov.u64 %q, 0; mov.u32 %a, sv; "
#define TEST_PARITY(AT, PARITY)                                                \
  "@%o mbarrier.test_wait.parity.shared::cta.b64 %p, [%a+" AT "], " PARITY     \
  "; selp.b32 %d, 1, 0, %p; "

// clang-format off
const InstructionCase hopperCases[] = {
    // A fresh barrier: the phase before is over, the first is not.
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared::cta.b64 [%a], 2; " TEST_PARITY("0", "1") "#d", 1},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+8], 2; " TEST_PARITY("8", "0") "#d", 0},
    // Two arrivals end a phase; states hold it and what was pending.
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+16], 2; @%o mbarrier.arrive.shared.b64 %q, [%a+16];"
           "@%o mbarrier.arrive.release.cta.shared::cta.b64 _, [%a+16], 1; " TEST_PARITY("16", "0") "#d", 1},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+24], 2; @%o mbarrier.arrive.shared.b64 %q, [%a+24];"
           "@%o mbarrier.test_wait.acquire.cta.shared.b64 %p, [%a+24], %q; selp.b32 %d, 1, 0, %p;#d", 0},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+32], 2; @%o mbarrier.arrive.shared.b64 %q, [%a+32], 2;"
           "@%o mbarrier.try_wait.shared.b64 %p, [%a+32], %q, 1000; selp.b32 %d, 1, 0, %p;#d", 1},
    {LANE0 "@%o mbarrier.init.shared.b64 [%a+40], 7; @%o mbarrier.arrive.noComplete.shared.b64 %q, [%a+40], 3;"
           "@%o mbarrier.arrive.shared.b64 %q, [%a+40]; mbarrier.pending_count.b64 %d, %q;#d", 4},
    {LANE0 "@%o mbarrier.init.shared.b64 [%a+48], 3; @%o mbarrier.arrive_drop.shared.b64 %q, [%a+48];"
           "@%o mbarrier.arrive.shared.b64 %q, [%a+48], 2; @%o mbarrier.arrive.shared.b64 %q, [%a+48];"
           "mbarrier.pending_count.b64 %d, %q;#d", 2},
    // Bytes: the phase waits for them, in either order.
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+56], 1; @%o mbarrier.arrive.expect_tx.shared.b64 %q, [%a+56], 64;"
           TEST_PARITY("56", "0") "#d", 0},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+64], 1; @%o mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%a+64], 64;"
           "@%o mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%a+64], 64; @%o mbarrier.arrive.shared::cluster.b64 _, [%a+64];"
           TEST_PARITY("64", "0") "#d", 1},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+72], 1; @%o mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%a+72], 64;"
           "@%o mbarrier.arrive.shared.b64 _, [%a+72]; @%o mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%a+72], 64;"
           "@%o mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p, [%a+72], 0; selp.b32 %d, 1, 0, %p;#d", 1},
    // Memory that was a barrier is memory again, and a barrier again.
    {LANE0 "@%o mbarrier.init.shared.b64 [%a+80], 1; @%o mbarrier.inval.shared.b64 [%a+80]; @%o st.shared.u32 [%a+80], 5;"
           "@%o ld.shared.u32 %d, [%a+80];#d", 5},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+88], 1; @%o mbarrier.arrive.shared.b64 _, [%a+88]; @%o mbarrier.inval.shared.b64 [%a+88];"
           "@%o mbarrier.init.shared.b64 [%a+88], 1; " TEST_PARITY("88", "0") "#d", 0},
    // Generic addresses.
    {LANE0 "setp.ne.u32 %p, %t, %t; cvt.u64.u32 %r, %a; cvta.shared.u64 %r, %r; @%o mbarrier.init.b64 [%r+96], 1;"
           "@%o mbarrier.arrive.b64 %q, [%r+96]; @%o mbarrier.test_wait.b64 %p, [%r+96], %q; selp.b32 %d, 1, 0, %p;#d", 1},
    // cp.async with and without a pending arrival of its own.
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+104], 1; @%o st.global.v4.u32 [%g], {1, 2, 3, 4};"
           "@%o cp.async.cg.shared.global [%a+512], [%g], 16; @%o cp.async.mbarrier.arrive.shared.b64 [%a+104];"
           "@%o mbarrier.arrive.shared.b64 _, [%a+104]; L1: @%o mbarrier.try_wait.parity.shared.b64 %p, [%a+104], 0;"
           "@!%o bra L2; @!%p bra L1; ld.shared.u32 %d, [%a+516]; L2:#d", 2},
    // Shared to shared, global to shared and back.
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+112], 1; @%o st.shared.v4.u32 [%a+528], {5, 6, 7, 8}; fence.proxy.async;"
           "@%o mbarrier.arrive.expect_tx.shared.b64 _, [%a+112], 16;"
           "@%o cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%a+544], [%a+528], 16, [%a+112];"
           "L1: @%o mbarrier.try_wait.parity.shared.b64 %p, [%a+112], 0; @!%o bra L2; @!%p bra L1; ld.shared.u32 %d, [%a+552]; L2:#d", 7},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+120], 1; @%o st.global.v4.u32 [%g+32], {9, 10, 11, 12}; fence.proxy.async.global;"
           "@%o mbarrier.arrive.expect_tx.shared.b64 _, [%a+120], 16; createpolicy.fractional.L2::evict_first.b64 %u, 1.0;"
           "@%o cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes.L2::cache_hint [%a+560], [%g+32], 16, [%a+120], %u;"
           "L1: @%o mbarrier.try_wait.parity.shared.b64 %p, [%a+120], 0; @!%o bra L2; @!%p bra L1; ld.shared.u32 %d, [%a+572]; L2:#d", 12},
    {LANE0 "setp.ne.u32 %p, %t, %t; @%o mbarrier.init.shared.b64 [%a+128], 1; @%o st.global.v4.u32 [%g+48], {1, 2, 3, 4};"
           "@%o mbarrier.arrive.expect_tx.shared.b64 _, [%a+128], 16; mov.u16 %h, 1;"
           "@%o cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a+576], [%g+48], 16, [%a+128], %h;"
           "L1: @%o mbarrier.try_wait.parity.shared.b64 %p, [%a+128], 0; @!%o bra L2; @!%p bra L1; ld.shared.u32 %d, [%a+580]; L2:#d", 2},
    {LANE0 "@%o st.shared.v4.u32 [%a+592], {1, 2, 3, 4}; fence.proxy.async.shared::cta; @%o cp.async.bulk.global.shared::cta.bulk_group [%g+64], [%a+592], 16;"
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; @%o ld.global.u32 %d, [%g+72];#d", 3},
    {LANE0 "@%o st.shared.v4.u32 [%a+608], {1, 2, 3, 4}; @%o st.global.v4.u32 [%g+80], {7, 7, 7, 7}; fence.proxy.async; fence.proxy.async.global;"
           "@%o cp.reduce.async.bulk.global.shared::cta.bulk_group.max.s32 [%g+80], [%a+608], 16; @%o cp.reduce.async.bulk.global.shared::cta.bulk_group.inc.u32 [%g+80], [%a+608], 16;"
           "cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; cp.async.bulk.wait_group 0; @%o ld.global.u32 %d, [%g+80];#d", 0},
    // Nothing to be seen, but taken.
    {LANE0 "cp.async.bulk.prefetch.L2.global [%g], 64; prefetch.tensormap [%g]; fence.proxy.alias; fence.mbarrier_init.release.cluster;"
           "fence.proxy.tensormap::generic.release.gpu; fence.proxy.tensormap::generic.acquire.gpu [%g], 128; griddepcontrol.wait; griddepcontrol.launch_dependents;#d", 0},
    {"setmaxnreg.dec.sync.aligned.u32 24; mov.u32 %d, 1;#d", 1},
    {"elect.sync %d|%p, -1;#p", 1},
    {"elect.sync _|%p, 0xfffffff0;#p", 0},
};
// clang-format on
const size_t hopperCaseCount = sizeof(hopperCases) / sizeof(hopperCases[0]);

} // namespace fi::emulator::test
