#===- check_spec.py - numbers of the spec, code and tests agree -------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""check_spec.py SOURCE_ROOT

Checks that docs/spec.md defines every rule that the sources cite, once; that no
family of numbers has gaps; and that every rule which a message of the dialects or of
the reference interpreter cites is cited by a test too.
"""

import collections
import pathlib
import re
import sys

DEFINITION = re.compile(r"^- \*\*([A-Z]+)(\d+)\*\* ", re.MULTILINE)
SOURCES = ("lib", "include", "runtime", "tools")
SUFFIXES = {".h", ".cpp", ".td"}
# Where each message that cites a rule has a test.
CHECKED = ("lib/Dialect", "lib/Interpreter/Reference")


def files(root, folders, suffixes):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.suffix in suffixes:
                yield path, path.read_text(encoding="utf-8", errors="replace")


def main():
    root = pathlib.Path(sys.argv[1])
    findings = []
    text = (root / "docs/spec.md").read_text(encoding="utf-8")
    defined = collections.Counter(DEFINITION.findall(text))
    families = collections.defaultdict(set)
    for (family, number), count in defined.items():
        families[family].add(int(number))
        if count > 1:
            findings.append(f"docs/spec.md: {family}{number} is defined {count} times")
    for family, numbers in sorted(families.items()):
        for number in sorted(set(range(1, max(numbers) + 1)) - numbers):
            findings.append(f"docs/spec.md: {family}{number} is missing between its neighbours")

    names = {family + number for family, number in defined}
    cited = re.compile(r"\b((?:%s)\d+)\b" % "|".join(sorted(families)))
    # Messages end in the number of their rule.
    bracketed = re.compile(r'\[([A-Z]+\d+)\]"')
    messages = {}
    for path, content in files(root, SOURCES, SUFFIXES):
        where = path.relative_to(root).as_posix()
        for name in sorted(set(cited.findall(content)) | set(bracketed.findall(content))):
            if name not in names:
                findings.append(f"{where}: cites {name}, which docs/spec.md does not define")
        if where.startswith(CHECKED) and path.suffix == ".cpp":
            # In a message, or as the argument of a function that makes one.
            for name in re.findall(r'\[([A-Z]+\d+)\]|"([A-Z]+\d+)"', content):
                messages.setdefault(name[0] or name[1], where)
    tests = "".join(content for _, content in files(root, ("test",), {".mlir", ".test", ".cpp"}))
    for name, where in sorted(messages.items()):
        if f"[{name}]" not in tests:
            findings.append(f"{where}: no test expects the message of {name}")

    for finding in findings:
        print(finding)
    if not messages or not names:
        print("expected rules and messages, but found none")
        return 1
    print(f"{len(names)} rules, {len(messages)} cited by messages, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
