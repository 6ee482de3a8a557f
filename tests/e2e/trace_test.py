# SPDX-License-Identifier: BSD-2-Clause
"""One trace in three homes: the firmware in memory (peal-unit-trace), in virtual time (peal-sim) and between real
processes (peal-nic) sends the same packets for the same operation. Only their order may differ."""

import os
import subprocess

import jobs

RANKS = 8


class TraceTest(jobs.JobCase):
    def lines(self, path, operation):
        """Sorted packets of sequence 0 of that operation."""
        with open(path, encoding="ascii") as file:
            return sorted(line.strip() for line in file if f" {operation} " in line and " seq=0 " in line)

    def printed(self, name, *words):
        done = subprocess.run([jobs.program(name), *words], capture_output=True, text=True, check=False,
                              timeout=jobs.PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def compare(self, operation, algorithm, size, scenario, packets):
        path = os.path.join(self.folder.name, "trace")
        words = ["--cards", str(RANKS), "--operation", operation, "--bytes", str(size)]
        if operation == "allgather":
            words += ["--algorithm", algorithm]
        unit = sorted(self.printed("peal-unit-trace", *words).splitlines())
        self.assertEqual(len(unit), packets)
        self.printed("peal-sim", *words, "--trace", path)
        self.assertEqual(self.lines(path, operation), unit, "peal-sim differs from the unit test")
        # So patient that a busy machine does not make a card ask for what is only late.
        options = [f"--nic-option=--trace={path}", "--nic-option=--nack-us=60000000",
                   "--nic-option=--nack-max-us=60000000"]
        self.scenario(RANKS, *scenario, options=options)
        self.assertEqual(self.lines(path, operation), unit, "peal-nic differs from the unit test")
        os.remove(path)

    def test_all_to_all_broadcast(self):
        for size in (64, 1024):
            self.compare("allgather", "all-to-all-broadcast", size, ["overwrite", "1", "4", str(size)], 56)

    def test_recursive_doubling(self):
        # 1 KiB: the last of the three steps is 4 KiB, still one packet.
        for size in (64, 1024):
            self.compare("allgather", "recursive-doubling", size, ["overwrite", "2", "4", str(size)], 24)

    def test_barrier(self):
        self.compare("barrier", "dissemination", 0, ["timeout"], 24)


if __name__ == "__main__":
    jobs.main()
