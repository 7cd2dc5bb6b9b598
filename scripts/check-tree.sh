#!/usr/bin/env bash
#===- check-tree.sh - house rules that a script can check -------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   scripts/check-tree.sh [--fix]     --fix formats the C and C++ files first
#
# Checks the files that git tracks: length, header comment, format, white space,
# and paths of one person's machine. Prints one line a finding.
#
#===--------------------------------------------------------------------------===#
. "$(dirname "$0")/common.sh"

max_lines=800
findings=0
finding() { printf '%s\n' "$*"; findings=$((findings + 1)); }

mapfile -t files < <(git -c safe.directory="$PWD" ls-files | while read -r f; do [ -f "$f" ] && echo "$f"; done)
[ ${#files[@]} -gt 0 ] || die "expected a git checkout with tracked files, but found none"
format=$(command -v clang-format-22 || command -v clang-format) || die "clang-format-22 is missing; run scripts/install-deps.sh"

sources=()
for f in "${files[@]}"; do
  case $f in
  *.h | *.c | *.cpp) sources+=("$f") ;;
  esac
  # Data is data: neither its length nor its white space is ours.
  case $f in
  LICENSE | *.csv | *.json | *.ptx | *.npy | *.npz | *.svg | *.gz | *.mlirbc | *.ptx) continue ;;
  esac
  lines=$(wc -l <"$f")
  [ "$lines" -le $max_lines ] || finding "$f: $lines lines, at most $max_lines are allowed; split it at a seam"
  case $f in
  *.h | *.c | *.cpp | *.td | *.py | *.sh | *.cmake | *.in)
    head -n 12 "$f" | grep -q 'SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception' ||
      finding "$f: expected the header comment with the SPDX line in the first 12 lines" ;;
  esac
  while IFS= read -r line; do finding "$f:$line: trailing white space"; done < <(grep -nE '[[:space:]]+$' "$f" | cut -d: -f1 | head -n 3)
  while IFS= read -r line; do finding "$f:$line: merge marker"; done < <(grep -nE '^(<<<<<<<|>>>>>>>) ' "$f" | cut -d: -f1)
  [ -z "$(tail -c 1 "$f")" ] || finding "$f: expected a newline at the end"
  # An absolute path into a home or work directory holds on one machine only.
  while IFS= read -r line; do finding "$f:$line: path of one machine"; done < <(grep -nE '(^|[^A-Za-z0-9_.}%/-])/(home|root|work|Users|tmp/[a-z])[a-z0-9_-]*/' "$f" | cut -d: -f1)
done

if [ "${1:-}" = --fix ]; then
  "$format" -i "${sources[@]}"
fi
if [ ${#sources[@]} -gt 0 ]; then
  while IFS= read -r line; do finding "$line"; done < <(
    "$format" --dry-run -ferror-limit=1 "${sources[@]}" 2>&1 |
      sed -nE 's/^([^:]+:[0-9]+):[0-9]+: (warning|error): .*/\1: not formatted; run scripts\/check-tree.sh --fix/p')
fi

if [ $findings -gt 0 ]; then
  echo "$findings findings in ${#files[@]} files"
  exit 1
fi
echo "${#files[@]} files checked"
