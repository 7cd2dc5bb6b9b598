#===- __init__.py - attention programs from Python --------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Attention programs: compiled, planned for a batch, and run.

    program = fi.compile(open("llama.mlir").read(), target="sm_90a")
    plan = fi.Plan(program, qo_indptr, kv_indptr, kv_indices, last_page_len)
    for layer in layers:
        o, lse = plan.run(layer.q, layer.k, layer.v)

Tensors are those of numpy, torch, or any library with DLPack; nothing is copied.
`fi.load` opens a package that was compiled before, for which the compiler need
not be installed. What is refused raises fi.Error with a sentence.
"""

from ._runtime import Error, devices
from ._runtime import version as runtime_version
from .plan import Plan
from .program import Argument, Program, compile, load

__all__ = ["Argument", "Error", "Plan", "Program", "compile", "devices", "load", "runtime_version"]
