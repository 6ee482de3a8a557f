#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""No circles between nouns. A noun is a header and its source, as one; it points at what either of them includes. Of the
driver, whose files share one header, a noun is a source, and points at whoever defines a function that it calls.

A folder is on the list once it has no circle left, and then stays there.

usage: circles.py ROOT"""

import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^">]+)"', re.MULTILINE)
# A definition of the kernel's style: its name on the first line, its brace in the first column.
DEFINITION = re.compile(r"^(?!static)[a-z][\w *]*?\b(\w+)\([^;{]*?\)\n\{", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)

BY_INCLUDES = ("base/", "firmware/", "hostlib/", "emulator/cluster/", "emulator/common/", "emulator/nic/")
BY_CALLS = ("driver/",)


def sources(root):
    names = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.split("\n")
    for name in sorted(set(names)):
        if name.endswith((".c", ".h", ".cpp", ".hpp")) and (root / name).is_file():
            yield name, COMMENT.sub("", (root / name).read_text(encoding="utf-8"))


def noun_of(name):
    return name.rsplit(".", 1)[0]


def arrows_by_includes(files, folder):
    arrows = {}
    for name, text in files.items():
        if not name.startswith(folder):
            continue
        targets = arrows.setdefault(noun_of(name), set())
        for included in INCLUDE.findall(text):
            if included in files and included.startswith(folder):
                targets.add(noun_of(included))
    return arrows


def arrows_by_calls(files, folder):
    texts = {noun_of(name): text for name, text in files.items() if name.startswith(folder) and name.endswith(".c")}
    owner = {function: noun for noun, text in texts.items() for function in DEFINITION.findall(text)}
    arrows = {}
    for noun, text in texts.items():
        words = set(re.findall(r"\w+", text))
        arrows[noun] = {owner[word] for word in words & owner.keys()}
    return arrows


def circles(arrows):
    """Tarjan's strongly connected components of more than one noun."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(noun):
        index[noun] = low[noun] = len(index)
        stack.append(noun)
        on.add(noun)
        for target in sorted(arrows.get(noun, ())):
            if target not in index:
                visit(target)
                low[noun] = min(low[noun], low[target])
            elif target in on:
                low[noun] = min(low[noun], index[target])
        if low[noun] != index[noun]:
            return
        part = []
        while not part or part[-1] != noun:
            part.append(stack.pop())
            on.discard(part[-1])
        if len(part) > 1:
            found.append(sorted(part))

    for noun in sorted(arrows):
        if noun not in index:
            visit(noun)
    return found


def main():
    root = pathlib.Path(sys.argv[1])
    files = dict(sources(root))
    bad = 0
    for folders, arrows_of in ((BY_INCLUDES, arrows_by_includes), (BY_CALLS, arrows_by_calls)):
        for folder in folders:
            arrows = arrows_of(files, folder)
            if not arrows:
                print(f"circles: no source in {folder}")
                bad += 1
            for circle in circles(arrows):
                bad += 1
                print(f"circles: {folder} has a circle of {len(circle)}:")
                for noun in circle:
                    inside = sorted(arrows[noun] & set(circle) - {noun})
                    print(f"  {noun} -> {', '.join(inside)}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
