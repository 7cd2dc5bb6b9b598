// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s | fi-opt | FileCheck %s
// RUN: fi-opt --mlir-print-op-generic %s | fi-opt | FileCheck %s

// CHECK-LABEL: fi.program @norms
fi.program @norms run(%x: tensor<?x4x64xbf16>, %w: tensor<64xf32>) -> (tensor<?x4x64xbf16>, tensor<?x4x64xf32>, tensor<?x4x64xf16>) {
  // CHECK: fi.rms_norm %x eps(9.99999997E-7) : tensor<?x4x64xbf16> -> tensor<?x4x64xbf16>
  %a = fi.rms_norm %x eps(1.0e-6) : tensor<?x4x64xbf16> -> tensor<?x4x64xbf16>
  // CHECK: fi.rms_norm %x weight(%w : tensor<64xf32>) eps(0.000000e+00) : tensor<?x4x64xbf16> -> tensor<?x4x64xf32>
  %b = fi.rms_norm %x weight(%w : tensor<64xf32>) eps(0.0) : tensor<?x4x64xbf16> -> tensor<?x4x64xf32>
  // CHECK: fi.rms_norm %{{.*}} weight(%w : tensor<64xf32>) plus_one eps(1.000000e-01)
  %c = fi.rms_norm %b weight(%w : tensor<64xf32>) plus_one eps(0.1) : tensor<?x4x64xf32> -> tensor<?x4x64xf16>
  fi.return %a, %b, %c : tensor<?x4x64xbf16>, tensor<?x4x64xf32>, tensor<?x4x64xf16>
}

// CHECK-LABEL: fi.program @layers
fi.program @layers run(%x: tensor<?x4x64xbf16>, %r: tensor<?x4x64xf32>, %w: tensor<64xf32>, %s: f32, %h: tensor<4xf32>) -> (tensor<?x4x64xf16>, tensor<?x4x64xf32>, tensor<?x4x64xi8>, tensor<?x4x64xf8E4M3FN>) {
  // CHECK: %{{.*}}:2 = fi.rms_norm %x add(%r : tensor<?x4x64xf32>) weight(%w : tensor<64xf32>) eps(1.000000e-01) : tensor<?x4x64xbf16> -> tensor<?x4x64xf16>, tensor<?x4x64xf32>
  %a, %b = fi.rms_norm %x add(%r : tensor<?x4x64xf32>) weight(%w : tensor<64xf32>) eps(0.1) : tensor<?x4x64xbf16> -> tensor<?x4x64xf16>, tensor<?x4x64xf32>
  // CHECK: fi.layer_norm %x weight(%w : tensor<64xf32>) bias(%w : tensor<64xf32>) eps(1.000000e-01) to(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : f32) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>
  %c = fi.layer_norm %x weight(%w : tensor<64xf32>) bias(%w : tensor<64xf32>) eps(0.1) to(!fi.scaled<i8, per = tensor, by = f32>) scales(%s : f32) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>
  // CHECK: fi.rms_norm %x eps(1.000000e-01) to(!fi.scaled<f8E4M3FN, per = head, by = f32>) scales(%h : tensor<4xf32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E4M3FN>
  %d = fi.rms_norm %x eps(0.1) to(!fi.scaled<f8E4M3FN, per = head, by = f32>) scales(%h : tensor<4xf32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E4M3FN>
  fi.return %a, %b, %c, %d : tensor<?x4x64xf16>, tensor<?x4x64xf32>, tensor<?x4x64xi8>, tensor<?x4x64xf8E4M3FN>
}

// CHECK-LABEL: func.func @in_memory
func.func @in_memory(%x: memref<?x4x64xbf16>, %y: memref<?x4x64xf16>) {
  // CHECK: fi.layer_norm %{{.*}} eps(1.000000e-01) outs(%{{.*}} : memref<?x4x64xf16>) : memref<?x4x64xbf16>{{$}}
  fi.layer_norm %x eps(0.1) outs(%y : memref<?x4x64xf16>) : memref<?x4x64xbf16>
  return
}


!ix = tensor<?xi32>
!x = tensor<?x4x64xbf16>

// CHECK-LABEL: fi.program @gates
fi.program @gates run(%x: tensor<?x1x48xbf16>) -> (tensor<?x1x24xbf16>, tensor<?x1x24xf32>, tensor<?x1x24xf16>) {
  // CHECK: fi.gated %x act(silu) : tensor<?x1x48xbf16> -> tensor<?x1x24xbf16>
  %a = fi.gated %x act(silu) : tensor<?x1x48xbf16> -> tensor<?x1x24xbf16>
  // CHECK: fi.gated %x act(gelu) : tensor<?x1x48xbf16> -> tensor<?x1x24xf32>
  %b = fi.gated %x act(gelu) : tensor<?x1x48xbf16> -> tensor<?x1x24xf32>
  // CHECK: fi.gated %x act(gelu_tanh) : tensor<?x1x48xbf16> -> tensor<?x1x24xf16>
  %c = fi.gated %x act(gelu_tanh) : tensor<?x1x48xbf16> -> tensor<?x1x24xf16>
  fi.return %a, %b, %c : tensor<?x1x24xbf16>, tensor<?x1x24xf32>, tensor<?x1x24xf16>
}

// CHECK-LABEL: fi.program @pairs
fi.program @pairs plan(%p: !ix) run(%x: !x, %g: tensor<?xf32>, %one: f32) -> (!x, !x) {
  // CHECK: fi.rope %x at(%p : tensor<?xi32>) pair<half> captures(%[[C:.*]] = %g : tensor<?xf32>, %[[Z:.*]] = %one : f32) transform(%[[A:.*]]: f32, %{{.*}}: f32, %{{.*}}: index, %{{.*}}: index, %{{.*}}: index, %[[P:.*]]: index) {
  // CHECK:   fi.load %[[C]][%[[P]]] : tensor<?xf32>
  // CHECK:   arith.addf %[[A]], %[[Z]] : f32
  // CHECK: } : tensor<?x4x64xbf16> -> tensor<?x4x64xbf16>
  %a = fi.rope %x at(%p : !ix) pair<half> captures(%t = %g : tensor<?xf32>, %z = %one : f32)
      transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    %c = fi.load %t[%pos] : tensor<?xf32>
    %d = arith.addf %u, %z : f32
    fi.yield %c, %d : f32, f32
  } : !x -> !x
  // CHECK: fi.rope %{{.*}} at(%p : tensor<?xi32>) pair<interleaved> dims(32) transform(
  %b = fi.rope %a at(%p : !ix) pair<interleaved> dims(32)
      transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %v, %u : f32, f32
  } : !x -> !x
  %c = fi.rope %a at(%p : !ix) pair<half> dims(16)
      transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %v, %u : f32, f32
  } : !x -> !x
  fi.return %b, %c : !x, !x
}

// CHECK-LABEL: fi.program @codes
fi.program @codes run(%x: tensor<?x4x64xbf16>, %h: tensor<4xf32>, %n: f32, %t: tensor<?x4x2xf32>)
    -> (tensor<?x4x64xi8>, tensor<?x4x64xf8E5M2>, tensor<?x4x64xf32>, tensor<?x4xf32>, tensor<?x4x64xi8>) {
  // CHECK: fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) scales(%n : f32) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>
  %a = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) scales(%n : f32) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>
  // CHECK: fi.quantise %x to(!fi.scaled<f8E5M2, per = head, by = f32>) scales(%h : tensor<4xf32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E5M2>
  %b = fi.quantise %x to(!fi.scaled<f8E5M2, per = head, by = f32>) scales(%h : tensor<4xf32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E5M2>
  // CHECK: %[[C:.*]]:2 = fi.quantise %x to(!fi.scaled<f8E4M3FN, per = token, by = f32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E4M3FN>, tensor<?x4xf32>
  %c, %s = fi.quantise %x to(!fi.scaled<f8E4M3FN, per = token, by = f32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E4M3FN>, tensor<?x4xf32>
  // CHECK: fi.dequantise %[[C]]#0 from(!fi.scaled<f8E4M3FN, per = token, by = f32>) scales(%[[C]]#1 : tensor<?x4xf32>) : tensor<?x4x64xf8E4M3FN> -> tensor<?x4x64xf32>
  %d = fi.dequantise %c from(!fi.scaled<f8E4M3FN, per = token, by = f32>) scales(%s : tensor<?x4xf32>) : tensor<?x4x64xf8E4M3FN> -> tensor<?x4x64xf32>
  // CHECK: fi.quantise %x to(!fi.scaled<i8, per = token, by = f32>) group(32) scales(%t : tensor<?x4x2xf32>)
  %e = fi.quantise %x to(!fi.scaled<i8, per = token, by = f32>) group(32) scales(%t : tensor<?x4x2xf32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>
  fi.return %a, %b, %d, %s, %e : tensor<?x4x64xi8>, tensor<?x4x64xf8E5M2>, tensor<?x4x64xf32>, tensor<?x4xf32>, tensor<?x4x64xi8>
}

// CHECK-LABEL: fi.program @blocks
fi.program @blocks run(%x: tensor<?x4x64xbf16>, %n: f32) -> (tensor<?x4x64xf32>, tensor<?x4x32xi8>, tensor<?x4x2xf8E8M0FNU>) {
  // CHECK: %[[C:.*]]:2 = fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) scales(%n : f32) : tensor<?x4x64xbf16> -> tensor<?x4x32xi8>, tensor<?x4x4xf8E4M3FN>
  %c, %s = fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) scales(%n : f32) : tensor<?x4x64xbf16> -> tensor<?x4x32xi8>, tensor<?x4x4xf8E4M3FN>
  // CHECK: fi.dequantise %[[C]]#0 from(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) scales(%[[C]]#1, %n : tensor<?x4x4xf8E4M3FN>, f32) : tensor<?x4x32xi8> -> tensor<?x4x64xf32>
  %d = fi.dequantise %c from(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>) scales(%s, %n : tensor<?x4x4xf8E4M3FN>, f32) : tensor<?x4x32xi8> -> tensor<?x4x64xf32>
  // CHECK: fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>) : tensor<?x4x64xbf16> -> tensor<?x4x32xi8>, tensor<?x4x2xf8E8M0FNU>
  %e, %f = fi.quantise %x to(!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>) : tensor<?x4x64xbf16> -> tensor<?x4x32xi8>, tensor<?x4x2xf8E8M0FNU>
  fi.return %d, %e, %f : tensor<?x4x64xf32>, tensor<?x4x32xi8>, tensor<?x4x2xf8E8M0FNU>
}

// CHECK-LABEL: fi.program @bits
fi.program @bits run(%x: tensor<?x1x64xi1>, %y: tensor<?x1x64xi8>) -> (tensor<?x1x8xi8>, tensor<?x1x8xi8>) {
  // CHECK: fi.pack_bits %x order(little) : tensor<?x1x64xi1> -> tensor<?x1x8xi8>
  %a = fi.pack_bits %x order(little) : tensor<?x1x64xi1> -> tensor<?x1x8xi8>
  // CHECK: fi.pack_bits %y order(big) : tensor<?x1x64xi8> -> tensor<?x1x8xi8>
  %b = fi.pack_bits %y order(big) : tensor<?x1x64xi8> -> tensor<?x1x8xi8>
  fi.return %a, %b : tensor<?x1x8xi8>, tensor<?x1x8xi8>
}

// CHECK-LABEL: func.func @rows_in_memory
func.func @rows_in_memory(%x: memref<?x2x64xbf16>, %y: memref<?x2x32xf16>, %p: memref<?xi32>, %c: memref<?x2x64xi8>, %s: memref<?x2xf32>, %b: memref<?x2x8xi8>) {
  // CHECK: fi.gated %{{.*}} act(silu) outs(%{{.*}} : memref<?x2x32xf16>) : memref<?x2x64xbf16>{{$}}
  fi.gated %x act(silu) outs(%y : memref<?x2x32xf16>) : memref<?x2x64xbf16>
  // CHECK: fi.rope %{{.*}} at(%{{.*}} : memref<?xi32>) pair<half> transform(
  // CHECK: } outs(%{{.*}} : memref<?x2x64xbf16>) : memref<?x2x64xbf16>{{$}}
  fi.rope %x at(%p : memref<?xi32>) pair<half> transform(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %v, %u : f32, f32
  } outs(%x : memref<?x2x64xbf16>) : memref<?x2x64xbf16>
  // CHECK: fi.quantise %{{.*}} to(!fi.scaled<i8, per = token, by = f32>) outs(%{{.*}}, %{{.*}} : memref<?x2x64xi8>, memref<?x2xf32>) : memref<?x2x64xbf16>{{$}}
  fi.quantise %x to(!fi.scaled<i8, per = token, by = f32>) outs(%c, %s : memref<?x2x64xi8>, memref<?x2xf32>) : memref<?x2x64xbf16>
  // CHECK: fi.dequantise %{{.*}} from(!fi.scaled<i8, per = token, by = f32>) scales(%{{.*}} : memref<?x2xf32>) outs(%{{.*}} : memref<?x2x64xbf16>) : memref<?x2x64xi8>{{$}}
  fi.dequantise %c from(!fi.scaled<i8, per = token, by = f32>) scales(%s : memref<?x2xf32>) outs(%x : memref<?x2x64xbf16>) : memref<?x2x64xi8>
  // CHECK: fi.pack_bits %{{.*}} order(little) outs(%{{.*}} : memref<?x2x8xi8>) : memref<?x2x64xi8>{{$}}
  fi.pack_bits %c order(little) outs(%b : memref<?x2x8xi8>) : memref<?x2x64xi8>
  return
}

// CHECK-LABEL: fi.program @shared_scales
fi.program @shared_scales run(%x: tensor<?x4x64xbf16>, %one: tensor<1xf32>)
    -> (tensor<?x4x64xi8>, tensor<1xf32>, tensor<?x4x64xf8E5M2>, tensor<4xf32>, tensor<?x4x64xf32>) {
  // CHECK: %[[A:.*]]:2 = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>, tensor<1xf32>
  %a, %s = fi.quantise %x to(!fi.scaled<i8, per = tensor, by = f32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xi8>, tensor<1xf32>
  // CHECK: fi.quantise %x to(!fi.scaled<f8E5M2, per = head, by = f32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E5M2>, tensor<4xf32>
  %b, %t = fi.quantise %x to(!fi.scaled<f8E5M2, per = head, by = f32>) : tensor<?x4x64xbf16> -> tensor<?x4x64xf8E5M2>, tensor<4xf32>
  // CHECK: fi.dequantise %[[A]]#0 from(!fi.scaled<i8, per = tensor, by = f32>) scales(%one : tensor<1xf32>)
  %c = fi.dequantise %a from(!fi.scaled<i8, per = tensor, by = f32>) scales(%one : tensor<1xf32>) : tensor<?x4x64xi8> -> tensor<?x4x64xf32>
  fi.return %a, %s, %b, %t, %c : tensor<?x4x64xi8>, tensor<1xf32>, tensor<?x4x64xf8E5M2>, tensor<4xf32>, tensor<?x4x64xf32>
}

// CHECK-LABEL: fi.program @segments
fi.program @segments plan(%from: tensor<?xi32>, %to: tensor<?xi64>, %n: index) run(%x: tensor<?xi1>) -> (tensor<?xi8>) {
  // CHECK: fi.segment_pack_bits %x from(%from : tensor<?xi32>) to(%to : tensor<?xi64>) bytes(%n) order(big) : tensor<?xi1> -> tensor<?xi8>
  %y = fi.segment_pack_bits %x from(%from : tensor<?xi32>) to(%to : tensor<?xi64>) bytes(%n) order(big) : tensor<?xi1> -> tensor<?xi8>
  fi.return %y : tensor<?xi8>
}

// CHECK-LABEL: func.func @segments_in_memory
func.func @segments_in_memory(%f: memref<?xi32>, %x: memref<?xi8>, %y: memref<?xi8>) {
  // CHECK: fi.segment_pack_bits %{{.*}} from(%{{.*}} : memref<?xi32>) to(%{{.*}} : memref<?xi32>) order(little) outs(%{{.*}} : memref<?xi8>) : memref<?xi8>{{$}}
  fi.segment_pack_bits %x from(%f : memref<?xi32>) to(%f : memref<?xi32>) order(little) outs(%y : memref<?xi8>) : memref<?xi8>
  return
}
