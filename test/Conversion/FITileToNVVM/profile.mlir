// Marks of a module that asks for them: lane 0 of a warp writes the time, the mark and the
// item into the warp's part of the log, and keeps where the next one goes in shared memory
// (docs/abi.md).
// RUN: fi-opt %s --fi-tile-to-nvvm --canonicalize --cse --split-input-file --verify-diagnostics | FileCheck %s

#pair = #fi_tile.frag<mma_c, rep = [1, 2], warps = 2>

// The log is the last parameter; shared memory has 16 bytes for each warp behind the rest.
// CHECK-LABEL: llvm.func @marked(
// CHECK-SAME: %[[LOG:[a-z0-9]+]]: !llvm.ptr<1>) attributes
// CHECK: llvm.mlir.addressof @fi_shared
// CHECK: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x
// A warp's part begins behind the head; it is 48 bytes and 16 for each mark.
// CHECK: %[[LANE:.*]] = arith.remui %{{.*}}, %c32_i32
// CHECK: arith.cmpi eq, %[[LANE]], %c0_i32
// CHECK: scf.if
// CHECK: llvm.load %[[LOG]] {{.*}} -> i32
// CHECK: llvm.getelementptr %[[LOG]][16]
// CHECK: llvm.store %{{.*}}, %{{.*}} {alignment = 8 : i64} : i64, !llvm.ptr<3>
// CHECK: llvm.inline_asm has_side_effects "mov.u32 $0, %smid;", "=r,~{memory}"
// CHECK: llvm.inline_asm has_side_effects "mov.u64 $0, %globaltimer;", "=l,~{memory}"
// CHECK: llvm.inline_asm has_side_effects "mov.u64 $0, %clock64;", "=l,~{memory}"
// What counts once has not come yet when an item begins.
// CHECK: scf.for %[[ITEM:.*]] =
// CHECK: llvm.store %c0_i32, %{{.*}} : i32, !llvm.ptr<3>
// CHECK: %[[CAME:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK: %[[BIT:.*]] = arith.andi %[[CAME]], %c1_i32
// CHECK: arith.cmpi eq, %[[BIT]], %c0_i32
// CHECK: scf.if
// CHECK: arith.ori %[[CAME]], %c1_i32
// CHECK: %[[CLOCK:.*]] = llvm.inline_asm has_side_effects "mov.u64 $0, %clock64;"
// CHECK: %[[ROOM:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK: arith.cmpi sgt, %[[ROOM]], %c0_i32
// CHECK: scf.if
// CHECK: %[[PLACE:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> i64
// CHECK: %[[SHIFTED:.*]] = arith.shrui %[[CLOCK]], %c32_i64
// CHECK: %[[NUMBER:.*]] = arith.index_cast{{.*}} %[[ITEM]]
// CHECK: %[[LOW:.*]] = arith.trunci %[[CLOCK]]
// CHECK: %[[HIGH:.*]] = arith.trunci %[[SHIFTED]]
// CHECK: %[[WORDS:.*]] = vector.from_elements %[[LOW]], %[[HIGH]], %c0_i32, %[[NUMBER]] : vector<4xi32>
// CHECK: %[[AT:.*]] = llvm.inttoptr %[[PLACE]]
// CHECK: llvm.store %[[WORDS]], %[[AT]] {alignment = 16 : i64}
// The warp's end has the number of marks and the run.
// CHECK: llvm.inline_asm has_side_effects "mov.u64 $0, %globaltimer;"
// CHECK: arith.maxsi
// CHECK: llvm.return
// CHECK: launch = {empty_items = true, grid = "items", profile = {item = 2 : i64, launch = 1 : i64,
// CHECK-SAME: marks = [{kind = "phase", name = "here"}, {kind = "end"}, {kind = "moment", name = "out"}],
// CHECK-SAME: roles = [{name = "", warps = 2 : i64}], tile = 0 : i64}, shared = 96 : i64, threads = 64 : i64}
module attributes {fi.profile = "phases"} {
  fi_tile.kernel @marked(%q: memref<?x2x16xf32>, %o: memref<?x2x16xf32>, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) attributes {fi_tile.shared = 64 : i64} {
    fi_tile.for_items %it in %work {
      fi_tile.mark phase "here" once
      %t = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<32x16xf32, #pair>
      fi_tile.store_rows %t, %o[%it] group 1 : tensor<32x16xf32, #pair>, memref<?x2x16xf32>
      fi_tile.mark end
    }
    fi_tile.mark moment "out"
    fi_tile.return
  }
  fi_tile.package @p {bodies = [{symbol = "marked"}]}
}

// -----

#pair = #fi_tile.frag<mma_c, rep = [1, 2], warps = 2>

// Other modules have nothing in the place of marks.
// CHECK-LABEL: llvm.func @plain(
// CHECK-NOT: clock64
// CHECK-NOT: fi_shared
// CHECK-NOT: profile =
// CHECK: launch = {{.*}}shared = 0
fi_tile.kernel @plain(%q: memref<?x2x16xf32>, %o: memref<?x2x16xf32>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) {
  fi_tile.for_items %it in %work {
    fi_tile.mark phase "here" once
    %t = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<32x16xf32, #pair>
    fi_tile.store_rows %t, %o[%it] group 1 : tensor<32x16xf32, #pair>, memref<?x2x16xf32>
    fi_tile.mark end
  }
  fi_tile.return
}
fi_tile.package @p {bodies = [{symbol = "plain"}]}

// -----

// In a role that copies, marks beside a wait for a buffer are of the warp that fills it, and
// stand where it waits and copies. All warps begin the item.
#panels = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 16384>
!q = !fi_tile.chan<128x128xf16, #panels, depth = 1>
!qbuf = !fi_tile.buf<128x128xf16, #panels>
// CHECK-LABEL: llvm.func @copies
// CHECK: nvvm.setmaxregister
// CHECK: scf.for
// CHECK: "mov.u64 $0, %clock64;"
// CHECK: %[[MINE:.*]] = arith.cmpi eq, %{{.*}}, %c0_i32 : i32
// CHECK: scf.if %[[MINE]] {
// CHECK: "mov.u64 $0, %clock64;"
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: "mov.u64 $0, %clock64;"
// CHECK: nvvm.cp.async.shared.global
// CHECK: nvvm.mbarrier.arrive
// CHECK: roles = [{name = "load", warps = 4 : i64}, {name = "compute", warps = 8 : i64}]
module attributes {fi.profile = "tiles", fi.target = #fi.target<sm_90a>} {
  fi_tile.kernel @copies(%q: memref<?x2x128xf16>, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 128, tile_keys = 64, warps = 8, load_warps = 4, stages = 2, wgmma = 1>) {
    %qc = fi_tile.channel at 0 barriers 65536 : !q
    %zero = arith.constant 0 : index
    %z = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    fi_tile.role @load warps 4 registers 56 {
      fi_tile.for_items %it in %work {
        fi_tile.mark phase "copying"
        fi_tile.mark phase "waiting for a buffer"
        fi_tile.await empty %qc[%z] phase %one : !q
        %b = fi_tile.slot %qc[%zero] : !q
        fi_tile.mark phase "copying"
        fi_tile.copy_rows %q[%it] to %b group 1 : memref<?x2x128xf16>, !qbuf
        fi_tile.arrive full %qc[%z] : !q
      }
    }
    fi_tile.role @compute warps 8 registers 232 {
      fi_tile.for_items %it in %work {
        fi_tile.await full %qc[%z] phase %z : !q
        fi_tile.arrive empty %qc[%z] : !q
      }
    }
    fi_tile.return
  }
  fi_tile.package @p {bodies = [{symbol = "copies"}]}
}

// -----

module attributes {fi.profile = "phases", fi.target = #fi.target<sm_80>} {
  // expected-error @below {{'fi_tile.kernel' op needs 166976 bytes of shared memory with those of its time stamps ('fi.profile'), but a CTA of sm_80 has 166912; take fewer 'stages' or keys a tile to profile it [SCH5]}}
  fi_tile.kernel @large(%work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4>) attributes {fi_tile.shared = 166912 : i64} {
    fi_tile.mark moment "here"
    fi_tile.return
  }
}
