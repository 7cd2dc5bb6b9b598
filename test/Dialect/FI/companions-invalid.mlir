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
  // expected-error @+1 {{expected scales per tensor, head or token, but got '!fi.scaled<i8, per = page, by = f32>' [RMS8]}}
  %y = fi.rms_norm %x eps(0.1) to(!fi.scaled<i8, per = page, by = f32>) scales(%s : f32) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected 2 of results, or of 'outs' where these are memrefs, the norm and the scales, but got 1 [RMS2]}}
  %y = fi.rms_norm %x eps(0.1) to(!fi.scaled<i8, per = token, by = f32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>, %s: f32) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected no 'scales' of tokens, since these are computed, but got 'f32' [RMS10]}}
  %y, %t = fi.rms_norm %x eps(0.1) to(!fi.scaled<i8, per = token, by = f32>) scales(%s : f32) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>, tensor<?x2xf32>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected scales of f32 and of the rows and heads of 'tensor<?x2x64xf32>', but got 'tensor<?x1xf32>' [RMS10]}}
  %y, %t = fi.layer_norm %x eps(0.1) to(!fi.scaled<i8, per = token, by = f32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>, tensor<?x1xf32>
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


// -----

fi.program @p run(%x: tensor<?x32xf32>) -> (tensor<?x16xf32>) {
  // expected-error @+1 {{expected operand 'input' of shape [rows, heads, dim] with heads and dim known and at least 1 head, but got 'tensor<?x32xf32>' [GAT1]}}
  %y = fi.gated %x act(silu) : tensor<?x32xf32> -> tensor<?x16xf32>
  fi.return %y : tensor<?x16xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x24xf32>) -> (tensor<?x1x12xf32>) {
  // expected-error @+1 {{expected a dim that is a multiple of 16 up to 1048576, but got 24 [GAT1]}}
  %y = fi.gated %x act(silu) : tensor<?x1x24xf32> -> tensor<?x1x12xf32>
  fi.return %y : tensor<?x1x12xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x32xf32>) -> (tensor<?x1x32xf32>) {
  // expected-error @+1 {{expected a result of half the dim of 'input', 16, and its rows and heads, but got 'tensor<?x1x32xf32>' of 'tensor<?x1x32xf32>' [GAT2]}}
  %y = fi.gated %x act(silu) : tensor<?x1x32xf32> -> tensor<?x1x32xf32>
  fi.return %y : tensor<?x1x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x?x32xf32>, %p: tensor<?xi32>) -> (tensor<?x?x32xf32>) {
  // expected-error @+1 {{expected operand 'input' of shape [rows, heads, dim] with heads and dim known and at least 1 head, but got 'tensor<?x?x32xf32>' [ROPE1]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<?x?x32xf32> -> tensor<?x?x32xf32>
  fi.return %y : tensor<?x?x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x528xf32>, %p: tensor<?xi32>) -> (tensor<?x1x528xf32>) {
  // expected-error @+1 {{expected a dim that is a multiple of 8 up to 512, but got 528 [ROPE1]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<?x1x528xf32> -> tensor<?x1x528xf32>
  fi.return %y : tensor<?x1x528xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x32xf32>, %p: tensor<?xi32>) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected a result of the shape of 'input', but got 'tensor<?x2x32xf32>' of 'tensor<?x1x32xf32>' [ROPE2]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<?x1x32xf32> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<4x1x32xf32>, %p: tensor<3xi32>) -> (tensor<4x1x32xf32>) {
  // expected-error @+1 {{expected operand 'positions' to have an element for each row of 'tensor<4x1x32xf32>', but got 'tensor<3xi32>' [ROPE3]}}
  %y = fi.rope %x at(%p : tensor<3xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<4x1x32xf32> -> tensor<4x1x32xf32>
  fi.return %y : tensor<4x1x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x40xf32>, %p: tensor<?xi32>) -> (tensor<?x1x40xf32>) {
  // expected-error @+1 {{expected a multiple of 16 of at most 40 elements in pairs, but got 40; say how many by 'dims' [ROPE4]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<?x1x40xf32> -> tensor<?x1x40xf32>
  fi.return %y : tensor<?x1x40xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x40xf32>, %p: tensor<?xi32>) -> (tensor<?x1x40xf32>) {
  // expected-error @+1 {{expected a multiple of 16 of at most 40 elements in pairs, but got 48 [ROPE4]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> dims(48) transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<?x1x40xf32> -> tensor<?x1x40xf32>
  fi.return %y : tensor<?x1x40xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x32xf32>, %p: tensor<?xi32>) -> (tensor<?x1x32xf32>) {
  // expected-error @+1 {{expected region 'transform' to take (f32, f32, index, index, index, index), but got (f32, f32, index) [ATT11]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(%u: f32, %v: f32, %i: index) {
    fi.yield %u, %v : f32, f32
  } : tensor<?x1x32xf32> -> tensor<?x1x32xf32>
  fi.return %y : tensor<?x1x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x1x32xf32>, %p: tensor<?xi32>) -> (tensor<?x1x32xf32>) {
  // expected-error @+1 {{expected region 'transform' to yield (f32, f32) [ATT12]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u : f32
  } : tensor<?x1x32xf32> -> tensor<?x1x32xf32>
  fi.return %y : tensor<?x1x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x32xf32>, %s: f32) -> (tensor<?x32xi8>) {
  // expected-error @+1 {{expected operand 'input' of shape [rows, heads, dim] with heads and dim known and at least 1 head, but got 'tensor<?x32xf32>' [QTZ1]}}
  %y = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : f32) : tensor<?x32xf32> -> tensor<?x32xi8>
  fi.return %y : tensor<?x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>, %s: f32) -> (tensor<?x2x32xi8>) {
  // expected-error @+1 {{expected a scheme, !fi.scaled or !fi.block_scaled, but got 'i8' [QTZ1]}}
  %y = fi.quantise %x to(i8) scales(%s : f32) : tensor<?x2x32xf32> -> tensor<?x2x32xi8>
  fi.return %y : tensor<?x2x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x20xf32>, %s: f32) -> (tensor<?x2x20xi8>) {
  // expected-error @+1 {{expected a dim that is a multiple of 8 up to 1048576, but got 20 [QTZ1]}}
  %y = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : f32) : tensor<?x2x20xf32> -> tensor<?x2x20xi8>
  fi.return %y : tensor<?x2x20xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xi8>, %s: f32) -> (tensor<?x2x16xf32>) {
  // expected-error @+1 {{expected codes of ?x2x16x'i8' for 'tensor<?x2x16xf32>' by '!fi.scaled<i8, per = tensor, by = f32>', but got 'tensor<?x2x32xi8>' [QTZ1]}}
  %y = fi.dequantise %x from(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : f32) : tensor<?x2x32xi8> -> tensor<?x2x16xf32>
  fi.return %y : tensor<?x2x16xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>, %s: f32) -> (tensor<?x2x32xi8>) {
  // expected-error @+1 {{expected codes of ?x2x32x'f8E5M2' for 'tensor<?x2x32xf32>' by '!fi.scaled<f8E5M2, per = tensor, by = f32>', but got 'tensor<?x2x32xi8>' [QTZ1]}}
  %y = fi.quantise %x to(!fi.scaled<f8E5M2, per = tensor, by = f32>) scales(%s : f32) : tensor<?x2x32xf32> -> tensor<?x2x32xi8>
  fi.return %y : tensor<?x2x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>, %s: f32) -> (tensor<?x2x32xi8>) {
  // expected-error @+1 {{expected codes of ?x2x16x'i8' for 'tensor<?x2x32xf32>' by '!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>', but got 'tensor<?x2x32xi8>' [QTZ1]}}
  %y, %t = fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) scales(%s : f32) : tensor<?x2x32xf32> -> tensor<?x2x32xi8>, tensor<?x2x2xf8E4M3FN>
  fi.return %y : tensor<?x2x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xi8>, %s: f32) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected scales per tensor, head or token, but got those of pages [QTZ2]}}
  %y = fi.dequantise %x from(!fi.scaled<i8, per = page, by = f32>) scales(%s : f32) : tensor<?x2x32xi8> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x32xi8>, %s: tensor<2xf32>) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected scales of f32, a number or of shape [1], but got 'tensor<2xf32>' [QTZ2]}}
  %y = fi.dequantise %x from(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : tensor<2xf32>) : tensor<?x2x32xi8> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x32xi8>, %s: tensor<3xf32>) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected scales of f32 and shape [2], but got 'tensor<3xf32>' [QTZ2]}}
  %y = fi.dequantise %x from(!fi.scaled<i8, per = head, by = f32>) scales(%s : tensor<3xf32>) : tensor<?x2x32xi8> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x32xi8>, %s: tensor<?x3xf32>) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected scales of f32 and shape [rows, 2], but got 'tensor<?x3xf32>' [QTZ2]}}
  %y = fi.dequantise %x from(!fi.scaled<i8, per = token, by = f32>) scales(%s : tensor<?x3xf32>) : tensor<?x2x32xi8> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x32xi8>, %s: tensor<?x2x3xf32>) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected scales of f32 and shape [rows, 2, 4], but got 'tensor<?x2x3xf32>' [QTZ2]}}
  %y = fi.dequantise %x from(!fi.scaled<i8, per = token, by = f32>) group(8) scales(%s : tensor<?x2x3xf32>) : tensor<?x2x32xi8> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x16xi8>, %s: tensor<?x2x2xf8E4M3FN>) -> (tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected 2 of 'scales' for '!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>', but got 1 [QTZ2]}}
  %y = fi.dequantise %x from(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) scales(%s : tensor<?x2x2xf8E4M3FN>) : tensor<?x2x16xi8> -> tensor<?x2x32xf32>
  fi.return %y : tensor<?x2x32xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x32xi8>, tensor<?x2x4xf8E4M3FN>) {
  // expected-error @+1 {{expected 'scales' for '!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>': the number of f32 is not computed [QTZ3]}}
  %y, %s = fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) : tensor<?x2x64xf32> -> tensor<?x2x32xi8>, tensor<?x2x4xf8E4M3FN>
  fi.return %y, %s : tensor<?x2x32xi8>, tensor<?x2x4xf8E4M3FN>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>) {
  // expected-error @+1 {{expected 2 of results, or of 'outs' where these are memrefs, but got 1 [ROW1]}}
  %y = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>
  fi.return %y : tensor<?x2x64xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>, tensor<?x2xf32>) {
  // expected-error @+1 {{expected scales of f32 and shape [1], but got 'tensor<?x2xf32>' [QTZ2]}}
  %y, %s = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>, tensor<?x2xf32>
  fi.return %y, %s : tensor<?x2x64xi8>, tensor<?x2xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x64xf32>) -> (tensor<?x2x64xi8>, tensor<3xf32>) {
  // expected-error @+1 {{expected scales of f32 and shape [2], but got 'tensor<3xf32>' [QTZ2]}}
  %y, %s = fi.quantise %x to(!fi.scaled<i8, per = head, by = f32>) : tensor<?x2x64xf32> -> tensor<?x2x64xi8>, tensor<3xf32>
  fi.return %y, %s : tensor<?x2x64xi8>, tensor<3xf32>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>) -> (tensor<?x2x32xi8>) {
  // expected-error @+1 {{expected 2 of results, or of 'outs' where these are memrefs, but got 1 [ROW1]}}
  %y = fi.quantise %x to(!fi.scaled<i8, per = token, by = f32>) : tensor<?x2x32xf32> -> tensor<?x2x32xi8>
  fi.return %y : tensor<?x2x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>, %s: f32) -> (tensor<?x2x16xi8>) {
  // expected-error @+1 {{expected no 'scales', since those of blocks are computed, but got 'f32' [QTZ3]}}
  %y, %t = fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>) scales(%s : f32) : tensor<?x2x32xf32> -> tensor<?x2x16xi8>, tensor<?x2x1xf8E8M0FNU>
  fi.return %y : tensor<?x2x16xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>, %s: f32) -> (tensor<?x2x32xi8>) {
  // expected-error @+1 {{expected 'group' beside scales per token, but got '!fi.scaled<i8, per = tensor, by = f32>' [QTZ3]}}
  %y = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) group(8) scales(%s : f32) : tensor<?x2x32xf32> -> tensor<?x2x32xi8>
  fi.return %y : tensor<?x2x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x2x32xf32>) -> (tensor<?x2x32xi8>) {
  // expected-error @+1 {{expected a dim that groups of columns divide, of a multiple of 8 up to 16384, but got 32 and groups of 24 [QTZ3]}}
  %y, %s = fi.quantise %x to(!fi.scaled<i8, per = token, by = f32>) group(24) : tensor<?x2x32xf32> -> tensor<?x2x32xi8>, tensor<?x2x1xf32>
  fi.return %y : tensor<?x2x32xi8>
}

// -----

fi.program @p run(%x: tensor<?x1x16392xf32>) -> (tensor<?x1x16392xi8>) {
  // expected-error @+1 {{expected a dim up to 16384 where scales are computed, but got 16392: compute those of groups, by 'group' [QTZ3]}}
  %y, %s = fi.quantise %x to(!fi.scaled<i8, per = token, by = f32>) : tensor<?x1x16392xf32> -> tensor<?x1x16392xi8>, tensor<?x1xf32>
  fi.return %y : tensor<?x1x16392xi8>
}

// -----

fi.program @p run(%x: tensor<?x1x72xi1>) -> (tensor<?x1x9xi8>) {
  // expected-error @+1 {{expected a dim that is a multiple of 64 up to 1048576, but got 72 [PCK1]}}
  %y = fi.pack_bits %x order(little) : tensor<?x1x72xi1> -> tensor<?x1x9xi8>
  fi.return %y : tensor<?x1x9xi8>
}

// -----

fi.program @p run(%x: tensor<?x1x64xi1>) -> (tensor<?x1x16xi8>) {
  // expected-error @+1 {{expected a result of an eighth of the dim of 'input', 8, and its rows and heads, but got 'tensor<?x1x16xi8>' of 'tensor<?x1x64xi1>' [PCK2]}}
  %y = fi.pack_bits %x order(big) : tensor<?x1x64xi1> -> tensor<?x1x16xi8>
  fi.return %y : tensor<?x1x16xi8>
}

// -----

func.func @f(%x: memref<?x2x64xf32>) {
  // expected-error @+1 {{expected no results, but 'outs', where 'input' is a memref, but got 1 [ROW1]}}
  %y = fi.gated %x act(silu) : memref<?x2x64xf32> -> tensor<?x2x32xf32>
  return
}

// -----

func.func @f(%x: memref<?x2x64xf32>, %d: tensor<?x2x32xf32>) {
  // expected-error @+1 {{expected 'outs' to be memrefs, as 'input' is, but got 'tensor<?x2x32xf32>' [ROW1]}}
  fi.gated %x act(silu) outs(%d : tensor<?x2x32xf32>) : memref<?x2x64xf32>
  return
}

// -----

func.func @f(%x: tensor<?x2x64xf32>, %d: tensor<?x2x32xf16>) {
  // expected-error @+1 {{expected 'outs' to be a tensor of the type of each result, ('tensor<?x2x32xf32>'), but got ('tensor<?x2x32xf16>') [ROW1]}}
  %y = fi.gated %x act(silu) outs(%d : tensor<?x2x32xf16>) : tensor<?x2x64xf32> -> tensor<?x2x32xf32>
  return
}

// -----

func.func @f(%x: memref<?x2x64xf32>) {
  // expected-error @+1 {{expected 1 of results, or of 'outs' where these are memrefs, but got 0 [ROW1]}}
  fi.gated %x act(silu) : memref<?x2x64xf32>
  return
}

// -----

fi.program @p run(%x: tensor<?x1x32xf32>, %p: tensor<?xi32>) -> (tensor<?x1x32xf32>) {
  // expected-error @+1 {{expected an attribute that transforms pairs, such as #fi.rotary<10000.0>, but got #fi.causal [ROT8]}}
  %y = fi.rope %x at(%p : tensor<?xi32>) pair<half> transform(#fi.causal) : tensor<?x1x32xf32> -> tensor<?x1x32xf32>
  fi.return %y : tensor<?x1x32xf32>
}

// -----

fi.program @p plan(%f: tensor<?xi32>, %n: index) run(%x: tensor<?x1x64xi1>) -> (tensor<?xi8>) {
  // expected-error @+1 {{expected vectors, of elements, of where segments begin, and of bytes, but got 'tensor<?x1x64xi1>' [PCK4]}}
  %y = fi.segment_pack_bits %x from(%f : tensor<?xi32>) to(%f : tensor<?xi32>) bytes(%n) order(little) : tensor<?x1x64xi1> -> tensor<?xi8>
  fi.return %y : tensor<?xi8>
}

// -----

fi.program @p plan(%f: tensor<?xi32>) run(%x: tensor<?xi1>) -> (tensor<?xi8>) {
  // expected-error @+1 {{expected 'bytes', the size of the result, but got none [PCK4]}}
  %y = fi.segment_pack_bits %x from(%f : tensor<?xi32>) to(%f : tensor<?xi32>) order(little) : tensor<?xi1> -> tensor<?xi8>
  fi.return %y : tensor<?xi8>
}

// -----

func.func @f(%f: memref<?xi32>, %n: index, %x: memref<?xi1>, %y: memref<?xi8>) {
  // expected-error @+1 {{expected no 'bytes' where 'outs' is memory, which has a size, but got some [PCK4]}}
  fi.segment_pack_bits %x from(%f : memref<?xi32>) to(%f : memref<?xi32>) bytes(%n) order(little) outs(%y : memref<?xi8>) : memref<?xi1>
  return
}
