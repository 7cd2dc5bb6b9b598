// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message; the numbers are those of docs/spec.md.

!n = tensor<?x2x8xf32>
!m = memref<?x2x8xbf16>
!kv = !fi.ragged_kv<2x8xbf16>
!ix = tensor<?xi32>
func.func @f(%n: !n, %r: !ix, %kv: !kv) {
  // expected-error @+1 {{expected operand 'view' to be made by a view op in this program [APP1]}}
  fi.append %n, %n rows(%r : !ix) to %kv : !n, !n to !kv
  return
}

// -----

!n = tensor<?x2x8xf32>
!m = memref<?x2x8xbf16>
!kv = !fi.ragged_kv<2x8xbf16>
!ix = tensor<?xi32>
fi.program @f plan(%r: !ix) run(%n: !n, %k: tensor<?x2x8xbf16>) {
  // expected-note @+1 {{the view is made here}}
  %kv = fi.view.ragged %k, %k : tensor<?x2x8xbf16>, tensor<?x2x8xbf16> -> !kv
  // expected-error @+1 {{expected operand 'view' to be made from memrefs, but got 'tensor<?x2x8xbf16>' [APP1]}}
  fi.append %n, %n rows(%r : !ix) to %kv : !n, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x8xf32>
!m = memref<?x2x8xbf16>
!kv = !fi.ragged_kv<2x8xbf16>
!ix = tensor<?xi32>
fi.program @f plan(%r: !ix) run(%n: !n, %b: tensor<?x2x16xf32>, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected operand 'keys' of shape [?, 2, 8], but got [?, 2, 16] [APP2]}}
  fi.append %b, %n rows(%r : !ix) to %kv : tensor<?x2x16xf32>, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x8xf32>
!m = memref<?x2x8xbf16>
!kv = !fi.ragged_kv<2x8xbf16>
!ix = tensor<?xi32>
fi.program @f plan(%r: !ix) run(%n: !n, %b: tensor<?x2x16xf32>, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected operand 'values' of shape [?, 2, 8], but got [?, 2, 16] [APP2]}}
  fi.append %n, %b rows(%r : !ix) to %kv : !n, tensor<?x2x16xf32> to !kv
  fi.return
}

// -----

!n = tensor<?x2x8xf32>
!m = memref<?x2x8xbf16>
!kv = !fi.ragged_kv<2x8xbf16>
!ix = tensor<?xi32>
fi.program @f plan(%r: tensor<?x?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected operand 'rows' to be of rank 1, but got 'tensor<?x?xi32>' [APP4]}}
  fi.append %n, %n rows(%r : tensor<?x?xi32>) to %kv : !n, !n to !kv
  fi.return
}

// -----

!ix = tensor<?xi32>
!c = memref<?x4x64xf32>
!r = memref<?x4x8xf32>
!kv = !fi.latent_kv<64+8xf32, page = 4>
!new = tensor<?x1x64xf32>
fi.program @p plan(%ap: !ix, %ip: !ix, %pg: !ix, %last: !ix) run(%nc: !new, %c: !c, %r: !r) {
  %w = fi.view.latent %c, %r tables(%ip, %pg, %last : !ix, !ix, !ix) : !c, !r -> !kv
  // expected-error @+1 {{expected operand 'values' of shape [?, 1, 8], but got [?, 1, 64] [APP2]}}
  fi.append %nc, %nc rows(%ap : !ix) to %w : !new, !new to !kv
  fi.return
}

// -----

!n = tensor<?x2x32xf32>
!m = memref<?x2x32xf32>
!kv = !fi.ragged_kv<2x32xf32>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected 'pair', and 'dims' where not all elements are paired, exactly with a region that transforms keys or values [APP8]}}
  fi.append %n, %n rows(%r : tensor<?xi32>) to %kv pair<half> : !n, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x32xf32>
!m = memref<?x2x32xf32>
!kv = !fi.ragged_kv<2x32xf32>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected 'pair', and 'dims' where not all elements are paired, exactly with a region that transforms keys or values [APP8]}}
  fi.append %n, %n rows(%r : tensor<?xi32>) to %kv dims(16) : !n, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x32xf32>
!m = memref<?x2x32xf32>
!kv = !fi.ragged_kv<2x32xf32>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected 2 regions, of keys and of values, or none, but got 1 [APP8]}}
  "fi.append"(%n, %n, %r, %kv) ({}) : (!n, !n, tensor<?xi32>, !kv) -> ()
  fi.return
}

// -----

!n = tensor<?x2x24xf32>
!m = memref<?x2x24xf32>
!kv = !fi.ragged_kv<2x24xf32>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected a multiple of 16 of at most 24 elements in pairs, but got 24; say how many by 'dims' [APP9]}}
  fi.append %n, %n rows(%r : tensor<?xi32>) to %kv pair<half> key(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : !n, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x32xf32>
!m = memref<?x2x16xi8>
!s = memref<?x2x2xf8E4M3FN>
!kv = !fi.ragged_kv<2x32x!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m, %s: !s, %f: f32) {
  %kv = fi.view.ragged %k, %k scales(%s, %f, %s, %f : !s, f32, !s, f32) : !m, !m -> !kv
  // expected-error @+1 {{expected no region for keys that are stored with scales of blocks: transform them before, by 'fi.rope' [APP9]}}
  fi.append %n, %n rows(%r : tensor<?xi32>) to %kv pair<half> key(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : !n, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x32xf32>
!m = memref<?x2x32xf32>
!kv = !fi.ragged_kv<2x32xf32>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected region 'value' of a view of type '!fi.ragged_kv<2x32xf32>', but got 'tail'}}
  fi.append %n, %n rows(%r : tensor<?xi32>) to %kv pair<half> tail(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u, %v : f32, f32
  } : !n, !n to !kv
  fi.return
}

// -----

!n = tensor<?x2x32xf32>
!m = memref<?x2x32xf32>
!kv = !fi.ragged_kv<2x32xf32>
fi.program @f plan(%r: tensor<?xi32>) run(%n: !n, %k: !m) {
  %kv = fi.view.ragged %k, %k : !m, !m -> !kv
  // expected-error @+1 {{expected region 'key' to yield (f32, f32) [ATT12]}}
  fi.append %n, %n rows(%r : tensor<?xi32>) to %kv pair<half> key(%u: f32, %v: f32, %pair: index, %req: index, %head: index, %pos: index) {
    fi.yield %u : f32
  } : !n, !n to !kv
  fi.return
}
