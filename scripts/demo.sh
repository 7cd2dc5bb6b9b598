#!/usr/bin/env bash
#===- demo.sh - install, build and run the main job -------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   scripts/demo.sh [--no-install]
#
# From nothing to an answer: a batch of three requests beside the reference, then
# the replay of a serving trace. A second run builds what changed and runs again.
#
#===--------------------------------------------------------------------------===#
. "$(dirname "$0")/common.sh"

[ "${1:-}" = --no-install ] || scripts/install-deps.sh
configure_and_build release -DFI_BUILD_TESTS=OFF -- fi-tools

# run <what it shows> <command>...
bin=build/release/bin
run() {
  printf '\n'
  say "$1"
  shift
  printf '$ %s\n' "$*"
  "$@"
}

#===- The main job ------------------------------------------------------------===#
run "three requests, planned, compiled and executed on this CPU, beside the reference" \
  "$bin/fi-run" examples/three-requests.mlir --backend=cpu --compare=reference --print
run "a serving trace, replayed: chunked prefill and decoding with continuous batching" \
  "$bin/fi-replay"
#===----------------------------------------------------------------------------===#
printf '\n'
say "done"
