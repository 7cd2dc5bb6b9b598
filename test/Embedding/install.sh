#!/usr/bin/env bash
#===- install.sh - build the example compiler from an installed fi ----------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   install.sh <cmake> <source> <build> <results.xml>
#
# Installs into a clean prefix, moves it, and builds and tests examples/frontend with
# nothing but that: the example is the one of the package, the tree is not named.
#
#===--------------------------------------------------------------------------===#
set -euo pipefail
cmake=$1 source=$2 build=$3 results=$4
work=$build/test/embedding
say() { printf '%3d s  %s\n' "$SECONDS" "$*"; }

rm -rf "$work"
mkdir -p "$work"
"$cmake" --install "$build" --prefix "$work/first" >"$work/install.log"
mv "$work/first" "$work/moved"
say "installed, $(du -sm "$work/moved" | cut -f 1) MB"

# What a package is found by may name neither the place it was made in nor the one
# that it was installed to.
for place in "$work/first" "$build" "$source"; do
  if named=$(grep -rlF "$place" "$work/moved/lib/cmake" "$work/moved/include"); then
    echo "the installed package names '$place', in:" "$named"
    exit 1
  fi
done

cp -r "$work/moved/share/fi/examples/frontend" "$work/frontend"
"$cmake" -S "$work/frontend" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$work/moved" >"$work/configure.log" ||
  { cat "$work/configure.log"; exit 1; }
grep -q "^FI_DIR:PATH=$work/moved/lib/cmake/FI$" "$work/build/CMakeCache.txt" ||
  { echo "another fi was found:"; grep "^FI_DIR" "$work/build/CMakeCache.txt"; exit 1; }
say "configured"
"$cmake" --build "$work/build" >"$work/build.log" || { cat "$work/build.log"; exit 1; }
say "built"
ctest --test-dir "$work/build" --output-on-failure --no-tests=error --output-junit "$results"
say "tested"
