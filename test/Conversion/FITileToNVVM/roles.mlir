// Roles: a branch for the warps of each, mbarriers, registers that warpgroups hand over, and
// products of warpgroups.
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

#acc = #fi_tile.frag<mma_c, rep = [1, 8], warps = 8>
#a = #fi_tile.frag<mma_a16, rep = [1, 4], warps = 8>
#panels = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 16384>
#keys = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!q = !fi_tile.chan<128x128xf16, #panels, depth = 1>
!qbuf = !fi_tile.buf<128x128xf16, #panels>
!k = !fi_tile.chan<64x128xf16, #keys, depth = 2>
!kbuf = !fi_tile.buf<64x128xf16, #keys>
!S = tensor<128x64xf32, #acc>
// A lane has 65536 / 384 registers, 168 by eights, as the kernel begins.
// CHECK-LABEL: llvm.func @roles
// CHECK-SAME: nvvm.reqntid = array<i32: 384>
// The first thread initialises the mbarriers: full ones with the warp that fills the
// buffer, empty ones with the 8 that read.
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[TID]], %c0_i32
// CHECK: scf.if %[[FIRST]] {
// CHECK-NEXT: arith.addi %[[BASE:.*]], %c65536_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK-NEXT: arith.addi %[[BASE]], %c65544_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK-NEXT: arith.addi %[[BASE]], %c65552_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c1_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %c8_i32
// CHECK-NEXT: nvvm.fence.mbarrier.init
// CHECK-NEXT: }
// CHECK-NEXT: nvvm.barrier0
fi_tile.kernel @roles(%q: memref<?x2x128xf16>, %o: memref<?x2x64xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 128, tile_keys = 64, warps = 8, load_warps = 4, stages = 2, wgmma = 1>) {
  %qc = fi_tile.channel at 0 barriers 65536 : !q
  %kc = fi_tile.channel at 32768 barriers 65552 : !k
  %zero = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  // Which warps do it is known to be the same for all lanes.
  // CHECK: %[[WARP:.*]] = nvvm.shfl.sync  idx %{{.*}}, %[[TID]], %c0_i32, %c31_i32
  // CHECK: arith.cmpi ult, %[[WARP]], %c128_i32
  // CHECK: scf.if
  // CHECK-NEXT: nvvm.setmaxregister decrease 56
  fi_tile.role @load warps 4 registers 56 {
    fi_tile.for_items %it in %work {
      // A warp fills a buffer alone: that of the buffer's number, and for the next channel
      // two warps on. It does so block by block, 8 chunks of a lane at a time.
      // CHECK: %[[OWN:.*]] = nvvm.shfl.sync  idx
      // CHECK: %[[MINE:.*]] = arith.cmpi eq, %[[OWN]], %c0_i32 : i32
      // CHECK: scf.if %[[MINE]] {
      // CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %c1_i32
      // CHECK: scf.for %{{.*}} = %c0_i32 to %c128_i32 step %c16_i32
      // CHECK-COUNT-8: nvvm.cp.async.shared.global
      // CHECK-NOT: nvvm.cp.async.shared.global
      // Buffers are full when the copies that a lane started are there, fenced from the
      // tensor cores.
      // CHECK: nvvm.cp.async.commit.group
      // CHECK-NEXT: nvvm.cp.async.wait.group 0
      // CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>, space = #nvvm.shared_space<cta>}
      // CHECK-NEXT: nvvm.bar.warp.sync
      // CHECK: nvvm.mbarrier.arrive
      // CHECK: %[[NEXT:.*]] = arith.cmpi eq, %[[OWN]], %c3_i32 : i32
      // CHECK: scf.if %[[NEXT]] {
      // CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %c1_i32
      // CHECK: scf.for %{{.*}} = %c0_i32 to %c64_i32 step %c16_i32
      // CHECK-COUNT-8: nvvm.cp.async.shared.global
      // CHECK: nvvm.cp.async.wait.group 0
      // CHECK-NEXT: nvvm.fence.proxy
      // CHECK: nvvm.mbarrier.arrive
      fi_tile.await empty %qc[%z] phase %one : !q
      %b = fi_tile.slot %qc[%zero] : !q
      fi_tile.copy_rows %q[%it] to %b group 1 : memref<?x2x128xf16>, !qbuf
      fi_tile.arrive full %qc[%z] : !q
      fi_tile.await empty %kc[%one] phase %one : !k
      %c = fi_tile.slot %kc[%zero] : !k
      fi_tile.copy_rows %q[%it] to %c group 1 : memref<?x2x128xf16>, !kbuf
      fi_tile.arrive full %kc[%one] : !k
    }
  }
  // CHECK: arith.cmpi uge, %{{.*}}, %c128_i32
  // CHECK: arith.cmpi ult, %{{.*}}, %c384_i32
  // CHECK: scf.if
  // CHECK-NEXT: nvvm.setmaxregister increase 224
  fi_tile.role @compute warps 8 registers 224 {
    fi_tile.for_items %it in %work {
      // CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %c0_i32
      fi_tile.await full %qc[%z] phase %z : !q
      %b = fi_tile.slot %qc[%zero] : !q
      %c = fi_tile.slot %kc[%zero] : !k
      // Addresses in units of 16 bytes; strides of 8192 and 1024 bytes, a swizzle of 128.
      // 64 << 32 | 512 << 16 | 1 << 62
      // CHECK: llvm.inline_asm has_side_effects {{.*}}"{{.*}}wgmma.fence.sync.aligned;
      // CHECK-SAME: add.s64 a, $32, 0;\0Aadd.s64 b, $33, 0;\0Awgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {$0, $1, $2, {{[^}]*}}, $31}, a, b, p, 1, 1, 0, 0;
      // 16 columns are 32 bytes; the next panel is at 16384 bytes in the first, 8192 in the
      // second operand.
      // CHECK-SAME: add.s64 a, $32, 2;\0Aadd.s64 b, $33, 2;\0A{{[^;]*}}, a, b, q, 1, 1, 0, 0;
      // CHECK-SAME: add.s64 a, $32, 1024;\0Aadd.s64 b, $33, 512;
      // CHECK-SAME: wgmma.commit_group.sync.aligned;\0A}", "=f,=f,
      %f = fi_tile.dot_start %b, %c transpose : !qbuf, !kbuf -> !fi_tile.future<!S>
      // A product from registers, with an accumulator: 16 rows of values are 2048 bytes.
      // CHECK: wgmma.fence.sync.aligned;
      // CHECK-SAME: add.s64 b, ${{[0-9]+}}, 0;\0Awgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {{[^;]*}}, b, q, 1, 1, 1;
      // CHECK-SAME: add.s64 b, ${{[0-9]+}}, 128;
      // CHECK-SAME: wgmma.commit_group.sync.aligned;\0Awgmma.wait_group.sync.aligned 0;\0A}"
      %p = arith.constant dense<1.0> : tensor<128x64xf16, #a>
      %acc = arith.constant dense<0.0> : tensor<128x128xf32, #fi_tile.frag<mma_c, rep = [1, 16], warps = 8>>
      %u = fi_tile.dot %p, %c acc(%acc) warpgroup : tensor<128x64xf16, #a>, !kbuf -> tensor<128x128xf32, #fi_tile.frag<mma_c, rep = [1, 16], warps = 8>>
      %g = fi_tile.dot_start %b, %c transpose : !qbuf, !kbuf -> !fi_tile.future<!S>
      // One that began later may go on; what is waited for goes through the wait.
      // CHECK: llvm.inline_asm {{.*}}"wgmma.wait_group.sync.aligned 1;", "{{.*}}=f,0,1,2,
      %s = fi_tile.wait %f : !fi_tile.future<!S>
      // CHECK: llvm.inline_asm {{.*}}"wgmma.wait_group.sync.aligned 0;"
      %t, %e = fi_tile.wait %g keep(%s : !S) : !fi_tile.future<!S>
      // A warp says that it reads no more: when all its lanes do.
      // CHECK: nvvm.bar.warp.sync
      // CHECK: scf.if
      // CHECK-NEXT: nvvm.mbarrier.arrive
      fi_tile.arrive empty %kc[%z] : !k
      fi_tile.arrive empty %qc[%z] : !q
      %r = arith.addf %t, %e : !S
      fi_tile.store_rows %r, %o[%it] group 1 : !S, memref<?x2x64xf32>
    }
  }
  fi_tile.return
}

// -----

!rows = !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
fi_tile.kernel @nobody_waits(%q: memref<?x2x64xf16>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 1, wgmma = 1>) {
  %rows = fi_tile.channel at 0 barriers 8192 : !rows
  %zero = arith.constant 0 : index
  %z = arith.constant 0 : i32
  fi_tile.role @load warps 4 registers 56 {
    fi_tile.for_items %it in %work {
      %b = fi_tile.slot %rows[%zero] : !rows
      fi_tile.copy_rows %q[%it] to %b group 1 : memref<?x2x64xf16>, !buf
      // expected-error @+1 {{expected a wait for the buffer in its role before it is said to be full: run fi-tile-lower-channels}}
      fi_tile.arrive full %rows[%z] : !rows
    }
  }
  fi_tile.return
}

// -----

!rows = !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 2>
!buf = !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
fi_tile.kernel @two_at_once(%q: memref<?x2x64xf16>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 1, wgmma = 1>) {
  %rows = fi_tile.channel at 0 barriers 16384 : !rows
  %zero = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  fi_tile.role @load warps 4 registers 56 {
    fi_tile.for_items %it in %work {
      fi_tile.await empty %rows[%z] phase %one : !rows
      // expected-error @+1 {{expected the buffer of the channel that the role waited for before to be said to be full first}}
      fi_tile.await empty %rows[%one] phase %one : !rows
      fi_tile.arrive full %rows[%z] : !rows
    }
  }
  fi_tile.return
}

// -----

!rows = !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
!buf = !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
fi_tile.kernel @copies_and_reads(%q: memref<?x2x64xf16>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 1, wgmma = 1>) {
  %rows = fi_tile.channel at 0 barriers 16384 : !rows
  %others = fi_tile.channel at 8192 barriers 16400 : !rows
  %zero = arith.constant 0 : index
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  fi_tile.role @load warps 4 registers 56 {
    fi_tile.for_items %it in %work {
      // expected-error @+1 {{expected a role that fills channels to copy alone: its warps fill buffers one by one}}
      fi_tile.await full %others[%z] phase %z : !rows
      fi_tile.await empty %rows[%z] phase %one : !rows
      fi_tile.arrive full %rows[%z] : !rows
    }
  }
  fi_tile.return
}

// -----

!rows = !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
fi_tile.kernel @never_full(%q: memref<?x2x64xf16>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 1, wgmma = 1>) {
  %rows = fi_tile.channel at 0 barriers 16384 : !rows
  %others = fi_tile.channel at 8192 barriers 16400 : !rows
  %z = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  fi_tile.role @load warps 4 registers 56 {
    fi_tile.for_items %it in %work {
      // expected-error @+1 {{expected the buffer to be said to be full in its role}}
      fi_tile.await empty %rows[%z] phase %one : !rows
      fi_tile.await empty %others[%z] phase %one : !rows
      fi_tile.arrive full %others[%z] : !rows
    }
  }
  fi_tile.return
}
