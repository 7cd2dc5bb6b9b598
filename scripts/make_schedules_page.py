#!/usr/bin/env python3
# ===- make_schedules_page.py - docs/schedules.md ---------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===#
"""Makes docs/schedules.md: what is chosen for each target, and what is not used.

usage: make_schedules_page.py [--check] [--without FEATURE]

Schedules are those of fi-opt --fi-prepare, which is found by PATH; which features
kernels use is taken from the table of test/Target/GPU/check_mnemonics.py. --check
compares the page with what would be made, and changes nothing; --without forgets the
reason of a feature, for the test of this script.
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

# What of the table of targets no kernel of a target uses though the target has it.
REASONS = {
    "mma_f16": "`m16n8k16` does twice the work of an instruction of `m16n8k8`",
    "mma_int8": "codes of eight bits become numbers of the query's type before the product",
    "mma_fp8": "as for eight bits: queries and weights are not rounded to FP8",
    "mma_f8f6f4": "codes of four bits become f16 before the product",
    "mma_block_scale": "scales of blocks are multiplied into numbers before the product",
    "ldmatrix_b8": "codes are read by rows, in the order in which they become numbers",
    "stmatrix": "outputs go from registers to global memory",
    "movmatrix": "`ldmatrix.trans` transposes on the way from shared memory",
    "l2_prefetch": "copies are of whole rows, and rings of them are ahead already",
    "bulk_copy": "copies are boxes of a tensor map, or of 16 bytes a lane",
    "tma": "without roles, whose warps alone make tensor copies, pages come by `cp.async`",
    "tma_gather4": "tensor copies are of the rows of a page",
    "tma_multicast": "there are no clusters yet",
    "tcgen05": "products are by `mma.sync`; tensor memory has no place in level 2 yet",
    "tcgen05_block_scale": "as `tcgen05`",
    "clusters": "CTAs share nothing but the merge of splits, in global memory",
    "setmaxnreg": "no roles without products of warpgroups",
    "mbarrier": "waits are for groups of copies, which are a thread's own",
    "mbarrier_tx": "for tensor copies, which these targets make none of",
    "elect": "one lane arrives by its number",
    "griddepcontrol": "launches do not overlap",
    "redux": "maxima and sums are of f32",
    "redux_f32": "rows are reduced among four lanes, by two shuffles",
    "fma_bf16x2": "scores and outputs are summed in f32",
    "ex2_f16x2": "weights are rounded once, after the sum",
    "ex2_bf16x2": "as `ex2_f16x2`",
    "tanh_f16x2": "hyperbolic tangents are of f32, by powers of two",
    "max_nan": "a row whose keys are all masked has no NaN",
    "global_256": "copies are asynchronous, of 16 bytes each",
    "red_bf16x2": "states are merged in f32 and in a fixed order",
    "red_v4_f32": "states are merged in a fixed order, not by atomics",
}
# Opcodes do not tell whether these are used: max.f32 may have three operands.
UNTOLD = {"max3"}

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
program of each family (`test/Target/GPU/check_mnemonics.py`), and why.

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


def make(reasons):
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
    with open(check_mnemonics.TABLE) as file:
        table = json.load(file)
    used = {target: set() for target in has}
    for opcodes in table.values():
        for opcode, targets in opcodes.items():
            for feature, pattern in check_mnemonics.FEATURES.items():
                if re.search(pattern, opcode):
                    for target in targets.split():
                        used[target].add(feature)
    lines.append(FEATURES)
    lines += ["| feature | sm_ | why |\n", "|---|---|---|\n"]
    faults = []
    order = [feature for feature in reasons if feature in known]
    for feature in sorted(known, key=lambda name: (order.index(name) if name in order else -1)):
        if feature in UNTOLD:
            continue
        if feature not in check_mnemonics.FEATURES:
            faults.append(f"{feature}: check_mnemonics.py has no pattern of its opcodes")
            continue
        unused = [target[3:] for target in has if feature in has[target] and feature not in used[target]]
        if not unused:
            if feature in reasons:
                faults.append(f"{feature} is used on all targets that have it; REASONS has it as well")
            continue
        if feature not in reasons:
            faults.append(f"{feature} is not used on {', '.join(unused)}; say why in REASONS")
            continue
        lines.append(f"| `{feature}` | {', '.join(unused)} | {reasons[feature]} |\n")
    return "".join(lines), faults


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--without")
    arguments = parser.parse_args()
    reasons = {name: why for name, why in REASONS.items() if name != arguments.without}
    page, faults = make(reasons)
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
