#===- rows.py - what is measured --------------------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""The rows of the benchmark: shapes, what they cost, and which program runs them."""

from dataclasses import dataclass

from .variants import VARIANTS, Variant


@dataclass(frozen=True)
class Row:
    name: str
    #: "prefill", "decode" or "append" (several query tokens on a cache)
    kind: str
    #: (query tokens, keys) of each request
    requests: tuple
    query_heads: int
    kv_heads: int
    #: keys of a page; 0: ragged, without pages
    page: int
    causal: bool = True
    dim: int = 128
    dtype: str = "bf16"
    #: keys and values as codes of this type, with a scale for all of each, or "nvfp4"; none if empty
    codes: str = ""
    #: of variants.py; plain attention if empty
    variant: str = ""
    #: of values, if it is another one
    value_dim: int = 0

    @property
    def query_tokens(self):
        return sum(q for q, _ in self.requests)

    @property
    def vo(self):
        return self.value_dim or self.dim

    @property
    def is_uniform(self):
        return len(set(self.requests)) == 1

    @property
    def what(self):
        """The variant, of which a plain row has one too."""
        return VARIANTS[self.variant] if self.variant else Variant()

    @property
    def flop(self):
        pairs = sum(q * (kv - q) + q * (q + 1) / 2 if self.causal else q * kv for q, kv in self.requests)
        return 2 * self.query_heads * (self.dim + self.vo) * pairs * self.visited_share()

    def visited_share(self, tile_queries=32, tile_keys=64):
        """How much of what a causal mask leaves is visited by tiles of that size: a
        variant that leaves out keys is measured by the tiles that remain."""
        if not self.causal or not self.variant:
            return 1.0
        plain = visited = 0
        for q, kv in self.requests:
            for query in range(0, q, tile_queries):
                end = -(-min(kv, kv - q + query + tile_queries) // tile_keys)
                plain += end
                visited += end - self.what.first_key(kv - q + query) // tile_keys
        return visited / plain

    @property
    def cache_bytes(self):
        # NVFP4: half a byte, and a byte for each 16.
        bits = 4.5 if self.codes == "nvfp4" else 8 if self.codes else 16
        return sum(int(kv * self.kv_heads * (self.dim + self.vo) * bits / 8) for _, kv in self.requests)

    @property
    def bytes(self):
        """The least that must be moved: keys and values once, query, result, lse."""
        return self.cache_bytes + self.query_tokens * self.query_heads * ((self.dim + self.vo) * 2 + 4)

    @property
    def is_bound_by_memory(self):
        """Against the ridge of data sheets: a few hundred FLOP a byte."""
        return self.flop / self.bytes < 150

    @property
    def program(self):
        """The name of the package that runs the row."""
        pages = f"p{self.page}" if self.page else "ragged"
        mask = "causal" if self.causal else "full"
        codes = f"_{self.codes}" if self.codes else ""
        variant = f"_{self.variant}" if self.variant else ""
        dims = f"{self.dim}" if self.vo == self.dim else f"{self.dim}_{self.vo}"
        return f"{self.dtype}{codes}_h{self.query_heads}x{self.kv_heads}_d{dims}_{pages}_{mask}{variant}"

    def text(self, schedules=""):
        """The program at level 1. `schedules` is put into the attention as it is."""
        kv, d, e = self.kv_heads, self.dim, self.dtype
        stored = self.codes or e
        element = f"!fi.scaled<{stored}, per = tensor, by = f32>" if self.codes else e
        columns = d
        vo = "" if self.vo == d else f", vo = {self.vo}"
        if self.codes == "nvfp4":
            element, stored, columns = "!fi.block_scaled<f4E2M1FN, 16, f8E4M3FN>", "i8", d // 2
        if self.page:
            pool = f"tensor<?x{kv}x{self.page}x{columns}x{stored}>"
            values = f"tensor<?x{kv}x{self.page}x{self.vo}x{stored}>"
            blocks = f"tensor<?x{kv}x{self.page}x{d // 16}xf8E4M3FN>"
            view = f"!fi.paged_kv<{self.page}x{kv}x{d}x{element}, HND{vo}>"
            tables = "%qo_indptr: !ix, %kv_indptr: !ix, %kv_indices: !ix, %last_page_len: !ix"
            make = "fi.view.paged %k, %v tables(%kv_indptr, %kv_indices, %last_page_len : !ix, !ix, !ix)"
        else:
            pool = f"tensor<?x{kv}x{columns}x{stored}>"
            values = f"tensor<?x{kv}x{self.vo}x{stored}>"
            blocks = f"tensor<?x{kv}x{d // 16}xf8E4M3FN>"
            view = f"!fi.ragged_kv<{kv}x{d}x{element}{vo}>"
            tables = "%qo_indptr: !ix, %kv_indptr: !ix"
            make = "fi.view.ragged %k, %v indptr(%kv_indptr : !ix)"
        mask = self.what.clauses.format(heads=self.query_heads) + " " if self.causal else ""
        captured = "".join(f", %{name}: {type.format(heads=self.query_heads)}" for name, type in self.what.arguments)
        schedules = schedules + " " if schedules else ""
        scales, scale_arguments = "", ""
        if self.codes == "nvfp4":
            scales = f" scales(%kb, %ks, %vb, %vs : {blocks}, f32, {blocks}, f32)"
            scale_arguments = f", %kb: {blocks}, %vb: {blocks}, %ks: f32, %vs: f32"
        elif self.codes:
            scales, scale_arguments = " scales(%ks, %vs : f32, f32)", ", %ks: f32, %vs: f32"
        if self.vo == d:
            values = "!pool"
        return f"""!ix = tensor<?xi32>
!pool = {pool}
!kv = {view}
!q = tensor<?x{self.query_heads}x{d}x{e}>
!o = tensor<?x{self.query_heads}x{self.vo}x{e}>
!lse = tensor<?x{self.query_heads}xf32>
fi.program @attention
    plan({tables})
    run(%q: !q, %k: !pool, %v: {values}{scale_arguments}{captured}) -> (!o, !lse) {{
  %kv = {make}{scales} : !pool, {values} -> !kv
  %o, %lse = fi.attention %q rows(%qo_indptr : !ix) over %kv scale({d**-0.5!r}) {mask}{schedules}: !q over !kv -> !o, !lse
  fi.return %o, %lse : !o, !lse
}}
"""


@dataclass(frozen=True)
class NormRow:
    """A norm of hidden states; `adds`: of their sum with others, which is a result too."""

    rows: int
    dim: int
    adds: bool = False
    dtype: str = "bf16"
    eps: float = 1e-6
    kind: str = "norm"

    # As if they were tokens of one request with one head, for the report.
    query_heads, kv_heads, page, causal, codes, variant = 1, 1, 0, False, "", ""

    @property
    def name(self):
        return f"{'add-' if self.adds else ''}rmsnorm-{self.rows}x{self.dim}"

    @property
    def requests(self):
        return ((self.rows, self.rows),)

    @property
    def query_tokens(self):
        return self.rows

    @property
    def parts(self):
        return 2 if self.adds else 1

    @property
    def cache_bytes(self):
        """Of the inputs, which every call finds cold."""
        return self.parts * self.rows * self.dim * 2

    @property
    def bytes(self):
        """Each part read once and written once."""
        return 2 * self.cache_bytes

    @property
    def flop(self):
        return (4 + self.adds) * self.rows * self.dim

    is_bound_by_memory = True

    @property
    def program(self):
        return f"{'add_' if self.adds else ''}rmsnorm_{self.dtype}_d{self.dim}"

    def text(self, schedules=""):
        x, w = f"tensor<?x1x{self.dim}x{self.dtype}>", f"tensor<{self.dim}x{self.dtype}>"
        if self.adds:
            return f"""fi.program @norm run(%x: {x}, %r: {x}, %w: {w}) -> ({x}, {x}) {{
  %y, %sum = fi.rms_norm %x add(%r : {x}) weight(%w : {w}) eps({self.eps:.1e}) : {x} -> {x}, {x}
  fi.return %y, %sum : {x}, {x}
}}
"""
        return f"""fi.program @norm run(%x: {x}, %w: {w}) -> ({x}) {{
  %y = fi.rms_norm %x weight(%w : {w}) eps({self.eps:.1e}) : {x} -> {x}
  fi.return %y : {x}
}}
"""


def _prefill(tokens, causal=True, page=0, variant="", heads=(32, 8), dim=128, value_dim=0):
    suffix = f"-p{page}" if page else ""
    if dim != 128 or heads != (32, 8):
        suffix += f"-{heads[0]}x{heads[1]}-d{dim}" + (f"-{value_dim}" if value_dim else "")
    suffix += f"-{variant}" if variant else ""
    name = f"prefill-{tokens // 1024}k-{'causal' if causal else 'full'}{suffix}"
    return Row(name, "prefill", ((tokens, tokens),), *heads, page, causal, dim, variant=variant, value_dim=value_dim)


def _decode(name, batch, keys, heads, page=16, codes="", dim=128):
    suffix = (f"-d{dim}" if dim != 128 else "") + (f"-{codes}" if codes else "")
    name = f"decode-{name}-{heads[0]}x{heads[1]}-p{page}{suffix}"
    return Row(name, "decode", ((1, keys),) * batch, *heads, page, codes=codes, dim=dim)


#: Sixteen lengths that sum up to 32k.
SKEWED = (8192, 6144, 4096, 3072, 2560, 2048, 1536, 1280, 1024, 768, 640, 512, 384, 256, 192, 64)


def _append(name, batch, tokens, keys, heads):
    return Row(f"{name}-{heads[0]}x{heads[1]}", "append", ((tokens, keys),) * batch, *heads, 16)


ROWS = (
    *(_prefill(tokens, causal) for tokens in (1024, 4096, 16384) for causal in (True, False)),
    _prefill(16384, page=16),
    _prefill(16384, page=1),
    # What a variant costs: the rate of its row against that of the first of these.
    *(_prefill(8192, variant=variant) for variant in ("", *VARIANTS) if variant != "window128-sink"),
    _prefill(8192, causal=False),
    # Other heads.
    *(_prefill(8192, causal, heads=(64, 8), dim=64) for causal in (True, False)),
    *(_prefill(tokens, causal, heads=(32, 2), dim=256) for tokens in (8192, 16384) for causal in (True, False)),
    _prefill(8192, heads=(128, 128), dim=192, value_dim=128),
    _prefill(8192, variant="window128-sink", heads=(64, 8), dim=64),
    _prefill(16384, page=64),
    # Prompts of one batch, a few of which have most of its tokens.
    Row("prefill-16-of-32k-causal", "prefill", tuple((n, n) for n in SKEWED), 32, 8, 0),
    _decode("bs64-4k", 64, 4096, (32, 8)),
    _decode("bs64-4k", 64, 4096, (32, 8), page=64),
    _decode("bs64-4k", 64, 4096, (32, 8), page=1),
    _decode("bs64-6k", 64, 6144, (32, 8)),
    Row("decode-bs64-3k-9k-32x8-p16", "decode", tuple((1, 3072 + 97 * i % 61 * 100) for i in range(64)), 32, 8, 16),
    _decode("bs64-4k", 64, 4096, (8, 1)),
    _decode("bs1-4k", 1, 4096, (32, 4)),
    _decode("bs64-8k", 64, 8192, (32, 2), dim=256),
    _decode("bs1-128k", 1, 131072, (64, 8)),
    _decode("bs1-128k", 1, 131072, (8, 1)),
    _decode("bs1-8k", 1, 8192, (32, 8)),
    _decode("bs16-8k", 16, 8192, (32, 8)),
    # What codes of eight bits save: tokens in a second against the row above them.
    _decode("bs64-8k", 64, 8192, (32, 8)),
    _decode("bs64-8k", 64, 8192, (32, 8), codes="f8E4M3FN"),
    _decode("bs64-8k", 64, 8192, (32, 8), codes="nvfp4"),
    _append("verify-q4-bs8-8k", 8, 4, 8192, (64, 8)),
    _append("verify-q4-bs1-128k", 1, 4, 131072, (8, 1)),
    _append("chunked-q512-64k", 1, 512, 65536, (8, 1)),
    # Two prompts and the decoding of 128 others in one batch.
    Row("mixed-2x2k-128x2k-32x8", "append", ((2048, 2048),) * 2 + ((1, 2048),) * 128, 32, 8, 16),
    NormRow(4096, 4096),
    NormRow(4096, 4096, adds=True),
)


def select(patterns=None):
    """The rows whose name contains one of the patterns; all without patterns."""
    if not patterns:
        return list(ROWS)
    rows = [row for row in ROWS if any(p in row.name for p in patterns)]
    if not rows:
        raise SystemExit(f"no row is named like {', '.join(patterns)}; rows are: {', '.join(r.name for r in ROWS)}")
    return rows
