#===- common.sh - what the scripts share ------------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# Sourced, not run. Moves to the root of the tree and defines progress output:
# a long command writes to a log below build/logs, and what is shown of it is one
# line that says how long it has run and what it does now.
#
#===--------------------------------------------------------------------------===#
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
FI_JOBS=${FI_JOBS:-$(nproc)}
FI_LLVM=${FI_LLVM:-/usr/lib/llvm-22}
SECONDS=0

say() { printf '[%3ds] %s\n' "$SECONDS" "$*"; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# with_progress <label> <log name> <command>...
with_progress() {
  local label=$1 log=build/logs/$2.log start=$SECONDS status=0 last shown=0
  shift 2
  mkdir -p build/logs
  "$@" >"$log" 2>&1 &
  local pid=$!
  # A background command ignores Ctrl-C, so it is passed on.
  trap 'kill "$pid" 2>/dev/null; exit 130' INT TERM
  while kill -0 "$pid" 2>/dev/null; do
    sleep 0.5
    last=$(tail -n 1 "$log" 2>/dev/null | tr -d '\r' | cut -c1-90 || true)
    if [ -t 1 ]; then
      printf '\r\033[K[%3ds] %s: %s' "$SECONDS" "$label" "$last"
    elif [ $((SECONDS - start - shown)) -ge 20 ]; then
      shown=$((SECONDS - start))
      say "$label: $last"
    fi
  done
  wait "$pid" || status=$?
  trap - INT TERM
  [ -t 1 ] && printf '\r\033[K'
  if [ "$status" -ne 0 ]; then
    say "$label: failed; the end of $log:"
    grep -nE 'error:|FAILED' "$log" | head -n 20 || true
    tail -n 40 "$log"
    return "$status"
  fi
  say "$label: done in $((SECONDS - start)) s"
}

# configure_and_build <preset> <cmake options> -- <targets>
configure_and_build() {
  local preset=$1 options=()
  shift
  while [ $# -gt 0 ] && [ "$1" != -- ]; do options+=("$1"); shift; done
  [ $# -gt 0 ] && shift
  with_progress "configure $preset" "configure-$preset" cmake --preset "$preset" ${options[@]+"${options[@]}"}
  with_progress "build $preset" "build-$preset" ninja -C "build/$preset" -j "$FI_JOBS" "$@"
}
