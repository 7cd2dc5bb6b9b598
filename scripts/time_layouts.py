#===- time_layouts.py - block-sparse beside dense, latents beside pages -----===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""time_layouts.py --build BUILD [--backend cuda] [--keys 16384] [--density 0.1]

Times attention over blocks of 64 x 64, of which a row of blocks has `density`, beside
the same over all keys; and absorbed latent decoding of 64 requests, in bytes read.
Prints one line each; every number is the fastest of the repeats that fi-run makes.
"""

import argparse
import json
import pathlib
import random
import re
import subprocess
import tempfile

BLOCK = 64
BLOCKS = """!ix = tensor<?xi32>
!t = tensor<?x8x128xbf16>
!q = tensor<?x32x128xbf16>
!kv = !fi.bsr_kv<64x8x128xbf16, rows = 64>
fi.program @p plan(%qo: !ix, %indptr: !ix, %rows: !ix, %columns: !ix)
    run(%q: !q, %k: !t, %v: !t) -> (!q) {
  %kv = fi.view.bsr %k, %v indptr(%indptr : !ix) blocks(%rows, %columns : !ix, !ix) : !t, !t -> !kv
  %o = fi.attention %q rows(%qo : !ix) over %kv scale(0.08838834) : !q over !kv -> !q
  fi.return %o : !q
}
"""
LATENTS = """!ix = tensor<?xi32>
!qn = tensor<?x128x512xbf16>
!qr = tensor<?x128x64xbf16>
!c = memref<?x64x512xbf16>
!r = memref<?x64x64xbf16>
!kv = !fi.latent_kv<512+64xbf16, page = 64>
fi.program @p plan(%qo: !ix, %indptr: !ix, %pages: !ix, %last: !ix)
    run(%qn: !qn, %qr: !qr, %c: !c, %r: !r) -> (!qn) {
  %kv = fi.view.latent %c, %r tables(%indptr, %pages, %last : !ix, !ix, !ix) : !c, !r -> !kv
  %o = fi.attention %qn, %qr rows(%qo : !ix) over %kv scale(0.07216878) mask(#fi.causal)
      : !qn, !qr over !kv -> !qn
  fi.return %o : !qn
}
"""


def run(options, folder, text, batch):
    """Milliseconds of a run."""
    (folder / "p.mlir").write_text(text, encoding="utf-8")
    (folder / "b.json").write_text(json.dumps(batch), encoding="utf-8")
    made = subprocess.run(
        [str(options.build / "bin/fi-run"), str(folder / "p.mlir"), f"--batch={folder / 'b.json'}",
         f"--backend={options.backend}", "--timing", f"--repeat={options.repeat}"],
        capture_output=True, encoding="utf-8", check=False)
    found = re.search(r"run ([\d.]+) ms", made.stdout)
    if made.returncode or not found:
        raise SystemExit(made.stdout + made.stderr)
    return float(found[1])


def blocks_of(keys, density, seed=1):
    """A batch of one request with that many rows and keys, of which blocks see some."""
    pick = random.Random(seed)
    count = keys // BLOCK
    indptr, columns = [0], []
    for _ in range(count):
        columns += sorted(pick.sample(range(count), max(1, round(count * density))))
        indptr.append(len(columns))
    return {"arguments": {"qo": [0, keys], "indptr": [0, keys], "rows": indptr,
                          "columns": columns}}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--keys", type=int, default=16384)
    parser.add_argument("--density", type=float, default=0.1)
    parser.add_argument("--requests", type=int, default=64)
    parser.add_argument("--latent-keys", type=int, default=8192)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        dense = run(options, folder, BLOCKS, blocks_of(options.keys, 1.0))
        sparse = run(options, folder, BLOCKS, blocks_of(options.keys, options.density))
        print(f"{options.keys} rows and keys, all blocks: {dense:.3f} ms")
        print(f"{options.density:.0%} of the blocks: {sparse:.3f} ms, "
              f"{dense / sparse:.2f} times as fast")
        requests = [{"q_len": 1, "kv_len": options.latent_keys}] * options.requests
        latent = run(options, folder, LATENTS, {"requests": requests})
        read = options.requests * options.latent_keys * 576 * 2
        print(f"{options.requests} requests of {options.latent_keys} latents, 128 heads: "
              f"{latent:.3f} ms, {read / latent / 1e6:.1f} GB/s")


if __name__ == "__main__":
    main()
