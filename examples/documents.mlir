//===- documents.mlir - a variant in ten lines ----------------------------===//
//
// Part of fi, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Causal attention inside documents, with a bias by distance (ALiBi): a key is
// visible if it lies in the row's document and not behind the row. Document ids are
// plan data and sorted, so tiles of other documents are never visited.
//
//   fi-run examples/documents.mlir --compare=reference --explain
//
//===----------------------------------------------------------------------===//

!ix = tensor<?xi32>
!t  = tensor<?x2x64xf32>
!kv = !fi.ragged_kv<2x64xf32>
!q  = tensor<?x4x64xf32>

fi.program @documents
    plan(%qo: !ix, %kvp: !ix, %doc: tensor<?x?xi32> {fi.sorted})
    run(%q: !q, %k: !t, %v: !t, %slope: tensor<4xf32>) -> (!q) {
  %kv = fi.view.ragged %k, %v indptr(%kvp : !ix) : !t, !t -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.125)
      captures(%sl = %slope : tensor<4xf32>, %dc = %doc : tensor<?x?xi32>)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %d = arith.subi %kp, %qp : index
        %i = arith.index_cast %d : index to i32
        %f = arith.sitofp %i : i32 to f32
        %m = fi.load %sl[%qh] : tensor<4xf32>
        %b = arith.mulf %m, %f : f32
        %t = arith.addf %s, %b : f32
        fi.yield %t : f32
      }
      mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %a = fi.load %dc[%req, %qp] : tensor<?x?xi32>
        %c = fi.load %dc[%req, %kp] : tensor<?x?xi32>
        %same = arith.cmpi eq, %a, %c : i32
        fi.yield %same : i1
      } : !q over !kv -> !q
  fi.return %o : !q
}
