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
# Installs into a clean prefix, moves it, and builds and tests with nothing but that:
# the example compiler, which is the one of the package; all headers; and a program in C
# that has the runtime alone.
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

# build_and_test NAME SOURCE [<cmake option>...]: a project that has the package alone.
build_and_test() {
  local name=$1 from=$2
  shift 2
  "$cmake" -S "$from" -B "$work/$name" -G Ninja -DCMAKE_PREFIX_PATH="$work/moved" "$@" >"$work/$name.log" &&
    "$cmake" --build "$work/$name" >>"$work/$name.log" || { cat "$work/$name.log"; exit 1; }
  grep -q "^FI_DIR:PATH=$work/moved/lib/cmake/FI$" "$work/$name/CMakeCache.txt" ||
    { echo "another fi was found:"; grep "^FI_DIR" "$work/$name/CMakeCache.txt"; exit 1; }
  say "$name: built"
  ctest --test-dir "$work/$name" --output-on-failure --no-tests=error --output-junit "$work/$name.xml"
  say "$name: tested"
}

cp -r "$work/moved/share/fi/examples/frontend" "$work/example"
build_and_test frontend "$work/example"

# Every header of the package, and those in C as C.
cp -r "$source/test/Embedding/headers" "$work/headers-source"
(cd "$work/moved/include" && find . -name '*.h' | sort | sed 's|^\./\(.*\)|#include "\1"|') >"$work/headers-source/all_headers.cpp"
grep -E '"(fi-c/|fi-runtime/|fi-emulator/fi_emulator|fi/ABI/)' "$work/headers-source/all_headers.cpp" >"$work/headers-source/c_headers.h"
build_and_test headers "$work/headers-source"

"$work/moved/bin/fi-translate" --fi-to-package "$work/moved/share/fi/examples/three-requests.mlir" -o "$work/package"
build_and_test runtime "$source/test/Embedding/runtime" -DEXAMPLES="$work/moved/share/fi/examples" -DPACKAGE="$work/package"

# The cases of all three, as one file.
{
  echo '<testsuite>'
  sed -e '/^<?xml/d' -e '/^<testsuite/,/^\t>/d' -e '/^<\/testsuite>/d' "$work/frontend.xml" "$work/headers.xml" "$work/runtime.xml"
  echo '</testsuite>'
} >"$results"
