#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs clang-tidy over the sources of the given folders, and over the headers of the same folders that they include.
A file that several targets compile (mutations of the firmware, say) is looked at once, as its first target compiles it.
A header that no source includes would be looked at by nobody, and is a complaint of its own.

usage: tidy.py ROOT BUILD FOLDER..."""

import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

import includes

CLANG_TIDY = "clang-tidy-14"
# clang does not know these, or sees them differently from the compiler that the build uses.
EXTRA = ["-Wno-unknown-warning-option", "-Wno-error", "-w"]


def commands(root, build, folders):
    """One compile command per source file of `folders`."""
    chosen = {}
    prefixes = tuple(f"{root}/{folder}/" for folder in folders)
    for entry in json.loads((build / "compile_commands.json").read_text()):
        name = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
        if not name.startswith(prefixes) or name in chosen:
            continue
        if "PEAL_MUTATION=" in entry.get("command", ""):
            continue
        arguments = [word for word in shlex.split(entry["command"]) if word != "-Werror"]
        chosen[name] = {"directory": entry["directory"], "file": name, "arguments": arguments}
    return chosen


def unreached(root, chosen, folders):
    """Headers of `folders` that no chosen source includes."""
    files = includes.tree_files(root)
    seen, queue, cache = set(), [os.path.relpath(name, root) for name in chosen], {}
    while queue:
        name = queue.pop()
        if name in seen or name not in files:
            continue
        seen.add(name)
        queue += [target for _, included in includes.includes_of(root, name, cache)
                  if (target := includes.resolve(name, included, files)) is not None]
    prefixes = tuple(f"{folder}/" for folder in folders)
    return sorted(name for name in files - seen if name.startswith(prefixes) and name.endswith((".h", ".hpp")))


def tidy(database, headers, name):
    run = subprocess.run([CLANG_TIDY, "--quiet", "-p", database, f"--header-filter={headers}",
                          *(f"--extra-arg={flag}" for flag in EXTRA), name], capture_output=True, text=True, check=False)
    complaints = run.stdout if re.search(r"(warning|error):", run.stdout) else ""
    if run.returncode != 0 and not complaints:
        complaints = run.stdout + run.stderr
    return run.returncode, complaints


def main():
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    chosen = commands(root, build, sys.argv[3:])
    if not chosen:
        sys.exit(f"tidy: {build}/compile_commands.json names no source in {' '.join(sys.argv[3:])}")
    bad, told = 0, set()
    for name in unreached(root, chosen, sys.argv[3:]):
        print(f"tidy: {name}: no source includes it, so nobody looks at it")
        bad += 1
    headers = f"^{re.escape(str(root))}/({'|'.join(re.escape(folder) for folder in sys.argv[3:])})/"
    with tempfile.TemporaryDirectory() as database:
        with open(os.path.join(database, "compile_commands.json"), "w", encoding="utf-8") as out:
            json.dump(list(chosen.values()), out)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for status, complaints in pool.map(lambda name: tidy(database, headers, name), sorted(chosen)):
                bad += status != 0
                # A header's complaint comes with every source that includes it; tell it once.
                for block in re.split(r"\n(?=/)", complaints):
                    if block and block not in told:
                        told.add(block)
                        print(block.replace(f"{root}/", ""))
    print(f"tidy: {len(chosen)} sources, {bad} with complaints")
    sys.exit(bad != 0)


if __name__ == "__main__":
    main()
