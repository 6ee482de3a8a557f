#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The firmware's rooms. A file includes only what lies in its own room or in one above it, never another collective's folder;
and only the registry names an algorithm, an operation that hosts submit, or a collective's namespace.

usage: rooms.py ROOT"""

import pathlib
import re
import subprocess
import sys

# From the top of docs/architecture.md's list to its bottom. A file is in the room of its longest prefix.
ROOMS = (
    ("firmware/port.h", "firmware/payload.h", "firmware/channels.h", "firmware/timeouts.h"),
    ("firmware/base/",),
    ("firmware/card_types.h", "firmware/p2p_types.h", "firmware/queue_types.h"),
    ("firmware/wire/",),
    ("firmware/host/",),
    ("firmware/dma/",),
    ("firmware/group/",),
    ("firmware/operation/",),
    ("firmware/collective/",),
    ("firmware/operation/registry.cpp",),
    ("firmware/p2p/",),
    ("firmware/queue/",),
    ("firmware/budget/", "firmware/receive.", "firmware/card."),
)
REGISTRY = "firmware/operation/registry.cpp"
INCLUDE = re.compile(r'^\s*#\s*include\s*"(firmware/[^"]+)"', re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)
# The group's own: destroy and recycling, with the dissemination and the tree that they are.
NAME = re.compile(r"\bPEAL_(?:ALGORITHM|OPERATION)_(?!NONE\b|COUNT\b|DESTROY\b|RECYCLE\b)\w+")
# Point-to-point is served by its own room: no algorithms, no sequence of the group's.
POINT_TO_POINT = {f"PEAL_OPERATION_{name}" for name in ("SEND", "RECEIVE", "PUT", "GET", "FENCE")}
MAY_NAME = {"firmware/group/dissemination.h": {"PEAL_ALGORITHM_DISSEMINATION"},
            "firmware/group/recycling_tree.h": {"PEAL_ALGORITHM_BINOMIAL"},
            "firmware/p2p/submission.h": POINT_TO_POINT, "firmware/p2p/submission.cpp": POINT_TO_POINT,
            "firmware/queue/start.h": {"PEAL_OPERATION_START"}, "firmware/queue/start.cpp": {"PEAL_OPERATION_START"}}


def room_of(name):
    """The room's number, or None."""
    found = [(len(prefix), number) for number, prefixes in enumerate(ROOMS) for prefix in prefixes if name.startswith(prefix)]
    return max(found)[1] if found else None


def collective_of(name):
    parts = name.split("/")
    return parts[2] if name.startswith("firmware/collective/") and len(parts) > 3 else None


def main():
    root = pathlib.Path(sys.argv[1])
    listed = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "firmware"],
                            check=True, capture_output=True, text=True).stdout.split("\n")
    files = {name: COMMENT.sub("", (root / name).read_text(encoding="utf-8")) for name in sorted(set(listed))
             if name.endswith((".h", ".cpp")) and (root / name).is_file()}
    # Namespaces of algorithms are called as their files.
    algorithms = {pathlib.Path(name).stem for name in files if collective_of(name) and name.endswith(".cpp")}
    bad = []
    for name, text in files.items():
        room = room_of(name)
        if room is None:
            bad.append(f"{name}: in no room")
            continue
        for included in INCLUDE.findall(text):
            if room_of(included) is not None and room_of(included) > room:
                bad.append(f"{name} -> {included}: that room is further down")
            if collective_of(name) and collective_of(included) not in (None, collective_of(name)):
                bad.append(f"{name} -> {included}: another collective")
        if name == REGISTRY:
            continue
        for word in sorted(set(NAME.findall(text)) - MAY_NAME.get(name, set())):
            bad.append(f"{name} names {word}; only {REGISTRY} may")
        if not collective_of(name):
            for algorithm in sorted(algorithms):
                if re.search(rf"\b{algorithm}::", text):
                    bad.append(f"{name} names {algorithm}::; only {REGISTRY} may")
    for line in bad:
        print(f"rooms: {line}")
    print(f"rooms: {len(files)} files")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
