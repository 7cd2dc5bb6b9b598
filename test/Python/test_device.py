#===- test_device.py - plans for a device, behind a driver of host memory -----===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""What a call of `run` passes on, by DLPack's C functions and in a stream.

The driver is the tests' libcuda, in a process of its own: it is loaded once."""

import subprocess
import sys

import conftest
import numpy as np
import pytest

SCRIPT = """
import sys
sys.path[:0] = {paths!r}
from benchmarks import host_time
import fi
plan, (q, k, v), out, lse = host_time.without_gpu({build!r})
r = plan.run(q, k, v, out=out, lse=lse)
assert r[0] is out and r[1] is lse
r = plan.run(q, v=v, k=k, stream=0x5000, out=(out, lse))
assert r[0] is out and r[1] is lse
r = plan.run(q, k, v)
assert type(r[0]) is type(q) and r[0].shape == (1, 32, 128) and r[1].shape == (1, 32)
r = plan.run(q, k, v, **{{"".join(["o", "ut"]): out}})  # a name that is not interned
assert r[0] is out and r[1] is not lse
plan.check()
for call, part in [
    (lambda: plan.run(q, k), "operand 'v': expected a value, but got none"),
    (lambda: plan.run(q, k, v, v=v), "'v' is not among the values"),
    (lambda: plan.run(q, k, v, o=out), "'o' is not among the values"),
    (lambda: plan.run(q, k, v, out), "expected 3 values (q, k, v), but got 4"),
    (lambda: plan.run(q, k, 3), "expected a tensor"),
    (lambda: plan.run(q, k, v, out=lse), "operand 'out': expected dtype f16, but got f32"),
    (lambda: plan.run(q, k, v, out=bytearray(8192)), "operand 'out'"),
    (lambda: fi.Plan.__new__(fi.Plan).run(), "its __init__ was not called"),
]:
    try:
        call()
    except fi.Error as error:
        assert part in str(error), error
    else:
        raise AssertionError(part)
"""


def test_run_on_a_device(tmp_path):
    if not list(conftest.BUILD.rglob("device_tensors*.so")):
        pytest.skip("device_tensors is not built")
    script = SCRIPT.format(
        paths=[str(conftest.BUILD / "python"), str(conftest.SOURCE / "python")], build=str(conftest.BUILD)
    )
    done = subprocess.run([sys.executable, "-c", script], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr


def test_graph_safe_on_the_cpu(fi, three_requests, batch):
    """One workspace and one number of rows for batches of different lengths."""
    plan = fi.Plan(three_requests, *batch.tables, rows=10, graph_safe=True, max_requests=5)
    size = plan.workspace_bytes
    qo, kv, pages, last = batch.tables
    plan.update(qo[:2], kv[:2], pages, last[:1])
    assert plan.workspace_bytes == size and plan.generation == 2
    assert "graph-safe: for at most 5 requests, 10 rows" in plan.explain()
    with pytest.raises(fi.Error, match="expected at most 4 rows in a request.*larger options.max_request_rows"):
        plan.update(np.array([0, 5], np.int32), kv[:2], pages, last[:1])
