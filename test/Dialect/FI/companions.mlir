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
