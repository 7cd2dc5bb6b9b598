#===- test_programs.py - compiling and opening from Python --------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Programs and what they tell; packages on disk; what is refused."""

import json
import subprocess

import numpy as np
import pytest
from conftest import BUILD, SOURCE


def test_what_a_program_tells(three_requests):
    assert three_requests.name == "three_requests" and three_requests.target == "cpu"
    assert [a.name for a in three_requests.plan_arguments] == ["qo_indptr", "kv_indptr", "kv_indices", "last_page_len"]
    k = three_requests.run_arguments[1]
    assert (k.name, k.kind, k.dtype, k.shape) == ("k", "pool", "f32", (None, 4, 2, 64))
    assert [r.shape for r in three_requests.results] == [(None, 4, 64), (None, 4)]
    assert "three_requests for cpu" in repr(three_requests)


@pytest.mark.parametrize(
    "level, has",
    [("fi", "fi.attention"), ("fi_tile", "fi_tile.kernel"), ("vector", "vector."), ("llvm", "llvm.func"),
     ("manifest", '"program": "three_requests"')],
)
def test_levels(three_requests, level, has):
    assert has in three_requests.text(level)


@pytest.fixture(scope="session")
def for_gpu(fi, three_requests_text):
    half = three_requests_text.replace("xf32, NHD", "xf16, NHD").replace("x64xf32", "x64xf16")
    return fi.compile(half, target="sm_80")


@pytest.mark.parametrize(
    "level, has",
    [("fi_tile", "fi_tile.kernel"), ("placed", "fi_tile.channel"), ("nvvm", "nvvm."), ("ptx", ".target sm_80"),
     ("manifest", '"chip": "sm_80"')],
)
def test_levels_of_a_gpu(for_gpu, level, has):
    assert for_gpu.target == "sm_80" and for_gpu.is_cuda
    assert has in for_gpu.text(level)


def test_checked_kernels_are_asked_for(fi, for_gpu, three_requests_text):
    half = three_requests_text.replace("xf32, NHD", "xf16, NHD").replace("x64xf32", "x64xf16")
    checked = fi.compile(half, target="sm_80", checked=True)
    assert '"faults": true' in checked.text("manifest") and '"faults"' not in for_gpu.text("manifest")
    assert "fi.checked" in checked.text("fi")


@pytest.mark.parametrize("profile", ["phases", "tiles"])
def test_profiled_kernels_are_asked_for(fi, for_gpu, three_requests_text, profile):
    half = three_requests_text.replace("xf32, NHD", "xf16, NHD").replace("x64xf32", "x64xf16")
    profiled = fi.compile(half, target="sm_80", profile=profile)
    manifest = json.loads(profiled.text("manifest"))
    bodies = [body for stage in manifest["stages"] for body in stage["bodies"]]
    assert bodies and all("prologue" in [m.get("name") for m in b["launch"]["profile"]["marks"]] for b in bodies)
    assert f'fi.profile = "{profile}"' in profiled.text("fi")
    assert ("waiting for a tile" in profiled.text("placed")) == (profile == "tiles")
    assert "%globaltimer" in profiled.text("ptx")
    assert '"profile"' not in for_gpu.text("manifest") and "%globaltimer" not in for_gpu.text("ptx")


def test_timelines_there_are_not(fi, three_requests, batch, three_requests_text):
    with pytest.raises(fi.Error, match="timeline: expected a plan for a GPU, whose kernels note the time"):
        fi.Plan(three_requests, *batch.tables).timeline()
    with pytest.raises(fi.Error, match="compile: profile: expected None, 'phases' or 'tiles', but got 'all'"):
        fi.compile(three_requests_text, profile="all")
    with pytest.raises(fi.Error, match="options.profile_bytes: expected 0 .256 MiB. or the most bytes"):
        fi.Plan(three_requests, *batch.tables, profile_bytes=-1)


def test_devices(fi, for_gpu, batch):
    for name, major, minor in fi.devices():
        assert name and major >= 1 and minor >= 0
    for wrong in ("gpu", -1, "cuda:x"):
        assert "expected an ordinal, 'cuda'" in refused(fi, lambda: fi.Plan(for_gpu, *batch.tables, device=wrong))[0]
    if not fi.devices():
        text, status = refused(fi, lambda: fi.Plan(for_gpu, *batch.tables))
        assert status == "unsupported" and "CUDA" in text
    assert "device 99" in refused(fi, lambda: fi.Plan(for_gpu, *batch.tables, device=99))[0] or not fi.devices()


def test_levels_there_are_not(fi, three_requests):
    with pytest.raises(fi.Error, match="expected one of fi, fi_tile"):
        three_requests.text("assembler")
    with pytest.raises(fi.Error, match="no level 'ptx'"):
        three_requests.text("ptx")


def test_packages_on_disk(fi, three_requests, batch, tmp_path):
    path = tmp_path / "three.fipkg"
    translate = BUILD / "bin/fi-translate"
    source = SOURCE / "examples/three-requests.mlir"
    subprocess.run([translate, "--fi-to-package", source, "-o", path], check=True)
    program = fi.load(path)
    assert program.plan_arguments == three_requests.plan_arguments
    results = fi.Plan(program, *batch.tables, workers=1).run(batch.q, batch.k, batch.v)
    want = fi.Plan(three_requests, *batch.tables, workers=1).run(batch.q, batch.k, batch.v)
    assert all(np.array_equal(r, w) for r, w in zip(results, want))
    assert '"program"' in program.text("manifest")
    with pytest.raises(fi.Error, match="compile the program from its text"):
        program.text("fi")


def test_explain(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables, workers=1)
    assert "3 requests, 8 rows" in plan.explain()
    assert plan.schedule_json().startswith("{") and plan.workers == 1 and plan.workspace_bytes > 0




@pytest.mark.parametrize(
    "text, options, says",
    [
        ("fi.program @p", {}, "not a valid program"),
        ("", {"target": "cpu"}, "fi.program"),
        (None, {"target": "sm_81"}, "expected native, cpu, cuda, #fi.target<...> or one of sm_75.*but got 'sm_81'"),
        (None, {"target": "#fi.target<nonsense>"}, "is not a target"),
        (None, {"program": "nobody"}, "nobody"),
    ],
)
def test_what_compiling_refuses(fi, three_requests_text, text, options, says):
    with pytest.raises(fi.Error, match=says) as error:
        fi.compile(three_requests_text if text is None else text, **options)
    assert error.value.status == "invalid program"


def test_diagnostics_name_the_place(fi, three_requests_text):
    with pytest.raises(fi.Error, match=r"text:\d+:\d+: error: "):
        fi.compile(three_requests_text.replace("scale(0.125)", "scale(0.125) mask(#fi.nonsense)"))


def refused(fi, action):
    with pytest.raises(fi.Error) as error:
        action()
    return str(error.value), error.value.status


def test_what_plans_refuse(fi, three_requests, batch):
    tables = batch.tables

    def says(action):
        return refused(fi, action)[0]

    assert "expected 4 values (qo_indptr," in says(lambda: fi.Plan(three_requests, *tables[:3]))
    assert "expected a value of 'last_page_len'" in says(
        lambda: fi.Plan(three_requests, tables[0], tables[1], kv_indices=tables[2])
    )
    assert "'lengths' is not among" in says(lambda: fi.Plan(three_requests, *tables[:3], lengths=tables[3]))
    assert "compiled for the cpu" in says(lambda: fi.Plan(three_requests, *tables, device="cuda"))
    assert "expected 'default'" in says(lambda: fi.Plan(three_requests, *tables, split="often"))
    assert "positive number of keys" in says(lambda: fi.Plan(three_requests, *tables, split=0))
    assert "'x' is not a run argument" in says(lambda: fi.Plan(three_requests, *tables, shapes={"x": (1,)}))
    assert "object of type 'int'" in says(lambda: fi.Plan(three_requests, *tables[:3], 4))
    text, status = refused(fi, lambda: fi.Plan(three_requests, *tables[:2], tables[2] - 9, tables[3]))
    assert status == "invalid batch" and "kv_indices" in text
    assert "last_page_len" in says(lambda: fi.Plan(three_requests, *tables[:3], tables[3].astype(np.float32)))


def test_what_runs_refuse(fi, three_requests, batch):
    plan = fi.Plan(three_requests, *batch.tables)
    q, k, v = batch.q, batch.k, batch.v

    def says(*values, **named):
        return refused(fi, lambda: plan.run(*values, **named))

    assert says(q, k)[0] == "run: operand 'v': expected a value, but got none"
    assert "expected 3 values (q, k, v), but got 4" in says(q, k, v, v)[0]
    assert "'scale' is not among the values" in says(q, k, v, scale=1)[0]
    assert "'q' is not among" in says(q, k, v, q=q)[0]
    assert "but got format 'd'" in says(q.astype(np.float64), k, v)[0]
    assert says(q[:3], k, v)[1] == "invalid run"
    assert "object of type 'str'" in says(q, k, "v")[0]
    assert "runs on the CPU" in says(q, k, v, stream=1)[0]
    assert "at most 2 results" in says(q, k, v, out=(None, None, q))[0]
    text = says(q, k, v, out=q.astype(np.float16))[0]
    assert "f32" in text and "f16" in text
    read_only = np.empty_like(q)
    read_only.flags.writeable = False
    assert "read-only" in says(q, k, v, out=read_only)[0]
    odd = np.zeros(8 * 4 * 64 * 4 + 1, np.uint8)[: 8 * 4 * 64 * 4].view(np.float32).reshape(q.shape)
    uneven = np.lib.stride_tricks.as_strided(odd, (2, 4, 64), (66, 256, 4))
    assert "strides of whole elements" in says(uneven, k, v)[0]
