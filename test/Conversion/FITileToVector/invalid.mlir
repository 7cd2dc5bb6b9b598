// Tiles that do not fit the target's vectors.
// RUN: fi-opt %s --fi-tile-to-vector --split-input-file --verify-diagnostics

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// expected-error @+1 {{expected 'tile_rows' of at least 2, but got 1 [SCH3]}}
fi_tile.kernel @rows(%work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 1, tile_keys = 8, mr = 1, nr = 1>) {
  fi_tile.return
}
}

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// expected-error @+1 {{expected a schedule with 'mr' and 'nr' for a CPU, but got #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2, lanes = 1> [SCH2]}}
fi_tile.kernel @gpu(%work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 2>) {
  fi_tile.return
}
}

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
// expected-error @+1 {{expected 'lanes' of 1 or a multiple of 8, the vector length, but got 4 [SCH2]}}
fi_tile.kernel @lanes(%work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 8, tile_keys = 8, mr = 1, nr = 1, lanes = 4>) {
  fi_tile.return
}
}

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 512>} {
fi_tile.kernel @columns(%q: memref<?x2x32xf32>, %o: memref<?x2x8xf32>, %work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 8, tile_keys = 8, mr = 1, nr = 1>) {
  %k = arith.constant dense<1.0> : tensor<8x32xf32>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xf32> -> tensor<8x32xf32>
    // expected-error @+1 {{expected a multiple of 16 columns, the vector length, but got 8 [SCH2]}}
    %s = fi_tile.dot %a, %k transpose : tensor<8x32xf32>, tensor<8x32xf32> -> tensor<8x8xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x8xf32>, memref<?x2x8xf32>
  }
  fi_tile.return
}
}

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 512>} {
fi_tile.kernel @f16(%q: memref<?x2x32xf16>, %o: memref<?x2x16xf32>, %work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 8, tile_keys = 16, mr = 1, nr = 1>) {
  %k = arith.constant dense<1.0> : tensor<16x32xf16>
  fi_tile.for_items %it in %work {
    %a = fi_tile.load_rows %q[%it] group 2 : memref<?x2x32xf16> -> tensor<8x32xf16>
    // expected-error @+1 {{expected operands of f32 or bf16 (run fi-tile-legalize-dtypes), but got 'tensor<8x32xf16>'}}
    %s = fi_tile.dot %a, %k transpose : tensor<8x32xf16>, tensor<16x32xf16> -> tensor<8x16xf32>
    fi_tile.store_rows %s, %o[%it] group 2 : tensor<8x16xf32>, memref<?x2x16xf32>
  }
  fi_tile.return
}
}

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
fi_tile.kernel @normaliser(%work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 8, tile_keys = 16, mr = 1, nr = 1>) {
  fi_tile.for_items %it in %work {
    // expected-error @+1 {{'fi_tile.init' op has no lowering for the CPU}}
    %a, %m, %l = fi_tile.init(#fi.softmax<base = 2>) : tensor<8x8xf32>, tensor<8x1xf32>, tensor<8x1xf32>
  }
  fi_tile.return
}
}

// -----

module attributes {fi.target = #fi.target<cpu, vector_bits = 256>} {
fi_tile.kernel @groups(%work: !fi_tile.work) schedule(#fi.schedule<tile_rows = 8, tile_keys = 16, mr = 1, nr = 1>) {
  fi_tile.for_items %it in %work {
    %n = fi_tile.item %it[row_count]
    // expected-error @+1 {{'fi_tile.from_row' op is for groups of warps of a GPU: it has no lowering for a CPU}}
    %rest = fi_tile.from_row %it[%n]
  }
  fi_tile.return
}
}

// -----

// expected-error @+1 {{expected a module with fi.target = #fi.target<cpu, ...>}}
module {
}
