// What this level does not have is refused by name.
// RUN: fi-opt %s --fi-to-fi-tile --split-input-file --verify-diagnostics

!q = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
fi.program @schedules run(%q: !q) -> (!q) {
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  // expected-error @+1 {{'fi.attention' op expected 'schedules': run fi-choose-schedule first}}
  %o = fi.attention %q over %kv scale(1.0) : !q over !kv -> !q
  fi.return %o : !q
}

// -----

!q = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
!seg = !fi.state<?x1x8xf32, #fi.softmax<base = 2>, segmented>
!st = !fi.state<?x1x8xf32, #fi.softmax<base = 2>>
fi.program @segments run(%q: !q) -> (!q) {
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  %g = fi.segments over %kv split(#fi.split<fixed = 64>) : !kv
  %h = fi.segments over %kv split(#fi.split<fixed = 32>) : !kv
  // expected-error @+1 {{expected the segmented state to be folded once, by fi.merge_segments with the same segments}}
  %p = fi.attention %q over %kv segments(%g) scale(1.0) schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>]) : !q over !kv -> !seg
  %s = fi.merge_segments %p by %h : !seg -> !st
  %o = fi.finalize %s : !st -> !q
  fi.return %o : !q
}

// -----

!st = !fi.state<?x1x8xf32, #fi.softmax<base = 2>>
fi.program @empty run(%n: index) -> (tensor<?x1x8xf32>) {
  // expected-error @+1 {{'fi.empty' op expected 'rows' to be known when planning: a plan argument, a constant, or dimension 0 of a run argument}}
  %e = fi.empty rows(%n) : !st
  %o = fi.finalize %e : !st -> tensor<?x1x8xf32>
  fi.return %o : tensor<?x1x8xf32>
}

// -----

!st = !fi.state<?x1x8xf32, #fi.softmax<base = 2>>
fi.program @negative run(%q: tensor<?x1x8xf32>) -> (tensor<?x1x8xf32>) {
  %n = arith.constant -1 : index
  // expected-error @+1 {{'fi.empty' op expected a number of rows of at least 0, but got -1}}
  %e = fi.empty rows(%n) : !st
  %o = fi.finalize %e : !st -> tensor<?x1x8xf32>
  fi.return %o : tensor<?x1x8xf32>
}

// -----

!q = tensor<?x1x8xf32>
!kv = !fi.ragged_kv<1x8xf32>
fi.program @twice run(%q: !q) -> (!q, !q) {
  %kv = fi.view.ragged %q, %q : !q, !q -> !kv
  %o = fi.attention %q over %kv scale(1.0) schedules([#fi.schedule<tile_rows = 4, tile_keys = 8, mr = 2, nr = 1>]) : !q over !kv -> !q
  // expected-error @+1 {{expected each value to be returned once, but got operand 1 again as operand 0}}
  fi.return %o, %o : !q, !q
}

// -----

!q = tensor<?x1x8xf32>
fi.program @through run(%q: !q) -> (!q) {
  // expected-error @+1 {{expected operand 0 to be computed by the program, but got argument 'q'}}
  fi.return %q : !q
}

// -----

fi.program @scalars run(%a: f32, %b: f32) {
  // expected-error @+1 {{'arith.addf' op expected only fi ops in a program at this level: compute before or after it}}
  %c = arith.addf %a, %b : f32
  fi.return
}
