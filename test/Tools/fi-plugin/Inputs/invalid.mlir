!t = tensor<?x2x8xf32>
fi.program @p plan() run(%k: !t) -> () {
  %kv = fi.view.ragged %k, %k : !t, !t -> !fi.ragged_kv<3x8xf32>
  fi.return
}
