#===- program.py - programs, compiled -----------------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Programs: compiled from text, or opened from a package directory."""

import json
import os
from typing import NamedTuple, Optional

from . import _runtime

#: The texts that `Program.text` can show, from the input to the machine.
LEVELS = ("fi", "fi_tile", "placed", "vector", "nvvm", "llvm", "ptx", "manifest")


class Argument(NamedTuple):
    """An argument or a result of a program."""

    name: str
    #: "tensor", "pool" (may be written) or "scalar"
    kind: str
    #: "f32", "f16", "bf16", "i32", "i64", "i8", "i1" or "index"
    dtype: str
    #: None where a size is known at run time only
    shape: tuple


class Program:
    """A compiled program. Made by `fi.compile` and `fi.load`."""

    def __init__(self, package, manifest, source=None):
        self._package = package
        #: The package's manifest, as JSON would give it.
        self.manifest = manifest
        self._source = source
        self.plan_arguments = [Argument(*a) for a in package.describe(0)]
        self.run_arguments = [Argument(*a) for a in package.describe(1)]
        self.results = [Argument(*a) for a in package.describe(2)]

    @property
    def name(self):
        return self._package.program

    @property
    def target(self):
        """What it is compiled for: "cpu", or a chip such as "sm_80"."""
        target = self.manifest["target"]
        return target["chip"] if target["kind"] == "cuda" else target["kind"]

    @property
    def is_cuda(self):
        return self.manifest["target"]["kind"] == "cuda"

    def text(self, level="fi"):
        """The program at a level: one of `fi.program.LEVELS` that its road to the
        target goes through. Packages from a directory have their manifest and,
        for a GPU, PTX."""
        if level not in LEVELS:
            raise _runtime.Error(f"text: expected one of {', '.join(LEVELS)}, but got '{level}'")
        if level == "manifest":
            return json.dumps(self.manifest, indent=1)
        if self._source is None:
            raise _runtime.Error(
                f"text: '{self.name}' has no text of level '{level}'; it is compiled from a package "
                "that does not hold it"
            )
        return self._source(level)

    def __repr__(self):
        def names(arguments):
            return ", ".join(f"{a.name}: {a.dtype}" for a in arguments)

        return (
            f"<fi.Program {self.name} for {self.target}: plan({names(self.plan_arguments)}) "
            f"run({names(self.run_arguments)}) -> ({names(self.results)})>"
        )


def load(path):
    """Opens a package directory."""
    path = os.fspath(path)
    package = _runtime.open_package(path)
    with open(os.path.join(path, "manifest.json"), encoding="utf-8") as file:
        manifest = json.load(file)

    def source(level):
        ptx = os.path.join(path, "kernels.ptx")
        if level == "ptx" and os.path.exists(ptx):
            with open(ptx, encoding="utf-8") as file:
                return file.read()
        raise _runtime.Error(
            f"text: the package '{path}' has no text of level '{level}'; compile the program from its text"
        )

    return Program(package, manifest, source)


def _invalid_program(sentence):
    error = _runtime.Error(sentence)
    error.status = "invalid program"
    return error


def compile(text, target: Optional[str] = None, program: str = "", cache: bool = True, checked: bool = False,
            profile: Optional[str] = None):
    """Compiles a program from its text.

    `target` is "native" (this machine's GPU where it has one, else its CPU), "cpu"
    (this machine's), "cuda" (its GPU), a chip such as "sm_80", or an attribute such as
    "#fi.target<cpu, vector_bits = 256>"; by default what the text says in fi.target, else
    "native". `program` names the one meant where there are several. What was compiled
    before comes from a cache on disk, unless `cache` is False. With `checked`, kernels
    for GPUs check page indices and tell what they are at work on; with `profile`, they
    note when their phases begin ("phases"), or each wait for a tile, too ("tiles"), for
    `Plan.timeline`.
    """
    try:
        from . import _compiler
    except ImportError as error:
        raise _runtime.Error(
            f"compile: the compiler is not installed beside fi._runtime ({error}); open packages with fi.load"
        ) from error
    capability = next(((major, minor) for _, major, minor in _runtime.devices()), (0, 0))
    compiled = _compiler.compile(text, target or "", program, cache, checked, profile or "", *capability)
    if not isinstance(compiled, _compiler.Compiled):
        raise _invalid_program(compiled)
    manifest = compiled.manifest
    if compiled.is_cuda:
        package = _runtime.open_code(manifest, compiled.ptx, compiled.cubin)
    else:
        package = _runtime.open_memory(manifest, compiled.lookup, compiled.context, compiled)

    def source(level):
        if level == "ptx" and compiled.is_cuda:
            return compiled.ptx
        found = _compiler.text(text, target or "", program, level, checked, profile or "", *capability)
        if not found:
            raise _runtime.Error(f"text: the road of '{package.program}' to its target has no level '{level}'")
        if found[0] == "!":
            raise _invalid_program(found[1:])
        return found[1:]

    return Program(package, json.loads(manifest), source)
