#===- torch_sdpa.py - fi beside PyTorch on the CPU --------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Measures rows of fi-bench in turns with PyTorch's scaled_dot_product_attention.

fi-bench --serve makes the data and runs when told, so the two are measured round
after round on the same cores and a machine that drifts slows both down. Results
are compared before time is taken. Needs torch and numpy, say in a virtual
environment:

    python3 -m venv torch-venv && torch-venv/bin/pip install torch numpy
    torch-venv/bin/python bench/cpu/torch_sdpa.py --bench build/release/bin/fi-bench
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

# What the project wants to reach, as a ratio of speeds.
GOALS = [
    (r"cpu-prefill-f32-[12]k-causal-[12]t", 2.7),
    (r"cpu-prefill-bf16-[12]k-causal-[12]t", 4.5),
    (r"cpu-prefill-f32-1k-causal-avx2-1t", 1.3),
    (r"cpu-decode-bs8-kv2k-.*", 2.0),
]


class Served:
    """A row of fi-bench in a process of its own."""

    def __init__(self, bench, row):
        self.process = subprocess.Popen([bench, f"--serve={row}"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline().strip() != "ready":
            self.process.wait()
            raise RuntimeError(f"fi-bench --serve={row} ended with status {self.process.returncode}")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(f"fi-bench ended with status {self.process.returncode} at '{command}'")
        return json.loads(line)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.write("quit\n")
            self.process.stdin.close()
        self.process.wait()


def load(path, dtype):
    import numpy
    import torch

    array = numpy.load(path)
    if dtype == "bf16":  # two bytes that numpy has no name for
        return torch.from_numpy(array.view(numpy.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def contiguous_keys(pool, pages, sizes):
    """[requests, heads, keys, dim], gathered from the pages or split by request."""
    if not sizes["paged"]:
        by_request = pool.reshape(sizes["requests"], sizes["keys"], sizes["kv_heads"], sizes["dim"])
        return by_request.transpose(1, 2).contiguous()
    if sizes["order"] == "HND":
        pool = pool.transpose(1, 2)  # to page, slot, head, dim
    tokens = pool[pages.reshape(sizes["requests"], -1)].flatten(1, 2)[:, : sizes["keys"]]
    return tokens.transpose(1, 2).contiguous()


def make_torch(directory, sizes, decode_as):
    """A function that runs torch once, and one that gives its output as fi's."""
    import torch
    from torch.nn.functional import scaled_dot_product_attention

    dtype = sizes["dtype"]
    query = load(directory / "q.npy", dtype)
    pages = load(directory / "pages.npy", "i32").long() if sizes["paged"] else None
    keys = contiguous_keys(load(directory / "k.npy", dtype), pages, sizes)
    values = contiguous_keys(load(directory / "v.npy", dtype), pages, sizes)
    requests, rows, heads, dim = sizes["requests"], sizes["rows"], sizes["query_heads"], sizes["dim"]
    query = query.reshape(requests, rows, heads, dim).transpose(1, 2).contiguous()
    grouped = rows == 1 and decode_as == "rows"
    if grouped:
        query = query.reshape(requests, sizes["kv_heads"], heads // sizes["kv_heads"], dim)
    mask = None
    if sizes["window"]:
        row = torch.arange(rows)[:, None] + sizes["keys"] - rows
        key = torch.arange(sizes["keys"])[None, :]
        mask = (key <= row) & (key > row - sizes["window"])
    causal = sizes["causal"] and rows > 1 and mask is None

    def run():
        return scaled_dot_product_attention(query, keys, values, attn_mask=mask, is_causal=causal,
                                            enable_gqa=not grouped and heads != sizes["kv_heads"])

    def output():
        return run().reshape(requests, heads, rows, dim).transpose(1, 2).reshape(requests * rows, heads, dim)

    return run, output


def measure(bench, row, seconds, decode_as):
    """Medians in milliseconds of fi and torch, and the row's sizes."""
    import torch

    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        served = Served(bench, row)
        try:
            sizes = served.ask(f"save {directory}")
            torch.set_num_threads(sizes["workers"])
            run, output = make_torch(directory, sizes, decode_as)
            ours = load(directory / "o.npy", sizes["dtype"]).float()
            difference = (output().float() - ours).abs().max().item()
            # Both round once to the type, and each has its own order of sums.
            allowed = {"f32": 2e-5, "f16": 4e-3, "bf16": 3e-2}[sizes["dtype"]]
            if not difference <= allowed:
                raise RuntimeError(f"{row}: outputs differ by {difference:.1e}, allowed are {allowed:.1e}")
            fi_times, torch_times = [], []
            end = time.perf_counter() + seconds
            served.ask("run 2")
            run()
            while time.perf_counter() < end or len(fi_times) < 5:
                fi_times += served.ask("run 1")
                start = time.perf_counter()
                run()
                torch_times.append(1e3 * (time.perf_counter() - start))
        finally:
            served.close()
    return statistics.median(fi_times), statistics.median(torch_times), difference, sizes


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", required=True, help="path of fi-bench")
    parser.add_argument("--filter", default="", help="regular expression on rows' names; default: rows with a goal")
    parser.add_argument("--seconds", type=float, default=3, help="time for each row")
    parser.add_argument("--decode-as", choices=["rows", "gqa"], default="rows",
                        help="how torch gets the heads of a group in rows of decoding")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    try:
        import torch
    except ImportError:
        sys.exit("torch_sdpa.py: torch is missing; see --help")

    names = [line.split()[0] for line in
             subprocess.run([arguments.bench, "--list"], check=True, capture_output=True, text=True).stdout.splitlines()]
    names = [name for name in names if name.startswith(("cpu-prefill", "cpu-decode"))]
    goal_of = {name: goal for name in names for pattern, goal in GOALS if re.fullmatch(pattern, name)}
    names = [name for name in names if (re.search(arguments.filter, name) if arguments.filter else name in goal_of)]
    if not names:
        sys.exit(f"torch_sdpa.py: no row matches '{arguments.filter}'")

    cores = sorted(os.sched_getaffinity(0))
    print(f"torch {torch.__version__}, {len(cores)} cores")
    print(f"{'row':40} {'fi ms':>9} {'torch ms':>9} {'GFLOP/s':>8} {'GB/s':>6} {'ratio':>6}  to reach")
    rows, failed = [], False
    for name in names:
        threads = int(name[-2])
        if threads > len(cores):
            print(f"{name:40} not run: needs {threads} cores")
            continue
        # The child inherits the cores.
        os.sched_setaffinity(0, cores[:threads])
        try:
            fi_ms, torch_ms, difference, sizes = measure(arguments.bench, name, arguments.seconds, arguments.decode_as)
        except RuntimeError as error:
            print(f"{name:40} failed: {error}")
            failed = True
            continue
        finally:
            os.sched_setaffinity(0, cores)
        ratio, goal = torch_ms / fi_ms, goal_of.get(name)
        verdict = "" if goal is None else f"{goal:.1f}, {'met' if ratio >= goal else 'MISSED'}"
        print(f"{name:40} {fi_ms:9.3f} {torch_ms:9.3f} {sizes['operations'] / fi_ms * 1e-6:8.1f} "
              f"{sizes['kv_bytes'] / fi_ms * 1e-6:6.1f} {ratio:6.2f}  {verdict}", flush=True)
        rows.append({"row": name, "fi_ms": fi_ms, "torch_ms": torch_ms, "ratio": ratio, "goal": goal,
                     "difference": difference})
    if arguments.json:
        pathlib.Path(arguments.json).write_text(
            json.dumps({"torch": torch.__version__, "rows": rows}, indent=2) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
