// RUN: fi-opt %s --split-input-file --verify-diagnostics

fi.program @p run(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>) {
  // expected-error @+1 {{expected operand 'input' of shape [rows, heads, dim] with heads and dim known and at least 1 head, but got 'tensor<?x64xf32>' [RMS1]}}
  %y = fi.rms_norm %x eps(0.1) : tensor<?x64xf32> -> tensor<?x64xf32>
  fi.return %y : tensor<?x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x516xf32>) -> (tensor<?x1x516xf32>) {
  // expected-error @+1 {{expected a dim that is a multiple of 8 up to 16384, but got 516 [RMS1]}}
  %y = fi.rms_norm %x eps(0.1) : tensor<?x1x516xf32> -> tensor<?x1x516xf32>
  fi.return %y : tensor<?x1x516xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x16392xf32>) -> (tensor<?x1x16392xf32>) {
  // expected-error @+1 {{expected a dim that is a multiple of 8 up to 16384, but got 16392 [RMS1]}}
  %y = fi.rms_norm %x eps(0.1) : tensor<?x1x16392xf32> -> tensor<?x1x16392xf32>
  fi.return %y : tensor<?x1x16392xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x64xf32>) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected a result of the shape of 'input', but got 'tensor<?x2x64xf32>' of 'tensor<?x1x64xf32>' [RMS2]}}
  %y = fi.rms_norm %x eps(0.1) : tensor<?x1x64xf32> -> tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x64xf32>, %w: tensor<32xf32>) -> (tensor<?x1x64xf32>) {
  // expected-error @+1 {{expected operand 'weight' of shape [64], but got 'tensor<32xf32>' [RMS3]}}
  %y = fi.rms_norm %x weight(%w : tensor<32xf32>) eps(0.1) : tensor<?x1x64xf32> -> tensor<?x1x64xf32>
  fi.return %y : tensor<?x1x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x64xf32>) -> (tensor<?x1x64xf32>) {
  // expected-error @+1 {{expected 'plus_one' beside a weight, but got none [RMS3]}}
  %y = fi.rms_norm %x plus_one eps(0.1) : tensor<?x1x64xf32> -> tensor<?x1x64xf32>
  fi.return %y : tensor<?x1x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x64xf32>) -> (tensor<?x1x64xf32>) {
  // expected-error @+1 {{expected 'eps' to be finite and not negative, but got -1.000000e-01 [RMS4]}}
  %y = fi.rms_norm %x eps(-0.1) : tensor<?x1x64xf32> -> tensor<?x1x64xf32>
  fi.return %y : tensor<?x1x64xf32>
}
