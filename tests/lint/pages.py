#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""What the pages (README.md, docs/) point at is there: links with their anchors, files in backticks whose path begins with
a folder of the tree, and tests that are named as `Suite.Name`.

usage: pages.py ROOT"""

import pathlib
import re
import subprocess
import sys

LINK = re.compile(r"\]\(([^)\s]+)\)")
PATH = re.compile(r"`([\w.\-]+/[\w./\-]+\.(?:c|cmake|cpp|h|json|md|patch|py|sh|txt))`")
NAMED_TEST = re.compile(r"`(?:\w+/)?([A-Z]\w*\.[A-Z]\w*)(?:/\w+)?`")
TEST = re.compile(r"\bTEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\s*\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def anchors(text):
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text)}


def wrong_link(root, page, link):
    if re.match(r"[a-z]+:", link):
        return False
    path, _, anchor = link.partition("#")
    target = (root / page).parent / path if path else root / page
    return not target.exists() or (anchor and anchor not in anchors(target.read_text(encoding="utf-8")))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1]).resolve()
    names = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"], check=True, capture_output=True, text=True)
    files = {name for name in names.stdout.splitlines() if (root / name).is_file()}
    folders = {name.split("/")[0] for name in files if "/" in name}
    tests = {".".join(test) for name in files if name.startswith("tests/") and name.endswith(".cpp")
             for test in TEST.findall((root / name).read_text(encoding="utf-8"))}
    pages = sorted(name for name in files if name.endswith(".md"))
    bad = 0
    for page in pages:
        text = (root / page).read_text(encoding="utf-8")
        lost = [f"links to {link}" for link in LINK.findall(text) if wrong_link(root, page, link)]
        lost += [f"names the file {path}" for path in PATH.findall(text)
                 if path.split("/")[0] in folders and path not in files and "NNN" not in path]
        lost += [f"names the test {test}" for test in NAMED_TEST.findall(text) if test not in tests]
        for what in lost:
            print(f"pages: {page} {what}, which is not there")
        bad += len(lost)
    print(f"pages: {len(pages)} pages, {bad} complaints")
    sys.exit(bad != 0 or not pages)


if __name__ == "__main__":
    main()
