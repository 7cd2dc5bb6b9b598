// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message; the numbers are those of docs/spec.md.

// expected-error @+1 {{expected a state of f32, but got 'f16' [ST1]}}
func.func private @f(!fi.state<?x4x8xf16, #fi.softmax<base = 2>>)

// -----

// expected-error @+1 {{expected at least 1 head, but got 0 [ST2]}}
func.func private @f(!fi.state<?x0x8xf32, #fi.softmax<base = 2>>)

// -----

// expected-error @+1 {{expected head dim of a state to be a multiple of 8 up to 512, but got 9 [ST3]}}
func.func private @f(!fi.state<?x4x9xf32, #fi.softmax<base = 2>>)

// -----

// expected-error @+1 {{expected rows x heads x dim x element, but got 2 sizes}}
func.func private @f(!fi.state<4x8xf32, #fi.softmax<base = 2>>)

// -----

// expected-error @+1 {{invalid kind of attribute specified}}
func.func private @f(!fi.state<?x4x8xf32, #fi.causal>)

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %b: !st) {
  // expected-error @+1 {{expected operand 'rows' exactly where the state's rows are dynamic, but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>>' [ST5]}}
  %e = fi.empty : !st
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%n: index) {
  // expected-error @+1 {{expected operand 'rows' exactly where the state's rows are dynamic, but got '!fi.state<3x4x8xf32, #fi.softmax<base = 2>>' [ST5]}}
  %e = fi.empty rows(%n) : !fi.state<3x4x8xf32, #fi.softmax<base = 2>>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%n: index) {
  // expected-error @+1 {{expected a state that is not segmented, but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>' [ST6]}}
  %e = fi.empty rows(%n) : !seg
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %b: !fi.state<?x4x8xf32, #fi.softmax<base = e>>) {
  // expected-error @+1 {{expected state 1 of type '!fi.state<?x4x8xf32, #fi.softmax<base = 2>>', but got '!fi.state<?x4x8xf32, #fi.softmax<base = e>>' [MRG3]}}
  %m = "fi.merge"(%a, %b) : (!st, !fi.state<?x4x8xf32, #fi.softmax<base = e>>) -> !st
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %b: !st) {
  // expected-error @+1 {{expected at least 1 state [MRG3]}}
  %m = "fi.merge"() : () -> !st
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !seg) {
  // expected-error @+1 {{expected states that are not segmented (fold them by fi.merge_segments), but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>' [MRG4]}}
  %m = fi.merge %a, %a : !seg
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %g: !fi.segments) {
  // expected-error @+1 {{expected a segmented state folded to one that is not, but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>>' and '!fi.state<?x4x8xf32, #fi.softmax<base = 2>>' [MRG5]}}
  %m = fi.merge_segments %a by %g : !st -> !st
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !seg, %g: !fi.segments) {
  // expected-error @+1 {{expected states alike but for the slot axis, but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>' and '!fi.state<?x4x8xf32, #fi.softmax<base = e>>' [MRG5]}}
  %m = fi.merge_segments %a by %g : !seg -> !fi.state<?x4x8xf32, #fi.softmax<base = e>>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !seg) {
  // expected-error @+1 {{expected a state that is not segmented, but got '!fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>' [FIN1]}}
  %o = fi.finalize %a : !seg -> tensor<?x4x8xf32>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %b: !st) {
  // expected-error @+1 {{expected result 'output' of shape [?, 4, 8], but got [?, 8, 4] [FIN1]}}
  %o = fi.finalize %a : !st -> tensor<?x8x4xf32>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %b: !st) {
  // expected-error @+1 {{expected result 'statistic' of shape [?, 4], but got [?, 8] [FIN1]}}
  %o, %l = fi.finalize %a : !st -> tensor<?x4x8xf32>, tensor<?x8xf32>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x8xf32, #fi.softmax<base = 2>, segmented>
func.func @f(%a: !st, %s: tensor<8xf32>) {
  // expected-error @+1 {{expected operand 'sink' of shape [4], one logit for each query head, but got [8] [FIN3]}}
  %o = fi.finalize %a sink(%s : tensor<8xf32>) : !st -> tensor<?x4x8xf32>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @f(%a: !st, %o: memref<?x4x8xf32>) {
  // expected-error @+1 {{expected no results where 'outs' are memrefs, but got 1 [FIN5]}}
  %r = fi.finalize %a outs(%o : memref<?x4x8xf32>) : !st -> tensor<?x4x8xf32>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @f(%a: !st, %o: memref<?x4x8xf32>, %l: tensor<?x4xf32>) {
  // expected-error @+1 {{expected 'outs' to be memrefs all, or tensors all, but got 'memref<?x4x8xf32>', 'tensor<?x4xf32>' [FIN5]}}
  fi.finalize %a outs(%o, %l : memref<?x4x8xf32>, tensor<?x4xf32>) : !st
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @f(%a: !st, %o: tensor<?x4x8xf32>) {
  // expected-error @+1 {{expected 'outs' to be a tensor of the type of each result, ('tensor<?x4x8xbf16>'), but got ('tensor<?x4x8xf32>') [FIN5]}}
  %r = fi.finalize %a outs(%o : tensor<?x4x8xf32>) : !st -> tensor<?x4x8xbf16>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @f(%a: !st, %o: memref<?x4x16xf32>) {
  // expected-error @+1 {{expected destination 'output' of shape [?, 4, 8], but got [?, 4, 16] [FIN1]}}
  fi.finalize %a outs(%o : memref<?x4x16xf32>) : !st
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @f(%a: !st, %b: !st) {
  // expected-error @+1 {{expected result 'statistic' to hold f32, but got 'f16' [FIN1]}}
  %o, %l = fi.finalize %a : !st -> tensor<?x4x8xf32>, tensor<?x4xf16>
  return
}

// -----

!st = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
func.func @f(%a: !st) {
  // expected-error @+1 {{expected 1 result (output) or 2 (output, statistic), but got 0 [FIN1]}}
  fi.finalize %a : !st
  return
}

// -----

!a = !fi.state<?x4x8xf32, #fi.softmax<base = 2>>
!b = !fi.state<?x4x8xf32, #fi.sigmoid>
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{expected state 1 of type '!fi.state<?x4x8xf32, #fi.softmax<base = 2>>', but got '!fi.state<?x4x8xf32, #fi.sigmoid>' [MRG3]}}
  %m = "fi.merge"(%a, %b) : (!a, !b) -> !a
  return
}

// -----

!a = !fi.state<?x4x8xf32, #fi.sum>
!b = !fi.state<?x4x8xf32, #fi.sigmoid>
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{expected state 1 of type '!fi.state<?x4x8xf32, #fi.sum>', but got '!fi.state<?x4x8xf32, #fi.sigmoid>' [MRG3]}}
  %m = "fi.merge"(%a, %b) : (!a, !b) -> !a
  return
}

// -----

// Other weights are another kind.
!a = !fi.state<?x4x8xf32, #fi.sigmoid<bias = 1.0>>
!b = !fi.state<?x4x8xf32, #fi.sigmoid<bias = 2.0>>
func.func @f(%a: !a, %b: !b) {
  // expected-error @+1 {{expected state 1 of type '!fi.state<?x4x8xf32, #fi.sigmoid<bias = 1.000000e+00>>', but got '!fi.state<?x4x8xf32, #fi.sigmoid<bias = 2.000000e+00>>' [MRG3]}}
  %m = "fi.merge"(%a, %b) : (!a, !b) -> !a
  return
}

// -----

!a = !fi.state<?x4x8xf32, #fi.sum>
func.func @f(%a: !a, %sink: tensor<4xf32>) {
  // expected-error @+1 {{expected a normaliser that takes a sink, but got #fi.sum [FIN2]}}
  %o = fi.finalize %a sink(%sink : tensor<4xf32>) : !a -> tensor<?x4x8xf32>
  return
}
