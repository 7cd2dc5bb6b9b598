#!/bin/sh
#===- has-division.sh - what a reduction has to keep ------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
grep -q arith.divf "$1" && fi-opt "$1" >/dev/null
