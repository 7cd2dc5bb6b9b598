#===- test_run.py - programs from Python, beside numpy ------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Results against numpy: strides, element types, plans over their life."""

import threading

import numpy as np
import pytest
from conftest import Batch

TOLERANCE = {"f32": 2e-6, "f16": 4e-3, "bf16": 3e-2}


def check(batch, results, dtype="f32"):
    o, lse = (np.asarray(r, dtype=np.float64) for r in results)
    want_o, want_lse = batch.reference()
    np.testing.assert_allclose(o, want_o, atol=TOLERANCE[dtype], rtol=TOLERANCE[dtype])
    np.testing.assert_allclose(lse, want_lse, atol=max(1e-5, TOLERANCE[dtype]), rtol=1e-5)


def test_the_main_job(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables)
    results = plan.run(batch.q, batch.k, batch.v)
    assert isinstance(results, tuple) and all(isinstance(r, np.ndarray) for r in results)
    assert results[0].dtype == np.float32 and results[0].shape == (8, 4, 64)
    check(batch, results)


def test_values_by_name(fi, three_requests, batch):
    qo, kv, pages, last = batch.tables
    plan = fi.Plan(three_requests, qo, kv_indices=pages, last_page_len=last, kv_indptr=kv)
    check(batch, plan.run(batch.q, v=batch.v, k=batch.k))


def test_results_of_the_caller(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables)
    out, lse = np.full((8, 4, 64), np.nan, np.float32), np.full((8, 4), np.nan, np.float32)
    results = plan.run(batch.q, batch.k, batch.v, out=out, lse=lse)
    assert results[0] is out and results[1] is lse
    check(batch, results)
    other = plan.run(batch.q, batch.k, batch.v, out=out)
    assert other[0] is out and other[1] is not lse
    both = (np.empty_like(out), np.empty_like(lse))
    results = plan.run(batch.q, batch.k, batch.v, out=both)
    assert results[0] is both[0] and results[1] is both[1]
    check(batch, results)


def test_strides(fi, three_requests, batch):
    """Views of larger arrays, in arguments and in results."""
    plan = fi.Plan(three_requests, *batch.tables)
    qkv = np.full((8, 12, 64), np.nan, np.float32)
    qkv[:, 4:8] = batch.q
    pool = np.full((16, 2, 4, 2, 64), np.nan, np.float32)
    pool[:, 0], pool[:, 1] = batch.k, batch.v
    out = np.full((8, 8, 64), np.nan, np.float32)
    lse = np.full((8, 9), np.nan, np.float32)
    results = plan.run(qkv[:, 4:8], pool[:, 0], pool[:, 1], out=out[:, ::2], lse=lse[:, 5:])
    check(batch, results)
    assert np.isnan(out[:, 1::2]).all() and np.isnan(lse[:, :5]).all()


def test_read_only_query(fi, three_requests, batch):
    batch.q.flags.writeable = False
    check(batch, fi.Plan(three_requests, *batch.tables).run(batch.q, batch.k, batch.v))


def test_tables_of_64_bits(fi, three_requests_text, batch):
    text = three_requests_text.replace("tensor<?xi32>", "tensor<?xi64>").replace("xf32, NHD>", "xf32, NHD, index = i64>")
    program = fi.compile(text, target="cpu")
    plan = fi.Plan(program, *(t.astype(np.int64) for t in batch.tables))
    check(batch, plan.run(batch.q, batch.k, batch.v))


def test_f16(fi, three_requests_text):
    program = fi.compile(three_requests_text.replace("xf32, NHD", "xf16, NHD").replace("x64xf32", "x64xf16"), target="cpu")
    assert [a.dtype for a in program.run_arguments] == ["f16"] * 3
    batch = Batch(np.float16)
    results = fi.Plan(program, *batch.tables).run(batch.q, batch.k, batch.v)
    assert results[0].dtype == np.float16 and results[1].dtype == np.float32
    check(batch, results, "f16")


def test_bf16_of_torch(fi, three_requests_text):
    torch = pytest.importorskip("torch")
    program = fi.compile(
        three_requests_text.replace("xf32, NHD", "xbf16, NHD").replace("x64xf32", "x64xbf16"), target="cpu"
    )
    batch = Batch()
    q, k, v = (torch.from_numpy(t).bfloat16() for t in (batch.q, batch.k, batch.v))
    batch.q, batch.k, batch.v = (t.float().numpy() for t in (q, k, v))
    o, lse = fi.Plan(program, *(torch.from_numpy(t) for t in batch.tables)).run(q, k, v)
    assert o.dtype == torch.bfloat16 and lse.dtype == torch.float32
    check(batch, (o.float().numpy(), lse.numpy()), "bf16")
    with pytest.raises(fi.Error, match="numpy has no bfloat16"):
        class Foreign:
            def __init__(self, tensor):
                self.__dlpack__, self.__dlpack_device__ = tensor.__dlpack__, tensor.__dlpack_device__

        fi.Plan(program, *batch.tables).run(Foreign(q), Foreign(k), Foreign(v))


def test_tensors_with_dlpack_alone(fi, three_requests, batch):
    class Foreign:
        def __init__(self, array):
            self.array = array

        def __dlpack__(self, **options):
            return self.array.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.array.__dlpack_device__()

    plan = fi.Plan(three_requests, *(Foreign(t) for t in batch.tables))
    check(batch, plan.run(Foreign(batch.q), Foreign(batch.k), Foreign(batch.v)))


@pytest.mark.parametrize("split", ["default", "balanced", "none", 4])
def test_splits(fi, three_requests, batch, split):
    check(batch, fi.Plan(three_requests, *batch.tables, split=split, workers=2).run(batch.q, batch.k, batch.v))


def test_update(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables)
    assert plan.generation == 1
    qo, kv, pages, last = batch.tables
    batch.tables = qo, kv, np.array([1, 5, 0, 15, 8, 9], np.int32), np.array([4, 1, 3], np.int32)
    plan.update(*batch.tables)
    assert plan.generation == 2
    check(batch, plan.run(batch.q, batch.k, batch.v))
    with pytest.raises(fi.Error) as error:
        plan.update(qo, kv, pages, np.array([4, 1, 9], np.int32))
    assert error.value.status == "invalid batch" and plan.generation == 2
    check(batch, plan.run(batch.q, batch.k, batch.v))


def test_padding_rows(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables, rows=11)
    q = np.concatenate([batch.q, np.full((3, 4, 64), np.nan, np.float32)])
    o, lse = plan.run(q, batch.k, batch.v)
    check(batch, (o[:8], lse[:8]))
    assert (o[8:] == 0).all() and np.isneginf(lse[8:]).all()


def test_one_plan_in_several_threads(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables)
    want = plan.run(batch.q, batch.k, batch.v)[0]
    wrong = []

    def work():
        for _ in range(50):
            if not np.array_equal(plan.run(batch.q, batch.k, batch.v)[0], want):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_plan_outlives_its_program(fi, three_requests_text, batch):
    plan = fi.Plan(fi.compile(three_requests_text, target="cpu"), *batch.tables)
    plan.program = None
    check(batch, plan.run(batch.q, batch.k, batch.v))


def test_nothing_leaks(fi, three_requests, batch):
    """What a run holds of its arguments it gives back."""
    import sys

    plan = fi.Plan(three_requests, *batch.tables)
    out = np.empty_like(batch.q)
    before = [sys.getrefcount(t) for t in (batch.q, batch.k, batch.v, out)]
    for _ in range(10):
        plan.run(batch.q, batch.k, v=batch.v, out=out)
        with pytest.raises(fi.Error):
            plan.run(batch.q, batch.k, batch.v, out=out[:3])
    assert [sys.getrefcount(t) for t in (batch.q, batch.k, batch.v, out)] == before
    batch.q.resize((9, 4, 64), refcheck=True)  # refused while a buffer is held
