//===- AttentionKernels.h - hand-written kernels of level 2 -----*- C++ -*-===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Causal attention with tiles of 8 rows by 16 keys, heads of 16 elements, 2 KV
// heads with groups of 3 and pages of 4 keys, scaled by 1/4; and its merge.
//
//===----------------------------------------------------------------------===//

#ifndef FI_TEST_UNIT_TILEINTERPRETER_ATTENTIONKERNELS_H
#define FI_TEST_UNIT_TILEINTERPRETER_ATTENTIONKERNELS_H

#include <string>

namespace fi::tile {

enum class Style {
  Ops,        // the normaliser's ops, one loop
  TwoLoops,   // full tiles without a mask, then partial ones
  WrittenOut, // the softmax in arith and math
  States,     // stores states instead of outputs
  Split,      // states where the item has a slot
  Sink        // takes a sink, as a seventh argument
};

/// A kernel @attention(q, k, v, pages, o, lse).
inline std::string makeAttention(Style style) {
  auto scores = [](bool mask) {
    std::string text = R"(
      %kt = fi_tile.load_kv keys %kv[%it, %t] : !kv -> tensor<16x16xf32>
      %raw = fi_tile.dot %qt, %kt transpose : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
      %x0 = arith.mulf %raw, %scale : tensor<8x16xf32>
      %vt = fi_tile.load_kv values %kv[%it, %t] : !kv -> tensor<16x16xf32>)";
    if (!mask)
      return text + R"(
      %x = arith.addf %x0, %zeros : tensor<8x16xf32>)";
    return text + R"(
      %key = fi_tile.iota %t : tensor<1x16xindex>
      %kp0 = arith.addi %key, %originT : tensor<1x16xindex>
      %kp = fi_tile.broadcast %kp0 : tensor<1x16xindex> -> tensor<8x16xindex>
      %causal = arith.cmpi sle, %kp, %qp : tensor<8x16xindex>
      %exists0 = arith.cmpi slt, %key, %kvlenT : tensor<1x16xindex>
      %exists = fi_tile.broadcast %exists0 : tensor<1x16xi1> -> tensor<8x16xi1>
      %visible = arith.andi %causal, %exists : tensor<8x16xi1>
      %x = fi_tile.mask %x0 where %visible : tensor<8x16xf32>, tensor<8x16xi1>)";
  };
  std::string types = "tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x2xf32>";
  auto loop = [&](std::string name, std::string part, std::string inits) {
    return R"(
    )" + name +
           " = fi_tile.for_keys %t in %it " + part +
           " step 16 iter_args(%acc = " + inits + "#0, %m = " + inits +
           "#1, %l = " + inits + "#2) -> (" + types + ") {" +
           scores(part != "full") + R"(
      %n:3 = fi_tile.update #softmax scores(%x) values(%vt) into(%acc, %m, %l) : tensor<8x16xf32>, tensor<16x16xf32> into )" +
           types + R"(
      fi_tile.yield %n#0, %n#1, %n#2 : )" +
           types + R"(
    })";
  };
  std::string init = R"(
    %init:3 = fi_tile.init(#softmax) : )" +
                     types;
  std::string finalize =
      R"(
    %out, %stat = fi_tile.finalize #softmax %r#0, %r#1, %r#2)" +
      std::string(style == Style::Sink ? " sink(%sink : tensor<8x1xf32>)"
                                       : "") +
      " : " + types + " -> tensor<8x16xf32>, tensor<8x1xf32>";
  std::string body;
  if (style == Style::WrittenOut)
    // Base 2; maxima start at -inf, for which 0 stands in.
    body = R"(
    %acc0 = arith.constant dense<0.0> : tensor<8x16xf32>
    %m0 = arith.constant dense<0xFF800000> : tensor<8x1xf32>
    %l0 = arith.constant dense<0.0> : tensor<8x1xf32>
    %one = arith.constant dense<1.0> : tensor<8x1xf32>
    %log2e = arith.constant dense<1.4426950408889634> : tensor<8x16xf32>
    %r:3 = fi_tile.for_keys %t in %it all step 16 iter_args(%acc = %acc0, %m = %m0, %l = %l0)
        -> (tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>) {)" +
           scores(true) + R"(
      %y = arith.mulf %x, %log2e : tensor<8x16xf32>
      %top = fi_tile.reduce max %y : tensor<8x16xf32> -> tensor<8x1xf32>
      %m1 = arith.maxnumf %m, %top : tensor<8x1xf32>
      %none = arith.cmpf oeq, %m1, %m0 : tensor<8x1xf32>
      %safe = arith.select %none, %l0, %m1 : tensor<8x1xi1>, tensor<8x1xf32>
      %d0 = arith.subf %m, %safe : tensor<8x1xf32>
      %f = math.exp2 %d0 : tensor<8x1xf32>
      %sb = fi_tile.broadcast %safe : tensor<8x1xf32> -> tensor<8x16xf32>
      %d1 = arith.subf %y, %sb : tensor<8x16xf32>
      %p = math.exp2 %d1 : tensor<8x16xf32>
      %ps = fi_tile.reduce add %p : tensor<8x16xf32> -> tensor<8x1xf32>
      %lf = arith.mulf %l, %f : tensor<8x1xf32>
      %l1 = arith.addf %lf, %ps : tensor<8x1xf32>
      %fb = fi_tile.broadcast %f : tensor<8x1xf32> -> tensor<8x16xf32>
      %af = arith.mulf %acc, %fb : tensor<8x16xf32>
      %acc1 = fi_tile.dot %p, %vt acc(%af) : tensor<8x16xf32>, tensor<16x16xf32> -> tensor<8x16xf32>
      fi_tile.yield %acc1, %m1, %l1 : tensor<8x16xf32>, tensor<8x1xf32>, tensor<8x1xf32>
    }
    %empty = arith.cmpf oeq, %r#2, %l0 : tensor<8x1xf32>
    %sum = arith.select %empty, %one, %r#2 : tensor<8x1xi1>, tensor<8x1xf32>
    %inv = arith.divf %one, %sum : tensor<8x1xf32>
    %invb = fi_tile.broadcast %inv : tensor<8x1xf32> -> tensor<8x16xf32>
    %out = arith.mulf %r#0, %invb : tensor<8x16xf32>
    %log = math.log2 %sum : tensor<8x1xf32>
    %stat = arith.addf %r#1, %log : tensor<8x1xf32>)";
  else if (style == Style::TwoLoops)
    body = init + loop("%s:3", "full", "%init") +
           loop("%r:3", "partial", "%s") + finalize;
  else
    body = init + loop("%r:3", "all", "%init") + finalize;
  std::string store = R"(
    fi_tile.store_rows %out, %o[%it] group 3 : tensor<8x16xf32>, memref<?x6x16xf32>
    fi_tile.store_rows %stat, %lse[%it] group 3 : tensor<8x1xf32>, memref<?x6xf32>)";
  std::string storeState = R"(
    fi_tile.store_state %out, %stat to %w[%it] : tensor<8x16xf32>, tensor<8x1xf32>)";
  if (style == Style::States)
    store = storeState;
  else if (style == Style::Split)
    store = R"(
    %slot = fi_tile.item %it[slot]
    %none = arith.constant 0 : index
    %whole = arith.cmpi slt, %slot, %none : index
    scf.if %whole {)" +
            store + "\n    } else {" + storeState + "\n    }";
  std::string sink = style == Style::Sink ? R"(
    %sink = fi_tile.load_rows %sinks[%it] group 3 : memref<?x6xf32> -> tensor<8x1xf32>)"
                                          : "";
  return R"(
#softmax = #fi.softmax<base = 2>
!kv = !fi.paged_kv<4x2x16xf32, HND>
fi_tile.kernel @attention(%q: memref<?x6x16xf32>, %k: memref<?x2x4x16xf32>, %v: memref<?x2x4x16xf32>,
    %pages: memref<?xi32>, %o: memref<?x6x16xf32>, %lse: memref<?x6xf32>)" +
         std::string(style == Style::Sink ? ", %sinks: memref<?x6xf32>" : "") +
         R"(, %w: !fi_tile.work) schedule(#s) {
  %kv = fi_tile.view %k, %v pages(%pages : memref<?xi32>) : memref<?x2x4x16xf32>, memref<?x2x4x16xf32> -> !kv
  %scale = arith.constant dense<0.25> : tensor<8x16xf32>
  %zeros = arith.constant dense<0.0> : tensor<8x16xf32>
  %group = arith.constant dense<3> : tensor<8x1xindex>
  fi_tile.for_items %it in %w {
    %qt = fi_tile.load_rows %q[%it] group 3 : memref<?x6x16xf32> -> tensor<8x16xf32>
    %kvlen = fi_tile.item %it[kv_len]
    %qlen = fi_tile.item %it[q_len]
    %origin = fi_tile.item %it[kv_origin]
    %rb = fi_tile.item %it[row_begin]
    %row = fi_tile.iota %rb : tensor<8x1xindex>
    %token = arith.floordivsi %row, %group : tensor<8x1xindex>
    %before = arith.subi %kvlen, %qlen : index
    %first = arith.addi %origin, %before : index
    %firstT = tensor.splat %first : tensor<8x1xindex>
    %qp0 = arith.addi %token, %firstT : tensor<8x1xindex>
    %qp = fi_tile.broadcast %qp0 : tensor<8x1xindex> -> tensor<8x16xindex>
    %originT = tensor.splat %origin : tensor<1x16xindex>
    %kvlenT = tensor.splat %kvlen : tensor<1x16xindex>)" +
         sink + body + store + R"(
  }
  fi_tile.return
}
)";
}

/// A kernel @merge(o, lse, sinks) over the slots of an item, or with the
/// buffers of @attention.
inline std::string makeMerge(bool sink, bool attentionBuffers = false) {
  return std::string("\nfi_tile.kernel @merge(") +
         (attentionBuffers
              ? "%sinks: memref<?x6x16xf32>, %k: memref<?x2x4x16xf32>, "
                "%v: memref<?x2x4x16xf32>, %pages: memref<?xi32>, "
                "%o: memref<?x6x16xf32>, %lse: memref<?x6xf32>"
              : "%o: memref<?x6x16xf32>, %lse: memref<?x6xf32>, "
                "%sinks: memref<?x6xf32>") +
         R"(, %w: !fi_tile.work) schedule(#s) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  fi_tile.for_items %it in %w {
    %n = fi_tile.item %it[slot_count]
    %o0, %l0 = fi_tile.load_state %w[%it, %zero] : tensor<8x16xf32>, tensor<8x1xf32>
    %r:2 = scf.for %i = %one to %n step %one iter_args(%oa = %o0, %la = %l0) -> (tensor<8x16xf32>, tensor<8x1xf32>) {
      %ob, %lb = fi_tile.load_state %w[%it, %i] : tensor<8x16xf32>, tensor<8x1xf32>
      %om, %lm = fi_tile.merge #fi.softmax<base = 2> (%oa, %la), (%ob, %lb) : tensor<8x16xf32>, tensor<8x1xf32>
      scf.yield %om, %lm : tensor<8x16xf32>, tensor<8x1xf32>
    })" +
         (sink ? R"(
    %sink = fi_tile.load_rows %sinks[%it] group 3 : memref<?x6xf32> -> tensor<8x1xf32>
    %os, %ls = fi_tile.sink #fi.softmax<base = 2> %r#0, %r#1, %sink : tensor<8x16xf32>, tensor<8x1xf32>
    fi_tile.store_rows %os, %o[%it] group 3 : tensor<8x16xf32>, memref<?x6x16xf32>
    fi_tile.store_rows %ls, %lse[%it] group 3 : tensor<8x1xf32>, memref<?x6xf32>)"
               : R"(
    fi_tile.store_rows %r#0, %o[%it] group 3 : tensor<8x16xf32>, memref<?x6x16xf32>
    fi_tile.store_rows %r#1, %lse[%it] group 3 : tensor<8x1xf32>, memref<?x6xf32>)") +
         R"(
  }
  fi_tile.return
}
)";
}

} // namespace fi::tile

#endif // FI_TEST_UNIT_TILEINTERPRETER_ATTENTIONKERNELS_H
