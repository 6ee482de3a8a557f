# SPDX-License-Identifier: BSD-2-Clause
"""peal-perf over Peal, over the ideal card and over Open MPI by turns, as a table of periods: the time from one operation to the next, rank 0's median;
of a broadcast, whose root a library may let run ahead, from its begin to the last rank's end. Peal's ranks leave one processor to the
cards (apart), or use all (shared), and the cards and the ideal card give way on theirs, which may have fewer ranks (balanced), or so do
cards on all (spread); Open MPI's have the former processors (one column) or all of them (another), and in each row the algorithm that
was its fastest there of those listed below; what has all of them is beside Peal's fastest placement of the row. Needs
Open MPI (./peal setup --open-mpi) and a build that found it. All of Open MPI's algorithms play the first turn, the further ones only those that were the fastest of a size in it.

sendrecv, put and get have a table of their own: of one under way the time that peal-perf(1) says, of a window of them the median
share of each.

usage: compare.py FOLDER_OF_THE_PROGRAMS [OPERATION...] [--ranks N] [--sizes A,B,...] [--turns T] [--iterations I]
[--memory KIND]"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile

COMMON = ["--oversubscribe", "--mca", "btl", "self,vader", "--mca", "pml", "ob1"]
# What suits ranks that share processors best; others need nobody's turn.
YIELDING = ["--mca", "mpi_yield_when_idle", "1"]
ALL_CPUS = ["--map-by", "core", "--bind-to", "core:overload-allowed"]
ONE_CPU = ["--bind-to", "none"]
# Open MPI's names, by its numbers (ompi_info --param coll tuned --level 9); 0 is its own choice. A broadcast that passes a block on
# goes whole, or in segments of so many bytes: a number of two parts.
ALGORITHMS = {"barrier": {0: "its choice", 1: "linear", 2: "double ring", 3: "recursive doubling", 4: "Bruck", 6: "tree"},
              "broadcast": {0: "its choice", 1: "linear", 2: "chain", (2, 8192): "chain, 8 KiB", 3: "pipeline", (3, 8192): "pipeline, 8 KiB",
                            (3, 65536): "pipeline, 64 KiB", (4, 8192): "split binary tree, 8 KiB", 5: "binary tree",
                            (5, 8192): "binary tree, 8 KiB", (5, 65536): "binary tree, 64 KiB", 6: "binomial", (6, 65536): "binomial, 64 KiB",
                            7: "knomial", 8: "scatter, allgather", 9: "scatter, ring"},
              "allgather": {0: "its choice", 1: "linear", 2: "Bruck", 3: "recursive doubling", 4: "ring", 5: "neighbors"},
              "alltoall": {0: "its choice", 1: "linear", 2: "pairwise", 3: "Bruck", 4: "linear in step"},
              "allgatherv": {0: "its choice", 1: "linear", 2: "Bruck", 3: "ring", 4: "neighbors"},
              "alltoallv": {0: "its choice", 1: "linear", 2: "pairwise"}}
# Between two ranks: two tables' worth of figures, and nothing to choose; the ideal card plays none.
TALKS = ("sendrecv", "put", "get")
PLACEMENTS = ("apart", "shared", "balanced", "spread")
IDEAL_PLACEMENTS = PLACEMENTS[:3]  # it is one process
# Where its word is another.
WORDS = {"broadcast": "bcast"}


class Bench:
    def __init__(self, options):
        self.options = options
        self.folder = os.path.abspath(options.folder)
        self.perf = os.path.join(self.folder, "peal-perf")
        self.mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        twin = os.path.normpath(os.path.join(self.folder, "../openmpi"))
        if self.mpirun is None or not os.path.exists(os.path.join(twin, "libpeal.so.0")):
            sys.exit("compare: Open MPI is not installed (./peal setup --open-mpi installs it), or was not when CMake ran")
        self.libraries = ":".join(filter(None, [twin, os.environ.get("LD_LIBRARY_PATH")]))
        self.environment = dict(os.environ)
        if os.geteuid() == 0:
            self.environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        cpus = sorted(os.sched_getaffinity(0))
        self.rank_cpus = cpus[:-1] or cpus
        self.cpus = cpus

    def yielding(self, cpus):
        return YIELDING if self.options.ranks > len(cpus) else []

    def commands(self, operation):
        """By side and Open MPI's algorithm."""
        word = WORDS.get(operation, operation)
        ranks = str(self.options.ranks)
        over = [self.mpirun, "-n", ranks, *COMMON]
        library = ["-x", f"LD_LIBRARY_PATH={self.libraries}", self.perf]
        few = ONE_CPU if len(self.rank_cpus) == 1 else ALL_CPUS
        pinned = ["taskset", "-c", ",".join(map(str, self.rank_cpus))]
        ours = [self.perf, "--ranks", ranks]
        commands = {(placement, 0): [*ours, "--placement", placement, *(["--floor"] if placement in IDEAL_PLACEMENTS else [])]
                    for placement in PLACEMENTS}
        if operation in TALKS:
            commands = {("apart", 0): ours}
        for algorithm in ALGORITHMS.get(operation, {0: ""}):
            number, segment = algorithm if isinstance(algorithm, tuple) else (algorithm, 0)
            rules = ["--mca", "coll_tuned_use_dynamic_rules", "1", "--mca", f"coll_tuned_{word}_algorithm", str(number)]
            if segment:
                rules += ["--mca", f"coll_tuned_{word}_algorithm_segmentsize", str(segment)]
            chosen = rules if number else []
            commands["same", algorithm] = [*pinned, *over, *self.yielding(self.rank_cpus), *few, *chosen, *library]
            commands["all", algorithm] = [*over, *self.yielding(self.cpus), *ALL_CPUS, *chosen, *library]
        return commands

    def measure(self, command, operation):
        """Of the ideal card or not, bytes per rank, time in us: a list of these."""
        figure = "latency_us" if operation == "broadcast" else "period_us"
        return [(record["algorithm"] == "ideal-card", record["bytes"], record[figure]) for record in self.records(command, operation)]

    def records(self, command, operation):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "records.json")
            blocks = [] if operation == "barrier" else ["--sizes", self.options.sizes, "--memory", self.options.memory]
            rounds = [] if operation in TALKS else ["--rounds", "10"]  # as beside the ideal card: all warm up alike
            done = subprocess.run([*command, operation, *blocks, *rounds, "--iterations", str(self.options.iterations),
                                   "--json", path],
                                  env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                sys.exit(f"compare: {' '.join(command)} {operation}: {done.returncode}\n{done.stdout}{done.stderr}")
            with open(path, encoding="utf-8") as file:
                return json.load(file)

    def run(self):
        collectives = [operation for operation in self.options.operations if operation not in TALKS]
        talks = [operation for operation in self.options.operations if operation in TALKS]
        if collectives:
            self.run_collectives(collectives)
        if talks:
            self.run_talks(talks)

    def run_talks(self, operations):
        print(f"| N = {self.options.ranks}, µs | Peal | Open MPI, the same processors | Peal over it | Open MPI, all processors | Peal over it |\n|"
              + " --- |" * 6)
        for operation in operations:
            found = {}  # side, figure, bytes -> one time per turn
            for _ in range(self.options.turns):
                for (side, _), command in self.commands(operation).items():
                    for record in self.records(command, operation):
                        for figure in ("latency_us", "message_us"):
                            found.setdefault((side, figure, record["bytes"]), []).append(record[figure])
                        window = record["window"]
            for _, figure, size in [key for key in found if key[0] == "apart"]:
                ours = found["apart", figure, size]
                cells = [f"{operation} {size} B, {'one' if figure == 'latency_us' else f'each of {window}'}", f"{statistics.median(ours):.3g}"]
                for side in ("same", "all"):
                    theirs = found[side, figure, size]
                    cells += [f"{statistics.median(theirs):.3g}", self.ratio(ours, theirs)]
                print(f"| {' | '.join(cells)} |", flush=True)

    def run_collectives(self, operations):
        print(f"| N = {self.options.ranks}, µs | Peal apart | over the ideal card | Open MPI, the same processors | Peal over it "
              "| Peal shared | over the ideal card | Peal balanced | over the ideal card | Peal spread | Open MPI, all processors "
              "| Peal over it | ideal card over it |\n|" + " --- |" * 13)
        for operation in operations:
            found = {}  # side, algorithm, bytes -> one time per turn
            commands = self.commands(operation)
            for turn in range(self.options.turns):
                for (side, algorithm), command in commands.items():
                    for is_ideal, size, period in self.measure(command, operation):
                        found.setdefault((f"ideal {side}" if is_ideal else side, algorithm, size), []).append(period)
                if turn == 0:
                    sizes = sorted(size for side, _, size in found if side == "apart")
                    best = {(side, size): self.fastest(found, operation, side, size) for side in ("same", "all") for size in sizes}
                    played = {(placement, 0) for placement in PLACEMENTS} | {(side, algorithm) for (side, _), algorithm in best.items()}
                    commands = {key: command for key, command in commands.items() if key in played}
            for size in sizes:
                self.print_row(operation, size, found)

    @staticmethod
    def fastest(found, operation, side, size):
        """Of those that played every turn."""
        turns = len(found["apart", 0, size])
        medians = {algorithm: statistics.median(found[side, algorithm, size]) for algorithm in ALGORITHMS[operation]
                   if len(found[side, algorithm, size]) == turns}
        return min(medians, key=medians.get)

    @staticmethod
    def ratio(ours, theirs):
        ratios = [our / their for our, their in zip(ours, theirs)]
        return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})"

    @classmethod
    def print_row(cls, operation, size, found):
        def peal(placement):
            return found[placement, 0, size]

        def ideal(placement):
            return found[f"ideal {placement}", 0, size]

        def text(times):
            return f"{statistics.median(times):.3g}"

        def theirs(side):
            best = cls.fastest(found, operation, side, size)
            return found[side, best, size], f"{statistics.median(found[side, best, size]):.3g} ({ALGORITHMS[operation][best]})"

        same, everywhere = theirs("same"), theirs("all")
        fastest = [min(map(peal, PLACEMENTS), key=statistics.median), min(map(ideal, IDEAL_PLACEMENTS), key=statistics.median)]
        cells = [operation if operation == "barrier" else f"{operation} {size} B",
                 text(peal("apart")), cls.ratio(peal("apart"), ideal("apart")), same[1], cls.ratio(peal("apart"), same[0]),
                 text(peal("shared")), cls.ratio(peal("shared"), ideal("shared")),
                 text(peal("balanced")), cls.ratio(peal("balanced"), ideal("balanced")), text(peal("spread")),
                 everywhere[1], *(cls.ratio(ours, everywhere[0]) for ours in fastest)]
        print(f"| {' | '.join(cells)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1])
    parser.add_argument("folder")
    parser.add_argument("operations", nargs="*", metavar="OPERATION", help=f"of {', '.join([*ALGORITHMS, *TALKS])}; all of them when none is named")
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--sizes", default="4,64,1024,8192")
    parser.add_argument("--memory", choices=("alloc", "registered"), default="alloc", help="of Peal and the ideal card: made by the card, or any")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--iterations", type=int, default=1000)
    options = parser.parse_args()
    unknown = [operation for operation in options.operations if operation not in (*ALGORITHMS, *TALKS)]
    if unknown:
        parser.error(f"there is no operation '{unknown[0]}': {', '.join([*ALGORITHMS, *TALKS])}")
    if options.iterations < 100:
        parser.error("--iterations: a period needs 100 at least")
    options.operations = options.operations or [*ALGORITHMS, *TALKS]
    Bench(options).run()


if __name__ == "__main__":
    main()
