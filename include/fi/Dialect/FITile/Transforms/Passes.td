//===- Passes.td - passes over the fi_tile dialect ------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef FI_DIALECT_FITILE_TRANSFORMS_PASSES_TD
#define FI_DIALECT_FITILE_TRANSFORMS_PASSES_TD

include "mlir/Pass/PassBase.td"

def FITileOnlineSoftmax : Pass<"fi-tile-online-softmax", "::fi::tile::KernelOp"> {
  let summary = "Write normalisers out as tile arithmetic";
  let description = [{
    `fi_tile.init`, `update`, `finalize`, `merge` and `sink` become what the
    normaliser's interface builds. For softmax that is the online form with a
    running maximum, in base 2. The update's product with the values is rounded to
    their type first.

    Numeric effect: changes base (natural to 2).
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::fi::tile::FITileDialect"
  ];
}

def FITileSplitMasked : Pass<"fi-tile-split-masked", "::fi::tile::KernelOp"> {
  let summary = "Peel full tiles from partial ones";
  let description = [{
    A `fi_tile.for_keys` over all tiles becomes one over the full tiles, in which
    `fi_tile.mask` is its scores, and one over the partial tiles.

    Numeric effect: none.

    ```mlir
    %r = fi_tile.for_keys %t in %it all step 64 iter_args(%a = %i) -> (...) { ... fi_tile.mask ... }
    ```
    becomes
    ```mlir
    %f = fi_tile.for_keys %t in %it full step 64 iter_args(%a = %i) -> (...) { ... }
    %r = fi_tile.for_keys %t in %it partial step 64 iter_args(%a = %f) -> (...) { ... fi_tile.mask ... }
    ```
  }];
}

def FITileLegalizeDtypes : Pass<"fi-tile-legalize-dtypes", "::fi::tile::KernelOp"> {
  let summary = "Decide where narrow floats are widened";
  let description = [{
    Operands of products that the target cannot multiply (f16; bf16 without a
    bf16 dot product) are widened to f32 where they are loaded, and weights are
    not rounded.

    Numeric effect: removes the rounding of weights where they are widened.
  }];
  let options = [
    Option<"bf16Dot", "bf16-dot", "bool", "false",
           "The target multiplies bf16 pairs and accumulates in f32">,
    Option<"f16Dot", "f16-dot", "bool", "false",
           "The target multiplies f16 and accumulates in f32">
  ];
}

def FITileExpandMath : Pass<"fi-tile-expand-math", "::fi::tile::KernelOp"> {
  let summary = "Compute functions by powers of two";
  let description = [{
    What a target has instructions for, powers of two and reciprocals, takes the place of
    `math.tanh` of f32 tiles, where its flag `afn` allows an approximation: `1 - 2 / (1 +
    2^(2 x / ln 2))`, whose error is absolute, a few units of 2^-23, and not relative to
    small results. A constant factor of the operand is multiplied with that of the power.

    Numeric effect: an error of some 2^-22 of each result.

    ```mlir
    %x = arith.mulf %s, %c : tensor<128x64xf32>
    %t = math.tanh %x fastmath<afn> : tensor<128x64xf32>
    ```
    becomes
    ```mlir
    %x = arith.mulf %s, %d : tensor<128x64xf32>
    %p = math.exp2 %x fastmath<afn> : tensor<128x64xf32>
    %n = arith.subf %minus_one, %p : tensor<128x64xf32>
    %r = arith.divf %one, %n fastmath<arcp,afn> : tensor<128x64xf32>
    %y = arith.mulf %r, %two fastmath<reassoc,contract> : tensor<128x64xf32>
    %t = arith.addf %y, %one fastmath<reassoc,contract> : tensor<128x64xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::fi::tile::FITileDialect"
  ];
}

def FITileGatherBits : Pass<"fi-tile-gather-bits", "::fi::tile::KernelOp"> {
  let summary = "Gather bits of words as such";
  let description = [{
    A bit that is taken out of a gathered word by arithmetic becomes a bit that is
    gathered, of which code knows that neighbours come out of the same word.

    Numeric effect: none.

    ```mlir
    %w = arith.divui %i, %c32 : tensor<128x64xindex>
    %x = fi_tile.gather %mask[%w] : memref<?xi32>, tensor<128x64xindex> -> tensor<128x64xi32>
    %r = arith.remui %i, %c32 : tensor<128x64xindex>
    %s = arith.index_cast %r : tensor<128x64xindex> to tensor<128x64xi32>
    %y = arith.shrui %x, %s : tensor<128x64xi32>
    %m = arith.trunci %y : tensor<128x64xi32> to tensor<128x64xi1>
    ```
    becomes
    ```mlir
    %m = fi_tile.gather %mask[%i] bits : memref<?xi32>, tensor<128x64xindex> -> tensor<128x64xi1>
    ```
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileCommuteScale : Pass<"fi-tile-commute-scale", "::fi::tile::KernelOp"> {
  let summary = "Scale scores after masks and maxima";
  let description = [{
    A positive constant factor of scores moves behind `fi_tile.mask` and
    `fi_tile.reduce max`, where it multiplies one value per row; what remains of it,
    in the difference to the subtrahend, may be contracted with that. So does a constant
    term, where its sum has the flag `reassoc`: it joins the subtrahend.

    Numeric effect: contracts one product and difference, adds constant terms later.

    ```mlir
    %x = arith.mulf %s, %c : tensor<128x64xf32>
    %m = fi_tile.reduce max %x : tensor<128x64xf32> -> tensor<128x1xf32>
    ```
    becomes
    ```mlir
    %n = fi_tile.reduce max %s : tensor<128x64xf32> -> tensor<128x1xf32>
    %m = arith.mulf %n, %d : tensor<128x1xf32>
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::fi::tile::FITileDialect"
  ];
}

def FITileSkipRescale : Pass<"fi-tile-skip-rescale", "::fi::tile::KernelOp"> {
  let summary = "Multiply accumulators only where a factor is not 1";
  let description = [{
    The accumulator's product with a factor per row goes into a branch that is taken
    where a row of the warp has a factor other than 1.

    Numeric effect: none.
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::scf::SCFDialect",
    "::fi::tile::FITileDialect"
  ];
}

def FITileLateMaximum : Pass<"fi-tile-late-maximum", "::fi::tile::KernelOp"> {
  let summary = "Compute exponentials before the maximum of their tile";
  let description = [{
    With `late` in the schedule, behind fi-tile-lazy-maximum: weights are powers of scores
    less the subtrahend that stood before their tile. A lane's sum of a row, which is
    needed anyway, says whether it may stand: where one exceeds 2 to the power of the
    limit, or is no number, maxima, subtrahends, weights and sums are computed as ever, in
    a branch; there subtrahends move wherever maxima exceed them, or rows with many scores
    near the limit would take it again in each tile. So most tiles have neither a maximum
    nor anything to wait for before their exponentials, but scores stay in registers beside
    the weights.
    The first tile of a rotated loop, before which no subtrahend stands, is left as it is.

    Numeric effect: none beyond what the limit allows.

    ```mlir
    %p = fi_tile.reduce max %s : tensor<128x64xf32> -> tensor<128x4xf32>
    %any = ... %p exceeds %m + 8.0 ...
    %n, %f = scf.if %any -> ... { ... } else { scf.yield %m, %one }
    %w = math.exp2 ... of %s and %n ...
    %l = fi_tile.reduce add %w : tensor<128x64xf32> -> tensor<128x4xf32>
    ```
    becomes
    ```mlir
    %w0 = math.exp2 ... of %s and %m ...
    %l0 = fi_tile.reduce add %w0 : tensor<128x64xf32> -> tensor<128x4xf32>
    %any = ... %l0 exceeds 256.0 ...
    %n, %f, %w, %l = scf.if %any -> ... {
      ... all of the above ...
    } else {
      scf.yield %m, %one, %w0, %l0
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::fi::tile::FITileDialect"
  ];
}

def FITileLazyMaximum : Pass<"fi-tile-lazy-maximum", "::fi::tile::KernelOp"> {
  let summary = "Find maxima of rows where they may move subtrahends alone";
  let description = [{
    Behind fi-tile-skip-rescale: whether the maximum of any row exceeds its subtrahend by
    the limit is asked of each lane's own elements. The maxima of rows, the subtrahends
    and the factors of sums are computed in a branch, which is taken where one does.

    Numeric effect: none.

    ```mlir
    %x = fi_tile.reduce max %s : tensor<128x64xf32> -> tensor<128x1xf32>
    %k = arith.cmpf ole, %x, %limit : tensor<128x1xf32>
    %n = arith.select %k, %m, %x : tensor<128x1xi1>, tensor<128x1xf32>
    %f = math.exp2 ... of %m and %n ...
    ```
    becomes
    ```mlir
    %p = fi_tile.reduce max %s : tensor<128x64xf32> -> tensor<128x4xf32>
    %l = fi_tile.broadcast %limit : tensor<128x1xf32> -> tensor<128x4xf32>
    %g = arith.cmpf ugt, %p, %l : tensor<128x4xf32>
    %any = fi_tile.any %g : tensor<128x4xi1>
    %n, %f = scf.if %any -> (tensor<128x1xf32>, tensor<128x1xf32>) {
      %x = fi_tile.reduce max %p : tensor<128x4xf32> -> tensor<128x1xf32>
      ...
    } else {
      scf.yield %m, %one : tensor<128x1xf32>, tensor<128x1xf32>
    }
    ```
  }];
  let dependentDialects = [
    "::mlir::arith::ArithDialect", "::mlir::math::MathDialect",
    "::mlir::scf::SCFDialect", "::fi::tile::FITileDialect"
  ];
}

def FITilePlaceOperands : Pass<"fi-tile-place-operands", "::fi::tile::KernelOp"> {
  let summary = "Put operands of products into shared memory";
  let description = [{
    Begins the placed form. A `fi_tile.load_kv` or `load_rows` whose tile products
    read becomes a copy through a channel of one buffer, waited for before the first
    product; products then read the buffer.

    Numeric effect: none.

    ```mlir
    %k = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<64x128xf16>
    %s = fi_tile.dot %q, %k transpose : ...
    ```
    becomes
    ```mlir
    %f = fi_tile.acquire %kc : !c
    fi_tile.copy_kv keys %kv[%it, %t] to %f : !kv, !b
    fi_tile.commit %kc : !c
    %k = fi_tile.get %kc : !c
    %s = fi_tile.dot %q, %k transpose : ...
    fi_tile.release %kc : !c
    ```
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileAssignLayouts : Pass<"fi-tile-assign-layouts", "::fi::tile::KernelOp"> {
  let summary = "Give tiles their layouts in registers";
  let description = [{
    Every tile becomes an accumulator fragment of its shape over the schedule's
    warps, a slice of one (a value per row or per column), or partial sums of rows.
    First operands of products change to multiplicand fragments.

    Numeric effect: sums of `lanes` columns become sums per lane.
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITilePipeline : Pass<"fi-tile-pipeline", "::fi::tile::KernelOp"> {
  let summary = "Start copies of keys and values ahead of their use";
  let description = [{
    With a schedule of `stages`, copies run `stages - 1` visited tiles ahead: the
    loops over an item's keys carry a cursor, and each iteration starts the copies of
    the cursor's tile after it has gotten its own. Channels get `stages` buffers.

    Numeric effect: none.
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileSplitRoles : Pass<"fi-tile-split-roles", "::fi::tile::KernelOp"> {
  let summary = "Give copies to warps of their own";
  let description = [{
    With `load_warps` in the schedule a kernel gets two roles: one with the copies and
    what decides where they go, the other with everything else. Channels of keys and
    values get `stages` buffers, so many tiles ahead the copies are.

    Numeric effect: none.

    ```mlir
    fi_tile.for_items %it in %work {
      fi_tile.for_keys %t in %it full step 64 {
        %f = fi_tile.acquire %kc : !c
        fi_tile.copy_kv keys %kv[%it, %t] to %f : !kv, !b
        fi_tile.commit %kc : !c
        %k = fi_tile.get %kc : !c
        ...
        fi_tile.release %kc : !c
      }
    }
    ```
    becomes
    ```mlir
    fi_tile.role @load warps 4 registers 40 {
      fi_tile.for_items %it in %work {
        fi_tile.for_keys %t in %it full step 64 {
          %f = fi_tile.acquire %kc : !c
          fi_tile.copy_kv keys %kv[%it, %t] to %f : !kv, !b
          fi_tile.commit %kc : !c
        }
      }
    }
    fi_tile.role @compute warps 8 registers 232 {
      fi_tile.for_items %it in %work {
        fi_tile.for_keys %t in %it full step 64 {
          %k = fi_tile.get %kc : !c
          ...
          fi_tile.release %kc : !c
        }
      }
    }
    ```
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileTensorCopies : Pass<"fi-tile-tensor-copies", "::fi::tile::KernelOp"> {
  let summary = "Have the hardware copy boxes of memory";
  let description = [{
    With `tma` in the schedule, copies of a role become tensor copies where a tensor map
    can say what they read: queries whose heads fill whole tokens of a tile, keys and
    values that lie in pages of a multiple of 8, or without pages. One lane of each
    warp then starts a few boxes instead of every lane many chunks. What cannot be read
    so is left to the threads.

    Numeric effect: none.

    ```mlir
    fi_tile.copy_kv keys %kv[%it, %t] to %f : !kv, !b
    ```
    becomes
    ```mlir
    fi_tile.copy_kv keys %kv[%it, %t] to %f via(tma) : !kv, !b
    ```
  }];
  let options = [
    Option<"remarks", "remarks", "bool", "false",
           "Say which copies are left to threads, and why">
  ];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileRotate : Pass<"fi-tile-rotate", "::fi::tile::KernelOp"> {
  let summary = "Multiply keys of a tile beside values of the one before";
  let description = [{
    With `rotate` in the schedule, loops over keys whose bodies multiply queries and
    keys, compute weights, and multiply these and values, begin the product with the
    values of the tile before together with the one with the keys of their own: the
    tensor cores then work while weights are computed. The first tile, and the last
    product, come in loops that run once.

    Loops of another form are left as they are, with a remark.

    Numeric effect: none.

    ```mlir
    %r:2 = fi_tile.for_keys %t in %it full step 128 iter_args(%o = %zero, %m = %m0) -> (!T, !R) {
      %k = fi_tile.get %kc : !c
      %s = fi_tile.dot %q, %k transpose warpgroup : ...
      fi_tile.release %kc : !c
      ... weights %p of %s and %m, factors of %o ...
      %v = fi_tile.get %vc : !c
      %p2 = fi_tile.dot %p, %v acc(%o2) warpgroup : ...
      fi_tile.release %vc : !c
      fi_tile.yield %p2, %m2 : !T, !R
    }
    ```
    becomes
    ```mlir
    %f:3 = fi_tile.for_keys %t in %it all first step 128 iter_args(%p, %o, %m) ... { ... }
    %r:3 = fi_tile.for_keys %t in %it full rest step 128 iter_args(%p = %f#0, %o = %f#1, %m = %f#2) ... {
      %k = fi_tile.get %kc : !c
      %sf = fi_tile.dot_start %q, %k transpose : ...
      %v = fi_tile.get %vc : !c
      %of = fi_tile.dot_start %p, %v acc(%o : !T) : ...
      %s = fi_tile.wait %sf : !fi_tile.future<!T>
      fi_tile.release %kc : !c
      ... weights, but for their type ...
      %o2, %e2 = fi_tile.wait %of keep(%e : !T) : !fi_tile.future<!T>
      fi_tile.release %vc : !c
      ... weights of the type of values, factors of %o2 ...
      fi_tile.yield %p2, %o3, %m2 : !P, !T, !R
    }
    %l = fi_tile.for_keys %t in %it all last step 128 iter_args(%o = %r#1) ... { ... }
    ```
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileHoistWaits : Pass<"fi-tile-hoist-waits", "::fi::tile::KernelOp"> {
  let summary = "Start copies of values before the elementwise work on scores";
  let description = [{
    In loops over keys whose channels have several buffers, a wait, and the copy that
    it makes room for, move up behind the operation before them that has an effect:
    those of values behind the product of queries and keys. The next copy then starts
    earlier, which pays where memory is the limit: in kernels whose tiles have few rows.

    Numeric effect: none.
  }];
  let options = [
    Option<"maxRows", "max-rows", "int64_t", "32",
           "Kernels with more rows a tile are left as they are">
  ];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileAllocate : Pass<"fi-tile-allocate", "::fi::tile::KernelOp"> {
  let summary = "Lay channels out in shared memory";
  let description = [{
    Each channel gets its offset; the kernel gets `fi_tile.shared`, the bytes that it
    needs. More than the target has is an error that says by how much.

    Numeric effect: none.
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0",
           "Bytes of shared memory of a worker; 0: those of the module's target">
  ];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileCheckAsync : Pass<"fi-tile-check-async", "::fi::tile::KernelOp"> {
  let summary = "Check copies, waits and barriers";
  let description = [{
    Plays the order of all operations on channels for loops that run never, once, and
    often enough that rings are full, over two items. Of channels: each comes in its
    turn, and a buffer is read while it is gotten (TILE25, TILE29). Of slots, which
    fi-tile-lower-channels leaves: a slot is read after its copies were waited for and
    all warps were at a barrier, and filled again after another one (TILE30).

    What warps do together may not depend on a value that differs between them
    (TILE31).

    Changes nothing.
  }];
}

def FITileEstimateRegisters : Pass<"fi-tile-estimate-registers", "::fi::tile::KernelOp"> {
  let summary = "Count the registers that a lane needs";
  let description = [{
    Of a placed kernel: the tiles, addresses and cursors that are alive at once, at
    most. The kernel gets `fi_tile.registers`, about the fewest registers for which
    ptxas does not spill. Where a lane of the schedule's warps has fewer than the
    tiles alone take, there is a warning: the limit, by how much, and the largest of
    the tiles (SCH6).

    Numeric effect: none.
  }];
  let options = [
    Option<"limit", "limit", "int64_t", "0",
           "Registers of a lane; 0: those of the module's target">,
    Option<"remarks", "remarks", "bool", "false",
           "Say of each kernel how many registers it needs, and where">
  ];
}

def FITileOverlapLaunches : Pass<"fi-tile-overlap-launches", "::fi::tile::KernelOp"> {
  let summary = "Begin while the launch in front of a kernel ends";
  let description = [{
    On targets with `griddepcontrol`: a kernel lets the launch behind it begin at once
    (`fi_tile.launch_next`), and waits for those in front of it (`fi_tile.await_launches`)
    where it first touches what a run is given: an item's fields, its ranges and its
    entries of page tables are the plan's, and are found while the kernel before ends.
    Each role waits by itself, and once more behind its items, for launches whose items
    are all without rows.

    Kernels that wait already, other targets and the CPU are left as they are.

    Numeric effect: none.

    ```mlir
    fi_tile.for_items %it in %work {
      %c = fi_tile.cursor %it step 64
      %b = fi_tile.acquire %qc : !c
      fi_tile.copy_rows %q[%it] to %b group 4 : !q, !b
      ...
    }
    ```
    becomes
    ```mlir
    fi_tile.launch_next
    fi_tile.for_items %it in %work {
      %c = fi_tile.cursor %it step 64
      %b = fi_tile.acquire %qc : !c
      fi_tile.await_launches
      fi_tile.copy_rows %q[%it] to %b group 4 : !q, !b
      ...
    }
    fi_tile.await_launches
    ```
  }];
}

def FITileMark : Pass<"fi-tile-mark", "::fi::tile::KernelOp"> {
  let summary = "Put time stamps where a kernel's phases begin";
  let description = [{
    In modules with `fi.profile = "phases"`: at the beginning of an item, where the first
    tile of keys has arrived, in loops of full and of partial tiles, before states are
    finalised, shared, stored, counted and merged, before results are stored, and at the
    end of the item; in every role. With `"tiles"` also before and behind every wait for
    a tile, or for a buffer to copy one into. Nothing is put between a product's beginning
    and its wait.

    Kernels that have marks, and modules without the attribute, are left as they are.

    Numeric effect: none.

    ```mlir
    fi_tile.for_items %it in %work {
      %o = fi_tile.for_keys %t in %it full step 64 iter_args(%a = %zero) -> (!T) {
        %k = fi_tile.get %kc : !c
        ...
      }
      fi_tile.store_rows %o, %out[%it] group 4 : !T, !out
    }
    ```
    becomes
    ```mlir
    fi_tile.for_items %it in %work {
      fi_tile.mark phase "prologue"
      %o = fi_tile.for_keys %t in %it full step 64 iter_args(%a = %zero) -> (!T) {
        %k = fi_tile.get %kc : !c
        fi_tile.mark phase "full tiles" once
        ...
      }
      fi_tile.mark phase "finalising"
      fi_tile.mark phase "storing results"
      fi_tile.store_rows %o, %out[%it] group 4 : !T, !out
      fi_tile.mark end
    }
    ```
  }];
  let dependentDialects = ["::fi::tile::FITileDialect"];
}

def FITileLowerChannels : Pass<"fi-tile-lower-channels", "::fi::tile::KernelOp"> {
  let summary = "Make waiting explicit";
  let description = [{
    Of channels whose producer is their consumer: `commit` ends a group of
    asynchronous copies, `get` waits until at most as many groups are under way as
    were committed later, and all warps have waited; `acquire` needs all warps to be
    past their release. Buffers become numbered slots; loops carry the numbers.

    Channels between roles become pairs of mbarriers a buffer: `acquire` waits until
    it is empty, `commit` arrives at the other one when the copies of the warp that fills
    it are there, `get` waits for that, and `release` is an arrival by each warp. Loops,
    also those over items, carry the buffers' numbers and the phases of their mbarriers.

    The order of all operations on channels is replayed for short and long loops: a
    get before its commit, an acquire without a free buffer, or buffers left over are
    errors here (TILE25).

    Numeric effect: none.
  }];
  let dependentDialects = [
    "::fi::tile::FITileDialect", "::mlir::NVVM::NVVMDialect",
    "::mlir::arith::ArithDialect"
  ];
}

#endif // FI_DIALECT_FITILE_TRANSFORMS_PASSES_TD
