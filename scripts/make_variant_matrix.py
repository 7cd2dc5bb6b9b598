#!/usr/bin/env python3
# ===- make_variant_matrix.py - docs/variant-matrix.md from programs -------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===------------------------------------------------------------------------===#
"""Makes docs/variant-matrix.md: every layout, variant and type on every backend.

A cell is a program that fi-fuzz-programs makes of the choices that say the layout, the
variant and the type, with all others the simplest. Its text has to show what the cell
says, and each backend has to agree with the reference. Cells that no program has are
refused by the verifier or the planner: a negative test of the rule is the proof.

  scripts/make_variant_matrix.py build/dev            writes the page
  scripts/make_variant_matrix.py build/dev --check    runs a few cells, writes nothing
"""

import argparse
import concurrent.futures
import pathlib
import re
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent
BACKENDS = ["cpu", "level2", "emulated:sm_80"]

# Name, choices, what the text has to have.
LAYOUTS = [
    ("ragged, NHD", "view=0", r"!fi\.ragged_kv<.*NHD"),
    ("ragged, HND", "view=0,hnd=1", r"!fi\.ragged_kv<.*HND"),
    ("paged, NHD", "view=1", r"!fi\.paged_kv<.*NHD"),
    ("paged, HND", "view=1,hnd=1", r"!fi\.paged_kv<.*HND"),
    ("paged, fused pool", "view=1,fused=1", r"!fi\.paged_kv<.*fused"),
    ("paged, tables of values", "view=1,two_tables=1", r"two_tables"),
    ("dense tables", "view=3", r"table = dense"),
    ("contiguous", "view=4", r"fi\.view\.ragged (?!.*indptr)"),
    ("block-sparse rows", "view=0,bsr=1", r"!fi\.bsr_kv<"),
    ("latent", "latent=1", r"!fi\.latent_kv<"),
]
VARIANTS = [
    ("causal", "mask.count=1", r"mask\(#fi\.causal"),
    ("window", "mask.count=1,mask[0]=1,mask[0].left=3", r"#fi\.window<left = 16"),
    ("any of masks", "mask.count=1,mask[0]=4,mask[0].any.count=1", r"#fi\.any<"),
    ("mask region", "mask.region=1", r"mask\(%req"),
    ("soft cap", "score=1", r"#fi\.softcap<"),
    ("score region", "score=2", r"score\(%s"),
    ("sink", "sink=1", r"sink\("),
    ("base e", "normaliser=3", r"base = e"),
    ("sigmoid", "normaliser=5", r"#fi\.sigmoid<bias"),
    ("sum", "normaliser=6", r"#fi\.sum"),
    ("positions of rows", "at=2", r" at\(%"),
    ("origin", "origin=1", r"origin\("),
    ("transformed pairs", "transform=1", r"pair<"),
    ("states merged", "program=1", r"fi\.merge %"),
    ("segments", "program=2", r"fi\.merge_segments"),
    ("append before", "program=3", r"fi\.append %"),
    ("split keys", "split=3", r"split\(#fi\.split<fixed"),
]
TYPES = [
    ("f32", "q.element=0,k.element=0", r"xf32"),
    ("bf16", "q.element=1,k.element=1", r"xbf16"),
    ("f16", "q.element=3,k.element=3", r"xf16"),
    ("f8E4M3FN", "q.element=1,codes=1,k.codes=0", r"scaled<f8E4M3FN"),
    ("f8E5M2", "q.element=1,codes=1,k.codes=1,k.scales=2", r"scaled<f8E5M2"),
    ("i8", "q.element=3,codes=1,k.codes=2,k.scales=1", r"scaled<i8"),
    ("nvfp4", "q.element=1,codes=1,k.blocks=1,k.dim=1", r"block_scaled<f4E2M1FN, 16"),
    ("mxfp4", "q.element=3,codes=1,k.blocks=2,k.dim=5", r"block_scaled<f4E2M1FN, 32"),
]
# Two rows behind 31 keys, of grouped heads, by small schedules, and, where there may be two
# requests, a prompt.
BATCH = "kv.heads=1,group=1,request[0].keys=11,request[0].rows=4,schedule=1,gpu.schedule=1"
PROMPT = "request.count=1,request[1].keys=7,request[1].prompt=1"
# What the generator does not draw: layout, variant, type (each a pattern), a mark.
CODES = r"^(f8|i8|nvfp4|mxfp4)"
OTHERS = [
    (r"^latent", r".*", r"fp4", "r"),
    (r"^latent", r"transformed", r".*", "r"),
    (r"^latent", r"states|segments|append", r".*", "t"),
    (r"^latent", r".*", r"^(f8|i8)", "t"),
    (r"fused", r".*", CODES, "t"),
    (r"^contiguous", r"append|origin", r".*", "t"),
    (r"^block", r"append|segments|states", r".*", "t"),
]

INTRODUCTION = """# Layouts, variants and types

Every layout with every variant and every type of keys and values, as programs of
[fi-fuzz-programs](fuzzing.md) that have what the cell says and all else the simplest, on
the CPU, in the interpreter of level 2 and on an emulated sm_80, compared with the
reference: two rows behind 31 keys and a prompt of 16, four query heads on two, small
schedules (those that are chosen take longer to compile, and have tests of their own).
`scripts/make_variant_matrix.py` makes this page; `--check` runs a few cells of it, in the
tests. Other targets are on [their page](target-matrix.md), what is between the cells is for
[random programs](fuzzing.md).

x: all three agree with the reference. t: not drawn by the generator; the layout with the
type, or with the variant, is in a test of its own (`layouts.test`, `AppendTransformTest`,
`QuantisedTest`). r: refused, with a sentence: regions that transform latents (ATT24), and
blocks of 4 bits in latents (KV3). F: fails.
"""


def run(tool, choices, pattern):
    """None if all backends agree on a program that has the pattern, else what is wrong."""
    command = [str(tool), "--simplest", "--programs=1", "--set=" + choices]
    text = subprocess.run(command + ["--emit"], capture_output=True, text=True).stdout
    for one in pattern:
        if not re.search(one, text):
            return f"no program has {one}"
    result = subprocess.run(
        command + ["--quiet", "--reduce=0", "--out=/dev/null", "--backend=" + ",".join(BACKENDS)],
        capture_output=True,
        text=True,
    )
    return None if result.returncode == 0 else result.stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("build", type=pathlib.Path, nargs="?", help="else the tool of PATH")
    parser.add_argument("--check", action="store_true", help="a few cells, and no page")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    tool = "fi-fuzz-programs"
    if arguments.build:
        tool = arguments.build / "bin" / tool

    def cell(layout, variant, kind):
        for names in OTHERS:
            if all(re.search(p, n) for p, n in zip(names, (layout[0], variant[0], kind[0]))):
                return names[3], None
        choices = ",".join((layout[1], variant[1], kind[1], BATCH))
        if layout[0] != "contiguous":
            choices += "," + PROMPT
        if variant[0] == "states merged":  # of two attentions, each with a view
            own = [c for c in choices.split(",") if re.match(r"view|hnd|fused|two_|bsr|k\.[^d]|codes|schedule|gpu", c)]
            choices += "," + ",".join(f"a{n}.{c}" for n in (0, 1, 2) for c in own)
        problem = run(tool, choices, (layout[2], variant[2], kind[2]))
        return ("x", None) if problem is None else ("F", f"{choices}: {problem}")

    cells = [(l, v, t) for l in LAYOUTS for v in VARIANTS for t in TYPES]
    if arguments.check:
        # Each layout, variant and type is in some of these.
        cells = cells[::59]
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        made = pool.map(lambda c: cell(*c), cells)
        results = {}
        for c, result in zip(cells, made):
            results[tuple(axis[0] for axis in c)] = result
            if len(results) % 100 == 0:
                print(f"{len(results)} of {len(cells)}", file=sys.stderr, flush=True)
    problems = [problem for _, problem in results.values() if problem]
    for problem in problems:
        print(problem)
    print(f"{len(results) - len(problems)} cells as they should be, {len(problems)} not")
    if not arguments.check:
        page = INTRODUCTION
        for layout in LAYOUTS:
            page += f"\n## {layout[0][0].upper() + layout[0][1:]}\n\n| variant | "
            page += " | ".join(t[0] for t in TYPES) + " |\n|---" + "|---" * len(TYPES) + "|\n"
            for variant in VARIANTS:
                marks = [results[layout[0], variant[0], t[0]][0] for t in TYPES]
                page += f"| {variant[0]} | " + " | ".join(marks) + " |\n"
        (SOURCE / "docs" / "variant-matrix.md").write_text(page)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
