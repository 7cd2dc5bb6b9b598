#===- baselines.py - what fi is measured against ----------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""What fi is measured against: every back end and layout of what can be imported here.

PyTorch's SDPA (cuDNN, flash), on contiguous keys of requests that are all alike, which is
better than what a serving engine can give it; FlashInfer; flash-attn-4. The best of them
is the baseline of a row.
"""

import importlib.util
import math
import os

import torch
import torch.nn.functional as F

from .contender import Contender, NotApplicable
from .variants import Variant


def versions():
    found = {"torch": torch.__version__, "cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    for module, name in (("flashinfer", "flashinfer"), ("flash_attn", "flash_attn")):
        if importlib.util.find_spec(module):
            try:
                found[name] = getattr(__import__(module), "__version__", "?")
            except Exception as error:  # a package that does not import is no baseline
                found[name] = f"does not import: {error!r}"[:200]
    return found


class Sdpa(Contender):
    def __init__(self, batch, backend):
        from torch.nn.attention import SDPBackend, sdpa_kernel

        row = batch.row
        self.name = f"{'cuDNN' if backend == 'CUDNN_ATTENTION' else 'PyTorch flash'} contiguous"
        self.family = f"SDPA {backend}"
        self.batch = batch
        if not row.is_uniform:
            raise NotApplicable("requests of several shapes")
        count, length = row.requests[0]
        # The mask of PyTorch hangs at the first key, fi's at the last.
        self.causal = row.causal and count > 1
        self.bias = None
        if self.causal and count != length:
            if backend == "CUDNN_ATTENTION":
                raise NotApplicable("a causal mask that hangs at the last key")
            from torch.nn.attention.bias import causal_lower_right

            self.bias = causal_lower_right(count, length)
        self.kernel = lambda: sdpa_kernel(getattr(SDPBackend, backend))
        requests = len(row.requests)
        self.q = batch.q.view(requests, count, row.query_heads, row.dim).transpose(1, 2)
        self.pairs = []
        for copy in range(len(batch.copies)):
            keys = [batch.keys_of(r, copy) for r in range(requests)]
            self.pairs.append(tuple(torch.stack([k[i] for k in keys]) for i in (0, 1)))
        self.o = None

    def calls(self):
        def call(k, v):
            def run():
                with self.kernel():
                    if self.bias is not None:
                        self.o = F.scaled_dot_product_attention(self.q, k, v, attn_mask=self.bias, enable_gqa=True)
                    else:
                        self.o = F.scaled_dot_product_attention(self.q, k, v, is_causal=self.causal, enable_gqa=True)

            return run

        return [call(k, v) for k, v in self.pairs]

    def outputs(self):
        return self.o.transpose(1, 2).reshape(*self.batch.q.shape[:2], self.batch.row.vo), None


_workspace = None


def workspace():
    global _workspace
    if _workspace is None:
        _workspace = torch.zeros(512 << 20, dtype=torch.uint8, device="cuda")
    return _workspace


class FlashInfer(Contender):
    """What FlashInfer's contenders share: tensors in a layout, results."""

    def __init__(self, batch, layout):
        self.batch, self.layout = batch, layout
        row = batch.row
        if layout == "NHD":
            self.pairs = [tuple(t.transpose(1, 2).contiguous() for t in pair) for pair in batch.copies]
        else:
            self.pairs = batch.copies
        self.o = batch.q.new_empty(*batch.q.shape[:2], row.vo)
        self.lse = torch.empty(batch.q.shape[:2], dtype=torch.float32, device="cuda")
        self.tables = [t.cuda() for t in (batch.qo_indptr, batch.kv_indptr, batch.kv_indices, batch.last_page_len)]
        self.heads = (row.query_heads, row.kv_heads)

    def calls(self):
        return [lambda pair=pair: self.call(pair) for pair in self.pairs]

    def outputs(self):
        return self.o, None


class Prefill(FlashInfer):
    def __init__(self, batch, backend, layout):
        import flashinfer

        row = batch.row
        kind = "ragged" if not row.page else f"paged {layout}"
        self.name, self.family = f"FlashInfer {backend} {kind}", f"FlashInfer {backend}"
        super().__init__(batch, layout if row.page else "HND")
        qo, kv, indices, last = self.tables
        if row.page:
            self.wrapper = flashinfer.BatchPrefillWithPagedKVCacheWrapper(workspace(), layout, backend=backend)
            self.plan = lambda: self.wrapper.plan(
                qo, kv, indices, last, *self.heads, row.dim, row.page, causal=row.causal, q_data_type=batch.dtype,
                kv_data_type=batch.dtype,
            )
            self.call = lambda pair: self.wrapper.run(batch.q, pair, out=self.o, lse=self.lse, return_lse=True)
        else:
            self.wrapper = flashinfer.BatchPrefillWithRaggedKVCacheWrapper(workspace(), "NHD", backend=backend)
            self.plan = lambda: self.wrapper.plan(
                qo, kv, *self.heads, row.dim, head_dim_vo=row.vo, causal=row.causal, q_data_type=batch.dtype,
                kv_data_type=batch.dtype,
            )
            self.call = lambda pair: self.wrapper.run(batch.q, *pair, out=self.o, lse=self.lse, return_lse=True)
        self.plan()

    def outputs(self):
        return self.o, self.lse


class TensorCoreDecode(FlashInfer):
    def __init__(self, batch, layout):
        import flashinfer

        row = batch.row
        self.name, self.family = f"FlashInfer fa2 decode, tensor cores, {layout}", "FlashInfer fa2"
        super().__init__(batch, layout)
        _, kv, indices, last = self.tables
        self.wrapper = flashinfer.BatchDecodeWithPagedKVCacheWrapper(
            workspace(), layout, use_tensor_cores=True, backend="fa2"
        )
        self.plan = lambda: self.wrapper.plan(
            kv, indices, last, *self.heads, row.dim, row.page, q_data_type=batch.dtype, kv_data_type=batch.dtype
        )
        self.call = lambda pair: self.wrapper.run(batch.q, pair, out=self.o, lse=self.lse, return_lse=True)
        self.plan()

    def outputs(self):
        return self.o, self.lse


class Holistic(FlashInfer):
    def __init__(self, batch, layout):
        import flashinfer

        row = batch.row
        self.name, self.family = f"FlashInfer holistic {layout}", "FlashInfer holistic"
        super().__init__(batch, layout)
        qo, kv, indices, _ = self.tables
        lengths = torch.tensor(batch.lengths, dtype=torch.int32, device="cuda")
        self.wrapper = flashinfer.BatchAttention(layout)
        self.plan = lambda: self.wrapper.plan(
            qo, kv, indices, lengths, *self.heads, row.dim, row.dim, row.page, causal=row.causal,
            q_data_type=batch.dtype, kv_data_type=batch.dtype,
        )
        self.call = lambda pair: self.wrapper.run(batch.q, pair, out=self.o, lse=self.lse)
        self.plan()

    def outputs(self):
        return self.o, self.lse


class Xqa(FlashInfer):
    def __init__(self, batch, layout):
        import flashinfer

        row = batch.row
        self.name, self.family = f"FlashInfer XQA {layout}", "FlashInfer XQA"
        if row.page < 16:
            raise NotApplicable("pages of fewer than 16 keys")
        super().__init__(batch, layout)
        # It counts arrivals in its workspace, which must begin as zeros: its own.
        scratch = torch.zeros(128 << 20, dtype=torch.uint8, device="cuda")
        table = torch.zeros(len(row.requests), batch.max_pages, dtype=torch.int32)
        for r in range(len(row.requests)):
            mine = batch.kv_indices[batch.kv_indptr[r] : batch.kv_indptr[r + 1]]
            table[r, : len(mine)] = mine
        table = table.cuda()
        lengths = torch.tensor(batch.lengths, dtype=torch.int32, device="cuda")

        def call(pair):
            self.o = flashinfer.decode.trtllm_batch_decode_with_kv_cache(
                batch.q, pair, scratch, table, lengths, max(batch.lengths), bmm1_scale=1 / math.sqrt(row.dim),
                bmm2_scale=1.0, kv_layout=layout, backend="xqa",
            )

        self.call = call


class FlashAttention4(Contender):
    def __init__(self, batch):
        from flash_attn.cute import flash_attn_func

        self.name, self.family = "flash-attn-4 contiguous", "flash-attn-4"
        row = batch.row
        if not row.is_uniform or row.kind != "prefill":
            raise NotApplicable("measured on prefill alone")
        self.batch, self.function = batch, flash_attn_func
        self.pairs = [
            tuple(t.transpose(0, 1).unsqueeze(0).contiguous() for t in batch.keys_of(0, copy))
            for copy in range(len(batch.copies))
        ]
        self.o = None

    def calls(self):
        def call(k, v):
            def run():
                made = self.function(self.batch.q.unsqueeze(0), k, v, causal=self.batch.row.causal)
                self.o = made[0] if isinstance(made, tuple) else made

            return run

        return [call(k, v) for k, v in self.pairs]

    def outputs(self):
        return self.o.view(self.batch.q.shape), None


class Flex(Contender):
    """PyTorch's flex_attention, compiled: the variant as functions of a score and of
    positions, tiles left out by a mask of blocks."""

    def __init__(self, batch):
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention

        row = batch.row
        self.name, self.family = "PyTorch flex_attention", "flex_attention"
        if not row.causal or row.kind != "prefill" or len(row.requests) > 1:
            raise NotApplicable("measured on causal prefill of one request alone")
        self.batch, what, captures = batch, row.what, batch.captures
        count, length = row.requests[0]
        sinks = what.sink(captures)

        def score(s, b, h, q, k):
            return what.scores(s, h, q + length - count, k, captures)

        def mask(b, h, q, k):
            return what.sees(q + length - count, k, captures)

        # What is compiled for one row is no use to another.
        torch.compiler.reset()
        blocks = create_block_mask(mask, None, None, count, length, device="cuda")
        changes = type(what).scores is not Variant.scores

        def attention(q, k, v):
            made = flex_attention(
                q, k, v, score_mod=score if changes else None, block_mask=blocks, enable_gqa=True,
                return_lse=sinks is not None,
            )
            if sinks is None:
                return made
            o, lse = made
            return (o * torch.sigmoid(lse - sinks[None, :, None])[..., None]).to(o.dtype)

        self.function = torch.compile(attention, dynamic=False)
        self.q = batch.q.unsqueeze(0).transpose(1, 2)
        self.pairs = [tuple(t.unsqueeze(0) for t in batch.keys_of(0, copy)) for copy in range(len(batch.copies))]
        self.o = None

    def calls(self):
        def call(k, v):
            def run():
                self.o = self.function(self.q, k, v)

            return run

        return [call(k, v) for k, v in self.pairs]

    def outputs(self):
        return self.o.transpose(1, 2).reshape(self.batch.q.shape), None


def makers(batch, which):
    """[(name, maker)] of all that may run the row. `which`: of "sdpa", "flashinfer",
    "fa4", "flex"."""
    row = batch.row
    found = []
    if "flex" in which:
        found.append(("PyTorch flex_attention", lambda: Flex(batch)))
    if row.variant:
        # The others have variants each in a way of its own, which nothing here speaks.
        return found
    if "sdpa" in which:
        for backend in ("CUDNN_ATTENTION", "FLASH_ATTENTION"):
            found.append((f"SDPA {backend}", lambda b=backend: Sdpa(batch, b)))
    if "flashinfer" in which and importlib.util.find_spec("flashinfer"):
        os.environ.setdefault("FLASHINFER_CUDA_ARCH_LIST", "{}.{}a".format(*torch.cuda.get_device_capability()))
        layouts = ("HND", "NHD") if row.page > 1 else ("HND",)
        for layout in layouts:
            if row.kind == "decode":
                found.append((f"FlashInfer decode {layout}", lambda x=layout: TensorCoreDecode(batch, x)))
                found.append((f"FlashInfer XQA {layout}", lambda x=layout: Xqa(batch, x)))
            else:
                backends = ("fa2", "fa3") if torch.cuda.get_device_capability()[0] == 9 else ("fa2",)
                for backend in backends:
                    found.append((f"FlashInfer {backend} {layout}", lambda b=backend, x=layout: Prefill(batch, b, x)))
            # Persistent, over the whole batch: for decoding and mixed batches.
            if row.page and row.kind != "prefill":
                found.append((f"FlashInfer holistic {layout}", lambda x=layout: Holistic(batch, x)))
    if "fa4" in which and importlib.util.find_spec("flash_attn"):
        found.append(("flash-attn-4", lambda: FlashAttention4(batch)))
    return found
