# SPDX-License-Identifier: BSD-2-Clause
"""The twin, registered where Open MPI is installed: the same programs over the other library, with right results.

usage: openmpi_test.py FOLDER_OF_THE_PROGRAMS FOLDER_OF_THE_TWIN"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import product

PROGRAMS, TWIN = sys.argv[1:3]
DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/examples/matmul/demo.py")
PATIENCE_S = 200


class OpenMpiTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="peal-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.environment = dict(os.environ, TMPDIR=self.folder.name, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
        self.environment.pop("PEAL_RANK", None)

    def run_program(self, *words):
        done = subprocess.run(words, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              timeout=PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def over_open_mpi(self, ranks, *words):
        libraries = ":".join(filter(None, [TWIN, os.environ.get("LD_LIBRARY_PATH")]))
        mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
        return self.run_program(mpirun, "--oversubscribe", "-n", str(ranks), "--mca", "mpi_yield_when_idle", "1",
                                "-x", f"LD_LIBRARY_PATH={libraries}", *words)

    def test_demo(self):
        out = self.run_program("/usr/bin/python3", "-B", DEMO, PROGRAMS, TWIN)
        self.assertRegex(out, product.report(8, 500, cards=8, open_mpi=True))
        medians = re.findall(r"^(?:broadcast|alltoall|allgather|barrier).* ([\d.]+)$", out, re.M)
        self.assertEqual(len(medians), 7, out)

    def test_product(self):
        out = self.over_open_mpi(3, os.path.join(PROGRAMS, "peal-matmul"), "200", "4")
        self.assertRegex(out, product.report(3, 200, cards=1))

    def test_measurements_are_verified(self):
        """peal-perf fails by itself when a result is wrong."""
        for words in (("barrier",), ("broadcast",), ("alltoall", "--in-place"), ("allgatherv",), ("alltoallv", "--in-place"), ("alltoallv", "--memory", "both"),
                      ("allgather", "--sizes", "4,8k"), ("allgather", "--in-place", "--memory", "both")):
            path = os.path.join(self.folder.name, "records.json")
            self.over_open_mpi(4, os.path.join(PROGRAMS, "peal-perf"), *words, "--iterations", "20", "--json", path)
            with open(path, encoding="utf-8") as file:
                records = json.load(file)
            self.assertEqual({(record["ranks"], record["verified"], record["packets"]) for record in records}, {(4, True, 0)})

    def test_comparison(self):
        compare = os.path.join(os.path.dirname(DEMO), "../../openmpi-twin/compare.py")
        out = self.run_program("/usr/bin/python3", "-B", compare, PROGRAMS, "--ranks", "2", "--sizes", "4,1k", "--turns", "1",
                               "--iterations", "100")
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in out.splitlines()]
        second = max(at for at, row in enumerate(rows) if row[0] == "N = 2, µs")
        of_collectives, of_messages = rows[2:second], rows[second + 2:]
        collectives = ("broadcast", "allgather", "alltoall", "allgatherv", "alltoallv")
        self.assertEqual([row[0] for row in of_collectives],
                         ["barrier"] + [f"{name} {size} B" for name in collectives for size in (4, 1024)])
        figures = [f"{size} B, {which}" for size in (4, 1024) for which in ("one", "each of 16")]
        self.assertEqual(sorted(row[0] for row in of_messages),
                         sorted(f"{name} {figure}" for name in ("sendrecv", "put", "get") for figure in figures))
        for table, width, times in ((of_collectives, 13, (1, 3, 5, 7, 9, 10)), (of_messages, 6, (1, 2, 4))):
            for row in table:
                self.assertEqual(len(row), width)
                for time in times:
                    self.assertGreater(float(row[time].split()[0]), 0, out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
