#===- contender.py - what all contenders have -------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""What all contenders have, and ours."""

import os
import re

import torch

import fi

#: Errors above this are wrong, not rounded: two units in the last place of bf16.
TOLERANCE = 1.6e-2


class Contender:
    """One implementation of a row. Made for a batch; __init__ raises NotApplicable, or
    what the implementation raises, where it cannot run it."""

    #: what is run: "fi", "FlashInfer fa2 paged HND", ...
    name = ""
    #: the library and the generation of its kernels
    family = ""

    def calls(self):
        """A call for each copy of the cache; it may be captured in a graph."""
        raise NotImplementedError

    def outputs(self):
        """The result of the last call, and its lse in base 2 or None, per token."""
        raise NotImplementedError

    def error(self):
        """How far the result of the last call is from what the batch expects."""
        return self.batch.check(*self.outputs())

    #: A call that plans the batch, or None
    plan = None

    def describe(self):
        """More for the row: schedule, package, ..."""
        return {}


class NotApplicable(Exception):
    """A contender does not do this kind of row."""


def kernel_family(program):
    """By the instructions in the PTX."""
    try:
        ptx = program.text("ptx")
    except fi.Error:
        return "unknown"
    for family in ("tcgen05.mma", "wgmma", "mma.sync"):
        if re.search(rf"\b{re.escape(family)}", ptx):
            return family
    return "fma"


class Ours(Contender):
    def __init__(self, batch, program, name="fi", split="default", source=""):
        self.name, self.batch, self.program, self.source = name, batch, program, source
        self.family = f"fi {kernel_family(program)} for {program.target}"
        tables = [batch.qo_indptr, batch.kv_indptr]
        if batch.row.page:
            tables += [batch.kv_indices, batch.last_page_len]
        self.made = fi.Plan(program, *tables, split=split)
        self.split = split
        self.o = batch.q.new_full((*batch.q.shape[:2], batch.row.vo), float("nan"))
        self.lse = torch.full(batch.q.shape[:2], float("nan"), device="cuda")
        self.plan = lambda: self.made.update(*tables)

    def calls(self):
        def call(*cache):
            arguments = (self.batch.q, *cache, *self.batch.scales, *self.batch.captures)
            return lambda: self.made.run(*arguments, out=self.o, lse=self.lse)

        blocks = self.batch.blocks or ((),) * len(self.batch.copies)
        return [call(*codes, *scales) for codes, scales in zip(self.batch.copies, blocks)]

    def outputs(self):
        return self.o, self.lse

    def describe(self):
        bodies = [
            {key: body[key] for key in ("symbol", "tile_rows", "tile_keys", "max_rows", "launch") if key in body}
            for stage in self.program.manifest["stages"]
            for body in stage.get("bodies", [])
        ]
        return {
            "package": self.source, "schedule": bodies, "split": self.split, "explain": self.made.explain(),
            "workspace_bytes": self.made.workspace_bytes,
        }


def ours(batch, packages, split, target):
    """Makers of our contenders: one of each package for the row, with its name."""
    name = batch.row.program
    if packages is None:
        # The compiler is here.
        return [("fi", lambda: Ours(batch, fi.compile(batch.row.text(), target=target), "fi", split, "compiled"))]
    makers = []
    for entry in sorted(os.listdir(packages)):
        base, _, variant = entry.partition("@")
        path = os.path.join(packages, entry)
        if base != name or not os.path.isdir(path):
            continue
        label = f"fi {variant}" if variant else "fi"
        makers.append((label, lambda label=label, path=path: Ours(batch, fi.load(path), label, split, path)))
    return makers
