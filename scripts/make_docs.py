#===- make_docs.py - prepare the pages of the site --------------------------===#
#
# Part of fi, under the Apache License v2.0 with LLVM Exceptions.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#
#===--------------------------------------------------------------------------===#
"""Writes the navigation and takes links into the source tree out of the pages.

usage: make_docs.py <pages> <mkdocs.yml> <output.yml>

<pages> is a copy of docs/ with the generated pages below generated/. A link out
of docs/ (to a header, say) has no target on the site: it is checked against the
source tree and turned into its text. Rules of the specification get links to the tests
that cite them, which become pages. The output is mkdocs.yml with a navigation of all
other pages, so that a new page needs no entry in a list.
"""

import json
import pathlib
import re
import sys

# Read in this order; pages that are not named here follow by name.
FIRST = ["index", "getting-started", "tutorial-compiler", "tutorial-kernel", "tutorial-serving", "how-a-kernel-is-made", "levels", "spec", "variants", "companions", "quantised", "embedding", "editors", "planner", "abi", "status"]
RULE = re.compile(r"^- \*\*([A-Z]+\d+)\*\* .*\n(?:  .*\n)*", re.MULTILINE)
CITED = re.compile(r"\[([A-Z]+\d+)\]")
TESTS_OF_A_RULE = 4
LINK = re.compile(r"\[([^\]]+)\]\((\.\.?/[^)#\s]+)(#[^)\s]*)?\)")


def title_of(page):
    for line in page.read_text().splitlines():
        if line.startswith("# "):
            return line[2:].strip()
    return page.stem


def strip_outside_links(page, pages, source):
    """Returns the broken links of a page; writes it back without outside links."""
    broken = []

    def replace(match):
        target = (page.parent / match[2]).resolve()
        if target.is_relative_to(pages):
            return match[0]
        outside = (source / "docs" / page.relative_to(pages)).parent / match[2]
        if not outside.resolve().exists():
            broken.append(f"docs/{page.relative_to(pages)}: link to missing '{match[2]}'")
        return match[1]

    text = page.read_text()
    page.write_text(LINK.sub(replace, text))
    return broken


def link_rules_to_tests(pages, source):
    """Adds to each rule of the specification the tests that expect it in a message."""
    tests = {}
    for path in sorted(p for p in (source / "test").rglob("*") if p.suffix in (".mlir", ".test", ".cpp")):
        where = path.relative_to(source).as_posix()
        for number, line in enumerate(path.read_text().splitlines(), 1):
            for rule in CITED.findall(line):
                tests.setdefault(rule, {}).setdefault(where, number)
    shown = set()

    def add(match):
        links = []
        for where, number in list(tests.get(match[1], {}).items())[:TESTS_OF_A_RULE]:
            page = where.replace("/", "-") + ".md"
            shown.add((where, page))
            links.append(f"[{where.removeprefix('test/')}:{number}](tests/{page})")
        return match[0] + (f"  *Tests:* {', '.join(links)}\n" if links else "")

    spec = pages / "spec.md"
    spec.write_text(RULE.sub(add, spec.read_text()))
    (pages / "tests").mkdir(exist_ok=True)
    for where, page in shown:
        lines = (source / where).read_text().splitlines()
        text = "\n".join(f"{number:4}  {line}" for number, line in enumerate(lines, 1))
        (pages / "tests" / page).write_text(f"# {where}\n\n~~~~text\n{text}\n~~~~\n")
    return len(shown)


def navigation(pages):
    def entry(page):
        return {title_of(page): str(page.relative_to(pages))}

    def order(page):
        known = page.stem in FIRST
        return (0, FIRST.index(page.stem), "") if known else (1, 0, page.name)

    nav = [entry(page) for page in sorted(pages.glob("*.md"), key=order)]
    for folder, name in (("design", "Design notes"), ("generated", "Reference")):
        section = [entry(page) for page in sorted((pages / folder).glob("*.md"))]
        if section:
            nav.append({name: section})
    return nav


def main():
    pages, config, output = (pathlib.Path(argument) for argument in sys.argv[1:4])
    pages = pages.resolve()
    source = config.resolve().parent
    broken = []
    for page in sorted(pages.rglob("*.md")):
        if "generated" not in page.relative_to(pages).parts:
            broken += strip_outside_links(page, pages, source)
    if not link_rules_to_tests(pages, source):
        broken.append("docs/spec.md: no rule has a test")
    lines = [line for line in config.read_text().splitlines() if not line.startswith("docs_dir:")]
    # JSON is YAML, and quotes whatever a title may hold.
    lines += [f"docs_dir: {json.dumps(str(pages))}", f"nav: {json.dumps(navigation(pages))}"]
    output.write_text("\n".join(lines) + "\n")
    for message in broken:
        print(message, file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    sys.exit(main())
