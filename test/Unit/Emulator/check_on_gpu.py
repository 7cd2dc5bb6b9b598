#!/usr/bin/env python3
# ===- check_on_gpu.py - the emulator's kernels on a GPU --------------------=== #
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
# ===----------------------------------------------------------------------=== #
"""Runs what fi-emu-cases wrote on a GPU and compares with the emulator.

  fi-emu-cases DIR
  python3 check_on_gpu.py DIR

Needs CuPy and a driver that takes the PTX. Outputs agree bit for bit, except
where approximations or tensor cores on floats are involved: there by the
tolerance of the case, relative to the largest value.
"""
import json
import pathlib
import sys

import cupy
import numpy


def load(folder, case):
    """The kernel, through the driver's assembler."""
    path = str(folder / (case["module"] + ".ptx"))
    return cupy.RawModule(path=path).get_function(case["kernel"])


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    cases = json.loads((folder / "cases.json").read_text())
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{len(cases)} kernels on {name}")
    failed = 0
    for case in cases:
        arguments, outputs = [], []
        for i, a in enumerate(case["arguments"]):
            if "u32" in a:
                arguments.append(numpy.uint32(a["u32"]))
                continue
            array = cupy.asarray(numpy.load(folder / a["buffer"]))
            arguments.append(array)
            if a["output"]:
                outputs.append((i, array))
        kernel = load(folder, case)
        kernel(tuple(case["grid"]), tuple(case["block"]), tuple(arguments), shared_mem=case["shared"])
        cupy.cuda.runtime.deviceSynchronize()
        for i, array in outputs:
            gpu = cupy.asnumpy(array)
            emulated = numpy.load(folder / f"{case['kernel']}.{i}.emulated.npy")
            different = numpy.flatnonzero(gpu != emulated)
            line = f"{case['kernel']}: {len(gpu)} words, {len(different)} different"
            bad = len(different) > 0
            if bad and not case["exact"]:
                g, e = gpu.view(numpy.float32), emulated.view(numpy.float32)
                error = float(numpy.abs(g - e).max() / numpy.abs(e).max())
                # The hardware's approximations are coarser than the emulator's.
                bad = not error <= max(4 * case["tolerance"], 1e-5)
                line += f", relative error {error:.3g}"
            if bad:
                failed += 1
                for k in different[:4]:
                    line += f"\n  [{k}] gpu 0x{gpu[k]:08x} emulator 0x{emulated[k]:08x}"
            print(("FAIL " if bad else "ok   ") + line)
    print(f"{len(cases) - failed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
