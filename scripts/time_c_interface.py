#!/usr/bin/env python3
#===- time_c_interface.py - from text to numbers in a new process ------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""time_c_interface.py [--build build/release] [--runs 15]

Builds the C program of docs/tutorial-compiler.md with the libraries of a build, and
starts it many times: with nothing in the cache of kernels, and with what a run before
left there. Prints the least, median and most time by the clock and of processors. Of a
process that had to wait for a processor the latter is what to compare.
"""

import argparse
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = "row 2 sees keys whose mean is 3.5"


def write_program(directory):
    """Writes the tutorial's files layer.c and layer.mlir."""
    page = (ROOT / "docs" / "tutorial-compiler.md").read_text()
    for name in ("layer.c", "layer.mlir"):
        found = re.search(r"<!-- file: " + re.escape(name) + r" -->\n```\w+\n(.*?)```", page, re.S)
        if not found:
            sys.exit(f"docs/tutorial-compiler.md: expected a block behind '<!-- file: {name} -->'")
        (directory / name).write_text(found[1])


def build_program(directory, build):
    libraries = build / "lib"
    if not (libraries / "libfi_compiler.so").exists():
        sys.exit(f"expected '{libraries}/libfi_compiler.so', which 'ninja -C {build}' makes")
    headers = subprocess.run(["llvm-config-22", "--includedir"], check=True, capture_output=True, text=True)
    subprocess.run(["cc", "-std=c11", "layer.c", f"-I{ROOT}/include", f"-I{ROOT}/runtime/include",
                    f"-I{headers.stdout.strip()}", f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lfi_compiler",
                    "-lfi_runtime", "-o", "layer"], cwd=directory, check=True)


def run(directory, cache):
    """Seconds by the clock and of processors, of one process."""
    environment = dict(os.environ, XDG_CACHE_HOME=str(cache))
    start = time.perf_counter()
    process = subprocess.Popen(["./layer"], cwd=directory, env=environment, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    if status or EXPECTED not in output:
        sys.exit(f"expected the tutorial's output, but got status {status} and:\n{output}")
    return seconds, usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--runs", type=int, default=15)
    options = parser.parse_args()
    build = options.build.resolve()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        write_program(directory)
        build_program(directory, build)
        cache = directory / "cache"
        # Once without being counted: libraries come from the disk.
        run(directory, cache)
        print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} processors")
        for kind in ("cold", "cached"):
            times = []
            for _ in range(options.runs):
                if kind == "cold":
                    shutil.rmtree(cache, ignore_errors=True)
                times.append(run(directory, cache))
            for what, values in zip(("clock", "processors"), zip(*times)):
                print(f"{kind:6} {what:10} least {min(values):.3f} s, median {statistics.median(values):.3f} s, "
                      f"most {max(values):.3f} s of {options.runs} processes")


if __name__ == "__main__":
    main()
