#===- packages.py - the packages of the rows --------------------------------------- ===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Compiles the programs of the rows into packages, for a machine without the compiler:

    python -m benchmarks.packages DIR --target=sm_80 --translate build/release/bin/fi-translate

Each becomes DIR/<program>. With --variant=NAME and --schedules='schedules([...])' it
becomes DIR/<program>@NAME with these schedules, and run.py measures it beside the others.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

from .rows import select


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--target", default="sm_80")
    parser.add_argument("--translate", default="fi-translate", help="the tool fi-translate")
    parser.add_argument("--rows", nargs="*", help="parts of names of rows (default: all)")
    parser.add_argument("--variant", help="a name for these schedules")
    parser.add_argument("--schedules", default="", help="what to write into the attention")
    parser.add_argument("--keep-text", action="store_true", help="leave the text beside the packages")
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name, row in {row.program: row for row in select(arguments.rows)}.items():
        if arguments.variant:
            name += "@" + arguments.variant
        with tempfile.TemporaryDirectory() as scratch:
            folder = arguments.directory if arguments.keep_text else pathlib.Path(scratch)
            text = folder / f"{name}.mlir"
            text.write_text(row.text(arguments.schedules))
            made = subprocess.run(
                [arguments.translate, "--fi-to-package", text, "-o", arguments.directory / name,
                 f"--target={arguments.target}"],
                stderr=subprocess.PIPE, text=True,
            )
        print(f"{name}: {'made' if made.returncode == 0 else made.stderr.strip()}", flush=True)
        failed += made.returncode != 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
