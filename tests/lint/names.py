#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Names of statuses, packet types, operations, algorithms, administrative opcodes and counters exist once, as lists in abi/. The
tables of docs/names.md and the packet types of docs/wire-format.md say the same, row by row; and no source of the
libraries and programs spells an algorithm, a status or a packet type in a string of its own.

usage: names.py ROOT"""

import pathlib
import re
import sys

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import abi_lists  # noqa: E402  pylint: disable=wrong-import-position
import includes  # noqa: E402  pylint: disable=wrong-import-position

PAGE = "docs/names.md"
HEADINGS = {"Statuses": "PEAL_STATUSES", "Packet types": "PEAL_PACKET_TYPES", "Operations": "PEAL_OPERATIONS",
            "Algorithms": "PEAL_ALGORITHMS", "Administrative commands": "PEAL_ADMIN_OPCODES",
            "Descriptors of programs": "PEAL_PROGRAM_OPCODES", "Modes of programs": "PEAL_PROGRAM_MODES",
            "Reasons why a program is bad": "PEAL_PROGRAM_REASONS", "Counters": "PEAL_COUNTERS"}
WIRE_PAGE = "docs/wire-format.md"
WIRE_ROW = re.compile(r"^\| (\d+ [A-Z_]+) \|", re.MULTILINE)
FOLDERS = ("base/", "emulator/", "hostlib/", "tools/")
SPELLED_ONCE = ("PEAL_STATUSES", "PEAL_PACKET_TYPES", "PEAL_ALGORITHMS")
EVERYDAY = ("none", "OK")
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
STRING = re.compile(r'"([^"\n]*)"')


def rows_of(name, root):
    """None where the tree has no such header: then the page must not have any either."""
    return abi_lists.rows(name, root) if (root / "abi" / abi_lists.HEADERS[name]).is_file() else []


def table_of(text, heading):
    """Rows below `## heading`, as lines."""
    parts = re.split(r"^## ", text, flags=re.MULTILINE)
    section = next((part for part in parts if part.startswith(heading + "\n")), "")
    return [line for line in section.split("\n") if re.match(r"\| \d+ \|", line)]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    lists = {name: rows_of(name, root) for name in abi_lists.HEADERS}
    bad = 0

    def complain(text):
        nonlocal bad
        bad += 1
        print(f"names: {text}")

    page = (root / PAGE).read_text(encoding="utf-8")
    for heading, name in HEADINGS.items():
        wanted = [f"| {value} | {word} | {text} |" for value, _, word, text in lists[name]]
        got = table_of(page, heading)
        for line in wanted:
            if line not in got:
                complain(f"{PAGE}, {heading}: missing: {line}")
        for line in got:
            if line not in wanted:
                complain(f"{PAGE}, {heading}: not in {name}: {line}")
    wire = WIRE_ROW.findall((root / WIRE_PAGE).read_text(encoding="utf-8"))
    types = [f"{value} {word}" for value, _, word, _ in lists["PEAL_PACKET_TYPES"]]
    if wire != types:
        complain(f"{WIRE_PAGE} has the packet types {', '.join(wire)} instead of {', '.join(types)}")

    once = {row[2]: name for name in SPELLED_ONCE for row in lists[name] if row[2] not in EVERYDAY}
    files = sorted(name for name in includes.tree_files(root) if name.startswith(FOLDERS))
    for file in files:
        text = COMMENT.sub("", (root / file).read_text(encoding="utf-8"))
        for word in STRING.findall(text):
            if word in once:
                complain(f'{file} spells "{word}", which is in {once[word]}: use base/names.h')
    print(f"names: {sum(map(len, lists.values()))} names, {len(files)} files")
    sys.exit(bad != 0 or not files)


if __name__ == "__main__":
    main()
