#===- __init__.py - benchmarks on a GPU ------------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Attention kernels beside those of others, on one GPU, in one process: see run.py."""
