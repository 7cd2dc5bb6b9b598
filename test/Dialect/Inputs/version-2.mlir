// What version-2.mlirbc was made from: every type and attribute of fi and fi_tile.
!ix = tensor<?xi32>
!paged = !fi.paged_kv<16x2x64xbf16, HND, vo = 32, v = f16, index = i64>
!fused = !fi.paged_kv<?x2x64xf32, NHD, table = dense, fused>
!ragged = !fi.ragged_kv<2x64xf32, HND>
!q = tensor<?x4x64xf32>
!st = !fi.state<?x4x64xf32, #fi.softmax<base = 2>>
!seg = !fi.state<?x4x64xf32, #fi.softmax<base = 2>, segmented>

module attributes {fi.target = #fi.target<cpu, vector_bits = 512, bf16_dot, amx>} {
  fi.program @layouts
      plan(%ip: tensor<?xi64>, %pages: tensor<?xi64>, %last: tensor<?xi64>, %dense: tensor<?x?xi32>, %len: !ix)
      run(%q: tensor<?x4x64xbf16>, %f: !q, %k: memref<?x2x16x64xbf16>, %v: memref<?x2x16x32xf16>, %both: memref<?x2x16x2x64xf32>)
      -> (tensor<?x4x32xbf16>, !q) {
    %0 = fi.view.paged %k, %v tables(%ip, %pages, %last : tensor<?xi64>, tensor<?xi64>, tensor<?xi64>) : memref<?x2x16x64xbf16>, memref<?x2x16x32xf16> -> !paged
    %1 = fi.attention %q over %0 scale(1.250000e-01) normalise(#fi.softmax<base = e>) score(#fi.softcap<30.0>) mask(#fi.any<#fi.causal, #fi.window<left = 127, right = 3>>, #fi.window<right = 0>) : tensor<?x4x64xbf16> over !paged -> tensor<?x4x32xbf16>
    %2 = fi.view.paged %both tables(%dense, %len : tensor<?x?xi32>, !ix) : memref<?x2x16x2x64xf32> -> !fused
    %3 = fi.attention %f over %2 scale(1.250000e-01) split(#fi.split<balanced>) schedules([#fi.schedule<tile_rows = 16, tile_keys = 64, mr = 8, nr = 2, lanes = 16, max_rows = 16, stream = 1>]) : !q over !fused -> !q
    fi.return %1, %3 : tensor<?x4x32xbf16>, !q
  }
  fi.program @states plan(%qo: !ix) run(%q: !q, %k: tensor<2x?x64xf32>, %sink: tensor<4xf32>, %slope: tensor<4xf32>) -> (!q, tensor<?x4xf32>) {
    %0 = fi.view.ragged %k, %k indptr(%qo : !ix) : tensor<2x?x64xf32>, tensor<2x?x64xf32> -> !ragged
    %1 = fi.segments rows(%qo : !ix) over %0 split(#fi.split<fixed = 2048>) : !ragged
    %2 = fi.attention %q rows(%qo : !ix) over %0 segments(%1) scale(1.250000e-01) captures(%m = %slope : tensor<4xf32>)
        score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
          %5 = fi.load %m[%qh] : tensor<4xf32>
          %6 = arith.addf %s, %5 : f32
          fi.yield %6 : f32
        } : !q over !ragged -> !seg
    %3 = fi.merge_segments %2 by %1 : !seg -> !st
    %4:2 = fi.finalize %3 sink(%sink : tensor<4xf32>) : !st -> !q, tensor<?x4xf32>
    fi.return %4#0, %4#1 : !q, tensor<?x4xf32>
  }
  fi.program @more_layouts
      plan(%qo: !ix, %ip: !ix, %pages: !ix, %value_pages: !ix, %last: !ix)
      run(%q: !q, %r: tensor<?x4x8xf32>, %k: memref<?x2x16x64xf32>, %c: memref<?x16x64xf32>, %t: memref<?x16x8xf32>, %rk: tensor<?x2x64xf32>)
      -> (!q, !q, !q) {
    %0 = fi.view.paged %k, %k tables(%ip, %pages, %value_pages, %last : !ix, !ix, !ix, !ix) : memref<?x2x16x64xf32>, memref<?x2x16x64xf32> -> !fi.paged_kv<16x2x64xf32, HND, two_tables>
    %1 = fi.attention %q rows(%qo : !ix) over %0 scale(1.250000e-01) normalise(#fi.sigmoid<bias = -1.0>) : !q over !fi.paged_kv<16x2x64xf32, HND, two_tables> -> !q
    %2 = fi.view.latent %c, %t tables(%ip, %pages, %last : !ix, !ix, !ix) : memref<?x16x64xf32>, memref<?x16x8xf32> -> !fi.latent_kv<64+8xf32, page = 16>
    %3 = fi.attention %q, %r rows(%qo : !ix) over %2 scale(1.250000e-01) normalise(#fi.sum) : !q, tensor<?x4x8xf32> over !fi.latent_kv<64+8xf32, page = 16> -> !q
    %4 = fi.view.bsr %rk, %rk indptr(%ip : !ix) blocks(%last, %pages : !ix, !ix) : tensor<?x2x64xf32>, tensor<?x2x64xf32> -> !fi.bsr_kv<16x2x64xf32, rows = 4>
    %5 = fi.attention %q rows(%qo : !ix) over %4 scale(1.250000e-01) : !q over !fi.bsr_kv<16x2x64xf32, rows = 4> -> !q
    fi.return %1, %3, %5 : !q, !q, !q
  }
  fi_tile.kernel @kernel(%q: memref<?x4x64xf32>, %k: memref<2x?x64xf32>, %o: memref<?x4x64xf32>, %work: !fi_tile.work)
      schedule(#fi.schedule<tile_rows = 8, tile_keys = 64, mr = 8, nr = 2, lanes = 1>) {
    %kv = fi_tile.view %k, %k : memref<2x?x64xf32>, memref<2x?x64xf32> -> !ragged
    fi_tile.for_items %it in %work {
      %n = fi_tile.item %it[kv_len]
      %a = fi_tile.load_rows %q[%it] group 2 : memref<?x4x64xf32> -> tensor<8x64xf32>
      %r = fi_tile.for_keys %t in %it partial step 64 iter_args(%c = %a) -> (tensor<8x64xf32>) {
        %b = fi_tile.load_kv keys %kv[%it, %t] : !ragged -> tensor<64x64xf32>
        %s = fi_tile.dot %c, %b transpose : tensor<8x64xf32>, tensor<64x64xf32> -> tensor<8x64xf32>
        %top = fi_tile.reduce max %s : tensor<8x64xf32> -> tensor<8x1xf32>
        fi_tile.yield %s : tensor<8x64xf32>
      }
      fi_tile.store_rows %r, %o[%it] group 2 : tensor<8x64xf32>, memref<?x4x64xf32>
    }
    fi_tile.return
  }
}
