//===- rope.mlir - rotary embeddings while keys are read ------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The cache holds keys as the model computed them. Elements i and i + 32 of a row are
// turned by position * 10000^(-i / 32) when a row is read, queries and keys alike, so a
// request whose first keys are dropped, or whose prefix another one shares, needs no
// new keys.
//
//   fi-run examples/rope.mlir --compare=reference
//
//===----------------------------------------------------------------------===//

!ix   = tensor<?xi32>
!pool = memref<?x2x16x64xbf16>
!kv   = !fi.paged_kv<16x2x64xbf16, HND>
!q    = tensor<?x8x64xbf16>

fi.program @rope
    plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.125) pair<half>
      query(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        %i = arith.index_cast %pair : index to i32
        %f = arith.sitofp %i : i32 to f32
        %rate = arith.constant -0.415241 : f32      // -log2(10000) / 32
        %e = arith.mulf %f, %rate : f32
        %w = math.exp2 %e : f32
        %p = arith.index_cast %pos : index to i32
        %pf = arith.sitofp %p : i32 to f32
        %angle = arith.mulf %pf, %w : f32
        %c = math.cos %angle : f32
        %s = math.sin %angle : f32
        %xc = arith.mulf %x, %c : f32
        %ys = arith.mulf %y, %s : f32
        %xs = arith.mulf %x, %s : f32
        %yc = arith.mulf %y, %c : f32
        %a = arith.subf %xc, %ys : f32
        %b = arith.addf %xs, %yc : f32
        fi.yield %a, %b : f32, f32
      }
      key(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        %i = arith.index_cast %pair : index to i32
        %f = arith.sitofp %i : i32 to f32
        %rate = arith.constant -0.415241 : f32      // -log2(10000) / 32
        %e = arith.mulf %f, %rate : f32
        %w = math.exp2 %e : f32
        %p = arith.index_cast %pos : index to i32
        %pf = arith.sitofp %p : i32 to f32
        %angle = arith.mulf %pf, %w : f32
        %c = math.cos %angle : f32
        %s = math.sin %angle : f32
        %xc = arith.mulf %x, %c : f32
        %ys = arith.mulf %y, %s : f32
        %xs = arith.mulf %x, %s : f32
        %yc = arith.mulf %y, %c : f32
        %a = arith.subf %xc, %ys : f32
        %b = arith.addf %xs, %yc : f32
        fi.yield %a, %b : f32, f32
      }
      mask(#fi.causal) : !q over !kv -> !q
  fi.return %o : !q
}
