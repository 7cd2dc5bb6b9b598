#!/usr/bin/env python3
#===- variants.py - what variants of attention cost on a CPU ----------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Measures each variant of docs/variants.md beside plain causal attention on a CPU.

Programs are those of the page, made larger: 32 heads on 8 of keys and values, dim 128, a
prompt of 2048 tokens (a tree of 32 drafts behind 2048 keys for each of 16 requests, beside
causal attention of the same batch). Each is measured in turns with plain causal attention of
its batch, on one thread; what is printed is the ratio of their rates, by the pairs of packed rows and
keys in the tiles that the planner visits. Results are not compared with anything: the page's tests do that.

    bench/cpu/variants.py --run build/release/bin/fi-run [--type f32] [--only rope]
"""

import argparse
import json
import os
import pathlib
import re
import statistics
import struct
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
HEADS, KV_HEADS, DIM, TOKENS = 32, 8, 128, 2048
DRAFTS, TREES = 32, 16

#: what this page has beside docs/variants.md: clauses for the causal program
CLAUSES = {
    "tanh_score": """score(%s: f32, %req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %c = arith.constant 0.03 : f32
        %x = arith.mulf %s, %c : f32
        %t = math.tanh %x : f32
        %g = arith.constant 30.0 : f32
        %y = arith.mulf %t, %g : f32
        fi.yield %y : f32
      } mask(#fi.causal)""",
    "documents": """captures(%dc = %doc : tensor<?x?xi32>)
      mask(#fi.causal)
      mask(%req: index, %qh: index, %kh: index, %qp: index, %kp: index) {
        %a = fi.load %dc[%req, %qp] : tensor<?x?xi32>
        %b = fi.load %dc[%req, %kp] : tensor<?x?xi32>
        %m = arith.cmpi eq, %a, %b : i32
        fi.yield %m : i1
      }""",
    "base_e": "normalise(#fi.softmax<base = e>) mask(#fi.causal)",
    "rotary": "pair<half> query(#fi.rotary<10000.0>) key(#fi.rotary<10000.0>) mask(#fi.causal)",
}


def sizes(text, element):
    """The page's program with the benchmark's shapes."""
    for old, new in (
        ("memref<?x2x16x32xbf16>", f"memref<?x{KV_HEADS}x16x{DIM}xbf16>"),
        ("16x2x32xbf16", f"16x{KV_HEADS}x{DIM}xbf16"),
        ("tensor<?x4x32xbf16>", f"tensor<?x{HEADS}x{DIM}xbf16>"),
        ("tensor<4xf32>", f"tensor<{HEADS}xf32>"),
        ("0.17677669", "0.08838835"),
        ("-0.830482", "-0.2076205"),  # -log2(10000) / 64
        ("left = 31>", "left = 1023>"),
        ("left = 64>", "left = 1024>"),
        # A picture of 45 x 45.
        ("constant 5 : index                // 8 - 3", "constant 42 : index"),
        ("%width = arith.constant 8 :", "%width = arith.constant 45 :"),
    ):
        text = text.replace(old, new)
    return text.replace("xbf16", "x" + element)


def save_npy(path, shape, code, values):
    """A file of integers (i4) or booleans (b1)."""
    kind = {"i": "<i4", "?": "|b1"}[code]
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))
    return {"npy": path.name}


def random_bits(count, seed=3):
    """Nine of ten are set; the same everywhere."""
    state = seed
    for _ in range(count):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        yield (state >> 40) % 10 != 0


def arguments(name, directory):
    """What a variant captures."""
    file = lambda argument: directory / f"{name}-{argument}.npy"
    if name == "alibi":
        return {"slope": [2 ** (-8 * (i + 1) / HEADS) for i in range(HEADS)]}
    if name == "sink":
        return {"sink": [i / 8 for i in range(HEADS)]}
    if name == "positions":
        # Chunks of 256 from both ends in turn.
        return {"pos": [256 * chunk + i for chunk in (0, 7, 1, 6, 2, 5, 3, 4) for i in range(256)]}
    if name == "boolean":
        seen = [b or k == q for q in range(TOKENS) for k, b in enumerate(random_bits(TOKENS, q))]
        return {"mask": save_npy(file("mask"), (TOKENS, TOKENS), "?", seen), "first": [0], "rows": [0]}
    if name == "packed":
        bits = random_bits(TOKENS * TOKENS)
        words = [sum(next(bits) << i for i in range(32)) for _ in range(TOKENS * TOKENS // 32)]
        words = [w - 2**32 if w >= 2**31 else w for w in words]
        return {"bits": save_npy(file("bits"), (len(words),), "i", words), "first": [0], "keys": [TOKENS], "begin": [0]}
    if name == "tree":
        rows = []
        for i in range(DRAFTS):  # the parent of draft i is (i - 1) / 2
            seen = 1 << i
            while i:
                i = (i - 1) // 2
                seen |= 1 << i
            rows.append(seen - 2**32 if seen >= 2**31 else seen)
        return {"text": [TOKENS - DRAFTS] * TREES, "ancestors": [rows] * TREES}
    if name == "items":
        return {"item": [[0 if i < 512 else (i - 512) // 128 + 1 for i in range(TOKENS)]]}
    if name == "ranges":
        return {"end": [[i if i // 256 % 2 == 0 else i | 255 for i in range(TOKENS)]]}
    if name == "documents":
        return {"doc": [[i // 512 for i in range(TOKENS)]]}
    return {}


def make_programs(element, directory):
    page = (SOURCE / "docs" / "variants.md").read_text()
    texts = dict(re.findall(r"<!-- file: (\w+)\.mlir -->\n```mlir\n(.*?)```", page, re.S))
    if not texts:
        raise RuntimeError("docs/variants.md has no programs")
    texts["rope_interleaved"] = texts["rope_half"].replace("pair<half>", "pair<interleaved>")
    for name, clauses in CLAUSES.items():
        texts[name] = texts["causal"].replace("mask(#fi.causal)", clauses)
    texts["documents"] = texts["documents"].replace("%last: !ix)", "%last: !ix, %doc: tensor<?x?xi32> {fi.sorted})")
    programs = {}
    for name, text in texts.items():
        program = directory / f"{name}.mlir"
        program.write_text(sizes(text, element))
        plain = directory / f"{name}-plain.mlir"
        plain.write_text(sizes(texts["causal"], element))
        requests = [{"q_len": TOKENS, "kv_len": TOKENS}]
        if name == "tree":
            requests = [{"q_len": DRAFTS, "kv_len": TOKENS}] * TREES
        if name == "neighbours":
            requests = [{"q_len": 45 * 45, "kv_len": 45 * 45}]
        batch = {"requests": requests, "arguments": arguments(name, directory)}
        program.with_suffix(".json").write_text(json.dumps(batch))
        plain.with_suffix(".json").write_text(json.dumps({"requests": requests}))
        programs[name] = (program, plain)
    return programs


def execute(run, program, repeat):
    """Seconds of processor time of a process, and what it printed."""
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [run, program, "--workers=1", "--explain", f"--repeat={repeat}"],
            stdout=output, stderr=subprocess.STDOUT, env=os.environ)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        text = output.read()
    if process.returncode:
        raise RuntimeError(f"{program.name}: {text}")
    return usage.ru_utime, text


def measure(run, program, repeat):
    """Milliseconds of processor time of a run, and how many pairs of rows and keys the
    visited tiles have. Beside other work this varies less than the time that passes; data
    and code are made once."""
    before, _ = execute(run, program, 1)
    after, text = execute(run, program, 1 + repeat)
    tiles = re.search(r"keys: (\d+) full tiles, (\d+) masked or partial", text)
    bodies = re.findall(r"body '\w+': (\d+) items, tiles of (\d+) rows and (\d+) keys", text)
    sizes = [int(rows) * int(keys) for items, rows, keys in bodies if int(items)]
    if not tiles or len(sizes) != 1:
        raise RuntimeError(f"{program.name}: expected tiles of one body in {text}")
    return 1e3 * (after - before) / repeat, (int(tiles[1]) + int(tiles[2])) * sizes[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--run", required=True, help="fi-run")
    parser.add_argument("--type", choices=["bf16", "f16", "f32"], default="bf16")
    parser.add_argument("--only", default="", help="variants with one of these, comma separated, in their name")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--repeat", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        # Of kernels, so that no process but the first of each program compiles.
        os.environ["FI_CACHE_DIR"] = name + "/cache"
        print(f"| variant | {options.type} | plain causal | pairs in visited tiles | rate, of plain causal |\n|---|---|---|---|---|")
        for name, (program, plain) in make_programs(options.type, pathlib.Path(name)).items():
            if not any(one in name for one in options.only.split(",")):
                continue
            own, other = [], []
            for one in (plain, program):
                execute(options.run, one, 1)
            for _ in range(options.rounds):
                other.append(measure(options.run, plain, options.repeat))
                own.append(measure(options.run, program, options.repeat))
            time, reference = (statistics.median(t for t, _ in times) for times in (own, other))
            tiles, of = own[0][1], other[0][1]
            print(f"| {name} | {time:.1f} ms | {reference:.1f} ms | {tiles / 1e6:.1f}, {of / 1e6:.1f} million | "
                  f"{reference / of / (time / tiles):.2f} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
