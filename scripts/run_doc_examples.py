#===- run_doc_examples.py - execute the examples of the documentation -------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Executes the fenced blocks of the documentation's pages.

    ```mlir       must parse, verify and survive a round trip through fi-opt
    ```console    lines with `$ ` are commands, the lines below are what they
                  print; a line `...` stands for any lines, `...` within a line for
                  any text; a command must end with status 0 unless its last line
                  is `# exit N`

`<!-- file: NAME -->` above a block keeps it as NAME for the commands of the page,
which run in a directory of their own with `examples` beside them; `$FI` is where fi's
headers and libraries are, and python3 has its package.
`<!-- needs: python -->` above a block leaves it out where the package is not built.
`<!-- not run: WHY -->` above a block leaves it out. In generated pages only ```mlir
blocks that are whole programs (they begin with module, func.func or fi.program)
are executed; op descriptions may show fragments.

--page checks one page alone. --refresh writes what its commands print into the page, but
for blocks with `...`, instead of comparing it.
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

FENCE = re.compile(r"^```(\w+)[ \t]*\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)
NOTE = re.compile(r"<!--\s*(file|not run|needs):\s*(.*?)\s*-->\s*\Z")
PROGRAM = re.compile(r"\s*(//[^\n]*\n\s*)*(module|func\.func|fi\.program)\b")
TIMEOUT = 300
PATH = os.environ.get("PATH", "")


def run(command, directory, text=None):
    try:
        done = subprocess.run(command, cwd=directory, input=text, text=True, timeout=TIMEOUT,
                              shell=isinstance(command, str), stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
    except subprocess.TimeoutExpired:
        return None, f"ran for more than {TIMEOUT} s"
    return done.returncode, done.stdout


def check_mlir(block, directory):
    status, output = run(["fi-opt", "--verify-roundtrip", "-"], directory, block)
    return None if status == 0 else output


def matches(expected, printed):
    """Whether printed text is what a console block shows, `...` standing for anything."""
    parts = []
    for line in expected:
        if line.strip() == "...":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            pieces = (re.escape(piece.rstrip() if last else piece)
                      for piece, last in zip(line.split("..."), [False] * line.count("...") + [True]))
            parts.append("[^\\n]*?".join(pieces) + r"[ \t]*\n")
    if printed and not printed.endswith("\n"):
        printed += "\n"
    return re.fullmatch("".join(parts), printed) is not None


def check_console(block, directory):
    commands = []
    for line in block.splitlines():
        if line.startswith("$ "):
            commands.append((line[2:], []))
        elif not commands:
            return f"expected '$ command' before '{line}'"
        else:
            commands[-1][1].append(line)
    for command, expected in commands:
        wanted = 0
        if expected and (exit_line := re.fullmatch(r"# exit (\d+)", expected[-1])):
            wanted = int(exit_line[1])
            expected = expected[:-1]
        status, output = run(command, directory)
        if status != wanted:
            return f"$ {command}\nexpected exit status {wanted}, but got {status}:\n{output}"
        if not matches(expected, output):
            return f"$ {command}\nexpected:\n" + "\n".join(expected) + f"\nbut got:\n{output}"
    return None


def refresh_console(block, directory):
    """The block with what its commands print."""
    if "..." in block:
        return block
    lines = []
    for line in block.splitlines():
        if line.startswith("$ "):
            lines.append(line)
            status, output = run(line[2:], directory)
            lines += [shown.rstrip() for shown in output.splitlines()]
            if status:
                lines.append(f"# exit {status}")
    return "\n".join(lines) + "\n"


def prepare_directory(directory, source, build):
    """Links to what the commands of a page find: examples, and an fi to link with."""
    os.symlink(source / "examples", directory / "examples")
    (directory / ".fi" / "include").mkdir(parents=True)
    for name, target in (("include/fi", source / "include/fi"), ("include/fi-c", source / "include/fi-c"),
                         ("include/fi-runtime", source / "runtime/include/fi-runtime"),
                         ("include/fi-emulator", source / "emulator/include/fi-emulator"), ("lib", build / "lib")):
        os.symlink(target, directory / ".fi" / name)
    (directory / ".fi" / "bin").mkdir()
    os.symlink(sys.executable, directory / ".fi" / "bin" / "python3")
    os.environ["FI"] = str(directory / ".fi")
    os.environ["PYTHONPATH"] = str(build / "python")
    os.environ["PATH"] = os.pathsep.join([str(directory / ".fi/bin"), str(build / "bin"), PATH])


def has_needs(note, build):
    return note[2] != "python" or any((build / "python/fi").glob("_compiler.*"))


def refresh_page(page, source, build):
    text, made, at = page.read_text(), [], 0
    with tempfile.TemporaryDirectory() as directory:
        prepare_directory(pathlib.Path(directory), source, build)
        for fence in FENCE.finditer(text):
            note = NOTE.search(text[: fence.start()])
            if note and note[1] == "file":
                pathlib.Path(directory, pathlib.Path(note[2]).name).write_text(fence[2])
            if fence[1] == "console" and not (note and (note[1] == "not run" or not has_needs(note, build))):
                made += [text[at : fence.start(2)], refresh_console(fence[2], directory)]
                at = fence.end(2)
    page.write_text("".join(made) + text[at:])


def check_page(page, name, generated, source, build):
    """Yields (case, problem or None) for each executed block of one page."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as directory:
        prepare_directory(pathlib.Path(directory), source, build)
        for fence in FENCE.finditer(text):
            language, block = fence[1], fence[2]
            note = NOTE.search(text[: fence.start()])
            if note and note[1] == "file":
                pathlib.Path(directory, pathlib.Path(note[2]).name).write_text(block)
            if language not in ("mlir", "console") or (note and note[1] == "not run"):
                continue
            if note and note[1] == "needs" and not has_needs(note, build):
                continue
            if generated and (language != "mlir" or not PROGRAM.match(block)):
                continue
            line = text.count("\n", 0, fence.start()) + 1
            check = check_mlir if language == "mlir" else check_console
            yield f"{name}:{line}", check(block, directory)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--source", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--junit", type=pathlib.Path)
    parser.add_argument("--page", type=pathlib.Path)
    parser.add_argument("--refresh", type=pathlib.Path)
    arguments = parser.parse_args()
    source, build = arguments.source.resolve(), arguments.build.resolve()
    os.environ["XDG_CACHE_HOME"] = str(build / "test" / "cache")

    if arguments.refresh:
        refresh_page(arguments.refresh, source, build)
        return 0
    pages = [(page, False) for page in sorted(source.glob("docs/**/*.md"))]
    pages += [(source / "README.md", False)]
    pages += [(page, True) for page in sorted((build / "docs/generated").glob("*.md"))]
    if arguments.page:
        pages = [(arguments.page.resolve(), False)]
    suite = ElementTree.Element("testsuite", name="doc-examples")
    failed = passed = 0
    for page, generated in pages:
        name = str(page.relative_to(build if generated else source))
        for case, problem in check_page(page, name, generated, source, build):
            element = ElementTree.SubElement(suite, "testcase", classname="docs", name=case)
            if problem is None:
                passed += 1
                continue
            failed += 1
            ElementTree.SubElement(element, "failure", message="the example does not hold")
            print(f"{case}: the example does not hold\n{problem}")
    if arguments.junit:
        arguments.junit.parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(arguments.junit)
    print(f"{passed} examples hold, {failed} do not")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
