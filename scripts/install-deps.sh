#!/usr/bin/env bash
#===- install-deps.sh - install every package that fi needs -----------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
# For Debian 12, as root or with sudo. Returns at once where all are present.
#
#   scripts/install-deps.sh          what it takes to build, test and document fi
#   scripts/install-deps.sh --list   print the names and install nothing
#
#===--------------------------------------------------------------------------===#
. "$(dirname "$0")/common.sh"

packages=(
  # Build: the compiler proper, its headers and archives, TableGen.
  cmake ninja-build ccache git ca-certificates libc6-dev libstdc++-12-dev
  clang-22 lld-22 liblld-22-dev llvm-22-dev llvm-22-tools
  libmlir-22-dev mlir-22-tools libzstd-dev zlib1g-dev libxml2-dev
  nlohmann-json3-dev
  # Tests and measurement.
  libgtest-dev libgmock-dev libbenchmark-dev libclang-rt-22-dev
  clang-format-22 clang-tidy-22
  python3 python3-numpy python3-psutil python3-pytest
  # The Python package.
  python3-dev python3-pip
  # The site.
  mkdocs
)
# From PyPI, into the tree's .cache: headers that the Python package is built with.
nanobind=nanobind==3.1.0
if [ "${1:-}" = --list ]; then
  printf '%s\n' "${packages[@]}" "$nanobind"
  exit
fi

install_nanobind() {
  local to=.cache/python
  [ -d "$to/nanobind-${nanobind#*==}.dist-info" ] && return
  rm -rf "$to"
  with_progress "$nanobind" pip-install /usr/bin/python3 -m pip install --no-deps \
    --root-user-action=ignore --disable-pip-version-check --target "$to" "$nanobind"
}

installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p' | sort -u) ||
  die "expected a Debian system with dpkg, but found none; the packages needed are: ${packages[*]}"
missing=($(comm -23 <(printf '%s\n' "${packages[@]}" | sort -u) <(printf '%s\n' "$installed")))
if [ ${#missing[@]} -eq 0 ]; then
  say "packages: all ${#packages[@]} present"
  install_nanobind
  exit
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null ||
    die "expected root or sudo to install packages; as root, run: apt-get install ${missing[*]}"
  as_root=(sudo)
fi
apt() {
  ${as_root[@]+"${as_root[@]}"} env DEBIAN_FRONTEND=noninteractive LC_ALL=C \
    apt-get -y -q -o Dpkg::Use-Pty=0 -o Acquire::Retries=3 "$@"
}
say "packages: ${#missing[@]} to install: ${missing[*]}"
# One after the other, so that sudo can ask for a password before output moves to the log.
${as_root[@]+"${as_root[@]}"} true
with_progress "package lists" apt-update apt update
for name in "${missing[@]}"; do
  [ -n "$(apt-cache madison "$name")" ] ||
    die "package '$name' is not in the package sources; expected Debian 12 with its security updates (bookworm-security), which carry LLVM 22"
done
with_progress "packages" apt-install apt install --no-install-recommends "${missing[@]}"
install_nanobind
