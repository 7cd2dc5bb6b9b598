#===- conftest.py - what the Python tests share -------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""The package is the one of the build directory in FI_BUILD_DIR."""

import os
import pathlib
import sys

import numpy as np
import pytest

SOURCE = pathlib.Path(os.environ.get("FI_SOURCE_DIR", pathlib.Path(__file__).parents[2]))
BUILD = pathlib.Path(os.environ.get("FI_BUILD_DIR", SOURCE / "build/dev"))
# The built package first: the sources beside it have no extensions.
sys.path[:0] = [str(BUILD / "python"), str(SOURCE / "python")]


@pytest.fixture(scope="session")
def fi():
    import fi

    return fi


@pytest.fixture(scope="session")
def three_requests_text():
    return (SOURCE / "examples/three-requests.mlir").read_text()


@pytest.fixture(scope="session")
def three_requests(fi, three_requests_text):
    return fi.compile(three_requests_text, target="cpu")


class Batch:
    """The batch of examples/three-requests.json: tables, and random tensors."""

    def __init__(self, dtype=np.float32, seed=0):
        self.tables = tuple(np.array(t, np.int32) for t in ([0, 3, 4, 8], [0, 2, 3, 6], [7, 2, 11, 3, 14, 6], [2, 2, 1]))
        random = np.random.default_rng(seed)
        self.q = random.standard_normal((8, 4, 64)).astype(dtype)
        self.k = random.standard_normal((16, 4, 2, 64)).astype(dtype)
        self.v = random.standard_normal((16, 4, 2, 64)).astype(dtype)

    def reference(self):
        """Causal attention in f64 and its log-sum-exp in base 2."""
        qo, kv, pages, last = self.tables
        q, k, v = (t.astype(np.float64) for t in (self.q, self.k, self.v))
        o, lse = np.empty(q.shape), np.empty(q.shape[:2])
        group = q.shape[1] // k.shape[2]
        for r in range(len(last)):
            mine = pages[kv[r] : kv[r + 1]]
            length = (len(mine) - 1) * k.shape[1] + last[r]
            keys, values = (t[mine].reshape(-1, *t.shape[2:])[:length].repeat(group, 1) for t in (k, v))
            rows = range(qo[r], qo[r + 1])
            for i, row in enumerate(rows):
                seen = length - len(rows) + i + 1
                scores = np.einsum("hd,khd->hk", q[row], keys[:seen]) * 0.125
                peak = scores.max(1, keepdims=True)
                weights = np.exp(scores - peak)
                total = weights.sum(1, keepdims=True)
                o[row] = np.einsum("hk,khd->hd", weights / total, values[:seen])
                lse[row] = ((peak + np.log(total)) / np.log(2))[:, 0]
        return o, lse


@pytest.fixture
def batch():
    return Batch()
