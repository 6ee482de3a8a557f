#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The man pages of section 3 (docs/man/) have every function of the public headers (hostlib/include/peal/): its name in NAME
and its prototype in SYNOPSIS, on one page and no other, and nothing that no header declares. What any page names in SEE ALSO
as a page of Peal's is there.

usage: manuals.py ROOT"""

import pathlib
import re
import sys

HEADERS = "hostlib/include/peal"
PAGES = "docs/man"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
DIRECTIVE = re.compile(r"^\s*#(?:\\\n|[^\n])*", re.MULTILINE)
DECLARED = re.compile(r"\bPEAL_API\b([^;{}]*);|\bstatic\s+inline\b([^;{}]*)\{")
FUNCTION = re.compile(r"\b(peal_\w+)\s*\(")
TOKEN = re.compile(r"\w+|[^\w\s]")
SECTION = re.compile(r"^\.SH +(.*)$", re.MULTILINE)
FONTS = re.compile(r"\.(B|I|BI|BR|IB|IR|RB|RI) +(.*)")
WORD = re.compile(r'"([^"]*)"|(\S+)')
OTHER_PAGE = re.compile(r"([\w\-]+)\((\d)\)")


def declarations(text):
    """Prototypes by name, as tokens, of a header."""
    text = DIRECTIVE.sub("", COMMENT.sub("", text))
    found = {}
    for parts in DECLARED.findall(text):
        prototype = parts[0] or parts[1]
        name = FUNCTION.search(prototype)
        if name:
            found[name.group(1)] = TOKEN.findall(prototype)
    return found


def plain(text):
    """What the roff of a section shows, without fonts; a line for each of its lines."""
    lines = []
    for line in text.split("\n"):
        macro = FONTS.fullmatch(line)
        if macro:
            words = [quoted or bare for quoted, bare in WORD.findall(macro.group(2))]
            line = (" " if len(macro.group(1)) == 1 else "").join(words)
        elif line.startswith("."):
            line = ""
        lines.append(re.sub(r"\\f(?:\[\w*\]|\w)", "", line).replace("\\-", "-"))
    return "\n".join(lines)


def sections(text):
    parts = SECTION.split(text)
    return {heading.strip('" '): plain(body) for heading, body in zip(parts[1::2], parts[2::2])}


def prototypes(synopsis):
    """Pairs of name and tokens, in their order."""
    found = []
    for statement in DIRECTIVE.sub("", synopsis).split(";")[:-1]:
        name = FUNCTION.search(statement)
        if name and not re.match(r"\s*typedef\b", statement):
            found.append((name.group(1), TOKEN.findall(statement)))
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    declared = {}
    for header in sorted((root / HEADERS).glob("*.h")):
        declared.update(declarations(header.read_text(encoding="utf-8")))
    pages = {path.name: sections(path.read_text(encoding="utf-8")) for path in sorted((root / PAGES).glob("*.[1-9]"))}
    stems = {page.rsplit(".", 1)[0] for page in pages}
    where = {name: [] for name in declared}
    bad = 0

    def complain(text):
        nonlocal bad
        bad += 1
        print(f"manuals: {text}")

    for page, parts in pages.items():
        for name, section in OTHER_PAGE.findall(parts.get("SEE ALSO", "")):
            if (name.startswith("peal") or name in stems) and f"{name}.{section}" not in pages:
                complain(f"{page} names {name}({section}) in SEE ALSO, which is not there")
        if not page.endswith(".3"):
            continue
        shown = prototypes(parts.get("SYNOPSIS", ""))
        named = [name for name in re.split(r"[,\s]+", parts.get("NAME", "").split(" - ")[0]) if name]
        for name, tokens in shown:
            if name not in declared:
                complain(f"{page} has {name} in SYNOPSIS, which no header declares")
                continue
            where[name].append(page)
            if tokens != declared[name]:
                complain(f"{page} has another prototype of {name} than the header")
            if name not in named:
                complain(f"{page} has {name} in SYNOPSIS and not in NAME")
        for name in named:
            if name not in declared:
                complain(f"{page} has {name} in NAME, which no header declares")
            elif page not in where[name]:
                complain(f"{page} has {name} in NAME and not in SYNOPSIS")
    for name, places in where.items():
        if not places:
            complain(f"no page has {name} in SYNOPSIS")
        elif len(places) > 1:
            complain(f"{name} is in the SYNOPSIS of {' and of '.join(places)}")
    print(f"manuals: {len(declared)} functions, {len(pages)} pages, {bad} complaints")
    sys.exit(bad != 0 or not declared)


if __name__ == "__main__":
    main()
