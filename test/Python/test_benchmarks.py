#===- test_benchmarks.py - the parts of the benchmark that need no GPU --------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Rows and their programs; tables and pictures of results."""

import xml.etree.ElementTree as ElementTree

from benchmarks import report
from benchmarks.rows import ROWS


def test_rows_compile(fi):
    """Every program of a row, for the CPU: whatever the machine, it can be compiled."""
    for row in {row.program: row for row in ROWS}.values():
        text = row.text()
        program = fi.compile(text, target="cpu")
        names = [a.name for a in program.run_arguments]
        if "fi.attention" not in text:
            assert names in (["x", "w"], ["x", "r", "w"]) and len(program.results) == len(names) - 1
            continue
        captured = [name for name, _ in row.what.arguments]
        scales = names[3 : len(names) - len(captured)]
        assert names[:3] == ["q", "k", "v"] and names[3 + len(scales) :] == captured and len(program.results) == 2
        assert scales in ([], ["ks", "vs"], ["kb", "vb", "ks", "vs"])


def test_costs():
    """Counted by hand: 2 products of 2 FLOP a pair; causal rows see one key more each."""
    rows = {row.name: row for row in ROWS}
    assert rows["prefill-1k-full"].flop == 4 * 32 * 128 * 1024 * 1024
    assert rows["prefill-1k-causal"].flop == 4 * 32 * 128 * sum(range(1, 1025))
    assert rows["verify-q4-bs8-8k-64x8"].flop == 4 * 64 * 128 * 8 * (8189 + 8190 + 8191 + 8192)
    assert rows["decode-bs64-4k-32x8-p1"].cache_bytes == 64 * 4096 * 8 * 128 * 2 * 2
    assert rows["rmsnorm-4096x4096"].bytes == 2 * 4096 * 4096 * 2
    assert rows["decode-bs64-4k-32x8-p1"].is_bound_by_memory and not rows["prefill-16k-full"].is_bound_by_memory


def test_reports(tmp_path):
    def contender(name, us):
        return {"name": name, "family": "f", "us": us, "spread": 0.01, "host_us": 3.0, "error": 1e-3, "graph_calls": 10}

    row = {"name": "r", "bound": "memory", "bytes": 4e6, "flop": 16e6}
    results = {
        "device": "GPU <1>", "date": "today", "versions": {"fi": "1"},
        "limits": {"matmul_tflops": 700.0, "copy_tb_s": 4.0, "read_tb_s": 4.5},
        "rows": [
            {**row, "contenders": [contender("fi", 2.0), contender("fi wide", 1.0), contender("other", 1.5),
                                   {"name": "broken", "refused": "wrong: error 1"}]},
            {**row, "name": "s", "contenders": [{"name": "fi", "refused": "no"}]},
        ],
    }
    text = report.write(results, tmp_path / "out.json")
    assert "| r | 1.0 (wide) | 4.00 TB/s | 89% | 1.5 | 2.67 TB/s | other | 1.50x |" in text
    assert "| s | - | - | - | - | - | - | - |" in text and "not measured: wrong: error 1" in text
    for name in ("out-bars.svg", "out-roofline.svg"):
        ElementTree.parse(tmp_path / name)  # well-formed
