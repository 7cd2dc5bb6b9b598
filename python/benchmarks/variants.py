#===- variants.py - attention that is not plain --------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Variants of causal attention: what a program says, what its captures are, what it
means in torch, and the same for flex_attention.

A variant is a class without state; its tensors are made for a batch, from a seed.
Positions are those of a request whose queries are its last tokens. Rows are made where
there is no torch, which only tensors need.
"""

WINDOW = 1024
CAP = 30.0


class Variant:
    name = ""
    #: the clauses of the attention, between its scale and its schedules
    clauses = "mask(#fi.causal)"  # {heads} is filled in
    #: arguments of the run behind keys and values: (name, type with {heads})
    arguments = ()

    def tensors(self, batch):
        """What the run takes for `arguments`."""
        return ()

    def scores(self, scores, head, query, key, tensors):
        """What scores in natural units become: tensors that broadcast, as those of
        flex_attention do."""
        return scores

    def sees(self, query, key, tensors):
        """Whether a query sees a key that does not lie behind it."""
        return key <= query

    #: logits that take part in the sum of weights: of the tensors, one for each head
    def sink(self, tensors):
        return None

    def first_key(self, query):
        """Before which key no query from that position on sees any."""
        return 0


class SoftCap(Variant):
    name = "softcap"
    clauses = f"score(#fi.softcap<{CAP}>) mask(#fi.causal)"

    def scores(self, scores, head, query, key, tensors):
        return CAP * (scores / CAP).tanh()


class Alibi(Variant):
    name = "alibi"
    arguments = (("slopes", "tensor<{heads}xf32>"),)
    clauses = """captures(%sl = %slopes : tensor<{heads}xf32>)
      score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {{
        %d = arith.subi %kp, %qp : index
        %i = arith.index_cast %d : index to i32
        %f = arith.sitofp %i : i32 to f32
        %m = fi.load %sl[%qh] : tensor<{heads}xf32>
        %b = arith.mulf %m, %f : f32
        %t = arith.addf %s, %b : f32
        fi.yield %t : f32
      }}
      mask(#fi.causal)"""

    def tensors(self, batch):
        import torch

        heads = batch.row.query_heads
        return (torch.tensor([2 ** (-8 * (i + 1) / heads) for i in range(heads)], device="cuda"),)

    def scores(self, scores, head, query, key, tensors):
        return scores + tensors[0][head] * (key - query)


class Sink(Variant):
    name = "sink"
    arguments = (("sinks", "tensor<{heads}xf32>"),)
    clauses = "sink(%sinks : tensor<{heads}xf32>) mask(#fi.causal)"

    def tensors(self, batch):
        import torch

        return (torch.linspace(-1, 3, batch.row.query_heads, device="cuda"),)

    def sink(self, tensors):
        return tensors[0]


class Window(Variant):
    name = f"window{WINDOW}"
    clauses = f"mask(#fi.causal, #fi.window<left = {WINDOW - 1}>)"

    def sees(self, query, key, tensors):
        return (key <= query) & (query - key < WINDOW)

    def first_key(self, query):
        return max(0, query - WINDOW + 1)


class WindowSink(Sink):
    """Layers of gpt-oss: the last 128 keys, and a logit of each head beside them."""

    SEEN = 128
    name = f"window{SEEN}-sink"
    clauses = f"sink(%sinks : tensor<{{heads}}xf32>) mask(#fi.causal, #fi.window<left = {SEEN - 1}>)"

    def sees(self, query, key, tensors):
        return (key <= query) & (query - key < self.SEEN)

    def first_key(self, query):
        return max(0, query - self.SEEN + 1)


class Bits(Variant):
    """Besides the causal mask, a bit for each query and key, nine of ten set."""

    name = "bits"
    arguments = (("bits", "!ix"), ("first", "!ix"), ("keys", "!ix"), ("begin", "!ix"))
    clauses = """captures(%words = %bits : !ix, %f = %first : !ix, %n = %keys : !ix, %b = %begin : !ix)
      mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {{
        %p = fi.load %f[%req] : !ix
        %w = fi.load %n[%req] : !ix
        %o = fi.load %b[%req] : !ix
        %pi = arith.index_cast %p : i32 to index
        %wi = arith.index_cast %w : i32 to index
        %oi = arith.index_cast %o : i32 to index
        %i = arith.subi %qp, %pi : index
        %before = arith.muli %i, %wi : index
        %start = arith.addi %oi, %before : index
        %bit = arith.addi %start, %kp : index
        %c32 = arith.constant 32 : index
        %word = arith.divui %bit, %c32 : index
        %in = arith.remui %bit, %c32 : index
        %s = arith.index_cast %in : index to i32
        %x = fi.load %words[%word] : !ix
        %y = arith.shrui %x, %s : i32
        %m = arith.trunci %y : i32 to i1
        fi.yield %m : i1
      }}"""

    def tensors(self, batch):
        import torch

        (queries, keys), = batch.row.requests
        torch.manual_seed(3)
        words = queries * keys // 32
        bits = torch.rand(words, 32, device="cuda") < 0.9
        # A row that saw nothing would have no result to compare with.
        bits.view(queries, keys).diagonal(keys - queries).fill_(True)
        packed = (bits.long() << torch.arange(32, device="cuda")).sum(1)
        packed = torch.where(packed >= 1 << 31, packed - (1 << 32), packed).int()
        number = lambda x: torch.tensor([x], dtype=torch.int32, device="cuda")
        return packed, number(keys - queries), number(keys), number(0)

    def sees(self, query, key, tensors):
        bits, first, keys, _ = tensors
        at = (query - first[0]) * keys[0] + key
        return (key <= query) & ((bits[at // 32] >> (at % 32)) & 1 != 0)


VARIANTS = {variant.name: variant for variant in (SoftCap(), Alibi(), Sink(), Window(), Bits(), WindowSink())}
