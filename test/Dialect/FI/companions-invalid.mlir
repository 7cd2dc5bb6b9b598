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

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %b: tensor<32xf32>) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected operand 'bias' of shape [64], but got 'tensor<32xf32>' [RMS3]}}
  %y = fi.layer_norm %x bias(%b : tensor<32xf32>) eps(0.1) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %r: tensor<?x2x64xf32>) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected 2 of results, or of 'outs' where these are memrefs, the norm and the sum, but got 1 [RMS2]}}
  %y = fi.rms_norm %x add(%r : tensor<?x2x64xf32>) eps(0.1) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected 1 of results, or of 'outs' where these are memrefs, the norm, but got 2 [RMS2]}}
  %y, %s = fi.layer_norm %x eps(0.1) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>, tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %r: tensor<?x1x64xf32>) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected operand 'addend' of the shape and kind of 'input', but got 'tensor<?x1x64xf32>' beside 'tensor<?x2x64xf32>' [RMS6]}}
  %y, %s = fi.rms_norm %x add(%r : tensor<?x1x64xf32>) eps(0.1) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>, tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %r: tensor<?x2x64xf32>) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected the sum to be of f32, f16 or bf16, but got 'tensor<?x2x64xi8>' [RMS6]}}
  %y, %s = fi.rms_norm %x add(%r : tensor<?x2x64xf32>) eps(0.1) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>, tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %s: f32) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected 'scales' beside 'to', but got none [RMS8]}}
  %y = fi.rms_norm %x eps(0.1) scales(%s : f32) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected codes to be asked for by 'to', but got 'tensor<?x2x64xi8>' without it [RMS8]}}
  %y = fi.rms_norm %x eps(0.1) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %s: f32) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected scales per tensor or head, but got '!fi.scaled<i8, per = token, by = f32>' [RMS8]}}
  %y = fi.rms_norm %x eps(0.1) to(!fi.scaled<i8, per = token, by = f32>) scales(%s : f32) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %s: f32) -> (tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected a result of 'i8' by 'to', but got 'tensor<?x2x64xf32>' [RMS8]}}
  %y = fi.rms_norm %x eps(0.1) to(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : f32) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>
  fi.return %y : tensor<?x2x64xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected 'scales' of f32 for '!fi.scaled<i8, per = tensor, by = f32>', but got none [RMS8]}}
  %y = fi.layer_norm %x eps(0.1) to(!fi.scaled<i8, per = tensor, by = f32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %s: tensor<3xf32>) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected 'scales' of shape [2] for '!fi.scaled<i8, per = head, by = f32>', but got 'tensor<3xf32>' [RMS8]}}
  %y = fi.rms_norm %x eps(0.1) to(!fi.scaled<i8, per = head, by = f32>) scales(%s : tensor<3xf32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

func.func @f(%x: memref<?x2x64xf32>) {
  // expected-error @+1 {{expected no results, but 'outs', where 'input' is a memref, but got 1 [RMS9]}}
  %y = fi.rms_norm %x eps(0.1) : memref<?x2x64xf32> -> tensor<?x2x64xf32>
  return
}

// -----

func.func @f(%x: memref<?x2x64xf32>, %d: tensor<?x2x64xf32>) {
  // expected-error @+1 {{expected 'outs' to be memrefs, as 'input' is, but got 'tensor<?x2x64xf32>' [RMS9]}}
  fi.rms_norm %x eps(0.1) outs(%d : tensor<?x2x64xf32>) : memref<?x2x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x64xf32>, %d: tensor<?x2x64xf16>) {
  // expected-error @+1 {{expected 'outs' to be a tensor of the type of each result, ('tensor<?x2x64xf32>'), but got ('tensor<?x2x64xf16>') [RMS9]}}
  %y = fi.rms_norm %x eps(0.1) outs(%d : tensor<?x2x64xf16>) : tensor<?x2x64xf32> -> tensor<?x2x64xf32>
  return
}
