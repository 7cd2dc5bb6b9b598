#===- mean.py - what mean.mlir computes ----------------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""mean.py make INPUTS.npz | check INPUTS.npz RESULTS.npz [TOLERANCE]"""

import sys

import numpy

ROWS = [0, 3, 4, 14]
KEYS = [0, 9, 40, 50]

if sys.argv[1] == "make":
    random = numpy.random.default_rng(1)
    numpy.savez(sys.argv[2], qo=numpy.array(ROWS, "int32"), indptr=numpy.array(KEYS, "int32"),
                q=random.normal(size=(14, 1, 16)).astype("float32"),
                k=random.normal(size=(50, 1, 16)).astype("float32"),
                v=random.normal(size=(50, 1, 16)).astype("float32"))
    sys.exit()
inputs = numpy.load(sys.argv[2])
got = numpy.load(sys.argv[3])["twice"]
q, k, v = (inputs[name][:, 0].astype("float64") for name in "qkv")
worst = 0
for r in range(3):
    begin, end = KEYS[r], KEYS[r + 1]
    for row in range(ROWS[r], ROWS[r + 1]):
        last = end - (ROWS[r + 1] - row) + 1
        weights = numpy.exp2(k[begin:last] @ q[row] / 16)
        mean = weights @ v[begin:last] / weights.sum()
        worst = max(worst, abs(2 * mean - got[row, 0]).max())
print("close" if worst < float(sys.argv[4] if len(sys.argv) > 4 else 1e-5) else f"off by {worst}")
