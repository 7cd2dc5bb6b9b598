#!/usr/bin/env python3
#===- time_targets.py - compiling for all targets, and all of a model --------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""time_targets.py [--build build/release] [--runs 5] [--check]

On two processors, by the clock and of processors, the median of some runs:

* a prefill body (64 x 32, head dim 128), from text to PTX, for all eleven targets;
* all bodies of that attention, with the schedules that are chosen for each target;
* every program of Llama 3.1 8B for one target, to packages with PTX, with the number of
  kernels and the size of all files, compressed.

Nothing comes from the cache of kernels. --check ends with 1 if a figure exceeds what
was asked for; of a machine with other work, the time of processors is what to compare.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MODEL = ROOT / "examples" / "models" / "llama-3.1-8b.json"
SCHEDULE = " schedules([#fi.schedule<tile_rows = 64, tile_keys = 32, warps = 4, key_warps = 1, stages = 2, lanes = 4>])"
PROGRAM = """
!ix = tensor<?xi32>
!pool = memref<?x16x8x128xf16>
!kv = !fi.paged_kv<16x8x128xf16, NHD>
!q = tensor<?x32x128xf16>
fi.program @prefill plan(%qi: !ix, %ki: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool) -> (!q) {
  %kv = fi.view.paged %k, %v tables(%ki, %pages, %last : !ix, !ix, !ix) : !pool, !pool -> !kv
  %o = fi.attention %q rows(%qi : !ix) over %kv scale(0.125) mask(#fi.causal)SCHEDULES : !q over !kv -> !q
  fi.return %o : !q
}
"""


def run(command):
    """Seconds by the clock and of processors, of one process with an empty cache."""
    with tempfile.TemporaryDirectory() as cache:
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=dict(os.environ, XDG_CACHE_HOME=cache))
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - start
    if status:
        sys.exit(f"'{' '.join(map(str, command))}' ended with status {status}")
    return seconds, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    for tool in ("fi-translate", "fi-compile"):
        if not (options.build / "bin" / tool).exists():
            sys.exit(f"expected '{options.build}/bin/{tool}', which 'ninja -C {options.build} {tool}' makes")
    os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:2]))
    failed = False

    def report(what, got, asked, unit):
        nonlocal failed
        failed |= got > asked
        print(f"{what}: {got:.3g} {unit}, {asked:g} asked{'' if got <= asked else ': exceeded'}")

    with tempfile.TemporaryDirectory() as place:
        directory = Path(place)

        def measure(what, command, asked=None):
            times = [run(command) for _ in range(options.runs)]
            clock, processors = (statistics.median(column) for column in zip(*times))
            if asked:
                report(what, clock, asked, f"s by the clock ({processors:.3g} s of processors)")
            else:
                print(f"{what}: {clock:.3g} s by the clock ({processors:.3g} s of processors)")

        for name, schedule, asked in (("one prefill body for all targets", SCHEDULE, 1.5),
                                      ("all bodies for all targets", "", None)):
            source = directory / "p.mlir"
            source.write_text(PROGRAM.replace("SCHEDULES", schedule))
            measure(name, [options.build / "bin" / "fi-translate", "--fi-to-ptx", "--target=all", source, "-o",
                           directory / "ptx"], asked)
        out = directory / "llama"
        measure("Llama 3.1 8B for sm_80", [options.build / "bin" / "fi-compile", MODEL, "--target=sm_80",
                                           "--no-cubin", "--quiet", "-o", out], 10)
        told = json.loads((out / "model.json").read_text())
        report("kernels", told["kernels_per_target"], 40, "kernels")
        report("files, compressed", told["compressed_bytes"] / 1e6, 2, "MB")
    return 1 if options.check and failed else 0


if __name__ == "__main__":
    sys.exit(main())
