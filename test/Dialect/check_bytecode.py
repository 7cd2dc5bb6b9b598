#===- check_bytecode.py - bytecode that is good, newer or broken ------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""check_bytecode.py roundtrip DIRECTORY
check_bytecode.py newer IN N OUT
check_bytecode.py broken IN SCRATCH
check_bytecode.py versions IN

roundtrip: every .mlir file below DIRECTORY that is meant to be valid, each part of
it, comes back from text and from bytecode as it was.
newer: writes IN to OUT with the version of its N-th versioned dialect raised by 1.
broken: reads IN cut off at many places, which must fail, and with each byte of the
types and attributes of versioned dialects changed, which must not crash.
versions: prints the versions that a file states, of the largest number first.
"""

import pathlib
import subprocess
import sys

DIALECTS, ATTRIBUTES_AND_TYPES, OFFSETS, VERSIONS = 1, 2, 3, 7


class Bytes:
    """A cursor over MLIR bytecode."""

    def __init__(self, data):
        self.data, self.at = data, 0

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def number(self):
        first = self.byte()
        if first & 1:
            return first >> 1
        if first == 0:
            extra, shift, first = 8, 0, 0
        else:
            extra = (first & -first).bit_length() - 1
            shift = extra + 1
        rest = int.from_bytes(self.data[self.at : self.at + extra], "little")
        self.at += extra
        return rest if extra == 8 else ((first | rest << 8) >> shift)

    def section(self):
        """(id, begin of the payload, length)"""
        kind = self.byte()
        length = self.number()
        if kind & 0x80:
            alignment = self.number()
            self.at += -self.at % alignment
        return kind & 0x7F, self.at, length


def sections(data):
    cursor = Bytes(data)
    assert data[:4] == b"ML\xefR", "expected MLIR bytecode"
    cursor.at = 4
    cursor.number()
    cursor.at = data.index(0, cursor.at) + 1
    while cursor.at < len(data):
        kind, begin, length = cursor.section()
        yield kind, begin, length
        cursor.at = begin + length


def payload(data, wanted):
    for kind, begin, _ in sections(data):
        if kind == wanted:
            cursor = Bytes(data)
            cursor.at = begin
            return cursor
    raise ValueError(f"expected a section {wanted}")


def versions(data):
    """For each dialect where its version lies, or None."""
    cursor = payload(data, DIALECTS)
    for _ in range(cursor.number()):
        at = None
        if cursor.number() & 1:
            nested, at, length = cursor.section()
            assert nested == VERSIONS and length == 1, "expected a version"
            cursor.at = at + length
        yield at


def own_bytes(data):
    """Where the types and attributes of versioned dialects lie."""
    owners = list(versions(data))
    at = payload(data, ATTRIBUTES_AND_TYPES).at
    cursor = payload(data, OFFSETS)
    for count in (cursor.number(), cursor.number()):
        while count > 0:
            dialect, entries = cursor.number(), cursor.number()
            count -= entries
            for _ in range(entries):
                size = cursor.number() >> 1
                if owners[dialect] is not None:
                    yield from range(at, at + size)
                at += size


def fi_opt(path, *arguments):
    return subprocess.run(["fi-opt", str(path), "-o", "/dev/null", *arguments],
                          capture_output=True, encoding="utf-8", errors="replace",
                          check=False, timeout=60)


def roundtrip(directory):
    failures = files = parts = 0
    for path in sorted(pathlib.Path(directory).rglob("*.mlir")):
        text = path.read_text(encoding="utf-8")
        if "invalid" in path.name or "expected-error" in text:
            continue
        files += 1
        parts += 1 + text.count("\n// -----\n")
        result = fi_opt(path, "--split-input-file", "--verify-roundtrip")
        if result.returncode != 0:
            failures += 1
            print(f"{path.name}: {result.stderr.strip()[:400]}")
    print(f"{files} files, {parts} parts, {failures} failures")
    return failures != 0 or parts == 0


def newer(source, which, target):
    data = bytearray(pathlib.Path(source).read_bytes())
    at = [at for at in versions(data) if at is not None][int(which)]
    data[at] += 2  # a number n is stored as 2 n + 1
    pathlib.Path(target).write_bytes(data)
    return False


def broken(source, scratch):
    data = pathlib.Path(source).read_bytes()
    path = pathlib.Path(scratch)
    cuts = refused = crashes = accepted = 0
    for size in range(4, len(data), max(1, len(data) // 40)):
        path.write_bytes(data[:size])
        code = fi_opt(path).returncode
        cuts += 1
        refused += code == 1
        crashes += code not in (0, 1)
    print(f"{cuts - refused} of the cut files accepted")
    changes = 0
    for at in own_bytes(data):
        changed = bytearray(data)
        # One number too large, or one that takes the next byte too. Small numbers
        # could make an attribute refer to itself, at which MLIR's reader does not end.
        changed[at] = 0xFF if at % 2 else 0xFE
        path.write_bytes(changed)
        result = fi_opt(path)
        changes += 1
        accepted += result.returncode == 0
        if result.returncode not in (0, 1):
            crashes += 1
            print(f"byte {at}: {result.returncode} {result.stderr[-200:]}")
        elif result.returncode == 1 and "error:" not in result.stderr:
            crashes += 1
            print(f"byte {at}: no message")
    refusals = changes - accepted
    print(f"{'many' if 4 * refusals > changes else 'few'} of the changed files refused")
    print(f"{crashes} crashes")
    return crashes != 0 or cuts != refused


def print_versions(source):
    data = pathlib.Path(source).read_bytes()
    stated = [data[at] >> 1 for at in versions(data) if at is not None]
    print("versions", *sorted(stated, reverse=True))
    return False


if __name__ == "__main__":
    MODES = {
        "roundtrip": roundtrip,
        "newer": newer,
        "broken": broken,
        "versions": print_versions,
    }
    sys.exit(bool(MODES[sys.argv[1]](*sys.argv[2:])))
