#===- host_time.py - what a run costs the host from Python --------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""python3 -m benchmarks.host_time [--torch PACKAGE]

Nanoseconds of the host for `plan.run` with five tensors (q, k, v, out, lse), launches
included. Without --torch on any machine: the driver is the tests' libcuda made of host
memory, whose launches return at once, and the tensors are of a type with DLPack's C
functions (targets fi-runtime-fake-cuda and device_tensors of a build). With --torch: a
package of `benchmarks.packages`, tensors of torch and the GPU.

The least of many short rounds counts: the host's own path, without interrupts.
"""

import argparse
import ctypes
import json
import os
import pathlib
import struct
import sys
import time

HEADS, KV_HEADS, DIM, PAGE = 32, 8, 128, 16

_MANIFEST = {
    "manifest": 1, "abi": 1, "compiler": "benchmark", "program": "decode",
    "target": {"kind": "cuda", "chip": "sm_80", "ptx": "7.4"},
    "arguments": [
        *({"name": name, "group": "plan", "kind": "tensor", "dtype": "i32", "shape": [None]}
          for name in ("qo", "indptr", "pages", "last")),
        {"name": "q", "group": "run", "kind": "tensor", "dtype": "f16", "shape": [None, HEADS, DIM], "align": 16},
        *({"name": name, "group": "run", "kind": "pool", "dtype": "f16",
           "shape": [None, PAGE, KV_HEADS, DIM], "align": 16} for name in ("k", "v")),
    ],
    "results": [
        {"name": "out", "dtype": "f16", "shape": [None, HEADS, DIM], "rows_of": "q", "align": 16},
        {"name": "lse", "dtype": "f32", "shape": [None, HEADS], "rows_of": "q"},
    ],
    "temporaries": [],
    "stages": [{
        "op": "attention", "name": "attention0", "query": "q", "rows": "qo", "positions": None,
        "view": {"kind": "paged", "keys": "k", "values": "v", "order": "NHD", "page": PAGE, "heads": KV_HEADS,
                 "indptr": "indptr", "pages": "pages", "last": "last", "lengths": None, "origin": None},
        "heads": {"q": HEADS, "kv": KV_HEADS}, "dims": {"qk": DIM, "vo": DIM},
        "outputs": {"o": "out", "lse": "lse"}, "buffers": ["q", "k", "v", "pages", "out", "lse"],
        "bodies": [{"symbol": "body0", "tile_rows": 16, "tile_keys": 64, "max_rows": None, "counters": True,
                    "launch": {"threads": 128, "shared": 0, "empty_items": True},
                    "cost": {"item": 100, "tile": 100, "tile_row": 1, "slot_row": 1}}],
        "split": {"policy": "balanced"}, "mask": {"terms": [{"lo": [], "hi": [["q"]], "exact": True}]},
    }],
}


def rounds(call, count=200, repeats=400):
    """The least time of a call in nanoseconds."""
    best = float("inf")
    for _ in range(repeats):
        start = time.perf_counter_ns()
        for _ in range(count):
            call()
        best = min(best, (time.perf_counter_ns() - start) / count)
    return best


def find(build, pattern):
    found = sorted(pathlib.Path(build).rglob(pattern))
    if not found:
        sys.exit(f"host_time: there is no {pattern} in {build}; build fi-runtime-fake-cuda and device_tensors")
    return found[0]


def without_gpu(build):
    library = find(build, "libfi-runtime-fake-cuda*")
    os.environ["FI_CUDA_LIBRARY"] = str(library)
    sys.path[:0] = [str(find(build, "device_tensors*.so").parent)]
    import device_tensors

    cuda = ctypes.CDLL(str(library))
    device_tensors.use(*(ctypes.cast(f, ctypes.c_void_p).value for f in (cuda.cuMemAlloc_v2, cuda.cuMemFree_v2)))

    from fi import _runtime

    ptx = ".version 7.4\n.target sm_80\n.address_size 64\n.visible .entry body0()\n{ ret; }\n"
    package = _runtime.open_code(json.dumps(_MANIFEST), ptx, b"")

    def table(*values):
        return memoryview(struct.pack(f"{len(values)}i", *values)).cast("i")

    options = _runtime.PlanOptions()
    options.shapes = None
    plan = _runtime.Plan(package, (table(0, 1), table(0, 4), table(3, 1, 0, 2), table(5)), 0, options)

    def tensor(code, bits, *shape):
        return device_tensors.Tensor(shape, code, bits, 0)

    values = tensor(2, 16, 1, HEADS, DIM), *(tensor(2, 16, 4, PAGE, KV_HEADS, DIM) for _ in "kv")
    return plan, values, tensor(2, 16, 1, HEADS, DIM), tensor(2, 32, 1, HEADS)


def with_torch(path):
    import fi
    import torch

    program = fi.load(path)
    shapes = {a.name: a for a in program.run_arguments}
    types = {"f16": torch.float16, "bf16": torch.bfloat16, "f32": torch.float32}

    def tensor(info, first):
        return torch.zeros([first if size is None else size for size in info.shape],
                           dtype=types[info.dtype], device="cuda")

    tables = [torch.tensor(t, dtype=torch.int32) for t in ([0, 1], [0, 4], [3, 1, 0, 2], [1])]
    plan = fi.Plan(program, *tables)
    values = [tensor(shapes[name], 1 if name == "q" else 4) for name in shapes]
    return plan, values, tensor(program.results[0], 1), tensor(program.results[1], 1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", metavar="PACKAGE", help="measure with torch on the GPU")
    parser.add_argument("--build", default="build/dev", help="where the tests' libraries are (build/dev)")
    options = parser.parse_args()
    plan, (q, k, v), out, lse = with_torch(options.torch) if options.torch else without_gpu(options.build)
    # Few at a time on a GPU: its queue of launches must not fill.
    few = {"count": 20} if options.torch else {}
    results = {
        "five tensors by name": lambda: plan.run(q, k, v, out=out, lse=lse),
        "the same and a stream": lambda: plan.run(q, k, v, out=out, lse=lse, stream=0),
        "results allocated": lambda: plan.run(q, k, v),
    }
    for name, call in results.items():
        print(f"{name:24} {rounds(call, **few):8.0f} ns")


if __name__ == "__main__":
    main()
