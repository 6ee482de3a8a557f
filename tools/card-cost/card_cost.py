#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Where a card's instructions go: firmware, loop, wire rings, pool of packets, DMA and host rings apart.

peal-nic-bench under valgrind's callgrind, a few operations and many: what the many take more is theirs alone, without
start and set-up. A line of code counts where its source file lies, inlined or not; of a header of the C++ library where
the function lies that it was inlined into.
"""

import argparse
import collections
import os
import re
import subprocess
import sys
import tempfile

# The first that a file's path has in it.
ROOMS = (
    ("firmware", ("/firmware/",)),
    ("pool", ("/packet_pool", "rte_mempool", "rte_mbuf")),
    ("wire", ("/ring_wire", "/wire_rings", "/frame_switch", "rte_ring", "rte_prefetch")),
    ("DMA", ("/host_copies", "/region", "/lent_memory", "/shared_memory", "/copy_pool")),
    ("host rings", ("/abi/ring.h", "/mapped_windows", "/windows", "/context_window")),
    ("copies", ("/memmove-", "/memcpy", "/memset-", "rte_memcpy")),
    ("loop", ("/emulator/", "rte_", "/base/")),
)
NAMES = [name for name, _ in ROOMS] + ["rest"]

# Operation, algorithm, ranks, bytes: those that docs/performance/instructions.md has a table of.
TABLE = (
    ("barrier", "", 8, 1),
    ("allgather", "recursive-doubling", 8, 64),
    ("allgather", "all-to-all-broadcast", 16, 1024),
    ("allgather", "all-to-all-broadcast", 16, 65536),
    ("allgather", "direct", 16, 65536),
    ("broadcast", "", 8, 65536),
    ("alltoall", "direct", 8, 8192),
)


def room_of(path):
    return next((name for name, parts in ROOMS if any(part in path for part in parts)), "rest")


def rooms_of(path):
    """Instructions of each room, in a callgrind file that has lines."""
    files = {}
    costs = collections.Counter()
    function_file = file = None
    called = False
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            name = re.match(r"(fl|fi|fe|cfi|cfl)=\((\d+)\)(?: (.*))?$", line)
            if name is not None:
                kind, number, text = name.groups()
                if text is not None:
                    files[number] = text
                if kind == "fl":
                    function_file = files[number]
                if kind in ("fl", "fi", "fe"):
                    file = files[number]
            elif line.startswith("calls="):
                called = True  # the next line is what the callee took
            elif re.match(r"[+*\d-]", line):
                if not called:
                    library = file.startswith("/usr/include/c++/") or file == "???"
                    costs[room_of(function_file if library else file)] += int(line.split()[1])
                called = False
    return costs


def run(bench, operation, algorithm, ranks, size, iterations, folder):
    """The rooms' instructions of so many operations, and the frames of each."""
    out = os.path.join(folder, str(iterations))
    command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--dump-line=yes", bench,
               "--operation", operation, "--ranks", str(ranks), "--bytes", str(size), "--iterations", str(iterations)]
    if algorithm:
        command += ["--algorithm", algorithm]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    frames = re.search(r"([\d.]+) frames", done.stdout)
    if done.returncode != 0 or frames is None:
        sys.exit(f"card-cost: peal-nic-bench failed:\n{done.stderr}")
    return rooms_of(out), float(frames[1])


def measure(bench, row, few, many):
    """Instructions of an operation by room, for each frame that is sent."""
    with tempfile.TemporaryDirectory() as folder:
        before, _ = run(bench, *row, few, folder)
        after, frames = run(bench, *row, many, folder)
    return {name: (after[name] - before[name]) / (many - few) / frames for name in NAMES}, frames


def main():
    parser = argparse.ArgumentParser(prog="card-cost", description=__doc__.split("\n", maxsplit=1)[0], epilog="""
        Instructions for each frame that an operation sends, of all its ranks together, whose hosts have posted before:
        the firmware; the loop that serves the cards; the wire between them; the pool of packets; DMA but for the copying,
        which is apart (its instructions are as many as its registers are short); the rings of the hosts. Without options
        the table of docs/performance.md.""")
    parser.add_argument("--operation", metavar="NAME", help="only this operation (see peal-nic-bench --help)")
    parser.add_argument("--algorithm", metavar="NAME", default="", help="by this algorithm")
    parser.add_argument("--ranks", metavar="N", type=int, default=8, help="by N ranks, a card each (default: 8)")
    parser.add_argument("--bytes", metavar="N", type=int, default=1024, help="blocks of N bytes (default: 1024)")
    parser.add_argument("--iterations", metavar="N", type=int, default=40,
                        help="the difference of 10 operations and N more (default: 40)")
    arguments = parser.parse_args()
    if arguments.iterations < 1:
        parser.error("--iterations must be at least 1")
    bench = os.path.join(os.path.dirname(os.path.abspath(__file__)), "peal-nic-bench")
    rows = TABLE
    if arguments.operation:
        rows = [(arguments.operation, arguments.algorithm, arguments.ranks, arguments.bytes)]
    print(f"{'instructions a frame':52}" + "".join(f"{name:>11}" for name in [*NAMES, "all", "frames"]))
    for row in rows:
        costs, frames = measure(bench, row, 10, 10 + arguments.iterations)
        operation, algorithm, ranks, size = row
        title = operation + (f", {algorithm}" if algorithm else "") + (f", {size} B" if operation != "barrier" else "")
        print(f"{title + f', N = {ranks}':52}" + "".join(f"{costs[name]:11.0f}" for name in NAMES) +
              f"{sum(costs.values()):11.0f}{frames:11.1f}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except FileNotFoundError as error:
        sys.exit(f"card-cost: {error.filename} is missing; run ./peal setup")
    except KeyboardInterrupt:
        sys.exit(130)
