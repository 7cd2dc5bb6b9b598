// One layer's attention as the front end of a compiler might make it: eight heads of
// queries share two of keys and values, with a bias by distance.
//
//   toyc layer.mlir                                compile for this CPU, run, check
//   toyc layer.mlir --backend=emulated:sm_80       the code for an A100, emulated
//   toyc layer.mlir --until=fi_tile                print what fi makes of it
!q  = tensor<?x8x64xf16>
!kv = tensor<?x2x64xf16>
!ix = tensor<?xi32>

func.func @layer(%q: !q, %k: !kv, %v: !kv, %rows: !ix, %keys: !ix,
                 %slopes: tensor<8xf32>) -> !q {
  %o = toy.sdpa %q rows(%rows : !ix) over %k, %v keys(%keys : !ix) causal
      scale(0.125) slopes(%slopes : tensor<8xf32>) : !q, !kv, !kv
  return %o : !q
}
