#===- norms.py - norms of rows beside copies --------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Norms of hidden states, which move memory and little else: beside a copy of the same
bytes by PyTorch, and FlashInfer's."""

import importlib.util
import math
import os

import torch

import fi

from .batch import DTYPES
from .contender import Contender, kernel_family
from .measure import copies_for


class Batch:
    """Copies of the tensors of a row, too many together for a cache. Each has inputs (x,
    and what is added to it) and results (y, and the sum) of its own."""

    def __init__(self, row, seed=0):
        torch.manual_seed(seed)
        self.row = row
        self.dtype = DTYPES[row.dtype]
        self.weight = self._randn(row.dim)
        count = copies_for(row.cache_bytes)
        self.inputs = [[self._randn(row.rows, row.dim) for _ in range(row.parts)] for _ in range(count)]
        self.results = [[torch.full_like(x, math.nan) for x in inputs] for inputs in self.inputs]
        self.copies = self.inputs

    def _randn(self, *shape):
        return torch.randn(shape, device="cuda").to(self.dtype)

    def check(self, y, total=None):
        """The largest error against the norm in f32 of the first copy."""
        if torch.isnan(y).any():
            return math.inf
        hidden = sum(x.float() for x in self.inputs[0])
        want = hidden * torch.rsqrt(hidden.pow(2).mean(-1, keepdim=True) + self.row.eps) * self.weight.float()
        error = ((y.float() - want).abs() / (1 + want.abs())).max().item()
        if total is not None:
            error = max(error, ((total.float() - hidden).abs() / (1 + hidden.abs())).max().item())
        return error


class Ours(Contender):
    def __init__(self, batch, program, name="fi", source=""):
        self.name, self.batch, self.program, self.source = name, batch, program, source
        self.family = f"fi {kernel_family(program)} for {program.target}"
        self.made = fi.Plan(program, shapes={"x": (batch.row.rows, 1, batch.row.dim)})

    def calls(self):
        def call(inputs, results):
            # Hidden states are rows of one head.
            arguments = [*(x.unsqueeze(1) for x in inputs), self.batch.weight]
            out = tuple(y.unsqueeze(1) for y in results)
            return lambda: self.made.run(*arguments, out=out)

        return [call(*pair) for pair in zip(self.batch.inputs, self.batch.results)]

    def outputs(self):
        return tuple(self.batch.results[0])

    def describe(self):
        return {"package": self.source, "explain": self.made.explain(), "workspace_bytes": self.made.workspace_bytes}


class Copy(Contender):
    """What moving the bytes of a row takes: as many reads and writes, nothing computed."""

    name, family = "PyTorch copy of the same bytes", "copy"

    def __init__(self, batch):
        self.batch = batch
        self.places = [[torch.empty_like(x) for x in inputs] for inputs in batch.inputs]

    def calls(self):
        def call(inputs, places):
            def run():
                for x, place in zip(inputs, places):
                    place.copy_(x)

            return run

        return [call(*pair) for pair in zip(self.batch.inputs, self.places)]

    def error(self):
        same = all(torch.equal(x, place) for x, place in zip(self.batch.inputs[0], self.places[0]))
        return 0.0 if same else math.inf


class FlashInferNorm(Contender):
    name, family = "FlashInfer norm", "FlashInfer norm"

    def __init__(self, batch):
        import flashinfer

        self.batch, self.norms = batch, flashinfer.norm
        # The fused form writes into its inputs.
        self.inputs = [[x.clone() for x in inputs] for inputs in batch.inputs]
        self.y = [torch.empty_like(inputs[0]) for inputs in batch.inputs]

    def calls(self):
        weight, eps = self.batch.weight, self.batch.row.eps

        def call(inputs, y):
            if len(inputs) > 1:
                return lambda: self.norms.fused_add_rmsnorm(*inputs, weight, eps)
            return lambda: self.norms.rmsnorm(inputs[0], weight, eps, out=y)

        return [call(*pair) for pair in zip(self.inputs, self.y)]

    def outputs(self):
        return tuple(self.inputs[0]) if len(self.inputs[0]) > 1 else (self.y[0],)


def ours(batch, packages, target):
    """Makers of our contenders: one of each package for the row, with its name."""
    row = batch.row
    if packages is None:
        return [("fi", lambda: Ours(batch, fi.compile(row.text(), target=target), "fi", "compiled"))]
    found = []
    for entry in sorted(os.listdir(packages)):
        base, _, variant = entry.partition("@")
        path = os.path.join(packages, entry)
        if base != row.program or not os.path.isdir(path):
            continue
        label = f"fi {variant}" if variant else "fi"
        found.append((label, lambda label=label, path=path: Ours(batch, fi.load(path), label, path)))
    return found


def others(batch, which):
    found = [("copy", lambda: Copy(batch))]
    if "flashinfer" in which and importlib.util.find_spec("flashinfer"):
        os.environ.setdefault("FLASHINFER_CUDA_ARCH_LIST", "{}.{}a".format(*torch.cuda.get_device_capability()))
        found.append(("FlashInfer norm", lambda: FlashInferNorm(batch)))
    return found
