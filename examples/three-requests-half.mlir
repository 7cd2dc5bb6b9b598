//===- three-requests-half.mlir - three requests in f16 and bf16 ----------===//
//
// The batch of three-requests.mlir in the element types that GPUs multiply, once in
// f16 and once in bf16:
//
//   fi-run examples/three-requests-half.mlir --backend=cuda --compare=reference --print
//
// runs it on this machine's GPU. Without one, --backend=emulated:sm_80 executes the
// same code for an A100 on the CPU, and checks it: races, reads of what nobody wrote,
// addresses. --program=three_requests_bf16 takes the second program.
//
//===----------------------------------------------------------------------===//

!ix   = tensor<?xi32>
!lse  = tensor<?x4xf32>

!pool_f16 = memref<?x4x2x64xf16>
!kv_f16   = !fi.paged_kv<4x2x64xf16, NHD>
!q_f16    = tensor<?x4x64xf16>

fi.program @three_requests_f16
    plan(%qo_indptr: !ix, %kv_indptr: !ix, %kv_indices: !ix, %last_page_len: !ix)
    run(%q: !q_f16, %k: !pool_f16, %v: !pool_f16) -> (!q_f16, !lse) {
  %kv = fi.view.paged %k, %v tables(%kv_indptr, %kv_indices, %last_page_len : !ix, !ix, !ix) : !pool_f16, !pool_f16 -> !kv_f16
  %o, %lse = fi.attention %q rows(%qo_indptr : !ix) over %kv scale(0.125) mask(#fi.causal) : !q_f16 over !kv_f16 -> !q_f16, !lse
  fi.return %o, %lse : !q_f16, !lse
}

!pool_bf16 = memref<?x4x2x64xbf16>
!kv_bf16   = !fi.paged_kv<4x2x64xbf16, NHD>
!q_bf16    = tensor<?x4x64xbf16>

fi.program @three_requests_bf16
    plan(%qo_indptr: !ix, %kv_indptr: !ix, %kv_indices: !ix, %last_page_len: !ix)
    run(%q: !q_bf16, %k: !pool_bf16, %v: !pool_bf16) -> (!q_bf16, !lse) {
  %kv = fi.view.paged %k, %v tables(%kv_indptr, %kv_indices, %last_page_len : !ix, !ix, !ix) : !pool_bf16, !pool_bf16 -> !kv_bf16
  %o, %lse = fi.attention %q rows(%qo_indptr : !ix) over %kv scale(0.125) mask(#fi.causal) : !q_bf16 over !kv_bf16 -> !q_bf16, !lse
  fi.return %o, %lse : !q_bf16, !lse
}
