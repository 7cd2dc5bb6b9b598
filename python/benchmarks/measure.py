#===- measure.py - how time is measured -------------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Times of contenders, side by side.

Each contender's calls are captured in a CUDA graph, over copies of the cache that are
together too large for the L2 cache, so that every call finds it cold. Graphs are
replayed in rounds, forwards and backwards in turn (A B C, C B A, ...), and the median of
all rounds counts. The time of a call is the span of a graph by its number of calls: gaps
between the kernels of a call count, the host does not. Host time is measured apart.
"""

import statistics
import subprocess
import time

import torch

#: Twice the L2 cache of an H200, and more than that of any GPU before it.
COLD_BYTES = 300e6


def copies_for(cache_bytes):
    return max(1, min(80, int(COLD_BYTES / cache_bytes) + 1))


def smi():
    """Clocks (MHz), temperature and power (W), as nvidia-smi tells them."""
    fields = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
    try:
        text = subprocess.run(
            ["nvidia-smi", "-i", str(torch.cuda.current_device()), f"--query-gpu={','.join(fields)}",
             "--format=csv,noheader,nounits"],
            capture_output=True, text=True, timeout=20,
        ).stdout.strip().splitlines()[0]
        return dict(zip(fields, (float(x) for x in text.split(","))))
    except (OSError, IndexError, ValueError, subprocess.TimeoutExpired):
        return {}


def span(action):
    """Microseconds from the first start to the last end of what `action` launches."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    action()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) * 1e3


def host_time(action, repeats=20):
    """Microseconds that a call keeps the host, which finds the device idle."""
    for _ in range(3):
        action()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        start = time.perf_counter()
        action()
        times.append((time.perf_counter() - start) * 1e6)
    torch.cuda.synchronize()
    return statistics.median(times)


class Timed:
    """The calls of a contender, ready to be replayed."""

    def __init__(self, calls):
        # Warm: code is loaded, memory is there.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for call in calls:
                call()
        torch.cuda.synchronize()
        once = min(span(calls[0]) for _ in range(3))
        # Ten calls, or fewer where they take long anyhow.
        self.count = max(2, min(10, int(20e3 / max(once, 1))))
        self.count = max(self.count, len(calls))
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            for i in range(self.count):
                calls[i % len(calls)]()
        self.times = []
        self.graph.replay()
        torch.cuda.synchronize()

    def round(self, replays=3):
        times = [span(self.graph.replay) / self.count for _ in range(replays)]
        self.times.append(statistics.median(times))

    @property
    def median(self):
        return statistics.median(self.times)


def interleave(timed, rounds):
    """`timed`: [Timed], measured in rounds, forwards and backwards in turn."""
    for one in timed:
        one.graph.replay()
    torch.cuda.synchronize()
    for i in range(rounds):
        for one in timed if i % 2 == 0 else reversed(timed):
            one.round()


def practical_limits():
    """What this GPU reaches in this process: a matrix product, a copy and a read."""
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    b = torch.randn_like(a)
    x = torch.empty(1 << 31, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    f = torch.randn(1 << 29, device="cuda")

    def best(action):
        for _ in range(3):
            action()
        return statistics.median(span(action) for _ in range(11))

    limits = {
        "matmul_tflops": 2 * 8192**3 / best(lambda: a @ b) / 1e6,
        "copy_tb_s": 2 * x.numel() / best(lambda: y.copy_(x)) / 1e6,
        "read_tb_s": f.numel() * 4 / best(lambda: f.sum()) / 1e6,
    }
    return {name: round(value, 3) for name, value in limits.items()}
