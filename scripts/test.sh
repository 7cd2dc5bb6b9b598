#!/usr/bin/env bash
#===- test.sh - install, build and run all tests ----------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   scripts/test.sh [--preset dev|release|asan] [--no-install] [--fuzz-seconds N]
#                   [<ctest option>...]
#
# --fuzz-seconds is the time of each fuzz target of text and bytes, which try a
# number of inputs without it.
#
# Every lit test, GoogleTest and Python case counts in the closing line. The exit
# status is 0 only if all passed and there was at least one.
#
#===--------------------------------------------------------------------------===#
. "$(dirname "$0")/common.sh"

preset=dev
install=yes
fuzz_seconds=
while [ $# -gt 0 ]; do
  case $1 in
  --preset) [ $# -ge 2 ] || die "--preset: expected dev, release or asan"; preset=$2; shift 2 ;;
  --no-install) install=no; shift ;;
  --fuzz-seconds) [ $# -ge 2 ] || die "--fuzz-seconds: expected a number"; fuzz_seconds=$2; shift 2 ;;
  -h | --help) sed -n '/^#   scripts/,/^# status/s/^# \{0,1\}//p' "$0"; exit ;;
  *) break ;;
  esac
done

[ $install = no ] || scripts/install-deps.sh
configure_and_build "$preset" -DFI_BUILD_TESTS=ON "-DFI_FUZZ_SECONDS=$fuzz_seconds" -- all fi-doc

results=build/$preset/test-results
rm -rf "$results"
mkdir -p "$results"
say "tests"
status=0
# ctest writes the JUnit file below its own working directory.
ctest --preset "$preset" --no-tests=ignore -j "$FI_JOBS" --output-junit test-results/ctest.xml "$@" || status=$?
python=/usr/bin/python3
[ -x $python ] || python=python3
"$python" scripts/summarize_tests.py "$results" --ctest-status "$status"
