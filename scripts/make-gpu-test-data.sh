#!/usr/bin/env bash
#===- make-gpu-test-data.sh - PTX of the kernels that are written by hand ---===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   scripts/make-gpu-test-data.sh     needs nvcc and ptxas
#
# Makes test/data/gpu/*/kernels.ptx of the kernels.cu beside it, for sm_80. The
# kernels use nothing that is newer than PTX 7.4, so the text says 7.4, and older
# drivers take it; ptxas checks that this is true.
#
#===--------------------------------------------------------------------------===#
. "$(dirname "$0")/common.sh"

command -v nvcc >/dev/null || die "nvcc is missing; install the CUDA toolkit"
for source in test/data/gpu/*/kernels.cu; do
  to=${source%.cu}.ptx
  nvcc -ptx -arch=sm_80 -Iinclude -o "$to" "$source"
  # Which nvcc it was is nobody's business but the log's.
  sed -i -e 's/^\.version .*/.version 7.4/' -e '/^\/\//d' "$to"
  ptxas -arch=sm_80 -o "$to.cubin" "$to" && rm -f "$to.cubin"
  echo "$to: $(grep -c '\.entry' "$to") kernels"
done
