#!/usr/bin/env python3
# ===- make_schedules_page.py - docs/schedules.md ---------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===#
"""Makes docs/schedules.md: what is chosen for each target, and what is not used.

usage: make_schedules_page.py [--check] [--table FILE]

Schedules are those of fi-opt --fi-prepare, which is found by PATH; which features
kernels use, and why not others, is taken from the table of
test/Target/GPU/check_mnemonics.py, or from FILE. --check compares the page with what
would be made, and changes nothing.
"""
import argparse
import difflib
import json
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
PAGE = SOURCE / "docs" / "schedules.md"
sys.path.insert(0, str(SOURCE / "test" / "Target" / "GPU"))
import check_mnemonics  # noqa: E402

CLASSES = [
    ("f16, bf16", "bf16", "bf16", (64, 128, 256)),
    ("f16, bf16 over f8E4M3FN", "bf16", "f8E4M3FN", (64, 128, 256)),
    ("f32", "f32", "f32", (64, 128)),
]

INTRODUCTION = """# Schedules by target

Made by `scripts/make_schedules_page.py`. A schedule is of a body of a kernel
([levels](levels.md)); a plan takes the body by the rows of its requests.

## Chosen

For causal attention of 32 heads over 8 KV heads in pages of 16 keys. Each is the rows and
keys of a tile, warps times groups of warps that take tiles of keys in turn, and stages of
the ring; `+N` are warps that copy, by tensor copies with `tma`, and `wgmma` has products of
warpgroups. The first is for decode, the second for few rows, the last for many.

"""

FEATURES = """
## Features that are not used

What the [table](targets.md#features) gives a target and no kernel for it has, among a
program of each family (`test/Target/GPU/check_mnemonics.py`), and why, as the compiler
says it. Of a program of yours `fi-translate --fi-explain --target=sm_90a` says it for
each kernel, and `fi_plan_explain` for those that a plan launches.

"""


def program(target, query, stored, dim):
    element = stored if stored == query else f"!fi.scaled<{stored}, per = tensor, by = f32>"
    arguments = "" if stored == query else ", %ks: f32, %vs: f32"
    scales = "" if stored == query else "scales(%ks, %vs : f32, f32) "
    return f"""
!ix = tensor<?xi32>
!pool = memref<?x16x8x{dim}x{stored}>
!kv = !fi.paged_kv<16x8x{dim}x{element}, NHD>
!q = tensor<?x32x{dim}x{query}>
module attributes {{fi.target = #fi.target<{target}>}} {{
fi.program @p plan(%qi: !ix, %ki: !ix, %pages: !ix, %last: !ix)
    run(%q: !q, %k: !pool, %v: !pool{arguments}) -> (!q) {{
  %kv = fi.view.paged %k, %v tables(%ki, %pages, %last : !ix, !ix, !ix) {scales}: !pool, !pool -> !kv
  %o = fi.attention %q rows(%qi : !ix) over %kv scale(0.125) mask(#fi.causal) : !q over !kv -> !q
  fi.return %o : !q
}}
}}
"""


def choose(*case):
    text = subprocess.run(["fi-opt", "--fi-prepare", "-"], input=program(*case), check=True,
                          capture_output=True, text=True).stdout
    cells = []
    for schedule in re.findall(r"#fi\.schedule<([^>]*)>", text):
        has = {key: int(value) for key, value in re.findall(r"(\w+) = (\d+)", schedule)}
        cells.append(f"{has['tile_rows']}x{has['tile_keys']} {has.get('warps', 1)}x{has.get('key_warps', 1)}"
                     f"{'+' + str(has['load_warps']) if has.get('load_warps') else ''}"
                     f" s{has.get('stages', 1)}{' wgmma' if has.get('wgmma') else ''}"
                     f"{' tma' if has.get('tma') else ''}")
    return cells


def group(rows):
    """Targets with equal rows together, in their order."""
    groups = {}
    for target, row in rows:
        groups.setdefault(row, []).append(target[3:])
    return [(", ".join(targets), row) for row, targets in groups.items()]


def make(path):
    has, known = check_mnemonics.read_features(check_mnemonics.TARGETS)
    lines = [INTRODUCTION, "| types | head dim | sm_ | decode | few rows | many rows |\n",
             "|---|---|---|---|---|---|\n"]
    for name, query, stored, dims in CLASSES:
        for dim in dims:
            rows = []
            for target in has:
                cells = choose(target, query, stored, dim)
                # Two bodies: there is none for few rows.
                rows.append((target, tuple(cells if len(cells) == 3 else [cells[0], "", cells[-1]])))
            for targets, row in group(rows):
                lines.append(f"| {name} | {dim} | {targets} | {' | '.join(row)} |\n")
    with open(path) as file:
        table = json.load(file)
    used = {target: set() for target in has}
    for program in table.values():
        for opcode, targets in program["opcodes"].items():
            for feature, pattern in check_mnemonics.FEATURES.items():
                if re.search(pattern, opcode):
                    for target in targets.split():
                        used[target].add(feature)
    lines.append(FEATURES)
    lines += ["| feature | sm_ | why |\n", "|---|---|---|\n"]
    faults = []
    for feature in known:
        if feature not in check_mnemonics.FEATURES and feature not in check_mnemonics.UNTOLD:
            faults.append(f"{feature}: check_mnemonics.py has no pattern of its opcodes")
            continue
        unused = [target for target in has if feature in has[target] and feature not in used[target]]
        # What could have been used, where there is such; else why there is nothing.
        for part in ("unused", "nothing to do"):
            rows = {}
            for program in table.values():
                for row, targets in program[part].items():
                    name, why = row.split(": ", 1)
                    if name == feature:
                        rows.setdefault(why, set()).update(targets.split())
            shown = [(why, [target[3:] for target in unused if target in targets])
                     for why, targets in rows.items()]
            shown = [(why, targets) for why, targets in shown if targets]
            if shown:
                break
        if unused and not shown:
            faults.append(f"{feature} is not used on {', '.join(unused)}, and the table has no reason")
        for why, targets in shown if unused else []:
            lines.append(f"| `{feature}` | {', '.join(targets)} | {why} |\n")
    return "".join(lines), faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--table", default=check_mnemonics.TABLE)
    arguments = parser.parse_args()
    page, faults = make(arguments.table)
    if arguments.check and not faults:
        old = PAGE.read_text()
        faults = list(difflib.unified_diff(old.splitlines(), page.splitlines(), "docs/schedules.md",
                                           "what is chosen", lineterm=""))
    for fault in faults:
        print(fault)
    if faults:
        print("FAIL; where a change is meant: scripts/make_schedules_page.py")
        return 1
    if not arguments.check:
        PAGE.write_text(page)
    print("PASS: docs/schedules.md is what is chosen")
    return 0


if __name__ == "__main__":
    sys.exit(main())
