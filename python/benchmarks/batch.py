#===- batch.py - the tensors of a row ---------------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""The tensors of a row: the same for all contenders, seeded, with shuffled pages."""

import math

import torch

from .measure import copies_for

DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}
CODES = {"f8E4M3FN": torch.float8_e4m3fn, "f8E5M2": torch.float8_e5m2, "nvfp4": torch.int8}
#: f4E2M1FN by its code.
NIBBLES = (0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6)


class Batch:
    def __init__(self, row, seed=0):
        torch.manual_seed(seed)
        self.row = row
        self.dtype = DTYPES[row.dtype]
        queries = [q for q, _ in row.requests]
        self.lengths = [kv for _, kv in row.requests]
        page = max(row.page, 1)
        pages = [-(-kv // page) for kv in self.lengths]
        self.qo_indptr = self._indptr(queries)
        #: in pages, or in keys where there are none
        self.kv_indptr = self._indptr(pages)
        self.kv_indices = torch.randperm(sum(pages)).int()
        self.last_page_len = torch.tensor([(kv - 1) % page + 1 for kv in self.lengths], dtype=torch.int32)
        #: What the variant captures.
        self.captures = row.what.tensors(self)
        self.q = self._randn(row.query_tokens, row.query_heads, row.dim)
        #: Copies of keys and values, too large together for a cache: [pages, heads,
        #: page, dim], or [keys, heads, dim].
        shape = (sum(pages), row.kv_heads, page, row.dim) if row.page else (sum(pages), row.kv_heads, row.dim)
        values = (*shape[:-1], row.vo)
        stored = CODES[row.codes] if row.codes else self.dtype
        #: Scales of blocks of 16 columns, for each copy, where codes have some.
        self.blocks = ()
        if row.codes == "nvfp4":
            blocks = (*shape[:-1], row.dim // 16)
            shape = values = (*shape[:-1], row.dim // 2)
            self.blocks = tuple(
                [self._randint(*blocks, low=40, high=52).view(torch.float8_e4m3fn) for _ in range(2)]
                for _ in range(copies_for(row.cache_bytes))
            )
        #: What stored keys and values are multiplied by, where they are codes.
        self.scales = (0.75, 1.25) if row.codes else ()
        make = self._randint if row.codes == "nvfp4" else self._randn
        self.copies = [
            (make(*shape, dtype=stored), make(*values, dtype=stored))
            for _ in range(copies_for(row.cache_bytes))
        ]

    def _randn(self, *shape, dtype=None):
        # By parts: the normal numbers are made in f32.
        out = torch.empty(shape, dtype=dtype or self.dtype, device="cuda")
        for part in out.view(-1).split(1 << 28):
            part.copy_(torch.randn(part.numel(), device="cuda"))
        return out

    @staticmethod
    def _randint(*shape, low=-128, high=128, dtype=torch.int8):
        out = torch.empty(shape, dtype=dtype, device="cuda")
        for part in out.view(-1).split(1 << 28):
            part.copy_(torch.randint(low, high, (part.numel(),), device="cuda"))
        return out

    @staticmethod
    def _indptr(counts):
        return torch.tensor([0, *counts], dtype=torch.int32).cumsum(0).int()

    @property
    def max_pages(self):
        return int((self.kv_indptr[1:] - self.kv_indptr[:-1]).max())

    def keys_of(self, request, copy=0):
        """Keys and values of a request in order: [heads, keys, dim]."""
        parts = self._keys_in(request, self.copies[copy])
        if self.row.codes == "nvfp4":
            table = torch.tensor(NIBBLES, device="cuda")
            codes = [t.view(torch.uint8).int() for t in parts]
            parts = [table[torch.stack((c & 15, c >> 4), -1).flatten(-2)] for c in codes]
            blocks = [t.float().repeat_interleave(16, -1) for t in self._keys_in(request, self.blocks[copy])]
            parts = [t * block for t, block in zip(parts, blocks)]
        if self.row.codes:
            parts = [t.float() * scale for t, scale in zip(parts, self.scales)]
        return tuple(parts)

    def _keys_in(self, request, parts):
        """What two tensors hold of a request's keys and values."""
        begin, end = self.kv_indptr[request], self.kv_indptr[request + 1]
        if self.row.page:
            pages = self.kv_indices[begin:end].long().cuda()
            # Bytes, where there are codes: they have no operations of their own.
            parts = [t.view(torch.uint8)[pages].view(t.dtype) if self.row.codes else t[pages] for t in parts]
            length = self.lengths[request]
            parts = [t.transpose(0, 1).reshape(t.shape[1], -1, t.shape[3])[:, :length] for t in parts]
        else:
            parts = [t[begin:end].transpose(0, 1) for t in parts]
        return parts

    def check(self, o, lse=None, lse_base=2.0):
        """The largest error against attention in f32, over the first, the last and some
        random rows of the first, the last and some random requests."""
        row = self.row
        if torch.isnan(o).any():
            return math.inf
        random = torch.Generator().manual_seed(1)
        some = torch.randint(len(row.requests), (3,), generator=random).tolist()
        worst = 0.0
        for request in sorted({0, len(row.requests) - 1, *some}):
            count, length = row.requests[request]
            first = int(self.qo_indptr[request])
            rows = torch.cat([torch.tensor([0, count - 1]), torch.randint(count, (14,), generator=random)]).unique().cuda()
            k, v = self.keys_of(request)
            group = row.query_heads // row.kv_heads
            q = self.q[first + rows].float().transpose(0, 1).reshape(row.kv_heads, group * len(rows), row.dim)
            scores = q @ k.float().transpose(1, 2) / math.sqrt(row.dim)
            scores = scores.view(row.query_heads, len(rows), length)
            head = torch.arange(row.query_heads, device="cuda")[:, None, None]
            query = (rows + length - count)[None, :, None]
            key = torch.arange(length, device="cuda")[None, None, :]
            scores = row.what.scores(scores, head, query, key, self.captures)
            if row.causal:
                scores = scores.masked_fill(~row.what.sees(query, key, self.captures), -math.inf)
            sink = row.what.sink(self.captures)
            if sink is not None:
                # A key without a value.
                scores = torch.cat([scores, sink[:, None, None].expand(-1, len(rows), 1)], -1)
            weights = torch.softmax(scores, -1)[..., :length]
            want = weights.reshape(row.kv_heads, group * len(rows), length) @ v.float()
            want = want.view(row.query_heads, len(rows), row.vo).transpose(0, 1)
            got = o[first + rows].float()
            # Errors relative to what the element type can tell of a value this large.
            worst = max(worst, ((got - want).abs() / (1 + want.abs())).max().item())
            if lse is not None:
                want = torch.logsumexp(scores, -1).view(row.query_heads, len(rows)).t() / math.log(lse_base)
                worst = max(worst, ((lse[first + rows] - want).abs() / (1 + want.abs())).max().item())
        return worst
