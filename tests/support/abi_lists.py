# SPDX-License-Identifier: BSD-2-Clause
"""The lists of abi/, X(value, symbol, "name", "what it means"), for tests in Python. Where a list has no values (counters)
they are the rows' places, from 0."""

import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
HEADERS = {"PEAL_STATUSES": "status.h", "PEAL_PACKET_TYPES": "wire.h", "PEAL_OPERATIONS": "wire.h",
           "PEAL_ALGORITHMS": "wire.h", "PEAL_ADMIN_OPCODES": "admin.h",
           "PEAL_PROGRAM_OPCODES": "program.h", "PEAL_PROGRAM_MODES": "program.h", "PEAL_PROGRAM_REASONS": "program.h",
           "PEAL_COUNTERS": "counters.h"}
ROW = re.compile(r'\bX\(\s*(?:(\d+), )?(\w+), "([^"]+)", "([^"]+)"\)')


def rows(name, root=ROOT):
    """[(value, symbol, name, text)] of a list, for example PEAL_STATUSES."""
    text = (root / "abi" / HEADERS[name]).read_text(encoding="utf-8")
    macro = text.split(f"#define {name}(X)", 1)[1].replace("\\\n", "").split("\n", 1)[0]
    found = [(int(value or place), *words) for place, (value, *words) in enumerate(ROW.findall(macro))]
    if not found or len(found) != len(re.findall(r"\bX\(", macro)):
        raise ValueError(f"{name}: {len(found)} rows are understood, which is not all of: {macro}")
    return found


def version(root=ROOT):
    """PEAL_ABI_VERSION."""
    text = (root / "abi" / "types.h").read_text(encoding="utf-8")
    return int(re.search(r"^#define PEAL_ABI_VERSION (\d+)", text, re.MULTILINE)[1])


def names(name):
    """The names in the order of their values, from 0."""
    return [row[2] for row in rows(name)]
