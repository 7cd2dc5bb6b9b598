// Every op, type and layout of the placed form in text, in bytecode and in the generic
// form; layouts and buffers print by short names.
// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s | fi-opt | FileCheck %s
// RUN: fi-opt %s -emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s -mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null
// In bytecode they are not text.
// RUN: fi-opt %s -emit-bytecode -o %t.mlirbc
// RUN: not grep -a -E 'smem<|frag<|slice<|partial<|buf<|chan<|future<|arrival<|selection<|schedule<' %t.mlirbc

#schedule = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 2, key_warps = 2, stages = 3, lanes = 4>
!kv = !fi.paged_kv<16x8x64xf16, HND>

// CHECK-DAG: #acc = #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>
// CHECK-DAG: #a = #fi_tile.frag<mma_a16, rep = [2, 4], warps = 2>
// CHECK-DAG: #a1 = #fi_tile.frag<mma_a32, rep = [2, 3], warps = 2>
// CHECK-DAG: #row = #fi_tile.slice<1, #acc>
// CHECK-DAG: #column = #fi_tile.slice<0, #acc>
// CHECK-DAG: #partial = #fi_tile.partial<#acc>
// CHECK-DAG: #smem = #fi_tile.smem<pitch = 128, swizzle = 128>
// CHECK-DAG: #smem1 = #fi_tile.smem<pitch = 272>
// CHECK-DAG: !buf = !fi_tile.buf<64x64xf16, #smem>
// CHECK-DAG: !chan = !fi_tile.chan<64x64xf16, #smem, depth = 3>
// CHECK-DAG: !chan1 = !fi_tile.chan<64x64xf32, #smem1, depth = 1>
#acc = #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>
#a = #fi_tile.frag<mma_a16, rep = [2, 4], warps = 2>
#quarters = #fi_tile.frag<mma_a32, rep = [2, 3], warps = 2>
#row = #fi_tile.slice<1, #acc>
#column = #fi_tile.slice<0, <mma_c, rep = [2, 8], warps = 2>>
#partial = #fi_tile.partial<#acc>
#swizzled = #fi_tile.smem<pitch = 128, swizzle = 128>
#padded = #fi_tile.smem<pitch = 272>
!buf = !fi_tile.buf<64x64xf16, #swizzled>
!chan = !fi_tile.chan<64x64xf16, #swizzled, depth = 3>
!plain = !fi_tile.chan<64x64xf32, #padded, depth = 1>

// CHECK-LABEL: fi_tile.kernel @channels
// CHECK-SAME: schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 2, key_warps = 2, stages = 3, lanes = 4>)
fi_tile.kernel @channels(%q: memref<?x32x64xf16>, %k: memref<?x8x16x64xf16>, %v: memref<?x8x16x64xf16>,
                         %pages: memref<?xi32>, %work: !fi_tile.work) schedule(#schedule) {
  // CHECK: %[[C:.*]] = fi_tile.channel at 1024 : !chan
  %c = fi_tile.channel at 1024 : !chan
  // CHECK: fi_tile.channel {note = 1 : i64} : !chan1
  %plain = fi_tile.channel {note = 1} : !plain
  %kv = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x8x16x64xf16>, memref<?x8x16x64xf16> -> !kv
  fi_tile.for_items %it in %work {
    // CHECK: %[[CURSOR:.*]] = fi_tile.cursor %{{.*}} step 64
    %cursor = fi_tile.cursor %it step 64
    // CHECK: %[[KEY:.*]], %[[VALID:.*]] = fi_tile.cursor_key %[[CURSOR]]
    %key, %valid = fi_tile.cursor_key %cursor
    // CHECK: %[[NEXT:.*]] = fi_tile.advance %[[CURSOR]] step 64
    %next = fi_tile.advance %cursor step 64
    // CHECK: %[[FREE:.*]] = fi_tile.acquire %[[C]] : !chan
    %free = fi_tile.acquire %c : !chan
    // CHECK: fi_tile.copy_kv keys %{{.*}}[%{{.*}}, %[[KEY]]] to %[[FREE]] if %[[VALID]] : !kv, !buf
    fi_tile.copy_kv keys %kv[%it, %key] to %free if %valid : !kv, !buf
    // CHECK: fi_tile.copy_kv values %{{.*}}[%{{.*}}, %[[KEY]]] to %[[FREE]] : !kv, !buf{{$}}
    fi_tile.copy_kv values %kv[%it, %key] to %free : !kv, !buf
    // CHECK: fi_tile.copy_rows %q[%{{.*}}] to %[[FREE]] group 4 : memref<?x32x64xf16>, !buf
    fi_tile.copy_rows %q[%it] to %free group 4 : memref<?x32x64xf16>, !buf
    // CHECK: fi_tile.commit %[[C]] : !chan
    fi_tile.commit %c : !chan
    // CHECK: %[[READY:.*]] = fi_tile.get %[[C]] : !chan
    %ready = fi_tile.get %c : !chan
    // CHECK: %[[TILE:.*]] = fi_tile.read %[[READY]] : !buf -> tensor<64x64xf16, #a>
    %tile = fi_tile.read %ready : !buf -> tensor<64x64xf16, #a>
    // CHECK: %[[PART:.*]] = fi_tile.read %[[READY]] from 1 step 2 : !buf -> tensor<64x12xf16, #a1>
    %part = fi_tile.read %ready from 1 step 2 : !buf -> tensor<64x12xf16, #quarters>
    // CHECK: fi_tile.release %[[C]] : !chan
    fi_tile.release %c : !chan
    // CHECK: fi_tile.slot %[[C]][%[[KEY]]] : !chan
    %slot = fi_tile.slot %c[%key] : !chan
    // CHECK: fi_tile.write %[[TILE]] to %[[FREE]] : tensor<64x64xf16, #a>, !buf
    fi_tile.write %tile to %free : tensor<64x64xf16, #a>, !buf
    // CHECK: %[[WIDE:.*]] = fi_tile.acquire %{{.*}} : !chan1
    %wide = fi_tile.acquire %plain : !plain
    // Operands of other types, which are multiplied in f32.
    // CHECK: fi_tile.dot %[[WIDE]], %[[READY]] transpose : !buf1, !buf -> tensor<64x64xf32, #acc>
    %u = fi_tile.dot %wide, %ready transpose : !fi_tile.buf<64x64xf32, #padded>, !buf -> tensor<64x64xf32, #acc>
    // CHECK: %[[S:.*]] = fi_tile.dot %[[TILE]], %[[READY]] transpose : tensor<64x64xf16, #a>, !buf -> tensor<64x64xf32, #acc>
    %s = fi_tile.dot %tile, %ready transpose : tensor<64x64xf16, #a>, !buf -> tensor<64x64xf32, #acc>
    // CHECK: fi_tile.dot %[[READY]], %{{.*}} acc(%[[S]]) : !buf, !buf -> tensor<64x64xf32, #acc>
    %t = fi_tile.dot %ready, %slot acc(%s) : !buf, !buf -> tensor<64x64xf32, #acc>
    // CHECK: fi_tile.relayout %[[TILE]] : tensor<64x64xf16, #a> -> tensor<64x64xf16, #acc>
    %moved = fi_tile.relayout %tile : tensor<64x64xf16, #a> -> tensor<64x64xf16, #acc>
    // CHECK: fi_tile.reduce max %{{.*}} : tensor<64x64xf32, #acc> -> tensor<64x1xf32, #row>
    %max = fi_tile.reduce max %t : tensor<64x64xf32, #acc> -> tensor<64x1xf32, #row>
    // CHECK: fi_tile.reduce add %{{.*}} : tensor<64x64xf32, #acc> -> tensor<64x4xf32, #partial>
    %sum = fi_tile.reduce add %t : tensor<64x64xf32, #acc> -> tensor<64x4xf32, #partial>
    // CHECK: fi_tile.iota %[[KEY]] : tensor<1x64xindex, #column>
    %columns = fi_tile.iota %key : tensor<1x64xindex, #column>
  }
  fi_tile.return
}

// CHECK-LABEL: fi_tile.kernel @roles
// CHECK-SAME: schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1, lanes = 4>)
#panels = #fi_tile.smem<pitch = 128, swizzle = 128, panel = 8192>
!panels = !fi_tile.buf<64x128xf16, #panels>
!ring = !fi_tile.chan<64x128xf16, #panels, depth = 2>
fi_tile.kernel @roles(%k: memref<?x8x128xf16>, %work: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1, lanes = 4>) {
  // CHECK: %[[C:.*]] = fi_tile.channel at 0 barriers 65536 : !chan2
  %c = fi_tile.channel at 0 barriers 65536 : !ring
  %zero = arith.constant 0 : index
  %z = arith.constant 0 : i32
  // CHECK: fi_tile.role @load warps 4 registers 56 {
  fi_tile.role @load warps 4 registers 56 {
    // CHECK-NEXT: %{{.*}} = fi_tile.for_items %[[IT:.*]] in %work iter_args(%[[N:.*]] = %{{.*}}) -> (i32) {
    %last = fi_tile.for_items %it in %work iter_args(%n = %z) -> (i32) {
      // CHECK-NEXT: fi_tile.await empty %[[C]][%[[N]]] phase %[[N]] : !chan2
      fi_tile.await empty %c[%n] phase %n : !ring
      %b = fi_tile.slot %c[%zero] : !ring
      fi_tile.copy_rows %k[%it] to %b group 1 : memref<?x8x128xf16>, !panels
      // CHECK: fi_tile.arrive full %[[C]][%[[N]]] : !chan2
      fi_tile.arrive full %c[%n] : !ring
      // CHECK: fi_tile.yield %[[N]] : i32
      fi_tile.yield %n : i32
    }
  }
  // CHECK: fi_tile.role @compute warps 4 attributes {note = 2 : i64} {
  fi_tile.role @compute warps 4 attributes {note = 2} {
    // CHECK-NEXT: fi_tile.for_items %{{.*}} in %work {
    fi_tile.for_items %it in %work {
      // CHECK: fi_tile.for_keys %{{.*}} in %{{.*}} all first step 64 {
      fi_tile.for_keys %t in %it all first step 64 {
        fi_tile.yield
      }
      // CHECK: fi_tile.for_keys %{{.*}} in %{{.*}} partial rest step 64 {
      fi_tile.for_keys %t in %it partial rest step 64 {
        fi_tile.yield
      }
      // CHECK: fi_tile.for_keys %{{.*}} in %{{.*}} all last step 64 {
      fi_tile.for_keys %t in %it all last step 64 {
        fi_tile.yield
      }
      // CHECK: fi_tile.await full %[[C]]
      fi_tile.await full %c[%z] phase %z : !ring
      // CHECK: %[[B:.*]] = fi_tile.slot
      %b = fi_tile.slot %c[%zero] : !ring
      // CHECK: %[[S:.*]] = fi_tile.dot %[[B]], %[[B]] transpose warpgroup : !buf2, !buf2 -> tensor<64x64xf32>
      %s = fi_tile.dot %b, %b transpose warpgroup : !panels, !panels -> tensor<64x64xf32>
      // CHECK: %[[F:.*]] = fi_tile.dot_start %[[B]], %[[B]] transpose : !buf2, !buf2 -> !fi_tile.future<tensor<64x64xf32>>
      %f = fi_tile.dot_start %b, %b transpose : !panels, !panels -> !fi_tile.future<tensor<64x64xf32>>
      // CHECK: %[[G:.*]] = fi_tile.dot_start %[[B]], %[[B]] acc(%[[S]] : tensor<64x64xf32>) transpose : !buf2, !buf2 -> !fi_tile.future<tensor<64x64xf32>>
      %g = fi_tile.dot_start %b, %b acc(%s : tensor<64x64xf32>) transpose : !panels, !panels -> !fi_tile.future<tensor<64x64xf32>>
      // CHECK: %[[R:.*]] = fi_tile.wait %[[F]] : !fi_tile.future<tensor<64x64xf32>>
      %r = fi_tile.wait %f : !fi_tile.future<tensor<64x64xf32>>
      // CHECK: %{{.*}}, %{{.*}} = fi_tile.wait %[[G]] keep(%[[R]] : tensor<64x64xf32>) : !fi_tile.future<tensor<64x64xf32>>
      %t, %u = fi_tile.wait %g keep(%r : tensor<64x64xf32>) : !fi_tile.future<tensor<64x64xf32>>
      // CHECK: fi_tile.arrive empty %[[C]]
      fi_tile.arrive empty %c[%z] : !ring
      // CHECK: fi_tile.mark phase "full tiles" once
      fi_tile.mark phase "full tiles" once
      // CHECK-NEXT: fi_tile.mark moment "here"
      fi_tile.mark moment "here"
      // CHECK-NEXT: fi_tile.mark end
      fi_tile.mark end
    }
  }
  fi_tile.return
}
