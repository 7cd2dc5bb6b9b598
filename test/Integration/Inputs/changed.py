#===- changed.py - results before and after an edit -------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# changed.py BEFORE AFTER REFERENCE: AFTER differs from BEFORE nearly everywhere,
# and is what the reference says of the edited text.
#
#===--------------------------------------------------------------------------===#
import sys

import numpy as np

before, after, reference = (np.load(path) for path in sys.argv[1:])
assert sorted(before.files) == sorted(after.files) == sorted(reference.files)
for name in after.files:
    assert np.mean(np.abs(after[name] - before[name]) > 1e-3) > 0.8, name
    np.testing.assert_allclose(after[name], reference[name], rtol=0, atol=1e-4)
