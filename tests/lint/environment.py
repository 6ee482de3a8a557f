#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Every environment variable that hostlib, tools or the emulator reads is in the table of docs/environment.md, and
every PEAL_ variable of that table is read by somebody.

usage: environment.py ROOT"""

import pathlib
import re
import sys

import includes

FOLDERS = ("emulator/", "firmware/", "hostlib/", "tools/")
PAGE = "docs/environment.md"
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
READ = re.compile(r"\b(?:secure_)?getenv\(\s*([^()]*?)\s*\)")
CONSTANT = re.compile(r'\b(k\w+)(?:\[\])?\s*=\s*"([A-Z][A-Z0-9_]*)"\s*;')
SPELLED = re.compile(r'"([A-Z][A-Z0-9_]*)"')
PASSED = re.compile(r'"(PEAL_[A-Z0-9_]+)"')
ROW = re.compile(r"^\|((?: `[A-Z][A-Z0-9_]*`,?)+) \|", re.MULTILINE)
NAME = re.compile(r"`([^`]*)`")


def variables(text, constants):
    """What one source reads. A name that comes in as a parameter may be any PEAL_ string of the file."""
    found = set()
    for argument in READ.findall(text):
        literal = SPELLED.fullmatch(argument)
        name = argument.rsplit("::", 1)[-1]
        if literal:
            found.add(literal.group(1))
        elif name in constants:
            found |= constants[name]
        else:
            passed = set(PASSED.findall(text))
            found |= passed or {f"getenv({argument})"}
    return found


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    names = sorted(name for name in includes.tree_files(root) if name.startswith(FOLDERS) and name.endswith(includes.SUFFIXES))
    texts = {name: COMMENT.sub("", (root / name).read_text(encoding="utf-8")) for name in names}
    constants = {}
    for text in texts.values():
        for name, value in CONSTANT.findall(text):
            constants.setdefault(name, set()).add(value)
    rows = [name for row in ROW.findall((root / PAGE).read_text(encoding="utf-8")) for name in NAME.findall(row)]
    read, bad = set(), 0
    for name, text in texts.items():
        for variable in sorted(variables(text, constants)):
            read.add(variable)
            if variable not in rows:
                print(f"environment: {name} reads {variable}, which is not in the table of {PAGE}")
                bad += 1
    for row in rows:
        if rows.count(row) > 1 or (row.startswith("PEAL_") and row not in read):
            print(f"environment: {PAGE} has a row for {row}, which {'is there twice' if rows.count(row) > 1 else 'nobody reads'}")
            bad += 1
    if not read:
        sys.exit("environment: no source reads any variable: is this the right tree?")
    print(f"environment: {len(read)} variables, {bad} complaints")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
