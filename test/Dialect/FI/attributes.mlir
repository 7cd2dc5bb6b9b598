// RUN: fi-opt %s | FileCheck %s
// RUN: fi-opt %s --emit-bytecode | fi-opt | FileCheck %s
// RUN: fi-opt %s --verify-roundtrip -o /dev/null

// CHECK-DAG: = !fi.state<?x4x8xf32, #fi.sum>
// CHECK-DAG: = !fi.state<?x4x8xf32, #fi.sigmoid<bias = 0.000000e+00>, segmented>
// CHECK: module attributes {fi.target = #fi.target<cpu, vector_bits = 512, bf16_dot>}
module attributes {fi.target = #fi.target<cpu, bf16_dot, vector_bits = 512>} {
  func.func private @f() attributes {
    // CHECK-DAG: a = #fi.causal
    a = #fi.causal,
    // CHECK-DAG: b = #fi.window<left = 127, right = 0>
    b = #fi.window<left = 127, right = 0>,
    // CHECK-DAG: c = #fi.window<right = 3>
    c = #fi.window<right = 3>,
    // CHECK-DAG: d = #fi.any<#fi.causal, #fi.any<#fi.window<left = 0>>>
    d = #fi.any<#fi.causal, #fi.any<#fi.window<left = 0>>>,
    // CHECK-DAG: e = #fi.softcap<3.000000e+01>
    e = #fi.softcap<30.0>,
    // CHECK-DAG: f = #fi.softmax<base = e>
    f = #fi.softmax<base = e>,
    // CHECK-DAG: o = #fi.sum{{[,}]}}
    o = #fi.sum,
    // CHECK-DAG: p = #fi.sigmoid{{[,}]}}
    p = #fi.sigmoid,
    // CHECK-DAG: q = #fi.sigmoid<bias = -4.500000e+00>
    q = #fi.sigmoid<bias = -4.5>,
    r = !fi.state<?x4x8xf32, #fi.sum>,
    s = !fi.state<?x4x8xf32, #fi.sigmoid<bias = 0.0>, segmented>,
    // CHECK-DAG: g = #fi.split<balanced>
    g = #fi.split<balanced>,
    // CHECK-DAG: h = #fi.split<fixed = 2048>
    h = #fi.split<fixed = 2048>,
    // CHECK-DAG: i = #fi.target<cpu, vector_bits = 128>
    i = #fi.target<cpu>,
    // CHECK-DAG: k = #fi.target<sm_80>
    k = #fi.target<sm_80>,
    // CHECK-DAG: l = #fi.target<sm_90a>
    l = #fi.target<sm_90a>,
    // CHECK-DAG: j = #fi.schedule<tile_rows = 128, tile_keys = 64, mr = 8, nr = 2, lanes = 16>
    j = #fi.schedule<mr = 8, nr = 2, lanes = 16, tile_rows = 128, tile_keys = 64>,
    // CHECK-DAG: m = #fi.schedule<tile_rows = 128, tile_keys = 64, warps = 4, stages = 2, lanes = 4>
    m = #fi.schedule<stages = 2, warps = 4, lanes = 4, tile_rows = 128, tile_keys = 64>,
    // CHECK-DAG: n = #fi.schedule<tile_rows = 16, tile_keys = 32, warps = 1, key_warps = 4, stages = 1, lanes = 1, max_rows = 16>
    n = #fi.schedule<key_warps = 4, warps = 1, max_rows = 16, tile_rows = 16, tile_keys = 32>,
    // CHECK-DAG: t = #fi.schedule<tile_rows = 128, tile_keys = 64, warps = 8, load_warps = 4, stages = 2, wgmma = 1, rotate = 1, lanes = 4>
    t = #fi.schedule<rotate = 1, wgmma = 1, load_warps = 4, stages = 2, warps = 8, lanes = 4, tile_rows = 128, tile_keys = 64>,
    // CHECK-DAG: u = #fi.schedule<tile_rows = 16, tile_keys = 64, warps = 1, load_warps = 2, stages = 3, lanes = 4>
    u = #fi.schedule<load_warps = 2, stages = 3, warps = 1, lanes = 4, tile_rows = 16, tile_keys = 64>,
    // CHECK-DAG: v = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 2, wgmma = 1, tma = 1, lanes = 4>
    v = #fi.schedule<tma = 1, wgmma = 1, load_warps = 4, stages = 2, warps = 4, lanes = 4, tile_rows = 64, tile_keys = 64>,
    // CHECK-DAG: w = #fi.schedule<tile_rows = 64, tile_keys = 64, warps = 4, load_warps = 4, stages = 2, wgmma = 1, rotate = 1, tma = 1, late = 1, lanes = 4, max_rows = 64>
    w = #fi.schedule<late = 1, tma = 1, rotate = 1, wgmma = 1, load_warps = 4, stages = 2, warps = 4, lanes = 4, max_rows = 64, tile_rows = 64, tile_keys = 64>
  }
}
