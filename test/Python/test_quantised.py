#===- test_quantised.py - caches of codes with scales, from Python --------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""numpy has no floats of eight bits: their bytes stand for them."""

import numpy as np
import pytest
from conftest import Batch

TEXT = """
!ix = tensor<?xi32>
!pool = memref<?x4x2x64xf8E4M3FN>
!kv = !fi.paged_kv<4x2x64x!fi.scaled<f8E4M3FN, per = tensor, by = f32>, NHD>
!q = tensor<?x4x64xf32>
fi.program @fp8 plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool, %ks: f32, %vs: f32) -> (!q, tensor<?x4xf32>) {
  %kv = fi.view.paged %k, %v tables(%indptr, %pages, %last : !ix, !ix, !ix)
      scales(%ks, %vs : f32, f32) : !pool, !pool -> !kv
  %o, %lse = fi.attention %q rows(%qo : !ix) over %kv scale(0.125) mask(#fi.causal)
      : !q over !kv -> !q, tensor<?x4xf32>
  fi.return %o, %lse : !q, tensor<?x4xf32>
}
"""


def numbers(codes):
    """f8E4M3FN by its definition."""
    sign = np.where(codes & 0x80, -1.0, 1.0)
    exponent, mantissa = (codes >> 3) & 15, codes & 7
    normal = (1 + mantissa / 8) * 2.0 ** (exponent.astype(int) - 7)
    return sign * np.where(exponent == 0, mantissa / 8 * 2.0**-6, normal)


@pytest.fixture(scope="module")
def program(fi):
    return fi.compile(TEXT, target="cpu")


def test_bytes_are_codes(fi, program):
    batch = Batch()
    random = np.random.default_rng(3)
    k, v = (random.integers(0, 127, (16, 4, 2, 64)).astype(np.uint8) for _ in range(2))
    k |= (random.integers(0, 2, k.shape) << 7).astype(np.uint8)
    scales = (0.011, 0.02)
    batch.k, batch.v = (numbers(t) * np.float32(s) for t, s in zip((k, v), scales))
    o, lse = fi.Plan(program, *batch.tables).run(batch.q, k, v, *scales)
    want_o, want_lse = batch.reference()
    np.testing.assert_allclose(o, want_o, atol=1e-4, rtol=1e-4)
    np.testing.assert_allclose(lse, want_lse, atol=1e-4, rtol=1e-5)


def test_bytes_are_nothing_else(fi, program):
    batch = Batch()
    k = np.zeros((16, 4, 2, 64), np.uint8)
    plan = fi.Plan(program, *batch.tables)
    with pytest.raises(fi.Error, match="operand 'q': expected dtype f32, but got uint8"):
        plan.run(np.zeros((8, 4, 64), np.uint8), k, k, 1.0, 1.0)
    with pytest.raises(fi.Error, match="operand 'k': expected dtype f8E4M3FN, but got i8"):
        plan.run(batch.q, k.view(np.int8), k, 1.0, 1.0)
