#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The exercise of docs/add-an-algorithm.md, done: an allgather by a star is added to a copy of the tree by a patch, built, and run,
by its own unit test and in virtual time under loss. The patch touches the files that the page lists, and no others.

usage: run.py ROOT BUILD"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

PATCH = "tests/exercise/star-allgather.patch"
PAGE = "docs/add-an-algorithm.md"
# Compiled once and hardly run: a kind of build of its own, without optimisation, by the faster compiler, several sources at a time.
SETTINGS = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Exercise", "-DCMAKE_C_FLAGS_EXERCISE=-O0", "-DCMAKE_CXX_FLAGS_EXERCISE=-O0", "-DCMAKE_C_COMPILER=clang-14", "-DCMAKE_CXX_COMPILER=clang++-14",
            "-DCMAKE_UNITY_BUILD=ON", "-DPEAL_DPDK=OFF", "-DPEAL_DRIVER=OFF", "-DPEAL_GUEST=OFF",
            "-DPEAL_CONFIG=configs/emulator"]
# What the page's names stand for in this exercise.
MEANT = {"<operation>": "allgather", "<algorithm>": "star"}


def run(*words, **options):
    print("exercise:", *words, flush=True)
    subprocess.run(words, check=True, **options)


def touched(root):
    """Files of the patch."""
    text = (root / PATCH).read_text(encoding="utf-8")
    return sorted(re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE))


def listed(root):
    """Files of the page's list: the first column of its table."""
    text = (root / PAGE).read_text(encoding="utf-8")
    files = []
    for line in text.splitlines():
        if line.startswith("| `"):
            files += re.findall(r"`([^`]+)`", line.split("|")[1])
    for name, meant in MEANT.items():
        files = [file.replace(name, meant) for file in files]
    return sorted(files)


def copy_tree(root, tree):
    names = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard", "-z"],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    shutil.rmtree(tree, ignore_errors=True)
    for name in filter(None, names):
        if (root / name).is_file():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, tree / name)


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if touched(root) != listed(root):
        print(f"exercise: {PATCH} touches\n  " + "\n  ".join(touched(root)) +
              f"\nbut {PAGE} lists\n  " + "\n  ".join(listed(root)))
        return 1
    tree, binary = build / "exercise/tree", build / "exercise/build"
    copy_tree(root, tree)
    run("git", "apply", "--whitespace=nowarn", str(root / PATCH), cwd=tree, env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tree.parent)})
    run("cmake", "-S", str(tree), "-B", str(binary), *SETTINGS, stdout=subprocess.DEVNULL)
    run("cmake", "--build", str(binary), "-j2", "--target", "peal-collective-tests", "peal-sim", stdout=subprocess.DEVNULL)
    programs = binary / "bin"
    run(str(programs / "peal-collective-tests"), "--gtest_brief=1", "--gtest_filter=Star*:Registry*")
    for size in (64, 5000, 70000):
        run(str(programs / "peal-sim"), "--cards", "5", "--algorithm", "star", "--bytes", str(size), "--operations", "50",
            "--depth", "3", "--think-us", "20", "--loss", "0.05", "--duplicate", "0.02", "--reorder", "0.05")
    # Without loss it takes what the simulator's model says.
    run(str(programs / "peal-sim"), "--cards", "5", "--algorithm", "star", "--bytes", "5000", "--effort-max", "1.01")
    print("exercise: done")
    return 0


if __name__ == "__main__":
    sys.exit(main())
