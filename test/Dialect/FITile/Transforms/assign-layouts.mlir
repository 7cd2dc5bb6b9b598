// Tiles become accumulator fragments, slices and partial sums of the schedule's warps;
// first operands in registers change to multiplicand fragments.
// RUN: fi-opt %s --fi-tile-assign-layouts --split-input-file --verify-diagnostics | FileCheck %s

#schedule = #fi.schedule<tile_rows = 128, tile_keys = 32, warps = 4, stages = 2, lanes = 4>
!buf = !fi_tile.buf<32x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
!chan = !fi_tile.chan<32x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
// CHECK-DAG: #[[SCORES:.*]] = #fi_tile.frag<mma_c, rep = [2, 4], warps = 4>
// CHECK-DAG: #[[OUT:.*]] = #fi_tile.frag<mma_c, rep = [2, 8], warps = 4>
// CHECK-DAG: #[[ROWS:.*]] = #fi_tile.frag<mma_c, rep = [2, 1], warps = 4>
// CHECK-DAG: #[[KEYS:.*]] = #fi_tile.frag<mma_c, rep = [1, 4], warps = 4>
// CHECK-DAG: #[[A:.*]] = #fi_tile.frag<mma_a16, rep = [2, 2], warps = 4>
// CHECK-DAG: #[[ROW:.*]] = #fi_tile.slice<1, #[[ROWS]]>
// CHECK-DAG: #[[COLUMN:.*]] = #fi_tile.slice<0, #[[KEYS]]>
// CHECK-DAG: #[[PARTIAL:.*]] = #fi_tile.partial<#[[ROWS]]>
// CHECK-LABEL: fi_tile.kernel @tiles
fi_tile.kernel @tiles(%w: !fi_tile.work) schedule(#schedule) {
  %c = fi_tile.channel : !chan
  // CHECK: arith.constant dense<0.000000e+00> : tensor<128x64xf32, #[[OUT]]>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %limit = arith.constant dense<1.0> : tensor<128x32xf32>
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.for_keys {{.*}} -> (tensor<128x64xf32, #[[OUT]]>) {
    %r = fi_tile.for_keys %t in %it all step 32 iter_args(%acc = %zero) -> (tensor<128x64xf32>) {
      // CHECK: fi_tile.iota %{{.*}} : tensor<1x32xindex, #[[COLUMN]]>
      %columns = fi_tile.iota %t : tensor<1x32xindex>
      // CHECK: fi_tile.broadcast %{{.*}} : tensor<1x32xindex, #[[COLUMN]]> -> tensor<128x32xindex, #[[SCORES]]>
      %spread = fi_tile.broadcast %columns : tensor<1x32xindex> -> tensor<128x32xindex>
      // CHECK: fi_tile.reduce max %{{.*}} : tensor<128x32xf32, #[[SCORES]]> -> tensor<128x1xf32, #[[ROW]]>
      %max = fi_tile.reduce max %limit : tensor<128x32xf32> -> tensor<128x1xf32>
      // CHECK: fi_tile.reduce add %{{.*}} : tensor<128x32xf32, #[[SCORES]]> -> tensor<128x4xf32, #[[PARTIAL]]>
      %sum = fi_tile.reduce add %limit : tensor<128x32xf32> -> tensor<128x4xf32>
      // CHECK: %[[P:.*]] = arith.truncf %{{.*}} : tensor<128x32xf32, #[[SCORES]]> to tensor<128x32xf16, #[[SCORES]]>
      %p = arith.truncf %limit : tensor<128x32xf32> to tensor<128x32xf16>
      %b = fi_tile.get %c : !chan
      // CHECK: %[[MOVED:.*]] = fi_tile.relayout %[[P]] : tensor<128x32xf16, #[[SCORES]]> -> tensor<128x32xf16, #[[A]]>
      // CHECK: fi_tile.dot %[[MOVED]], %{{.*}} acc(%{{.*}}) : tensor<128x32xf16, #[[A]]>, !buf -> tensor<128x64xf32, #[[OUT]]>
      %next = fi_tile.dot %p, %b acc(%acc) : tensor<128x32xf16>, !buf -> tensor<128x64xf32>
      fi_tile.yield %next : tensor<128x64xf32>
    }
  }
  fi_tile.return
}

// -----

// expected-error @below {{'fi_tile.kernel' op expected a schedule with 'warps' [SCH4]}}
fi_tile.kernel @cpu(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, mr = 4, nr = 1>) {
  fi_tile.return
}

// -----

// expected-error @below {{'fi_tile.kernel' op expected 'tile_rows' to be a multiple of 64, 16 for each of 4 warps, but got 32 [SCH4]}}
fi_tile.kernel @rows(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 32, tile_keys = 16, warps = 4>) {
  fi_tile.return
}

// -----

fi_tile.kernel @columns(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4>) {
  // expected-error @below {{'arith.constant' op expected tiles of 16 * n rows or one, and of 4 * n columns or one, but got 'tensor<64x10xf32>' [SCH4]}}
  %t = arith.constant dense<0.0> : tensor<64x10xf32>
  fi_tile.return
}

// -----

// expected-error @below {{'fi_tile.kernel' op expected 'lanes' of 1 or 4, the lanes that share a row, but got 8 [SCH4]}}
fi_tile.kernel @lanes(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, lanes = 8>) {
  fi_tile.return
}

// -----

!buf = !fi_tile.buf<24x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>>
!chan = !fi_tile.chan<24x64xf16, #fi_tile.smem<pitch = 128, swizzle = 128>, depth = 1>
fi_tile.kernel @keys(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 24, warps = 4>) {
  %c = fi_tile.channel : !chan
  %p = arith.constant dense<1.0> : tensor<64x24xf16>
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.dot' op expected a first operand in registers with a multiple of 16 columns, so 'tile_keys' of as many, but got 24 [SCH4]}}
    %o = fi_tile.dot %p, %b : tensor<64x24xf16>, !buf -> tensor<64x64xf32>
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

!buf = !fi_tile.buf<20x64xf32, #fi_tile.smem<pitch = 256, swizzle = 128>>
!chan = !fi_tile.chan<20x64xf32, #fi_tile.smem<pitch = 256, swizzle = 128>, depth = 1>
fi_tile.kernel @wide_keys(%w: !fi_tile.work) schedule(#fi.schedule<tile_rows = 64, tile_keys = 20, warps = 4>) {
  %c = fi_tile.channel : !chan
  %p = arith.constant dense<1.0> : tensor<64x20xf32>
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.dot' op expected a first operand in registers with a multiple of 8 columns, so 'tile_keys' of as many, but got 20 [SCH4]}}
    %o = fi_tile.dot %p, %b : tensor<64x20xf32>, !buf -> tensor<64x64xf32>
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

// Tiles of keys are spread over as many warps as have blocks of 16 rows. Halves of
// rows may have blocks of 4 columns. What is multiplied in f32 stays as it is.
#schedule = #fi.schedule<tile_rows = 64, tile_keys = 48, warps = 4>
!buf = !fi_tile.buf<48x24xf32, #fi_tile.smem<pitch = 144>>
!chan = !fi_tile.chan<48x24xf32, #fi_tile.smem<pitch = 144>, depth = 1>
// CHECK-DAG: #[[SCORES:.*]] = #fi_tile.frag<mma_c, rep = [1, 6], warps = 4>
// CHECK-DAG: #[[OUT:.*]] = #fi_tile.frag<mma_c, rep = [1, 3], warps = 4>
// CHECK-DAG: #[[HALVES:.*]] = #fi_tile.frag<mma_a32, rep = [3, 3], warps = 1>
// CHECK-DAG: #[[KEYS:.*]] = #fi_tile.frag<mma_c, rep = [3, 1], warps = 1>
// CHECK-DAG: #[[PAIRS:.*]] = #fi_tile.frag<mma_a32, rep = [1, 3], warps = 4>
// CHECK-DAG: #[[KEY:.*]] = #fi_tile.slice<1, #[[KEYS]]>
// CHECK-DAG: #[[PAIR:.*]] = #fi_tile.slice<0, #[[PAIRS]]>
// CHECK-DAG: #[[FOUR:.*]] = #fi_tile.partial<#[[KEYS]]>
// CHECK-LABEL: fi_tile.kernel @transforms
fi_tile.kernel @transforms(%w: !fi_tile.work) schedule(#schedule) {
  %c = fi_tile.channel : !chan
  %zero = arith.constant 0 : index
  %p = arith.constant dense<1.0> : tensor<64x48xf32>
  fi_tile.for_items %it in %w {
    %b = fi_tile.get %c : !chan
    // CHECK: fi_tile.read %{{.*}} from 12 step 1 : !buf -> tensor<48x12xf32, #[[HALVES]]>
    %half = fi_tile.read %b from 12 step 1 : !buf -> tensor<48x12xf32>
    // CHECK: fi_tile.read %{{.*}} from 0 step 2 : !buf -> tensor<48x4xf32, #[[FOUR]]>
    %four = fi_tile.read %b from 0 step 2 : !buf -> tensor<48x4xf32>
    // CHECK: fi_tile.iota %{{.*}} : tensor<48x1xindex, #[[KEY]]>
    %key = fi_tile.iota %zero : tensor<48x1xindex>
    // CHECK: fi_tile.iota %{{.*}} : tensor<1x12xindex, #[[PAIR]]>
    %pair = fi_tile.iota %zero : tensor<1x12xindex>
    // CHECK-NOT: relayout
    // CHECK: fi_tile.dot %{{.*}}, %{{.*}} : tensor<64x48xf32, #[[SCORES]]>, !buf -> tensor<64x24xf32, #[[OUT]]>
    %o = fi_tile.dot %p, %b : tensor<64x48xf32>, !buf -> tensor<64x24xf32>
    fi_tile.release %c : !chan
  }
  fi_tile.return
}

// -----

// A kernel of rows alone: lanes along rows, all warps along two of them. The last
// repeat goes beyond the tile.
// CHECK-DAG: #[[ROWS:.*]] = #fi_tile.frag<row32, rep = [2, 1], warps = 1, column_warps = 4>
// CHECK-DAG: #[[ONE:.*]] = #fi_tile.frag<row32, rep = [1, 3], warps = 1, column_warps = 4>
// CHECK-DAG: #[[TILE:.*]] = #fi_tile.frag<row32, rep = [2, 3], warps = 1, column_warps = 4>
// CHECK-DAG: #[[COLUMN:.*]] = #fi_tile.slice<0, #[[ONE]]>
// CHECK-DAG: #[[ROW:.*]] = #fi_tile.slice<1, #[[ROWS]]>
// CHECK-LABEL: fi_tile.kernel @long_rows
fi_tile.kernel @long_rows(%x: memref<?x1x2056xbf16>, %f: memref<2056xf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 2, tile_keys = 2, warps = 4>) {
  // CHECK: fi_tile.load_columns %{{.*}} : memref<2056xf32> -> tensor<1x2056xf32, #[[COLUMN]]>
  %g = fi_tile.load_columns %f : memref<2056xf32> -> tensor<1x2056xf32>
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.load_rows {{.*}} -> tensor<2x2056xf32, #[[TILE]]>
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1x2056xbf16> -> tensor<2x2056xf32>
    // CHECK: fi_tile.reduce add %{{.*}} : tensor<2x2056xf32, #[[TILE]]> -> tensor<2x1xf32, #[[ROW]]>
    %s = fi_tile.reduce add %t : tensor<2x2056xf32> -> tensor<2x1xf32>
  }
  fi_tile.return
}

// -----

// Short rows: fewer lanes of one, and each warp has rows of its own.
// CHECK-DAG: #[[TILE:.*]] = #fi_tile.frag<row16, rep = [4, 1], warps = 4>
// CHECK-LABEL: fi_tile.kernel @short_rows
fi_tile.kernel @short_rows(%x: memref<?x1x120xbf16>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 32, tile_keys = 32, warps = 4>) {
  fi_tile.for_items %it in %w {
    // CHECK: fi_tile.load_rows {{.*}} -> tensor<32x120xbf16, #[[TILE]]>
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1x120xbf16> -> tensor<32x120xbf16>
  }
  fi_tile.return
}

// -----

fi_tile.kernel @other_rows(%x: memref<?x1x512xf32>, %w: !fi_tile.work)
    schedule(#fi.schedule<tile_rows = 4, tile_keys = 4, warps = 4>) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected tiles of the kernel's 4 rows or one, but got 'tensor<3x512xf32>' [SCH4]}}
    %t = fi_tile.load_rows %x[%it] group 1 : memref<?x1x512xf32> -> tensor<3x512xf32>
  }
  fi_tile.return
}

// -----

// States that are merged a few rows at a time: lanes have columns side by side.
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 4, lanes = 4>
// CHECK-DAG: #[[BLOCK:.*]] = #fi_tile.frag<row16, rep = [1, 1], warps = 1>
// CHECK-DAG: #[[ROW:.*]] = #fi_tile.slice<1, #[[BLOCK]]>
// CHECK-LABEL: fi_tile.kernel @few_rows
fi_tile.kernel @few_rows(%w: !fi_tile.work) schedule(#schedule) {
  %i = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    %rest = fi_tile.from_row %it[%i]
    // CHECK: fi_tile.load_state {{.*}} : tensor<2x128xf32, #[[BLOCK]]>, tensor<2x1xf32, #[[ROW]]>
    %o, %l = fi_tile.load_state %w[%rest, %i] : tensor<2x128xf32>, tensor<2x1xf32>
    // CHECK: fi_tile.broadcast %{{.*}} : tensor<2x1xf32, #[[ROW]]> -> tensor<2x128xf32, #[[BLOCK]]>
    %f = fi_tile.broadcast %l : tensor<2x1xf32> -> tensor<2x128xf32>
    %p = arith.mulf %o, %f : tensor<2x128xf32>
    fi_tile.store_state %p, %l to %w[%rest] : tensor<2x128xf32>, tensor<2x1xf32>
  }
  fi_tile.return
}

// -----

// Tiles of keys have no part in it, whatever states of few rows there are.
#schedule = #fi.schedule<tile_rows = 16, tile_keys = 8, warps = 1, key_warps = 2, lanes = 4>
#smem = #fi_tile.smem<pitch = 144>
!buf = !fi_tile.buf<8x32xf32, #smem>
!chan = !fi_tile.chan<8x32xf32, #smem, depth = 1>
fi_tile.kernel @few_keys(%w: !fi_tile.work) schedule(#schedule) {
  %i = arith.constant 1 : index
  %c = fi_tile.channel : !chan
  fi_tile.for_items %it in %w {
    %f = fi_tile.get %c : !chan
    // expected-error @below {{'fi_tile.read' op expected tiles of 16 * n rows or one, and of 4 * n columns or one, but got 'tensor<8x32xf32>' [SCH4]}}
    %k = fi_tile.read %f : !buf -> tensor<8x32xf32>
    %rest = fi_tile.from_row %it[%i]
    %o, %l = fi_tile.load_state %w[%rest, %i] : tensor<4x32xf32>, tensor<4x1xf32>
  }
  fi_tile.return
}
