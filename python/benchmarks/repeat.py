#===- repeat.py - the same bits, however launches follow one another ---------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""python3 -m benchmarks.repeat --packages DIRECTORY [--rows PATTERN...] [--launches N]

Runs each row's program N times (200) so that each launch reads what the one in front of it
has written: an attention of what an attention gave, then a kernel of torch that makes the
next query of it. Once with the device idle between launches, which is what counts as
right, then in a stream without waiting, then in a CUDA graph: launches that begin while
others end must give the same bits, of outputs and statistics, every time.

Rows whose outputs are no queries (other dims) repeat the same launch. The exit code is 1 if
bits differ.
"""

import argparse
import sys

import torch

import fi

from . import rows
from .batch import Batch
from .contender import ours


class Chain:
    """Launches that depend on one another, and a digest of all that they write."""

    def __init__(self, contender):
        batch = contender.batch
        self.calls = contender.made.run
        self.batch = batch
        self.isChain = batch.row.dim == batch.row.vo
        self.first = batch.q.clone()
        self.q = batch.q.clone()
        self.o = [batch.q.new_empty((*batch.q.shape[:2], batch.row.vo)) for _ in range(2)]
        self.lse = [torch.empty(batch.q.shape[:2], device="cuda") for _ in range(2)]
        self.digest = torch.zeros(self.o[0].shape, dtype=torch.int16, device="cuda")
        self.lse_digest = torch.zeros(self.lse[0].shape, dtype=torch.int32, device="cuda")

    def reset(self):
        self.q.copy_(self.first)
        self.digest.zero_()
        self.lse_digest.zero_()

    def step(self, number, after=lambda: None):
        """Two launches, the second of what the first gave, and what is made of them."""
        batch = self.batch
        blocks = batch.blocks or ((),) * len(batch.copies)
        query = self.q
        for i in range(2):
            at = (2 * number + i) % len(batch.copies)
            self.calls(query, *batch.copies[at], *blocks[at], *batch.scales, *batch.captures,
                       out=self.o[i], lse=self.lse[i])
            after()
            if self.isChain:
                query = self.o[i]
        for o, lse in zip(self.o, self.lse):
            self.digest.mul_(31).add_(o.view(torch.int16))
            self.lse_digest.mul_(31).add_(lse.view(torch.int32))
        if self.isChain:
            # Outputs are means, and small: as large again as queries are.
            torch.mul(self.o[1], 24, out=self.q)

    def result(self):
        torch.cuda.synchronize()
        return self.digest.clone(), self.lse_digest.clone()


def check(contender, launches):
    """Where bits differ, by how the launches were made; nothing if nowhere."""
    chain = Chain(contender)
    steps = max(1, launches // 2)
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    wrong = []
    with torch.cuda.stream(stream):
        chain.reset()
        for i in range(steps):
            chain.step(i, torch.cuda.synchronize)
        right = chain.result()
        if not torch.isfinite(chain.o[1]).all() or int(right[0].count_nonzero()) == 0:
            wrong.append("outputs that are not finite, or all zero")

        def compare(how):
            got = chain.result()
            count = sum(int((a != b).sum()) for a, b in zip(got, right))
            if count:
                wrong.append(f"{how}: {count} elements differ")

        for again in ("in a stream", "in a stream, again"):
            chain.reset()
            for i in range(steps):
                chain.step(i)
            compare(again)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        chain.reset()
        for i in range(steps):
            chain.step(i)
    for again in ("in a graph", "in a graph, again"):
        graph.replay()
        compare(again)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--packages", required=True, help="of benchmarks.packages")
    parser.add_argument("--rows", nargs="*", help="parts of names (all rows of attention)")
    parser.add_argument("--launches", type=int, default=200, help="of each way (200)")
    options = parser.parse_args()
    failed = count = 0
    for row in rows.select(options.rows):
        if not hasattr(row, "vo"):
            continue
        batch = Batch(row)
        for name, make in ours(batch, options.packages, "default", None):
            try:
                wrong = check(make(), options.launches)
            except fi.Error as error:
                wrong = [str(error)]
            count += 1
            failed += bool(wrong)
            print(f"{row.name} {name}: {'; '.join(wrong) or f'the same bits in {5 * options.launches} launches'}",
                  flush=True)
        del batch
        torch.cuda.empty_cache()
    print(f"{count - failed} passed, {failed} failed")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
