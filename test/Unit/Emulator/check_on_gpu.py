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

Needs Python and a CUDA driver that takes the PTX, nothing else. Outputs agree bit
for bit, except where approximations or tensor cores on floats are involved: there by
the tolerance of the case, relative to the largest value. A kernel that faults or does
not end takes its process with it, so kernels run in a child, and behind such a one in
another. scripts/prove_gpu.py does this and more.
"""

import array
import ctypes
import json
import pathlib
import re
import struct
import subprocess
import sys
import threading


class NoGpu(Exception):
    pass


class Hidden:
    """An array that tensor maps alone know."""

    def __init__(self, words):
        self.words = words


class TensorMap:
    def __init__(self, argument):
        self.spec, self.of, self.offset = argument["map"], argument["of"], argument["offset"]


class Gpu:
    """The first GPU, through the driver's C interface."""

    def __enter__(self):
        try:
            self.cuda = ctypes.CDLL("libcuda.so.1")
        except OSError as error:
            raise NoGpu(f"this machine has no CUDA driver ({error})") from None
        if self.cuda.cuInit(0):
            raise NoGpu("the CUDA driver finds no GPU (cuInit failed)")
        count = ctypes.c_int()
        if self.cuda.cuDeviceGetCount(ctypes.byref(count)) or count.value == 0:
            raise NoGpu("the CUDA driver finds no GPU")
        device, self.device = ctypes.c_int(), None
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        name = ctypes.create_string_buffer(256)
        self.call("cuDeviceGetName", name, 256, device)
        self.name = name.value.decode()
        version = ctypes.c_int()
        self.call("cuDriverGetVersion", ctypes.byref(version))
        self.driver = f"{version.value // 1000}.{version.value % 1000 // 10}"
        context = ctypes.c_void_p()
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.device = device
        major, minor = ctypes.c_int(), ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(major), 75, device)
        self.call("cuDeviceGetAttribute", ctypes.byref(minor), 76, device)
        self.chip = major.value * 10 + minor.value
        self.call("cuCtxSetCurrent", context)
        self.modules = {}
        return self

    def __exit__(self, *_):
        if self.device is not None:
            self.cuda.cuDevicePrimaryCtxRelease_v2(self.device)

    def call(self, name, *arguments):
        status = getattr(self.cuda, name)(*arguments)
        if status:
            text = ctypes.c_char_p()
            self.cuda.cuGetErrorName(status, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'unknown').decode()} ({status})")

    def function(self, path, name):
        if path not in self.modules:
            module = ctypes.c_void_p()
            self.call("cuModuleLoadData", ctypes.byref(module), path.read_bytes() + b"\0")
            self.modules[path] = module
        function = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(function), self.modules[path], name.encode())
        return function

    def tensor_map(self, spec, address):
        """128 bytes as the driver makes them."""
        room = ctypes.create_string_buffer(128 + 64)
        at = (ctypes.addressof(room) + 63) // 64 * 64
        rank = len(spec["dims"])
        self.call(
            "cuTensorMapEncodeTiled",
            ctypes.c_void_p(at),
            spec["type"],
            rank,
            ctypes.c_void_p(address),
            (ctypes.c_uint64 * rank)(*spec["dims"]),
            (ctypes.c_uint64 * max(rank - 1, 1))(*spec["strides"]),
            (ctypes.c_uint32 * rank)(*spec["box"]),
            (ctypes.c_uint32 * rank)(*spec["element_strides"]),
            0,
            spec["swizzle"],
            0,
            spec["fill"],
        )
        return room, at

    def launch(self, function, grid, block, shared, arguments):
        """`arguments`: arrays of words, which hold the results afterwards, numbers, or
        tensor maps over one of the arrays (TensorMap); arrays in Hidden are no parameters."""
        values, buffers, addresses = [], [], {}
        for i, argument in enumerate(arguments):
            if isinstance(argument, Hidden):
                argument = argument.words
            if isinstance(argument, array.array):
                address = ctypes.c_uint64()
                size = len(argument) * argument.itemsize
                self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
                self.call("cuMemcpyHtoD_v2", address, argument.tobytes(), ctypes.c_size_t(size))
                addresses[i] = address
                buffers.append((argument, address, size))
        places = []
        for i, argument in enumerate(arguments):
            if isinstance(argument, Hidden):
                continue
            if isinstance(argument, TensorMap):
                room, at = self.tensor_map(argument.spec, addresses[argument.of].value + argument.offset)
                values.append(room)
                places.append(at)
                continue
            values.append(addresses[i] if i in addresses else ctypes.c_uint32(argument))
            places.append(ctypes.addressof(values[-1]))
        pointers = (ctypes.c_void_p * max(len(places), 1))(*places)
        # Static shared memory comes on top of it.
        if shared > 32 << 10:
            most_dynamic_shared = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            self.call("cuFuncSetAttribute", function, most_dynamic_shared, shared)
        self.call("cuLaunchKernel", function, *grid, *block, shared, None, pointers, None)
        self.call("cuCtxSynchronize")
        for words, address, size in buffers:
            host = ctypes.create_string_buffer(size)
            self.call("cuMemcpyDtoH_v2", host, address, ctypes.c_size_t(size))
            self.call("cuMemFree_v2", address)
            words[:] = array.array("I", host.raw)


def load_words(path):
    """The 32-bit words of a .npy file that fi-emu-cases wrote."""
    data = path.read_bytes()
    if data[:8] != b"\x93NUMPY\x01\0":
        raise RuntimeError(f"{path}: not a .npy file of version 1")
    (length,) = struct.unpack_from("<H", data, 8)
    if not re.search(rb"'descr': *'<u4'", data[10 : 10 + length]):
        raise RuntimeError(f"{path}: expected 32-bit words")
    return array.array("I", data[10 + length :])


def runs(gpu, case):
    """Whether the GPU is one that the case is for: sm_80 and later, sm_90a alone."""
    number = int(re.match(r"sm_(\d+)", case["target"])[1])
    return gpu.chip == number if case["target"].endswith("a") else gpu.chip >= number


def floats(words):
    return array.array("f", words.tobytes())


def check(gpu, folder, case):
    """Whether a case agrees, and what to say of it."""
    arguments, outputs = [], []
    for i, a in enumerate(case["arguments"]):
        if "u32" in a:
            arguments.append(a["u32"])
            continue
        if "map" in a:
            arguments.append(TensorMap(a))
            continue
        words = load_words(folder / a["buffer"])
        arguments.append(Hidden(words) if a["hidden"] else words)
        if a["output"]:
            outputs.append((i, words))
    function = gpu.function(folder / (case["module"] + ".ptx"), case["kernel"])
    gpu.launch(function, case["grid"], case["block"], case["shared"], arguments)
    good, lines = True, []
    for i, got in outputs:
        emulated = load_words(folder / f"{case['name']}.{i}.emulated.npy")
        different = [k for k, (g, e) in enumerate(zip(got, emulated)) if g != e]
        line = f"{len(got)} words, {len(different)} different"
        bad = bool(different)
        if bad and not case["exact"]:
            g, e = floats(got), floats(emulated)
            error = max(abs(x - y) for x, y in zip(g, e)) / max(map(abs, e))
            # The hardware's approximations are coarser than the emulator's.
            bad = not error <= max(4 * case["tolerance"], 1e-5)
            line += f", relative error {error:.3g}"
        if bad:
            good = False
            for k in different[:4]:
                line += f"\n  [{k}] gpu 0x{got[k]:08x} emulator 0x{emulated[k]:08x}"
        lines.append(line)
    return good, "\n".join(lines)


class Checker:
    """check() in a child. What a kernel breaks in the driver ends with the child, and
    the next case has a new one."""

    limit = 120  # seconds a case

    def __init__(self, folder):
        self.folder, self.child = folder, None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child:
            self.child.kill()
            self.child.wait()

    def check(self, case):
        if not self.child:
            command = [sys.executable, __file__, "--child", str(self.folder)]
            self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        late = threading.Timer(self.limit, self.child.kill)
        late.start()
        try:
            self.child.stdin.write(json.dumps(case) + "\n")
            self.child.stdin.flush()
            answer = self.child.stdout.readline()
        except BrokenPipeError:
            answer = ""
        expired = not late.is_alive()
        late.cancel()
        good, remark, usable = json.loads(answer) if answer else (False, "", False)
        if not usable:
            self.child.kill()
            status, self.child = self.child.wait(), None
            if not remark:
                remark = f"no end after {self.limit} s" if expired else f"its process died with status {status}"
        return good, remark


def serve(folder):
    """The child: a case a line, and an answer a line. After an error of the driver it is
    of no use any more."""
    try:
        with Gpu() as gpu:
            for line in sys.stdin:
                good, remark = check(gpu, folder, json.loads(line))
                print(json.dumps([good, remark, True]), flush=True)
    except (NoGpu, RuntimeError) as error:
        print(json.dumps([False, str(error), False]), flush=True)


def main():
    if len(sys.argv) == 3 and sys.argv[1] == "--child":
        return serve(pathlib.Path(sys.argv[2]))
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1])
    cases = json.loads((folder / "cases.json").read_text())
    try:
        with Gpu() as gpu, Checker(folder) as checker:
            print(f"{len(cases)} kernels on {gpu.name}")
            failed = left = 0
            for case in cases:
                if not runs(gpu, case):
                    left += 1
                    continue
                good, remark = checker.check(case)
                failed += not good
                print(("ok   " if good else "FAIL ") + case["name"] + ": " + remark, flush=True)
    except NoGpu as reason:
        print(f"check_on_gpu: nothing was compared: {reason}")
        sys.exit(77)
    for_others = f", {left} are for other GPUs" if left else ""
    print(f"{len(cases) - failed - left} passed, {failed} failed{for_others}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
