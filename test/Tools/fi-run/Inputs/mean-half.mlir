// mean.mlir in f16, for GPUs: tiles of 16 rows and keys, which is what their products
// take, and schedules that say how many warps share the rows and how many tiles of keys
// are under way. CPUs here have no products of f16, so level2 and GPUs run it.
#s = #fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 1, lanes = 1>
#t = #fi.schedule<tile_rows = 32, tile_keys = 16, warps = 2, stages = 2, lanes = 1>
!kv = !fi.ragged_kv<1x16xf16>
module {
  fi_tile.kernel @attend(%q: memref<?x1x16xf16>, %k: memref<?x1x16xf16>, %v: memref<?x1x16xf16>, %t: memref<?x1x16xf32>, %work: !fi_tile.work) schedule(#t) {
    %view = fi_tile.view %k, %v : memref<?x1x16xf16>, memref<?x1x16xf16> -> !kv
    %zero = arith.constant dense<0.0> : tensor<32x16xf32>
    %none = arith.constant dense<0.0> : tensor<32x1xf32>
    %scale = arith.constant dense<0.0625> : tensor<32x16xf32>
    fi_tile.for_items %it in %work {
      %rows = fi_tile.load_rows %q[%it] group 1 : memref<?x1x16xf16> -> tensor<32x16xf16>
      %begin = fi_tile.item %it[row_begin]
      %len = fi_tile.item %it[kv_len]
      %new = fi_tile.item %it[q_len]
      %old = arith.subi %len, %new : index
      %first = arith.addi %begin, %old : index
      %at = fi_tile.iota %first : tensor<32x1xindex>
      %sum:2 = fi_tile.for_keys %key in %it all step 16 iter_args(%o = %zero, %w = %none) -> (tensor<32x16xf32>, tensor<32x1xf32>) {
        %keys = fi_tile.load_kv keys %view[%it, %key] : !kv -> tensor<16x16xf16>
        %dot = fi_tile.dot %rows, %keys transpose : tensor<32x16xf16>, tensor<16x16xf16> -> tensor<32x16xf32>
        %scores = arith.mulf %dot, %scale : tensor<32x16xf32>
        %pos = fi_tile.iota %key : tensor<1x16xindex>
        %columns = fi_tile.broadcast %pos : tensor<1x16xindex> -> tensor<32x16xindex>
        %limits = fi_tile.broadcast %at : tensor<32x1xindex> -> tensor<32x16xindex>
        %seen = arith.cmpi sle, %columns, %limits : tensor<32x16xindex>
        %masked = fi_tile.mask %scores where %seen : tensor<32x16xf32>, tensor<32x16xi1>
        %weights = math.exp2 %masked : tensor<32x16xf32>
        %factors = arith.truncf %weights : tensor<32x16xf32> to tensor<32x16xf16>
        %values = fi_tile.load_kv values %view[%it, %key] : !kv -> tensor<16x16xf16>
        %next = fi_tile.dot %factors, %values acc(%o) : tensor<32x16xf16>, tensor<16x16xf16> -> tensor<32x16xf32>
        %part = fi_tile.reduce add %weights : tensor<32x16xf32> -> tensor<32x1xf32>
        %total = arith.addf %w, %part : tensor<32x1xf32>
        fi_tile.yield %next, %total : tensor<32x16xf32>, tensor<32x1xf32>
      }
      %spread = fi_tile.broadcast %sum#1 : tensor<32x1xf32> -> tensor<32x16xf32>
      %mean = arith.divf %sum#0, %spread : tensor<32x16xf32>
      fi_tile.store_rows %mean, %t[%it] group 1 : tensor<32x16xf32>, memref<?x1x16xf32>
    }
    fi_tile.return
  }
  fi_tile.kernel @double(%t: memref<?x1x16xf32>, %o: memref<?x1x16xf32>, %work: !fi_tile.work) schedule(#s) {
    fi_tile.for_items %it in %work {
      %x = fi_tile.load_rows %t[%it] group 1 : memref<?x1x16xf32> -> tensor<32x16xf32>
      %y = arith.addf %x, %x : tensor<32x16xf32>
      fi_tile.store_rows %y, %o[%it] group 1 : tensor<32x16xf32>, memref<?x1x16xf32>
    }
    fi_tile.return
  }
  fi_tile.package @mean {manifest = 1, abi = 1, compiler = "by hand", program = "mean",
    target = {kind = "cpu"},
    arguments = [
      {name = "qo", group = "plan", kind = "tensor", dtype = "i32", shape = [unit]},
      {name = "indptr", group = "plan", kind = "tensor", dtype = "i32", shape = [unit]},
      {name = "q", group = "run", kind = "tensor", dtype = "f16", shape = [unit, 1, 16]},
      {name = "k", group = "run", kind = "tensor", dtype = "f16", shape = [unit, 1, 16]},
      {name = "v", group = "run", kind = "tensor", dtype = "f16", shape = [unit, 1, 16]}],
    results = [{name = "twice", dtype = "f32", shape = [unit, 1, 16], rows_of = "q"}],
    temporaries = [{name = "t", dtype = "f32", shape = [unit, 1, 16], rows_of = "q"}],
    stages = [
      {op = "attention", name = "attend", query = "q", rows = "qo", positions,
       view = {kind = "ragged", keys = "k", values = "v", order = "NHD", page, heads = 1,
               indptr = "indptr", pages, last, lengths, origin},
       heads = {q = 1, kv = 1}, dims = {qk = 16, vo = 16}, outputs = {o = "t", lse},
       buffers = ["q", "k", "v", "t"],
       bodies = [{symbol = "attend", tile_rows = 32, tile_keys = 16, max_rows, scratch = 0,
                  cost = {item = 1, tile = 1, tile_row = 1}}],
       split = {policy = "none"},
       mask = {terms = [{lo = [], hi = [["q"]], exact = true}]}},
      {op = "rows", name = "double", rows_of = "q", heads = 1, buffers = ["t", "twice"],
       bodies = [{symbol = "double", tile_rows = 32, tile_keys = 16, max_rows, scratch = 0,
                  cost = {item = 1}}]}]}
}
