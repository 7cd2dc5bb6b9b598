module {
  fi_tile.kernel @placed(%q: memref<?x32x64xf16>, %k: memref<?x8x16x64xf16>, %v: memref<?x8x16x64xf16>, %o: memref<?x32x64xf32>, %pages: memref<?xi32>, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 64, tile_keys = 64, warps = 2, key_warps = 2, stages = 3, lanes = 4>) attributes {fi_tile.shared = 57344 : i64} {
    %c = fi_tile.channel at 1024 : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 3>
    %d = fi_tile.channel {note = 1 : i64} : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 144>, depth = 1>
    %kv = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x8x16x64xf16>, memref<?x8x16x64xf16> -> !fi.paged_kv<16x8x64xf16, HND>
    fi_tile.for_items %it in %work {
      %cursor = fi_tile.cursor %it step 64
      %key, %valid = fi_tile.cursor_key %cursor
      %free = fi_tile.acquire %c : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 3>
      fi_tile.copy_kv keys %kv[%it, %key] to %free if %valid : !fi.paged_kv<16x8x64xf16, HND>, !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
      fi_tile.commit %c : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 3>
      %ready = fi_tile.get %c : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 3>
      %s = fi_tile.dot %ready, %ready transpose : !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>, !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>> -> tensor<64x64xf32, #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>>
      %t = fi_tile.dot %ready, %ready acc(%s) : !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>, !fi_tile.buf<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>> -> tensor<64x64xf32, #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>>
      fi_tile.release %c : !fi_tile.chan<64x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 3>
      %r:2 = fi_tile.for_keys %n in %it full step 64 iter_args(%a = %t, %b = %cursor) -> (tensor<64x64xf32, #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>>, !fi_tile.cursor) {
        %next = fi_tile.advance %b step 64
        fi_tile.yield %a, %next : tensor<64x64xf32, #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>>, !fi_tile.cursor
      }
      fi_tile.store_rows %r#0, %o[%it] group 4 : tensor<64x64xf32, #fi_tile.frag<mma_c, rep = [2, 8], warps = 2>>, memref<?x32x64xf32>
      %zero = arith.constant 0 : index
      %half = fi_tile.load_rows %q[%it] group 4 from %zero step 2 : memref<?x32x64xf16> -> tensor<64x32xf16>
      fi_tile.store_rows %half, %q[%it] group 4 from %zero step 2 : tensor<64x32xf16>, memref<?x32x64xf16>
    }
    fi_tile.return
  }
}
