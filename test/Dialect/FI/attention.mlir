// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --mlir-print-op-generic | fi-opt | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null

// Every clause of fi.attention, alone and together.

!ix = tensor<?xi32>
!t = tensor<?x2x8xf32>
!q = tensor<?x4x8xf32>
!l = tensor<?x4xf32>
!kv2 = !fi.ragged_kv<2x8xf32>

// CHECK-LABEL: fi.program @plain
// CHECK: %1 = fi.attention %q over %0 scale(1.250000e-01) : tensor<?x4x8xf32> over !kv -> tensor<?x4x8xf32>
fi.program @plain run(%q: !q, %k: !t) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv2
  %o = fi.attention %q over %kv scale(0.125) : !q over !kv2 -> !q
  fi.return %o : !q
}

// CHECK-LABEL: fi.program @clauses
// CHECK: fi.attention %q rows(%qo : tensor<?xi32>) over %{{.*}} at(%pos : tensor<?xi32>) scale(%sc) sink(%sink : tensor<4xf32>) normalise(#fi.softmax<base = e>) score(#fi.softcap<3.000000e+01>) mask(#fi.causal, #fi.window<left = 127, right = 0>, #fi.any<#fi.causal, #fi.window<right = 3>>) split(#fi.split<fixed = 2048>) schedules([#fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 16, max_rows = 16>, #fi.schedule<tile_rows = 128, tile_keys = 64, mr = 8, nr = 2, lanes = 1>]) : tensor<?x4x8xf32> over !kv -> tensor<?x4x8xf32>, tensor<?x4xf32>
fi.program @clauses plan(%qo: !ix, %ip: !ix, %pos: !ix)
    run(%q: !q, %k: !t, %sc: f32, %sink: tensor<4xf32>) -> (!q, !l) {
  %kv = fi.view.ragged %k, %k indptr(%ip : !ix) : !t, !t -> !kv2
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv at(%pos : !ix) scale(%sc)
      sink(%sink : tensor<4xf32>) normalise(#fi.softmax<base = e>)
      score(#fi.softcap<30.0>)
      mask(#fi.causal, #fi.window<left = 127, right = 0>, #fi.any<#fi.causal, #fi.window<right = 3>>)
      split(#fi.split<fixed = 2048>)
      schedules([#fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 16, max_rows = 16>,
                 #fi.schedule<tile_rows = 128, tile_keys = 64, mr = 8, nr = 2>])
      : !q over !kv2 -> !q, !l
  fi.return %o, %lse : !q, !l
}

// Base 2 is what is meant where nothing is said, and so is not printed.
// CHECK-LABEL: fi.program @base_two
// CHECK: scale(1.000000e+00) split(#fi.split<balanced>) {note = "kept"} :
fi.program @base_two run(%q: !q, %k: !t) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv2
  %o = fi.attention %q over %kv scale(1.0) normalise(#fi.softmax<base = 2>)
      split(#fi.split<balanced>) {note = "kept"} : !q over !kv2 -> !q
  fi.return %o : !q
}

// Captures have one name in all regions, and regions see no value from outside.
// CHECK-LABEL: fi.program @regions
// CHECK: fi.attention %q over %{{.*}} scale(1.000000e+00) pair<half> captures(%c0 = %f : tensor<4xf32>, %c1 = %w : index) query(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
// CHECK:   fi.load %c0[%pair] : tensor<4xf32>
// CHECK: } key(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
// CHECK:   fi.load %c0[%pair] : tensor<4xf32>
// CHECK:   fi.yield %{{.*}}, %x : f32, f32
// CHECK: } score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
// CHECK:   scf.if
// CHECK: } mask(#fi.causal) mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
// CHECK:   arith.addi %kp, %c1 : index
// CHECK:   fi.yield %{{.*}} : i1
// CHECK: } : tensor<?x4x8xf32> over !kv -> tensor<?x4x8xf32>
fi.program @regions run(%q: !q, %k: !t, %f: tensor<4xf32>, %w: index) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv2
  %o = fi.attention %q over %kv scale(1.0) pair<half>
      captures(%freq = %f : tensor<4xf32>, %width = %w : index)
      query(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        %c = fi.load %freq[%pair] : tensor<4xf32>
        %u = arith.mulf %x, %c : f32
        fi.yield %u, %y : f32, f32
      }
      key(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        %c = fi.load %freq[%pair] : tensor<4xf32>
        %u = math.sin %c : f32
        fi.yield %u, %x : f32, f32
      }
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %zero = index.constant 0
        %first = arith.cmpi eq, %kp, %zero : index
        %t = scf.if %first -> f32 {
          %n = arith.negf %s : f32
          scf.yield %n : f32
        } else {
          scf.yield %s : f32
        }
        fi.yield %t : f32
      }
      mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %end = arith.addi %kp, %width : index
        %m = arith.cmpi sge, %end, %qp : index
        fi.yield %m : i1
      } : !q over !kv2 -> !q
  fi.return %o : !q
}

// CHECK-LABEL: fi.program @interleaved
// CHECK: pair<interleaved> query(
fi.program @interleaved run(%q: !q, %k: !t) -> (!q) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv2
  %o = fi.attention %q over %kv scale(1.0) pair<interleaved>
      query(%x: f32, %y: f32, %pair: index, %req: index, %head: index, %pos: index) {
        fi.yield %y, %x : f32, f32
      } : !q over !kv2 -> !q
  fi.return %o : !q
}

// CHECK-LABEL: fi.program @places
// CHECK: fi.attention %q over %{{.*}} scale(1.000000e+00) outs(%o, %lse : memref<?x4x8xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x4xf32>) : memref<?x4x8xf32> over !kv{{$}}
fi.program @places run(%q: memref<?x4x8xf32>, %k: !t,
    %o: memref<?x4x8xbf16, strided<[?, ?, 1], offset: ?>>, %lse: memref<?x4xf32>) {
  %kv = fi.view.ragged %k, %k : !t, !t -> !kv2
  fi.attention %q over %kv scale(1.0)
      outs(%o, %lse : memref<?x4x8xbf16, strided<[?, ?, 1], offset: ?>>, memref<?x4xf32>)
      : memref<?x4x8xf32> over !kv2
  fi.return
}

// The query's last columns may be an operand of their own, where keys have tails.
// CHECK-LABEL: fi.program @absorbed
// CHECK: fi.attention %qn, %qr rows(%qo : tensor<?xi32>) over %{{.*}} scale(1.250000e-01) mask(#fi.causal) : tensor<?x16x64xbf16>, tensor<?x16x8xbf16> over !{{.*}} -> tensor<?x16x64xbf16>
// CHECK: fi.attention %q rows(%qo : tensor<?xi32>) over %{{.*}} : tensor<?x16x72xbf16> over
fi.program @absorbed
    plan(%qo: tensor<?xi32>, %ip: tensor<?xi32>, %pg: tensor<?xi32>, %last: tensor<?xi32>)
    run(%qn: tensor<?x16x64xbf16>, %qr: tensor<?x16x8xbf16>, %q: tensor<?x16x72xbf16>,
        %c: memref<?x4x64xbf16>, %r: memref<?x4x8xbf16>)
    -> (tensor<?x16x64xbf16>, tensor<?x16x64xbf16>) {
  %kv = fi.view.latent %c, %r tables(%ip, %pg, %last : tensor<?xi32>, tensor<?xi32>, tensor<?xi32>)
      : memref<?x4x64xbf16>, memref<?x4x8xbf16> -> !fi.latent_kv<64+8xbf16, page = 4>
  %o = fi.attention %qn, %qr rows(%qo : tensor<?xi32>) over %kv scale(0.125) mask(#fi.causal)
      : tensor<?x16x64xbf16>, tensor<?x16x8xbf16> over !fi.latent_kv<64+8xbf16, page = 4>
      -> tensor<?x16x64xbf16>
  %o2 = fi.attention %q rows(%qo : tensor<?xi32>) over %kv scale(0.125)
      : tensor<?x16x72xbf16> over !fi.latent_kv<64+8xbf16, page = 4> -> tensor<?x16x64xbf16>
  fi.return %o, %o2 : tensor<?x16x64xbf16>, tensor<?x16x64xbf16>
}
