// RUN: fi-opt %s --split-input-file --verify-diagnostics

// One case for each message; the numbers are those of docs/spec.md.

// expected-error @+1 {{expected window bound 'left' to be 0 or more (leave it out for none), but got -1 [MSK1]}}
func.func private @f() attributes {a = #fi.window<left = -1>}

// -----

// expected-error @+1 {{expected window bound 'right' to be 0 or more (leave it out for none), but got -5 [MSK1]}}
func.func private @f() attributes {a = #fi.window<left = 1, right = -5>}

// -----

// expected-error @+1 {{expected a window to have a bound 'left' or 'right' [MSK2]}}
func.func private @f() attributes {a = #fi.window<>}

// -----

// expected-error @+1 {{expected masks in #fi.any, but got 3 : i64 [MSK3]}}
func.func private @f() attributes {a = #fi.any<3 : i64>}

// -----

// expected-error @+1 {{expected a soft cap that is positive and finite, but got 0.000000e+00 [SCR1]}}
func.func private @f() attributes {a = #fi.softcap<0.0>}

// -----

// expected-error @+1 {{expected a soft cap that is positive and finite, but got -3.000000e+01 [SCR1]}}
func.func private @f() attributes {a = #fi.softcap<-30.0>}

// -----

// expected-error @+1 {{expected base 2 or e, but got 10}}
func.func private @f() attributes {a = #fi.softmax<base = 10>}

// -----

// expected-error @+1 {{expected a target among cpu, sm_75, sm_80, sm_86, sm_87, sm_89, sm_90a, sm_100a, sm_103a, sm_110a, sm_120a, sm_121a, but got 'tpu' [TGT1]}}
func.func private @f() attributes {a = #fi.target<tpu>}

// -----

// expected-error @+1 {{but got 'sm_90'; did you mean 'sm_90a'? [TGT1]}}
func.func private @f() attributes {a = #fi.target<sm_90>}

// -----

// expected-error @+1 {{expected target 'sm_80' without vector_bits, bf16_dot and amx, which are of 'cpu' [TGT2]}}
func.func private @f() attributes {a = #fi.target<sm_80, vector_bits = 128>}

// -----

// expected-error @+1 {{expected vector_bits of 128, 256 or 512, but got 64 [TGT2]}}
func.func private @f() attributes {a = #fi.target<cpu, vector_bits = 64>}

// -----

// expected-error @+1 {{expected vector_bits of 512 with bf16_dot, but got 256 [TGT3]}}
func.func private @f() attributes {a = #fi.target<cpu, vector_bits = 256, bf16_dot>}

// -----

// expected-error @+1 {{expected bf16_dot with amx [TGT3]}}
func.func private @f() attributes {a = #fi.target<cpu, vector_bits = 512, amx>}

// -----

// expected-error @+1 {{expected 'vector_bits = ', 'bf16_dot' or 'amx', but got 'fast'}}
func.func private @f() attributes {a = #fi.target<cpu, fast>}

// -----

// expected-error @+1 {{expected one of tile_rows, tile_keys, mr, nr, lanes, max_rows, stream, warps, key_warps, stages, load_warps, wgmma, rotate, turns, tma, late, but got 'rows'}}
func.func private @f() attributes {a = #fi.schedule<rows = 3>}

// -----

// expected-error @+1 {{expected 'nr' in a schedule}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, mr = 4>}

// -----

// expected-error @+1 {{expected 'tile_rows' between 1 and 4096, but got 0 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 0, tile_keys = 16, mr = 4, nr = 1>}

// -----

// expected-error @+1 {{expected 'tile_rows' to be a multiple of 'mr' = 5, but got 16 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, mr = 5, nr = 1>}

// -----

// expected-error @+1 {{expected 'tile_keys' to be a multiple of 'lanes' = 16, but got 24 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 24, mr = 4, nr = 1, lanes = 16>}

// -----

// expected-error @+1 {{expected 'stream' of 0 or 1, but got 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, mr = 4, nr = 1, stream = 2>}

// -----

// expected-error @+1 {{expected 'warps' between 1 and 32, but got 33 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 33>}

// -----

// expected-error @+1 {{expected 'key_warps' between 1 and 32, but got 64 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, key_warps = 64>}

// -----

// expected-error @+1 {{expected 'stages' between 1 and 16, but got 17 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, stages = 17>}

// -----

// expected-error @+1 {{expected at most 32 warps in all, but got 8 x 8 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 8, key_warps = 8>}

// -----

// expected-error @+1 {{expected 'load_warps' of 0 or such that there are at most 32 warps in all, but got 25 beside 8 x 1 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 8, load_warps = 25>}

// -----

// expected-error @+1 {{expected 'load_warps' of 0 or such that there are at most 32 warps in all, but got 9223372036854775807 beside 4 x 1 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 9223372036854775807, wgmma = 1>}

// -----

// expected-error @+1 {{expected 'load_warps' without groups of warps that copy for themselves ('key_warps'), but got 4 and 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 8, key_warps = 2, load_warps = 4>}

// -----

// expected-error @+1 {{expected 'wgmma' of 0 or 1, and 1 with 'wgmma' alone, but got 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, wgmma = 2>}

// -----

// expected-error @+1 {{expected 'rotate' of 0 or 1, and 1 with 'wgmma' alone, but got 1 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, rotate = 1>}

// -----

// expected-error @+1 {{expected 'turns' of 0 or 1, and 1 with 'wgmma' alone, but got 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, wgmma = 1, turns = 2>}

// -----

// expected-error @+1 {{expected 'late' of 0 or 1, but got 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, warps = 1, late = 2>}

// -----

// expected-error @+1 {{expected 'tma' of 0 or 1, and 1 with 'load_warps' alone, but got 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, tma = 2>}

// -----

// expected-error @+1 {{expected 'tma' of 0 or 1, and 1 with 'load_warps' alone, but got 1 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, tma = 1>}

// -----

// expected-error @+1 {{expected with 'wgmma' warpgroups of four warps, with 16 'tile_rows' each, and warps that load for them, but got 'warps' = 4, 'tile_rows' = 64, 'load_warps' = 0 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, wgmma = 1>}

// -----

// expected-error @+1 {{expected with 'wgmma' warpgroups of four warps, with 16 'tile_rows' each, and warps that load for them, but got 'warps' = 4, 'tile_rows' = 128, 'load_warps' = 4 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 128, tile_keys = 16, warps = 4, load_warps = 4, wgmma = 1>}

// -----

// expected-error @+1 {{expected with 'wgmma' warpgroups of four warps, with 16 'tile_rows' each, and warps that load for them, but got 'warps' = 6, 'tile_rows' = 96, 'load_warps' = 4 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 96, tile_keys = 16, warps = 6, load_warps = 4, wgmma = 1>}

// -----

// expected-error @+1 {{expected with 'wgmma' warpgroups of four warps, with 16 'tile_rows' each, and warps that load for them, but got 'warps' = 4, 'tile_rows' = 64, 'load_warps' = 2 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 2, wgmma = 1>}

// -----

// expected-error @+1 {{expected 'load_warps', 'wgmma', 'rotate', 'turns', 'tma' and 'late' in a schedule with 'warps', but there are none [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 16, tile_keys = 16, mr = 4, nr = 1, load_warps = 4>}

// -----

// expected-error @+1 {{expected a fixed split of at least 1 key, but got 0 [SPL1]}}
func.func private @f() attributes {a = #fi.split<fixed = 0>}

// -----

// expected-error @+1 {{expected 'balanced' or 'fixed = <keys>', but got 'even'}}
func.func private @f() attributes {a = #fi.split<even>}

// -----

// expected-error @+1 {{expected attribute 'fi.target' to be a #fi.target, but got "cpu" [TGT4]}}
module attributes {fi.target = "cpu"} {}

// -----

// expected-error @+1 {{expected attribute 'fi.profile' to be "phases" or "tiles", but got unit [TGT5]}}
module attributes {fi.profile} {}

// -----

// expected-error @+1 {{expected attribute 'fi.profile' to be "phases" or "tiles", but got "all" [TGT5]}}
module attributes {fi.profile = "all"} {}

// -----

// expected-error @+1 {{expected a bias of a sigmoid that is finite, but got INF [NRM7]}}
func.func private @f() attributes {a = #fi.sigmoid<bias = 1.0e39>}

// -----

// expected-error @+1 {{expected 'bias'}}
func.func private @f() attributes {a = #fi.sigmoid<base = 2>}

// -----

// expected-error @+1 {{expected a finite theta above 1, but got 1.000000e+00 [ROT1]}}
func.func private @f() attributes {a = #fi.rotary<1.0>}

// -----

// expected-error @+1 {{expected #fi.linear, #fi.llama3, #fi.yarn or another attribute that scales rotary embeddings, but got #fi.causal [ROT2]}}
func.func private @f() attributes {a = #fi.rotary<10.0, #fi.causal>}

// -----

// expected-error @+1 {{expected a finite factor of at least 1, but got 5.000000e-01 [ROT3]}}
func.func private @f() attributes {a = #fi.linear<factor = 0.5>}

// -----

// expected-error @+1 {{expected finite numbers of turns above 0, of fast pairs more than of slow ones, but got 1.000000e+00 and 4.000000e+00 [ROT4]}}
func.func private @f() attributes {a = #fi.llama3<factor = 8.0, low = 4.0, high = 1.0, context = 8192>}

// -----

// expected-error @+1 {{expected a context of 1 to 2^30 positions, but got 0 [ROT4]}}
func.func private @f() attributes {a = #fi.llama3<factor = 8.0, low = 1.0, high = 4.0, context = 0>}

// -----

// expected-error @+1 {{expected a magnitude that is finite and above 0, but got 0.000000e+00 [ROT5]}}
func.func private @f() attributes {a = #fi.yarn<factor = 8.0, fast = 32.0, slow = 1.0, context = 4096, magnitude = 0.0>}

// -----

// expected-error @+1 {{expected 'turns' of 0, since warpgroups that take turns are not made yet, but got 1 [SCH1]}}
func.func private @f() attributes {a = #fi.schedule<tile_rows = 64, tile_keys = 16, warps = 4, load_warps = 4, wgmma = 1, turns = 1>}
