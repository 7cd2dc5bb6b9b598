// RUN: fi-opt %s --fi-canonicalize --fi-choose-schedule --fi-to-fi-tile --split-input-file --verify-diagnostics

// Blocks of columns that a target has no tiles for.

module attributes {fi.target = #fi.target<sm_80>} {
  fi.program @p
      plan(%rp: tensor<?xi32>, %cols: tensor<?xi32>)
      run(%q: tensor<?x4x32xf16>, %k: tensor<?x2x32xf16>, %v: tensor<?x2x32xf16>)
      -> (tensor<?x4x32xf16>) {
    %kv = fi.view.bsr %k, %v blocks(%rp, %cols : tensor<?xi32>, tensor<?xi32>)
        : tensor<?x2x32xf16>, tensor<?x2x32xf16> -> !fi.bsr_kv<24x2x32xf16, rows = 5>
    // expected-error @+1 {{expected blocks of a multiple of 16 columns, which a tile has at least, but got 24; a paged view with the blocks of rows as requests takes any [SCH8]}}
    %o = fi.attention %q over %kv scale(0.2)
        : tensor<?x4x32xf16> over !fi.bsr_kv<24x2x32xf16, rows = 5> -> tensor<?x4x32xf16>
    fi.return %o : tensor<?x4x32xf16>
  }
}

// -----

module attributes {fi.target = #fi.target<sm_80>} {
  fi.program @p
      plan(%rp: tensor<?xi32>, %cols: tensor<?xi32>)
      run(%q: tensor<?x4x32xf16>, %k: tensor<?x2x32xf16>, %v: tensor<?x2x32xf16>)
      -> (tensor<?x4x32xf16>) {
    %kv = fi.view.bsr %k, %v blocks(%rp, %cols : tensor<?xi32>, tensor<?xi32>)
        : tensor<?x2x32xf16>, tensor<?x2x32xf16> -> !fi.bsr_kv<32x2x32xf16, rows = 5>
    // expected-error @+1 {{expected blocks of a multiple of the 64 keys of a tile, but got 32 columns [SCH8]}}
    %o = fi.attention %q over %kv scale(0.2)
        schedules([#fi.schedule<tile_rows = 16, tile_keys = 64, warps = 1, stages = 1>])
        : tensor<?x4x32xf16> over !fi.bsr_kv<32x2x32xf16, rows = 5> -> tensor<?x4x32xf16>
    fi.return %o : tensor<?x4x32xf16>
  }
}
