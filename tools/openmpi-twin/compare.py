# SPDX-License-Identifier: BSD-2-Clause
"""peal-perf over Peal and over Open MPI by turns, as a table: Peal's ranks leave one processor to the cards; Open MPI's have the same
processors (one column) or all of them (another), and in each row the algorithm that was its fastest there. Needs Open MPI and
a build that found it.

usage: compare.py FOLDER_OF_THE_PROGRAMS [--ranks N] [--sizes A,B,...] [--turns T] [--iterations I]"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

# What suits ranks that share processors best.
COMMON = ["--oversubscribe", "--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader", "--mca", "pml", "ob1"]
ALL_CPUS = ["--map-by", "core", "--bind-to", "core:overload-allowed"]
ONE_CPU = ["--bind-to", "none"]
# Open MPI's names, by its numbers; 0 is its own choice.
ALGORITHMS = {"barrier": {0: "its choice", 1: "linear"},
              "allgather": {0: "its choice", 1: "linear", 2: "Bruck", 3: "recursive doubling"}}


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.folder)
        self.perf = os.path.join(self.folder, "peal-perf")
        self.mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        twin = os.path.normpath(os.path.join(self.folder, "../openmpi"))
        if self.mpirun is None or not os.path.exists(os.path.join(twin, "libpeal.so.0")):
            sys.exit("compare: Open MPI is not installed (Debian's openmpi-bin and libopenmpi-dev), or was not when CMake ran")
        self.libraries = ":".join(filter(None, [twin, os.environ.get("LD_LIBRARY_PATH")]))
        self.environment = dict(os.environ)
        if os.geteuid() == 0:
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        cpus = sorted(os.sched_getaffinity(0))
        self.rank_cpus = cpus[:-1] or cpus

    def commands(self, operation):
        """By side and Open MPI's algorithm."""
        ranks = str(self.options.ranks)
        over = [self.mpirun, "-n", ranks, *COMMON]
        library = ["-x", f"LD_LIBRARY_PATH={self.libraries}", self.perf]
        few = ONE_CPU if len(self.rank_cpus) == 1 else ALL_CPUS
        pinned = ["taskset", "-c", ",".join(map(str, self.rank_cpus))]
        commands = {("peal", 0): [self.perf, "--ranks", ranks]}
        for algorithm in ALGORITHMS[operation]:
            rules = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", f"coll_tuned_{operation}_algorithm", str(algorithm)]
            chosen = rules if algorithm else []
            commands["same", algorithm] = [*pinned, *over, *few, *chosen, *library]
            commands["all", algorithm] = [*over, *ALL_CPUS, *chosen, *library]
        return commands

    def measure(self, command, operation):
        """Medians in us, by bytes per rank."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.json")
            sizes = [] if operation == "barrier" else ["--sizes", self.options.sizes]
            done = subprocess.run([*command, operation, *sizes, "--iterations", str(self.options.iterations), "--json", path],
                                  env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"compare: {' '.join(command)} {operation}: {done.returncode}\n{done.stdout}{done.stderr}")
            with open(path, encoding="utf-8") as file:
                return {record["bytes"]: record["latency_us"] for record in json.load(file)}

    def run(self):
        print(f"| N = {self.options.ranks}, µs | Peal | Open MPI, the same processors | ratio (spread) | Open MPI, all processors "
              "| ratio (spread) |\n| --- | --- | --- | --- | --- | --- |")
        for operation in ("barrier", "allgather"):
            found = {}  # side, algorithm, bytes -> one median per turn
            for _ in range(self.options.turns):
                for (side, algorithm), command in self.commands(operation).items():
                    for size, median in self.measure(command, operation).items():
                        found.setdefault((side, algorithm, size), []).append(median)
            for size in sorted(size for side, _, size in found if side == "peal"):
                self.print_row(operation, size, found)

    @staticmethod
    def print_row(operation, size, found):
        ours = found["peal", 0, size]
        cells = [operation if operation == "barrier" else f"{operation} {size} B", f"{statistics.median(ours):.3g}"]
        for side in ("same", "all"):
            medians = {algorithm: statistics.median(found[side, algorithm, size]) for algorithm in ALGORITHMS[operation]}
            best = min(medians, key=medians.get)
            ratios = [our / their for our, their in zip(ours, found[side, best, size])]
            cells += [f"{medians[best]:.3g} ({ALGORITHMS[operation][best]})",
                      f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"]
        print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("folder")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--sizes", default="4,64,1024,8192")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=1000)
    Bench(parser.parse_args()).run()


if __name__ == "__main__":
    main()
