#===- check_excerpts.py - excerpts in the pages are of the tree -------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""check_excerpts.py SOURCE_ROOT

Checks that each block below a `<!-- from: FILE -->` of docs/*.md and CONTRIBUTING.md is a
part of that file, line for line.
"""

import pathlib
import re
import sys

EXCERPT = re.compile(r"^<!-- from: (\S+) -->\n```\w+\n(.*?)\n```$", re.MULTILINE | re.DOTALL)


def main():
    root = pathlib.Path(sys.argv[1])
    count, findings = 0, []
    for page in sorted(root.glob("docs/*.md")) + [root / "CONTRIBUTING.md"]:
        if not page.exists():
            continue
        text = page.read_text()
        marks = text.count("<!-- from: ")
        excerpts = list(EXCERPT.finditer(text))
        name = page.relative_to(root)
        if marks != len(excerpts):
            findings.append(f"{name}: {marks - len(excerpts)} marks without a block below them")
        for excerpt in excerpts:
            count += 1
            line = text.count("\n", 0, excerpt.start()) + 1
            path = root / excerpt[1]
            if not path.is_file():
                findings.append(f"{name}:{line}: '{excerpt[1]}' is not there")
            elif excerpt[2] not in path.read_text():
                findings.append(f"{name}:{line}: the excerpt is not in '{excerpt[1]}' any more")
    for finding in findings:
        print(finding)
    if not count:
        print("expected excerpts, but found none")
        return 1
    print(f"{count} excerpts, {len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
