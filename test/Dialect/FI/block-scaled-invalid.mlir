// RUN: fi-opt %s --split-input-file --verify-diagnostics

// expected-error @+1 {{expected f4E2M1FN in blocks of 16 with scales of f8E4M3FN, or of 32 with scales of f8E8M0FNU, but got 'f8E4M3FN' in blocks of 16 with scales of 'f8E4M3FN' [QNT9]}}
func.func private @f(!fi.block_scaled<f8E4M3FN, 16, f8E4M3FN>)

// -----

// expected-error @+1 {{but got 'f4E2M1FN' in blocks of 32 with scales of 'f8E4M3FN' [QNT9]}}
func.func private @f(!fi.block_scaled<f4E2M1FN, 32, f8E4M3FN>)

// -----

// expected-error @+1 {{but got 'f4E2M1FN' in blocks of 16 with scales of 'f8E8M0FNU' [QNT9]}}
func.func private @f(!fi.block_scaled<f4E2M1FN, 16, f8E8M0FNU>)

// -----

// expected-error @+1 {{expected 'per = head', of scales of f8E4M3FN, or nothing, but got 'per = token' with scales of 'f8E4M3FN' [QNT10]}}
func.func private @f(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN, per = token>)

// -----

// expected-error @+1 {{but got 'per = head' with scales of 'f8E8M0FNU' [QNT10]}}
func.func private @f(!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU, per = head>)

// -----

// expected-error @+1 {{expected one of tensor, head, but got 'row'}}
func.func private @f(!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN, per = row>)

// -----

// expected-error @+1 {{expected a storage type of f8E4M3FN, f8E5M2 or i8, but got 'f4E2M1FN' [QNT1]}}
func.func private @f(!fi.scaled<f4E2M1FN, per = tensor, by = f32>)

// -----

// expected-error @+1 {{expected head dim of keys to be a multiple of the 32 columns that share a scale, but got 48 [QNT11]}}
func.func private @f(!fi.ragged_kv<2x48x!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>>)

// -----

// expected-error @+1 {{expected head dim of values to be a multiple of the 16 columns that share a scale, but got 24 [QNT11]}}
func.func private @f(!fi.paged_kv<4x2x64xf16, HND, vo = 24, v = !fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>)

// -----

!t = tensor<?x2x64xi8>
!s = tensor<?x2x4xf8E4M3FN>
!kv = !fi.ragged_kv<2x64x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
fi.program @p plan() run(%k: !t, %s: !s, %n: f32) {
  // expected-error @+1 {{expected operand 'keys' of shape [?, 2, 32] by the view's type, but got [?, 2, 64] [KV5]}}
  %w = fi.view.ragged %k, %k scales(%s, %n, %s, %n : !s, f32, !s, f32) : !t, !t -> !kv
  fi.return
}

// -----

!t = tensor<?x2x32xf8E4M3FN>
!s = tensor<?x2x4xf8E4M3FN>
!kv = !fi.ragged_kv<2x64x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
fi.program @p plan() run(%k: !t, %s: !s, %n: f32) {
  // expected-error @+1 {{expected operand 'keys' to hold 'i8' by the view's type, but got 'f8E4M3FN' [KV5]}}
  %w = fi.view.ragged %k, %k scales(%s, %n, %s, %n : !s, f32, !s, f32) : !t, !t -> !kv
  fi.return
}

// -----

!t = tensor<?x2x32xi8>
!s = tensor<?x2x4xf8E4M3FN>
!kv = !fi.ragged_kv<2x64x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
fi.program @p plan() run(%k: !t, %s: !s, %n: f32) {
  // expected-error @+1 {{expected 4 operands 'scales', those of keys and of values that the view's type asks for, but got 2 [QNT4]}}
  %w = fi.view.ragged %k, %k scales(%s, %n : !s, f32) : !t, !t -> !kv
  fi.return
}

// -----

!t = tensor<?x2x32xi8>
!s = tensor<?x2x2xf8E4M3FN>
!kv = !fi.ragged_kv<2x64x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
fi.program @p plan() run(%k: !t, %s: !s, %n: f32) {
  // expected-error @+1 {{expected the scales of keys to be of shape [?, 2, 4] and type 'f8E4M3FN', one for each block of a row, with a last dimension of stride 1, but got 'tensor<?x2x2xf8E4M3FN>' [QNT4]}}
  %w = fi.view.ragged %k, %k scales(%s, %n, %s, %n : !s, f32, !s, f32) : !t, !t -> !kv
  fi.return
}

// -----

!t = tensor<?x2x32xi8>
!s = tensor<?x2x4xf32>
!kv = !fi.ragged_kv<2x64x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
fi.program @p plan() run(%k: !t, %s: !s, %n: f32) {
  // expected-error @+1 {{but got 'tensor<?x2x4xf32>' [QNT4]}}
  %w = fi.view.ragged %k, %k scales(%s, %n, %s, %n : !s, f32, !s, f32) : !t, !t -> !kv
  fi.return
}

// -----

!t = memref<?x2x32xi8>
!s = tensor<?x2x2xf8E8M0FNU>
!n = tensor<?x2x64xf32>
!ix = tensor<?xi32>
!kv = !fi.ragged_kv<2x64x!fi.block_scaled<f4E2M1FN, 32, f8E8M0FNU>>
fi.program @p plan(%r: !ix) run(%k: !t, %s: !s, %n: !n) {
  %w = fi.view.ragged %k, %k scales(%s, %s : !s, !s) : !t, !t -> !kv
  // expected-error @+1 {{expected the scales of blocks, which this op writes, to be memrefs, but got 'tensor<?x2x2xf8E8M0FNU>' [QNT12]}}
  fi.append %n, %n rows(%r : !ix) to %w : !n, !n to !kv
  fi.return
}
