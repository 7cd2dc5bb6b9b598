#===- hnd.py - the same pools in both orders ----------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===---------------------------------------------------------------------===#
"""Writes nhd.npz and hnd.npz (compressed) with the tensors of the three requests."""
import sys

import numpy as np

rng = np.random.default_rng(5)
q = rng.standard_normal((8, 4, 64)).astype(np.float32)
# Pages 0 to 15; NaN where no request has a key.
k, v = np.full((2, 16, 4, 2, 64), np.nan, np.float32)
pages = {7: 4, 2: 2, 11: 2, 3: 4, 14: 4, 6: 1}
for page, used in pages.items():
    k[page, :used] = rng.standard_normal((used, 2, 64))
    v[page, :used] = rng.standard_normal((used, 2, 64))
np.savez(sys.argv[1] + "/nhd.npz", q=q, k=k, v=v)
np.savez_compressed(sys.argv[1] + "/hnd.npz", q=q, k=np.asfortranarray(k.transpose(0, 2, 1, 3)),
                    v=v.transpose(0, 2, 1, 3))
