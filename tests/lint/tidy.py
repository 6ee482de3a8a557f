#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs clang-tidy over the sources of the given folders, and over the headers of the same folders that they include.
A file that several targets compile (mutations of the firmware, say) is looked at once, as its first target compiles it.
Most of the time goes into the headers of libraries, which clang-tidy walks through again for each source. So sources of
one folder that are compiled alike are looked at together, as one source that includes them; where their names collide
(each has its own unnamed namespace), in halves.
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
# So many sources are looked at together at most: then both processors have work until the end.
TOGETHER = 20


def sources(entry):
    """The files that a compile command is for: where it is for several at once (UNITY_BUILD), each of these."""
    name = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
    if "/Unity/unity_" not in name:
        return [name]
    return re.findall(r'^#include "(.+)"$', pathlib.Path(name).read_text(encoding="utf-8"), re.MULTILINE)


def commands(root, build, folders):
    """One compile command per source file of `folders`."""
    chosen = {}
    prefixes = tuple(f"{root}/{folder}/" for folder in folders)
    entries = json.loads((build / "compile_commands.json").read_text())
    # As it is without deliberate faults, where it is.
    for entry in sorted(entries, key=lambda entry: "PEAL_MUTATIONS" in entry.get("command", "")):
        for name in sources(entry):
            if not name.startswith(prefixes) or name in chosen:
                continue
            arguments = [name if word == entry["file"] else word for word in shlex.split(entry["command"])
                         if word != "-Werror"]
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


def batches(chosen):
    """Lists of commands: sources of the same folder and the same flags, at most TOGETHER of them."""
    alike = {}
    for name, command in sorted(chosen.items()):
        flags = [word for word in command["arguments"] if word not in ("-c", command["file"])]
        if "-o" in flags:
            del flags[flags.index("-o"):flags.index("-o") + 2]
        alike.setdefault((os.path.dirname(name), os.path.splitext(name)[1], command["directory"], *flags), []).append(command)
    return [commands[first:first + TOGETHER] for commands in alike.values()
            for first in range(0, len(commands), TOGETHER)]


def look(root, headers, batch):
    """What clang-tidy says of a batch: a list of (status, complaints)."""
    with tempfile.TemporaryDirectory() as database:
        name, entry = batch[0]["file"], batch[0]
        if len(batch) > 1:
            name = os.path.join(database, "together" + os.path.splitext(name)[1])
            with open(name, "w", encoding="utf-8") as out:
                out.writelines(f'#include "{one["file"]}"  // NOLINT(bugprone-suspicious-include)\n' for one in batch)
            arguments = [name if word == entry["file"] else word for word in entry["arguments"]]
            entry = {"directory": entry["directory"], "file": name, "arguments": arguments}
        with open(os.path.join(database, "compile_commands.json"), "w", encoding="utf-8") as out:
            json.dump([entry], out)
        run = subprocess.run([CLANG_TIDY, "--quiet", "-p", database, f"--config-file={root}/.clang-tidy",
                              f"--header-filter={headers}", *(f"--extra-arg={flag}" for flag in EXTRA), name], capture_output=True, text=True,
                             check=False)
    if len(batch) > 1 and "[clang-diagnostic-error]" in run.stdout:
        half = len(batch) // 2
        return look(root, headers, batch[:half]) + look(root, headers, batch[half:])
    complaints = run.stdout if re.search(r"(warning|error):", run.stdout) else ""
    if run.returncode != 0 and not complaints:
        complaints = run.stdout + run.stderr
    return [(run.returncode, complaints)]


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
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for batch in pool.map(lambda batch: look(root, headers, batch), batches(chosen)):
            for status, complaints in batch:
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
