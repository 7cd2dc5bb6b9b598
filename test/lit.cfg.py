#===- lit.cfg.py - how lit runs fi's tests ----------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# The tools of fi and of LLVM are found by PATH. Besides lit's own substitutions
# (%s, %S, %t, ...) there are
#   %python    the Python with numpy
#   %fi_src    the root of the source tree (%fi_src/examples/...)
#   %fi_lib    where libfi_runtime.so is
#   %ptxas     ptxas, with the feature of the same name
#   %cc        the C compiler of LLVM, for the examples in C
# and the features ptxas, avx2, avx512f, avx512-bf16, asserts, asan.
#
#===--------------------------------------------------------------------------===#
import os
import shutil

import lit.formats

config.name = "fi"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
# Inputs holds files that tests read; Unit and Python have runners of their own.
config.excludes = ["Inputs", "Unit", "Python"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.fi_obj_root, "test")

path = os.pathsep.join([config.fi_tools_dir, config.llvm_tools_dir, os.environ.get("PATH", "")])
config.environment["PATH"] = path
config.environment["LC_ALL"] = "C.UTF-8"
config.environment["LLVM_SYMBOLIZER_PATH"] = os.path.join(config.llvm_tools_dir, "llvm-symbolizer")
# Tests neither read nor leave anything in the user's cache.
config.environment["XDG_CACHE_HOME"] = os.path.join(config.test_exec_root, "cache")
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
if config.fi_sanitize:
    # LLVM's archives are not instrumented, so its containers carry no annotations.
    config.environment.setdefault("ASAN_OPTIONS", "detect_container_overflow=0")
    config.available_features.add("asan")

config.substitutions += [
    ("%python", config.python),
    ("%fi_src", config.fi_src_root),
    ("%fi_lib", config.fi_runtime_dir),
    ("%cc", os.path.join(config.llvm_tools_dir, "clang")),
]
if config.fi_asserts:
    config.available_features.add("asserts")

ptxas = shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
if os.path.exists(ptxas):
    config.available_features.add("ptxas")
    config.substitutions.append(("%ptxas", ptxas))

with open("/proc/cpuinfo") as cpuinfo:
    flags = next((line.split() for line in cpuinfo if line.startswith("flags")), [])
for flag in ("avx2", "avx512f", "avx512_bf16"):
    if flag in flags:
        config.available_features.add(flag.replace("_", "-"))
