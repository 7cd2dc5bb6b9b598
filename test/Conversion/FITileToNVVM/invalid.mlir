// What has no lowering, by name.
// RUN: fi-opt %s --fi-tile-to-nvvm --split-input-file --verify-diagnostics

// expected-error @below {{'fi_tile.kernel' op expected a schedule with 'warps' [SCH4]}}
fi_tile.kernel @cpu(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, mr = 4, nr = 1>) {
  fi_tile.return
}

// -----

fi_tile.kernel @offset(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  // expected-error @below {{'fi_tile.channel' op expected an offset: run fi-tile-allocate}}
  %c = fi_tile.channel : !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 1>
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    %b = fi_tile.slot %c[%zero] : !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 1>
  }
  fi_tile.return
}

// -----

fi_tile.kernel @channel(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 0 : !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 1>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.acquire' op has no lowering for a GPU}}
    %b = fi_tile.acquire %c : !fi_tile.chan<16x16xf16, #fi_tile.smem<pitch = 48>, depth = 1>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
fi_tile.kernel @types(%q: memref<?x2x16xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<16x16xf32, #acc>
    // expected-error @below {{'fi_tile.dot' op expected a product of f16, bf16 or f32 whose second operand lies in a buffer, but got 'tensor<16x16xf32, #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>>' and 'tensor<16x16xf32, #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>>'}}
    %s = fi_tile.dot %x, %x : tensor<16x16xf32, #acc>, tensor<16x16xf32, #acc> -> tensor<16x16xf32, #acc>
  }
  fi_tile.return
}

// -----

// Both layouts as pictures: lane 0 has no element of lane 1.
#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 2>
#two = #fi_tile.frag<mma_c, rep = [2, 2], warps = 1>
fi_tile.kernel @moves(%q: memref<?x2x16xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) {
  fi_tile.for_items %it in %w {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<32x16xf32, #acc>
    // expected-error @below {{'fi_tile.relayout' op expected a change of layout that moves nothing between lanes}}
    // expected-note @below {{from 'tensor<32x16xf32, #fi_tile.frag<mma_c, rep = [1, 2], warps = 2>>': lane:register of the first 16 x 8 elements, by rows}}
    // expected-note @below {{to 'tensor<32x16xf32, #fi_tile.frag<mma_c, rep = [2, 2], warps = 1>>': lane:register of the first 16 x 8 elements, by rows}}
    %y = fi_tile.relayout %x : tensor<32x16xf32, #acc> -> tensor<32x16xf32, #two>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#few = #fi_tile.frag<mma_c, rep = [1, 1], warps = 1>
fi_tile.kernel @columns(%q: memref<?x2x16xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<16x16xf32, #acc>
    // expected-error @below {{'fi_tile.reduce' op expected a value per row, or one for each lane that shares it, but got 'tensor<16x8xf32, #fi_tile.frag<mma_c, rep = [1, 1], warps = 1>>'}}
    %y = fi_tile.reduce add %x : tensor<16x16xf32, #acc> -> tensor<16x8xf32, #few>
  }
  fi_tile.return
}

// -----

// Codes of 4 bits are not asked of other lanes.
#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#few = #fi_tile.frag<mma_c, rep = [1, 1], warps = 1>
fi_tile.kernel @lanes(%q: memref<?x2x16xf32>, %w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  fi_tile.for_items %it in %w {
    %x = fi_tile.load_rows %q[%it] group 1 : memref<?x2x16xf32> -> tensor<16x16xf32, #acc>
    %c = arith.truncf %x : tensor<16x16xf32, #acc> to tensor<16x16xf4E2M1FN, #acc>
    // expected-error @below {{'fi_tile.columns' op expected columns that lanes of the same warp hold, in elements of 8 to 32 bits where they are not a lane's own; those of what a buffer holds are read by fi_tile.read}}
    // expected-note @below {{from 'tensor<16x16xf4E2M1FN, #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>>': lane:register of the first 16 x 8 elements, by rows}}
    %y = fi_tile.columns %c from 0 step 2 : tensor<16x16xf4E2M1FN, #acc> -> tensor<16x8xf4E2M1FN, #few>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
!chan = !fi_tile.chan<16x12xf32, #fi_tile.smem<pitch = 80>, depth = 1>
!buf = !fi_tile.buf<16x12xf32, #fi_tile.smem<pitch = 80>>
!half = !fi_tile.chan<16x12xf16, #fi_tile.smem<pitch = 48>, depth = 1>
!halfbuf = !fi_tile.buf<16x12xf16, #fi_tile.smem<pitch = 48>>
fi_tile.kernel @rest(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1>) {
  %c = fi_tile.channel at 0 : !chan
  %d = fi_tile.channel at 2048 : !half
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    %b = fi_tile.slot %c[%zero] : !chan
    %h = fi_tile.slot %d[%zero] : !half
    // expected-error @below {{'fi_tile.dot' op expected a product over a multiple of 8, or of 4 for operands of f32 that both lie in buffers, but got '!fi_tile.buf<16x12xf32, #fi_tile.smem<pitch = 80>>' and '!fi_tile.buf<16x12xf16, #fi_tile.smem<pitch = 48>>'}}
    %s = fi_tile.dot %b, %h transpose : !buf, !halfbuf -> tensor<16x16xf32, #acc>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
!chan = !fi_tile.chan<16x16xf32, #fi_tile.smem<pitch = 80>, depth = 1>
!buf = !fi_tile.buf<16x16xf32, #fi_tile.smem<pitch = 80>>
fi_tile.kernel @warps(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2>) {
  %c = fi_tile.channel at 0 : !chan
  %zero = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    %b = fi_tile.slot %c[%zero] : !chan
    // expected-error @below {{'fi_tile.dot' op expected a product whose rows all 2 warps share, in accumulators, but got 'tensor<16x16xf32, #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>>'}}
    %s = fi_tile.dot %b, %b transpose : !buf, !buf -> tensor<16x16xf32, #acc>
  }
  fi_tile.return
}

// -----

#acc = #fi_tile.frag<mma_c, rep = [1, 2], warps = 1>
#row = #fi_tile.slice<1, <mma_c, rep = [1, 1], warps = 1>>
fi_tile.kernel @nowhere(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 2>) {
  %o = arith.constant dense<1.0> : tensor<16x16xf32, #acc>
  %l = arith.constant dense<1.0> : tensor<16x1xf32, #row>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.share_state' op expected a kernel with shared memory, but it has no 'fi_tile.shared': run fi-tile-allocate}}
    fi_tile.share_state %o, %l at 0 : tensor<16x16xf32, #acc>, tensor<16x1xf32, #row>
  }
  fi_tile.return
}
