# SPDX-License-Identifier: BSD-2-Clause
"""What ./peal demo runs: the product over Peal, and beside it over Open MPI, played by scripts (openmpi_test.py has the real one)."""

import os
import subprocess

import jobs
import product
from product import NAMES, TITLE

DEMO = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../tools/examples/matmul/demo.py")
COUNTS = (1, 1, 1, 1, 8, 1, 10)
BYTES = (32, 8, 30752, 248000, 28000, 24000, 0)
MEDIANS = (11.5, 22.5, 33.5, 44.5, 55.5, 66.5, 77.5)
ALONE = "peal: Open MPI is not installed (./peal setup --open-mpi installs it), so the table shows Peal alone\n"
OVER_PEAL = "peal: running the product over Peal: pealrun -n 8 --loss 0.01 peal-matmul\n"
OVER_OPEN_MPI = ("peal: running the product over Open MPI: mpirun -n 8 --oversubscribe --map-by core --bind-to core:overload-allowed "
                 "--mca mpi_yield_when_idle 1 --mca btl self,vader --mca pml ob1 peal-matmul\n")


class DemoTest(jobs.JobCase):
    def setUp(self):
        super().setUp()
        self.tools = os.path.join(self.folder.name, "tools")
        self.twin = os.path.join(self.folder.name, "twin")
        for folder in (self.tools, self.twin):
            os.mkdir(folder)
        self.environment["PATH"] = self.tools  # no Open MPI of this machine's
        self.environment.pop("LD_LIBRARY_PATH", None)

    def kept(self):
        return sorted(["tools", "twin"], key=os.listdir(self.folder.name).index)

    def demo(self, *arguments, open_mpi=False):
        done = subprocess.run(["/usr/bin/python3", "-B", DEMO, jobs.programs(), *arguments], env=self.environment,
                              capture_output=True, text=True, timeout=jobs.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertRegex(done.stdout, product.report(8, 500, cards=8, open_mpi=open_mpi))
        return done

    def install(self, script):
        """An mpirun, and a twin for it."""
        with open(os.path.join(self.twin, "libpeal.so.0"), "wb"):
            pass
        path = os.path.join(self.tools, "mpirun")
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{script}\n")
        os.chmod(path, 0o755)

    def columns(self, out):
        """Of the table of collectives: the last column, by the name of the row."""
        table = out[out.index(TITLE):].split("\n\n")[0].splitlines()[1:]
        return {line[:28].rstrip(): line[28:].split()[-1] for line in table}, len(table[0][28:].split())

    def test_without_open_mpi(self):
        self.assertEqual(self.demo(self.twin).stderr, ALONE + OVER_PEAL)

    def test_an_mpirun_without_the_twin_is_no_open_mpi(self):
        self.install("exit 1")
        os.unlink(os.path.join(self.twin, "libpeal.so.0"))
        self.assertEqual(self.demo(self.twin).stderr, ALONE + OVER_PEAL)

    def test_column(self):
        """An mpirun that says what another did: its medians come beside ours, row by row."""
        rows = [f"{name:28} {count:6} {size:14} {median:14.1f} {'-':>14}" for name, count, size, median in
                zip(NAMES, COUNTS, BYTES, MEDIANS)]
        theirs = "\n".join(["8 ranks multiplied two 500 x 500 matrices in 0.777 s", "", TITLE, *rows])
        self.install(f"/bin/cat <<'END'\n{theirs}\nEND")
        out = self.demo(self.twin, open_mpi=True).stdout
        self.assertEqual(self.columns(out), (dict(zip(NAMES, map(str, MEDIANS))), 5))
        self.assertRegex(out, r"^8 ranks multiplied two 500 x 500 matrices in [\d.]+ s \(over Open MPI 0\.777 s\)\n")

    def test_how_open_mpi_is_started(self):
        self.install(f"printf '%s\\n' \"$@\" >{self.twin}/words; exit 3")
        done = self.demo(self.twin)
        with open(os.path.join(self.twin, "words"), encoding="utf-8") as file:
            words = file.read().split("\n")
        self.assertEqual(words[:2], ["-n", "8"])
        self.assertEqual(words[-4:], ["-x", f"LD_LIBRARY_PATH={self.twin}", jobs.program("peal-matmul"), ""])
        self.assertEqual(done.stderr, OVER_OPEN_MPI +
                         "peal: Open MPI's run failed with status 3 (above), so the table shows Peal alone\n" + OVER_PEAL)


if __name__ == "__main__":
    jobs.main()
