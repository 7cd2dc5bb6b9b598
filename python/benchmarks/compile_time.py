#===- compile_time.py - from text to PTX -------------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""The time of fi-translate from text to PTX, a process for each run; no GPU is needed.

python -m benchmarks.compile_time --translate=build/release/bin/fi-translate

The least of several runs is taken: of the wall clock, and of the processor's time (user
and system, all threads), which other work on the machine disturbs less. The phases are
those of the run with the least wall time; optimising and generating are added up over
kernels, which are done at the same time where there are cores.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time

from benchmarks.rows import ROWS


def measure(translate, text, target, directory):
    """Wall and processor milliseconds of one run, and its line of phases."""
    path = os.path.join(directory, "program.mlir")
    with open(path, "w") as file:
        file.write(text)
    start = time.perf_counter()
    command = [translate, "--fi-to-ptx", f"--target={target}", "--emit-timing", path, "-o", path + ".ptx"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"compile_time: {translate} failed: {said}")
    return 1e3 * wall, 1e3 * (usage.ru_utime + usage.ru_stime), said.strip()


def main(arguments=None):
    parser = argparse.ArgumentParser(description="The time from text to PTX.")
    parser.add_argument("--translate", default="fi-translate", help="the program to run (default: fi-translate)")
    parser.add_argument("--target", default="sm_80", help="the chip (default: sm_80)")
    parser.add_argument("--runs", type=int, default=10, help="runs of each program (default: 10)")
    options = parser.parse_args(arguments)
    programs = {row.program: row for row in ROWS}
    with tempfile.TemporaryDirectory() as directory:
        for name, row in programs.items():
            runs = [measure(options.translate, row.text(), options.target, directory) for _ in range(options.runs)]
            wall, _, phases = min(runs)
            print(f"{name}: {wall:.0f} ms, {min(run[1] for run in runs):.0f} ms of processors ({phases})")


if __name__ == "__main__":
    sys.exit(main())
