#!/usr/bin/env python3
# ===- make_target_matrix.py - docs/target-matrix.md from test results -----===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===#
"""Makes docs/target-matrix.md from results of fi-target-tests.

usage: make_target_matrix.py <results.json>...
       make_target_matrix.py --run [--jobs N] [--assemble] <fi-target-tests>

Results are what GoogleTest writes with --gtest_output=json, of runs with
FI_TEST_MATRIX=full; a test that is in several files counts as the worst of them.
--run makes them first, target by target; with --assemble kernels are assembled
by ptxas as well. A test that failed is in the page as such, and the status is 1.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PAGE = SOURCE / "docs" / "target-matrix.md"

INTRODUCTION = """# Kernels by target

Programs of each family, with the schedules that fi chooses for the target, from the
text of level 1 to PTX, run in an [emulator](emulator.md) of the target with its checks
and compared with the reference. `scripts/make_target_matrix.py` makes this page from
the results of `fi-target-tests` with `FI_TEST_MATRIX=full`; the tests that run by
default are every family on every target, with types that take turns.

x: executed. a: executed, and assembled by ptxas for the target. F: failed. A blank: not
run. Types are the query's and, where they differ, what keys and values (or what is
appended) are stored as; nvfp4 and mxfp4 are codes of 4 bits with scales of blocks. On
`sm_75` products of bf16 and f32 are fused multiplications and additions in f32.
"""


def read(paths):
    """(target, family, types) -> letter; families and targets in order."""
    cells = {}
    for path in paths:
        for suite in json.loads(pathlib.Path(path).read_text())["testsuites"]:
            for case in suite["testsuite"]:
                if case.get("result") != "COMPLETED" or "target" not in case:
                    continue
                key = (case["target"], case["family"], case["types"])
                if case.get("failures"):
                    letter = "F"
                else:
                    letter = "a" if case.get("assembled") == "yes" else "x"
                if cells.get(key) != "F":
                    cells[key] = letter if letter != "x" else cells.get(key, "x")
    return cells


def make_page(cells):
    number = lambda target: int("".join(c for c in target if c.isdigit()))
    targets = sorted({key[0] for key in cells}, key=number)
    families = collections.OrderedDict()
    for _, family, types in cells:
        families.setdefault(family, collections.OrderedDict())[types] = None
    lines = [INTRODUCTION]
    lines.append("| family | types | " + " | ".join(t[3:] for t in targets) + " |")
    lines.append("|---|---|" + "---|" * len(targets))
    for family, all_types in families.items():
        for types in all_types:
            marks = [cells.get((target, family, types), "") for target in targets]
            lines.append(f"| {family} | {types} | " + " | ".join(marks) + " |")
    counts = collections.Counter(cells.values())
    lines.append("")
    lines.append(
        f"{counts['x'] + counts['a']} executed, {counts['a']} of them assembled, "
        f"{counts['F']} failed.")
    return "\n".join(lines) + "\n"


def run(binary, jobs, assemble, directory):
    """Results of the full matrix, a file for each target."""
    environment = dict(os.environ, FI_TEST_MATRIX="full")
    environment.pop("FI_TEST_ASSEMBLE", None)
    if assemble:
        environment["FI_TEST_ASSEMBLE"] = "1"
    listed = subprocess.run([binary, "--gtest_list_tests"], env=environment, check=True,
                            capture_output=True, text=True).stdout
    targets = []
    for line in listed.splitlines():
        name = line.strip().split(" ")[0]
        target = "_".join(name.split("_")[:2])
        if target.startswith("sm_") and target not in targets:
            targets.append(target)

    def one(target):
        path = os.path.join(directory, target + ".json")
        subprocess.run([binary, "--gtest_brief=1", f"--gtest_filter=*/{target}_*",
                        f"--gtest_output=json:{path}"], env=environment,
                       stdout=subprocess.DEVNULL, check=False)
        return path

    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(one, targets))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--run", action="store_true")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--assemble", action="store_true")
    arguments = parser.parse_args()
    paths = arguments.paths
    with tempfile.TemporaryDirectory() as directory:
        if arguments.run:
            paths = run(paths[0], arguments.jobs, arguments.assemble, directory)
        cells = read(paths)
    if not cells:
        sys.exit("expected results of fi-target-tests, but found none in them")
    PAGE.write_text(make_page(cells))
    failed = sum(letter == "F" for letter in cells.values())
    print(f"docs/target-matrix.md: {len(cells)} cells, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
