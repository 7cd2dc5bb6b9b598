#!/usr/bin/env bash
#===- docs.sh - build the documentation site --------------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
#
#   scripts/docs.sh [--build-dir <dir>] [--check]
#
# Joins docs/ with the pages that TableGen makes from the .td files and builds the
# site into <dir>/site. Broken links are errors. --check takes the generated pages
# as they are in the build directory; without it they are made first.
#
#===--------------------------------------------------------------------------===#
. "$(dirname "$0")/common.sh"

build=build/dev
check=no
while [ $# -gt 0 ]; do
  case $1 in
  --build-dir) [ $# -ge 2 ] || die "--build-dir: expected a directory"; build=$2; shift 2 ;;
  --check) check=yes; shift ;;
  *) die "unknown option '$1'; allowed are --build-dir <dir> and --check" ;;
  esac
done

if [ $check = no ]; then
  scripts/install-deps.sh
  [ -f "$build/build.ninja" ] || with_progress "configure dev" configure-dev cmake --preset dev
  with_progress "generated pages" build-docs ninja -C "$build" fi-doc
fi
compgen -G "$build/docs/generated/*.md" >/dev/null ||
  die "no generated page in '$build/docs/generated'; run: ninja -C $build fi-doc"
command -v mkdocs >/dev/null || die "mkdocs is missing; run scripts/install-deps.sh"

# The site is built from a copy, so that generated pages never lie in the tree.
pages=$build/docs/pages
rm -rf "$pages"
mkdir -p "$pages/generated"
cp -r docs/. "$pages/"
cp "$build"/docs/generated/*.md "$pages/generated/"
python=/usr/bin/python3
[ -x $python ] || python=python3
"$python" scripts/make_docs.py "$pages" mkdocs.yml "$build/docs/mkdocs.yml"
mkdocs build --quiet --strict --clean --config-file "$build/docs/mkdocs.yml" --site-dir "$(realpath -m "$build/site")"
echo "$(find "$build/site" -name '*.html' | wc -l) pages in $build/site"
