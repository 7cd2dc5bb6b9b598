#!/usr/bin/env python3
# ===- make_targets_page.py - docs/targets.md from the table of targets ----===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===#
"""Makes docs/targets.md from include/fi/Target/SMTable.td.

usage: make_targets_page.py [--check] [--json <file>]

--check compares the page with what would be made, and changes nothing; --json
leaves TableGen's dump of the table in a file. llvm-tblgen and llvm-config of
LLVM 22 are found by PATH or in /usr/lib/llvm-22/bin.
"""
import argparse
import difflib
import json
import os
import shutil
import subprocess
import sys

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PAGE = os.path.join(SOURCE, "docs", "targets.md")

INTRODUCTION = """# Targets

`#fi.target<cpu, ...>` is a CPU; `#fi.target<sm_80>` is one of the NVIDIA chips below.
The tables are made from `include/fi/Target/SMTable.td` by
`scripts/make_targets_page.py`, and the compiler asks nothing else what a chip can do.
A test assembles the instructions of every feature for every chip, at the PTX version
given here, and for a chip without the feature expects ptxas to refuse them; but those
that are about speed (at full speed, in half of the time) it takes for others as well,
and makes slower instructions of them.

That a target is listed says what the chip has, not that fi has kernels for it:
[Status](status.md) says that.
"""

LIMITS = """
## Limits

PTX is the version of the PTX ISA that fi emits where no feature needs a later one, and
driver is the oldest CUDA version whose driver reads it. Code for a name that ends in
`a` runs on that chip alone; other code runs on later chips as well. Shared memory is
in KiB: of an SM, and at most for a CTA. SMs and L2 are those of the device named, for
choices that are made without a device at hand. Every chip has 65,536 registers an SM,
255 a thread at most, and 1,024 threads a CTA at most.
"""

FEATURES = """
## Features

A feature comes with the lowest version of PTX that has it; a kernel that uses it is
emitted with that version or the chip's own, whichever is later.
"""


def tool(name):
    found = shutil.which(name + "-22") or shutil.which(name, path="/usr/lib/llvm-22/bin") or shutil.which(name)
    if not found:
        sys.exit(f"make_targets_page.py: {name} of LLVM 22 is missing; run scripts/install-deps.sh")
    return found


def dump():
    includes = subprocess.run([tool("llvm-config"), "--includedir"], check=True, capture_output=True,
                              text=True).stdout.strip()
    table = os.path.join(SOURCE, "include", "fi", "Target", "SMTable.td")
    return json.loads(subprocess.run([tool("llvm-tblgen"), "-dump-json", "-I", includes, table], check=True,
                                     capture_output=True, text=True).stdout)


def number(bits):
    """TableGen dumps `bits` as a list, the lowest first."""
    return bits if isinstance(bits, int) else sum(bit << i for i, bit in enumerate(bits))


def ptx(version):
    return f"{version // 10}.{version % 10}"


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def table(head, rows):
    return "\n" + row(head) + row(["---"] * len(head)) + "".join(row(cells) for cells in rows)


def make(records):
    def read(kind, key):
        return sorted((records[name] for name in records["!instanceof"][kind]), key=key)
    drivers = {number(r["Version"]): number(r["Driver"]) for r in read("PTXVersion", lambda r: number(r["Version"]))}

    def driver(version):
        return f"{drivers[version] // 1000}.{drivers[version] % 1000 // 10}"
    targets = read("SMTarget", lambda r: (number(r["Major"]), number(r["Minor"])))
    limits = []
    for r in targets:
        kib = [number(r[field]) // 1024 for field in ("SharedPerSM", "MaxSharedPerCTA")]
        version, l2 = number(r["PTX"]), number(r["HintL2KiB"])
        limits.append([f"`{r['Name']}`", r["Generation"], ptx(version), driver(version), number(r["MaxWarpsPerSM"]),
                       number(r["MaxCTAsPerSM"]), *kib, number(r["TensorMemoryColumns"]) or "",
                       number(r["MaxClusterSize"]) if number(r["MaxClusterSize"]) > 1 else "",
                       f"{r['Device']}: {number(r['HintSMs'])} SMs, {l2 // 1024} MiB L2"])
    rows = []
    for feature in read("SMFeature", lambda r: number(r["Index"])):
        has = ["x" if any(f["def"] == feature["!name"] for f in r["Features"]) else "" for r in targets]
        rows.append([f"`{feature['Spelling']}`", feature["Summary"], ptx(number(feature["PTX"])), *has])
    short = [r["Name"].removeprefix("sm_") for r in targets]
    return (INTRODUCTION + LIMITS +
            table(["target", "generation", "PTX", "driver", "warps/SM", "CTAs/SM", "shared/SM", "shared/CTA",
                   "tensor memory columns", "cluster", "device"], limits) +
            FEATURES + table(["feature", "what", "PTX", *short], rows))


def main():
    parser = argparse.ArgumentParser(description="docs/targets.md from the table of targets")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    records = dump()
    if options.json:
        with open(options.json, "w") as file:
            json.dump(records, file)
    page = make(records)
    if not options.check:
        with open(PAGE, "w") as file:
            file.write(page)
        return 0
    with open(PAGE) as file:
        found = file.read()
    lines = list(difflib.unified_diff(found.splitlines(), page.splitlines(), "docs/targets.md", "SMTable.td",
                                      lineterm=""))
    print("\n".join(lines) if lines else "docs/targets.md is what SMTable.td says")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
