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
source tree and turned into its text. The output is mkdocs.yml with a navigation
of all pages, so that a new page needs no entry in a list.
"""

import json
import pathlib
import re
import sys

# Read in this order; pages that are not named here follow by name.
FIRST = ["index", "getting-started", "levels", "spec", "variants", "companions", "quantised", "embedding", "editors", "planner", "abi", "status"]
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
