// One case for each message of level 2.
// RUN: fi-opt %s -split-input-file -verify-diagnostics

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
// expected-error @below {{'fi_tile.kernel' op expected the last argument to be the work, of type !fi_tile.work [TILE1]}}
fi_tile.kernel @no_work(%o: memref<?xf32>) schedule(#s) {
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
// expected-error @below {{'fi_tile.kernel' op expected arguments to be memrefs or scalars, but got 'tensor<4xf32>' [TILE1]}}
fi_tile.kernel @tensor(%o: tensor<4xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
// expected-error @below {{'fi_tile.kernel' op expected no results, but got 'f32' [TILE1]}}
"fi_tile.kernel"() <{sym_name = "results", function_type = (!fi_tile.work) -> f32, schedule = #s}> ({
^bb0(%w: !fi_tile.work):
  fi_tile.return
}) : () -> ()

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{expected all, full or partial, but got 'some'}}
    fi_tile.for_keys %t in %it some step 64 {
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    // expected-error @below {{expected 1 types, but got 2}}
    fi_tile.for_keys %t in %it all step 64 iter_args(%a = %c) -> (index, index) {
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected a step of at least 1 key, but got 0 [TILE2]}}
    fi_tile.for_keys %t in %it all step 0 {
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected a step of at least 1 key, but got -8 [TILE2]}}
    fi_tile.for_keys %t in %it all step -8 {
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected the first or last tile of all, but got one of the full ones [TILE2]}}
    fi_tile.for_keys %t in %it full first step 64 {
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected the first or last tile of all, but got one of the partial ones [TILE2]}}
    fi_tile.for_keys %t in %it partial last step 64 {
      fi_tile.yield
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant 0 : index
  // expected-error @below {{expected 1 types, but got 2}}
  fi_tile.for_items %it in %w iter_args(%a = %zero) -> (index, index) {
    fi_tile.yield %a : index
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant 0 : index
  // expected-error @below {{'fi_tile.for_items' op expected a body that yields 'index', but got  [TILE3]}}
  %r = fi_tile.for_items %it in %w iter_args(%a = %zero) -> (index) {
    // expected-note @below {{yielded here}}
    fi_tile.yield
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant 0 : i32
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected initial values of the types of the results, 'index', but got 'i32' [TILE3]}}
    %r = "fi_tile.for_keys"(%it, %c) <{part = #fi_tile.part<all>, step = 64 : i64}> ({
    ^bb0(%t: index, %a: index):
      fi_tile.yield %a : index
    }) : (!fi_tile.item, i32) -> index
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected a body that yields 'index', but got 'index', 'index' [TILE3]}}
    %r = fi_tile.for_keys %t in %it all step 64 iter_args(%a = %c) -> (index) {
      // expected-note @below {{yielded here}}
      fi_tile.yield %a, %t : index, index
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.for_items' op expected a body that yields nothing, but got '!fi_tile.item' [TILE3]}}
  fi_tile.for_items %it in %w {
    // expected-note @below {{yielded here}}
    fi_tile.yield %it : !fi_tile.item
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.for_items' op expected a body with arguments of types '!fi_tile.item', but got 'index' [TILE18]}}
  "fi_tile.for_items"(%w) ({
  ^bb0(%it: index):
    fi_tile.yield
  }) : (!fi_tile.work) -> ()
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.for_keys' op expected a body that ends with fi_tile.yield, but got llvm.unreachable [TILE18]}}
    fi_tile.for_keys %t in %it all step 64 {
      llvm.unreachable
    }
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x2x2x64xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a memref [rows, heads, dim], [rows, heads] or [rows], but got 'memref<?x2x2x64xf32>' [TILE4]}}
    %0 = fi_tile.load_rows %q[%it] group 1 : memref<?x2x2x64xf32> -> tensor<16x1xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a group of 1 and no 'head' for 'memref<?xf32>', which has one head, but got a group of 2 [TILE4]}}
    %0 = fi_tile.load_rows %q[%it] group 2 : memref<?xf32> -> tensor<16x1xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a tile of 64 columns, but got 'tensor<16x128xf32>' [TILE4]}}
    %0 = fi_tile.load_rows %q[%it] group 1 : memref<?x8x64xf32> -> tensor<16x128xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a group of at least 1, but got 0 [TILE4]}}
    %0 = fi_tile.load_rows %q[%it] group 0 : memref<?x8x64xf32> -> tensor<16x64xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a tile of 'f32' or a wider float, but got 'tensor<16x64xbf16>' [TILE4]}}
    %0 = fi_tile.load_rows %q[%it] group 1 : memref<?x8x64xf32> -> tensor<16x64xbf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xbf16>, %w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.0> : tensor<16x64xf32>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.store_rows' op expected a tile of 'bf16', but got 'tensor<16x64xf32>' [TILE4]}}
    fi_tile.store_rows %c, %q[%it] group 1 : tensor<16x64xf32>, memref<?x8x64xbf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x64xbf16>, %w: !fi_tile.work) schedule(#s) {
  %kv = fi_tile.view %k, %k : memref<?x8x64xbf16>, memref<?x8x64xbf16> -> !fi.ragged_kv<8x64xbf16>
  fi_tile.for_items %it in %w {
    %t = fi_tile.item %it[kv_origin]
    // expected-error @below {{'fi_tile.load_kv' op expected a tile of 64 columns of 'bf16' or a wider float, but got 'tensor<64x32xbf16>' [TILE5]}}
    %0 = fi_tile.load_kv keys %kv[%it, %t] : !fi.ragged_kv<8x64xbf16> -> tensor<64x32xbf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x64xbf16>, %w: !fi_tile.work) schedule(#s) {
  %kv = fi_tile.view %k, %k : memref<?x8x64xbf16>, memref<?x8x64xbf16> -> !fi.ragged_kv<8x64xbf16>
  %c = arith.constant dense<0.0> : tensor<16x64xf32>
  fi_tile.for_items %it in %w {
    %t = fi_tile.item %it[kv_origin]
    // expected-error @below {{'fi_tile.store_kv' op expected a tile of 64 columns of 'bf16', but got 'tensor<16x64xf32>' [TILE5]}}
    fi_tile.store_kv keys %c, %kv[%it, %t] : tensor<16x64xf32>, !fi.ragged_kv<8x64xbf16>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%x: memref<?x?xi32>, %i: index, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.gather' op expected 2 indices, but got 1 [TILE6]}}
  %0 = fi_tile.gather %x[%i] : memref<?x?xi32>, index -> i32
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%x: memref<?xi32>, %i: index, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.gather' op expected a result of 'i32', but got 'i64' [TILE6]}}
  %0 = fi_tile.gather %x[%i] : memref<?xi32>, index -> i64
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%x: memref<?xf32>, %i: index, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.gather' op expected bits of a row of i8, i16, i32 or i64, but got 'memref<?xf32>' [TILE6]}}
  %0 = fi_tile.gather %x[%i] bits : memref<?xf32>, index -> i1
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%x: memref<?xi32>, %i: index, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.gather' op expected a result of 'i1', but got 'i32' [TILE6]}}
  %0 = fi_tile.gather %x[%i] bits : memref<?xi32>, index -> i32
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%x: memref<?xi32>, %i: index, %w: !fi_tile.work) schedule(#s) {
  %kp = fi_tile.iota %i : tensor<1x64xindex>
  // expected-error @below {{'fi_tile.gather' op expected indices of type index, or tiles of index of the result's shape, but got 'tensor<1x64xindex>' [TILE6]}}
  %0 = fi_tile.gather %x[%kp] : memref<?xi32>, tensor<1x64xindex> -> tensor<64x1xi32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%i: index, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.iota' op expected a row or a column of index, but got 'tensor<2x64xindex>' [TILE7]}}
  %0 = fi_tile.iota %i : tensor<2x64xindex>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.0> : tensor<2x1xf32>
  // expected-error @below {{'fi_tile.broadcast' op expected a result that repeats dimensions of size 1, but got 'tensor<2x1xf32>' to 'tensor<4x64xf32>' [TILE8]}}
  %0 = fi_tile.broadcast %c : tensor<2x1xf32> -> tensor<4x64xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0.0> : tensor<2x8xf32>
  // expected-error @below {{'fi_tile.dot' op expected [m, k] times [k, n] to be [m, n], but got 'tensor<2x8xf32>', 'tensor<2x8xf32>' and 'tensor<2x2xf32>' [TILE9]}}
  %0 = fi_tile.dot %a, %a : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x2xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0.0> : tensor<2x8xf32>
  // expected-error @below {{'fi_tile.dot' op expected [m, k] times transposed [n, k] to be [m, n], but got 'tensor<2x8xf32>', 'tensor<2x8xf32>' and 'tensor<2x8xf32>' [TILE9]}}
  %0 = fi_tile.dot %a, %a transpose : tensor<2x8xf32>, tensor<2x8xf32> -> tensor<2x8xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0.0> : tensor<2x8xf32>
  %b = arith.constant dense<0.0> : tensor<2x8xbf16>
  // expected-error @below {{'fi_tile.dot' op expected operands of one element type, or of f16, bf16 and f32 where the second one lies in a buffer, which may be of f8E4M3FN, f8E5M2 or i8 where the first is of f16 or bf16, or both in buffers, of f8E4M3FN or f8E5M2, with a transposed second one, and a result of f32, but got 'tensor<2x8xf32>', 'tensor<2x8xbf16>' and 'tensor<2x2xf32>' [TILE9]}}
  %0 = fi_tile.dot %a, %b transpose : tensor<2x8xf32>, tensor<2x8xbf16> -> tensor<2x2xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0> : tensor<2x8xi32>
  // expected-error @below {{'fi_tile.dot' op expected operands of floats, but got 'tensor<2x8xi32>' [TILE9]}}
  %0 = fi_tile.dot %a, %a transpose : tensor<2x8xi32>, tensor<2x8xi32> -> tensor<2x2xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0.0> : tensor<2x8xf32>
  %ok = arith.constant dense<true> : tensor<1x8xi1>
  // expected-error @below {{'fi_tile.mask' op expected an i1 for each score, but got 'tensor<1x8xi1>' for 'tensor<2x8xf32>' [TILE10]}}
  %0 = fi_tile.mask %a where %ok : tensor<2x8xf32>, tensor<1x8xi1>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0> : tensor<2x8xi32>
  %ok = arith.constant dense<true> : tensor<2x8xi1>
  // expected-error @below {{'fi_tile.mask' op expected scores of floats, but got 'tensor<2x8xi32>' [TILE10]}}
  %0 = fi_tile.mask %a where %ok : tensor<2x8xi32>, tensor<2x8xi1>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0.0> : tensor<2x8xf32>
  // expected-error @below {{'fi_tile.reduce' op expected a result of as many rows, whose columns divide those of the source, but got 'tensor<2x8xf32>' to 'tensor<2x3xf32>' [TILE11]}}
  %0 = fi_tile.reduce add %a : tensor<2x8xf32> -> tensor<2x3xf32>
  fi_tile.return
}

// -----

// A size of 0 would divide by it.
#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %a = arith.constant dense<0.0> : tensor<2x8xf32>
  // expected-error @below {{'fi_tile.reduce' op result #0 must be tile (tensor of numbers, two static dimensions of at least 1), but got 'tensor<2x0xf32>'}}
  %0 = fi_tile.reduce add %a : tensor<2x8xf32> -> tensor<2x0xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.init' op expected an accumulator, but got no tiles [TILE12]}}
  "fi_tile.init"() <{normaliser = #fi.softmax<base = 2>}> : () -> ()
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.init' op expected an accumulator of f32, but got 'tensor<16x64xbf16>' [TILE12]}}
  %r:3 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x64xbf16>, tensor<16x1xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.init' op expected the accumulator and then tiles such as 'tensor<16x1xf32>', 'tensor<16x1xf32>' for #fi.softmax<base = 2>, but got 'tensor<16x64xf32>', 'tensor<16x1xf32>' [TILE12]}}
  %r:2 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x64xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x64xbf16>, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.view' op expected 2 pools for a view of type '!fi.ragged_kv<8x64xbf16>', but got 3 [TILE13]}}
  %kv = fi_tile.view %k, %k, %k : memref<?x8x64xbf16>, memref<?x8x64xbf16>, memref<?x8x64xbf16> -> !fi.ragged_kv<8x64xbf16>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x64xbf16>, %v: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.view' op expected a pool of rank 3 with rows of 64 x 'bf16' for values, but got 'memref<?x8x64xf32>' [TILE13]}}
  %kv = fi_tile.view %k, %v : memref<?x8x64xbf16>, memref<?x8x64xf32> -> !fi.ragged_kv<8x64xbf16>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x64xbf16>, %p: memref<?xi32>, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.view' op expected 0 page tables for a view of type '!fi.ragged_kv<8x64xbf16>', but got 1 [TILE13]}}
  %kv = fi_tile.view %k, %k pages(%p : memref<?xi32>) : memref<?x8x64xbf16>, memref<?x8x64xbf16> -> !fi.ragged_kv<8x64xbf16>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x16x64xbf16>, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.view' op expected 1 page tables for a view of type '!fi.paged_kv<16x8x64xbf16, HND>', but got 0 [TILE13]}}
  %kv = fi_tile.view %k, %k : memref<?x8x16x64xbf16>, memref<?x8x16x64xbf16> -> !fi.paged_kv<16x8x64xbf16, HND>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%k: memref<?x8x16x64xbf16>, %p: memref<?xi64>, %w: !fi_tile.work) schedule(#s) {
  // expected-error @below {{'fi_tile.view' op expected a page table [pages] or [requests, pages] of 'i32', but got 'memref<?xi64>' [TILE13]}}
  %kv = fi_tile.view %k, %k pages(%p : memref<?xi64>) : memref<?x8x16x64xbf16>, memref<?x8x16x64xbf16> -> !fi.paged_kv<16x8x64xbf16, HND>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<16x64xf32>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.store_state' op expected an output [rows, dim] and a statistic [rows, 1] of f32, but got 'tensor<16x64xf32>' and 'tensor<16x64xf32>' [TILE14]}}
    fi_tile.store_state %o, %o to %w[%it] : tensor<16x64xf32>, tensor<16x64xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%i: index, %w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_state' op expected an output [rows, dim] and a statistic [rows, 1] of f32, but got 'tensor<16x64xf32>' and 'tensor<8x1xf32>' [TILE14]}}
    %o, %s = fi_tile.load_state %w[%it, %i] : tensor<16x64xf32>, tensor<8x1xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %s = arith.constant dense<0.0> : tensor<16x32xf32>
  %v = arith.constant dense<0.0> : tensor<64x64xf32>
  %r:3 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32>
  // expected-error @below {{'fi_tile.update' op expected scores [rows, keys] of f32 and values [keys, dim] for an accumulator [rows, dim], but got 'tensor<16x32xf32>', 'tensor<64x64xf32>' and 'tensor<16x64xf32>' [TILE15]}}
  %u:3 = fi_tile.update #fi.softmax<base = 2> scores(%s) values(%v) into(%r#0, %r#1, %r#2) : tensor<16x32xf32>, tensor<64x64xf32> into tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %r:3 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32>
  // expected-error @below {{'fi_tile.finalize' op expected an output [rows, dim] and a statistic [rows, 1] of f32, but got 'tensor<16x64xf32>' and 'tensor<16x2xf32>' [TILE16]}}
  %o, %l = fi_tile.finalize #fi.softmax<base = 2> %r#0, %r#1, %r#2 : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x64xf32>, tensor<16x2xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %r:3 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32>
  // expected-error @below {{'fi_tile.finalize' op expected an output of the accumulator's type, 'tensor<16x64xf32>', but got 'tensor<16x32xf32>' [TILE16]}}
  %o, %l = fi_tile.finalize #fi.softmax<base = 2> %r#0, %r#1, %r#2 : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x32xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %sink = arith.constant dense<0.0> : tensor<1x1xf32>
  %r:3 = fi_tile.init(#fi.softmax<base = 2>) : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32>
  // expected-error @below {{'fi_tile.finalize' op expected a sink of the statistic's type, 'tensor<16x1xf32>', but got 'tensor<1x1xf32>' [TILE16]}}
  %o, %l = fi_tile.finalize #fi.softmax<base = 2> %r#0, %r#1, %r#2 sink(%sink : tensor<1x1xf32>) : tensor<16x64xf32>, tensor<16x1xf32>, tensor<16x1xf32> -> tensor<16x64xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<16x64xbf16>
  %l = arith.constant dense<0.0> : tensor<16x1xf32>
  // expected-error @below {{'fi_tile.merge' op expected an output [rows, dim] and a statistic [rows, 1] of f32, but got 'tensor<16x64xbf16>' and 'tensor<16x1xf32>' [TILE17]}}
  %a, %b = fi_tile.merge #fi.softmax<base = 2> (%o, %l), (%o, %l) : tensor<16x64xbf16>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<16x64xbf16>
  %l = arith.constant dense<0.0> : tensor<16x1xf32>
  // expected-error @below {{'fi_tile.sink' op expected an output [rows, dim] and a statistic [rows, 1] of f32, but got 'tensor<16x64xbf16>' and 'tensor<16x1xf32>' [TILE17]}}
  %a, %b = fi_tile.sink #fi.softmax<base = 2> %o, %l, %l : tensor<16x64xbf16>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  fi_tile.for_items %it in %w {
    // expected-error @below {{expected one of [request, kv_head, row_begin, row_count, q_begin, q_len, kv_len, kv_origin, slot, slot_count, first_slot] for field of a work item, got: length}}
    %0 = fi_tile.item %it[length]
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.0> : tensor<16x8xf32>
  // expected-error @below {{'fi_tile.columns' op expected rows of the source and columns first, first + step, ... among its 8, but got 'tensor<16x4xf32>' from 2 step 2 of 'tensor<16x8xf32>' [TILE19]}}
  %0 = fi_tile.columns %c from 2 step 2 : tensor<16x8xf32> -> tensor<16x4xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.0> : tensor<16x8xf32>
  // expected-error @below {{'tensor<16x2xf32>' from -1 step 9223372036854775807 of 'tensor<16x8xf32>' [TILE19]}}
  %0 = fi_tile.columns %c from -1 step 9223372036854775807 : tensor<16x8xf32> -> tensor<16x2xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %c = arith.constant dense<0.0> : tensor<16x8xf32>
  // expected-error @below {{'fi_tile.any' op expected a tile of i1, but got 'tensor<16x8xf32>' [TILE26]}}
  %0 = fi_tile.any %c : tensor<16x8xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<16x8xf32>
  %l = arith.constant dense<0.0> : tensor<16x1xf32>
  // expected-error @below {{'fi_tile.fold' op expected an accumulator of the output's type, 'tensor<16x8xf32>', but got 'tensor<16x1xf32>' [TILE27]}}
  %0:2 = fi_tile.fold #fi.softmax<base = 2> (%o, %l) into (%l, %l) : tensor<16x8xf32>, tensor<16x1xf32> into tensor<16x1xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<16x8xf32>
  %l = arith.constant dense<0.0> : tensor<16x1xf32>
  // expected-error @below {{'fi_tile.fold' op expected pairs of output and statistic, then a running state of as many tiles as results, 3, but got 4 tiles [TILE27]}}
  %0:3 = "fi_tile.fold"(%o, %o, %l, %l) <{normaliser = #fi.softmax<base = 2>}> : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x1xf32>, tensor<16x1xf32>) -> (tensor<16x8xf32>, tensor<16x1xf32>, tensor<16x1xf32>)
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %i = arith.constant 0 : index
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.arrive_last' op expected a counter's number and how many arrive at it, or neither, but got 1 operands [TILE28]}}
    %0 = fi_tile.arrive_last %w[%it] counter %i
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %r = fi_tile.init(#fi.sigmoid) : tensor<16x64xf32>
  %sink = arith.constant dense<0.0> : tensor<16x1xf32>
  // expected-error @below {{'fi_tile.finalize' op expected a normaliser that takes a sink, but got #fi.sigmoid [TILE16]}}
  %o, %l = fi_tile.finalize #fi.sigmoid %r sink(%sink : tensor<16x1xf32>) : tensor<16x64xf32> -> tensor<16x64xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%w: !fi_tile.work) schedule(#s) {
  %o = arith.constant dense<0.0> : tensor<16x64xf32>
  %l = arith.constant dense<0.0> : tensor<16x1xf32>
  // expected-error @below {{'fi_tile.sink' op expected a normaliser that takes a sink, but got #fi.sum [TILE17]}}
  %a, %b = fi_tile.sink #fi.sum %o, %l, %l : tensor<16x64xf32>, tensor<16x1xf32>
  fi_tile.return
}

// -----

!kv = !fi.ragged_kv<2x8xf32>
func.func @f(%s: memref<?x2xf32>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{expected a view that scales pages, tokens or blocks of keys, but got '!fi.ragged_kv<2x8xf32>' [TILE34]}}
  %r = fi_tile.load_scales keys %s, %kv[%it, %t] : memref<?x2xf32>, !kv -> tensor<1x16xf32>
  return
}

// -----

!kv = !fi.ragged_kv<2x8x!fi.scaled<i8, per = token, by = f32>>
func.func @f(%s: memref<?x2x2xf32>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{expected scales of rank 2 of 'f32', but got 'memref<?x2x2xf32>' [TILE34]}}
  %r = fi_tile.load_scales keys %s, %kv[%it, %t] : memref<?x2x2xf32>, !kv -> tensor<1x16xf32>
  return
}

// -----

!kv = !fi.ragged_kv<2x8x!fi.scaled<i8, per = token, by = f32>>
func.func @f(%s: memref<?x2xf32>, %kv: !kv, %it: !fi_tile.item, %t: index) {
  // expected-error @below {{expected a row or a column of 'f32', but got 'tensor<2x16xf32>' [TILE34]}}
  %r = fi_tile.load_scales values %s, %kv[%it, %t] : memref<?x2xf32>, !kv -> tensor<2x16xf32>
  return
}

// -----

func.func @f(%x: memref<64xf16>) {
  // expected-error @below {{'fi_tile.load_columns' op expected a memref of rank 1 of the result's 'f32', but got 'memref<64xf16>' [TILE35]}}
  %r = fi_tile.load_columns %x : memref<64xf16> -> tensor<1x64xf32>
  return
}

// -----

func.func @f(%x: memref<64xf16>) {
  // expected-error @below {{'fi_tile.load_columns' op expected a row of the source's elements, but got 'tensor<1x32xf16>' of 'memref<64xf16>' [TILE35]}}
  %r = fi_tile.load_columns %x : memref<64xf16> -> tensor<1x32xf16>
  return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  %z = arith.constant 0 : index
  %c = arith.constant dense<0.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a step of at least 1, and of 1 without 'from', but got 0 [TILE36]}}
    %0 = fi_tile.load_rows %q[%it] group 1 from %z step 0 : memref<?x8x64xf32> -> tensor<16x32xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  %z = arith.constant 0 : index
  %c = arith.constant dense<0.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.store_rows' op expected a tile of columns that a row of 64 has, but got 'tensor<16x32xf32>' by steps of 3 [TILE36]}}
    fi_tile.store_rows %c, %q[%it] group 1 from %z step 3 : tensor<16x32xf32>, memref<?x8x64xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
fi_tile.kernel @k(%q: memref<?x8x64xf32>, %w: !fi_tile.work) schedule(#s) {
  %z = arith.constant 0 : index
  %c = arith.constant dense<0.0> : tensor<16x32xf32>
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.load_rows' op expected a group of 1 with 'head', but got 2 [TILE36]}}
    %0 = fi_tile.load_rows %q[%it] group 2 head %z : memref<?x8x64xf32> -> tensor<16x64xf32>
  }
  fi_tile.return
}

// -----

#s = #fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 4>
!kv = !fi.ragged_kv<2x64xf32>
fi_tile.kernel @k(%k: memref<?x2x64xf32>, %w: !fi_tile.work) schedule(#s) {
  %z = arith.constant 0 : index
  %c = arith.constant dense<0.0> : tensor<16x32xf32>
  %kv = fi_tile.view %k, %k : memref<?x2x64xf32>, memref<?x2x64xf32> -> !kv
  fi_tile.for_items %it in %w {
    // expected-error @below {{'fi_tile.store_kv' op expected a tile of columns that a row of 64 has, but got 'tensor<16x32xf32>' by steps of 4 [TILE36]}}
    fi_tile.store_kv keys %c, %kv[%it, %z] from %z step 4 : tensor<16x32xf32>, !kv
  }
  fi_tile.return
}
