# SPDX-License-Identifier: BSD-2-Clause
"""peal-perf verifies what it measures, for group sizes that are powers of two and others, on good and on bad wires."""

import os
import subprocess

import jobs

ALL_FAULTS = ("--loss=0.02", "--duplicate=0.02", "--reorder=0.05", "--corrupt=0.01", "--delay=0.01", "--seed=11")


class PerfTest(jobs.JobCase):
    def perf(self, *words, status=0):
        json_file = os.path.join(self.folder.name, "records.json")
        done = subprocess.run([jobs.program("peal-perf"), *words, "--json", json_file,
                               f"--timeout={jobs.PATIENCE_S}"], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        records = jobs.records(json_file)
        os.unlink(json_file)
        for record in records:
            self.assertIs(record["verified"], True)
            self.assertLessEqual(record["latency_us_min"], record["latency_us"])
            self.assertLessEqual(record["latency_us"], record["latency_us_max"])
        return records

    def allgather(self, ranks, *words, sizes="0,1,4,1000,5000,20000", iterations=60):
        records = self.perf("allgather", "--ranks", str(ranks), "--sizes", sizes, "--algorithm", "all", "--memory",
                            "both", "--iterations", str(iterations), "--warmup", "5", *words)
        self.assertEqual(len(records), 4 * len(sizes.split(",")))
        self.assertEqual({record["algorithm"] for record in records}, {"all-to-all-broadcast", "recursive-doubling"})
        self.assertEqual({record["memory"] for record in records}, {"alloc", "registered"})
        return records

    def test_two_ranks(self):
        self.allgather(2)

    def test_three_ranks(self):
        self.allgather(3)

    def test_five_ranks(self):
        self.allgather(5)

    def test_eight_ranks(self):
        self.allgather(8)

    def test_one_rank(self):
        self.allgather(1, iterations=20)

    def test_in_place(self):
        self.allgather(5, "--in-place")

    def test_bad_wire_two_ranks(self):
        self.allgather(2, *ALL_FAULTS)

    def test_bad_wire_three_ranks(self):
        self.allgather(3, *ALL_FAULTS)

    def test_bad_wire_five_ranks(self):
        self.allgather(5, *ALL_FAULTS, iterations=30)

    def test_bad_wire_eight_ranks(self):
        self.allgather(8, *ALL_FAULTS, sizes="4,1000,5000", iterations=30)

    def test_several_ranks_per_card(self):
        self.allgather(8, "--cards=3", "--loss=0.01", sizes="4,5000", iterations=30)

    def test_barriers(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.perf("barrier", "--ranks", str(ranks), "--iterations", "200", "--warmup", "5")
                self.perf("barrier", "--ranks", str(ranks), "--iterations", "200", "--warmup", "5", *ALL_FAULTS)

    def test_packets_are_counted(self):
        """Without loss, exactly the packets that the algorithms need."""
        barrier, = self.perf("barrier", "--ranks", "8", "--iterations", "512", "--warmup", "0", "--nic-option=--nack-us=1000000",
                             "--nic-option=--nack-max-us=2000000")
        self.assertEqual(barrier["packets_repair"], 0)
        # Making and destroying the group are outside; N log2 N.
        self.assertEqual(barrier["packets_collective"], 24)
        # One dissemination per half cycle of operations.
        self.assertLessEqual(barrier["packets_recycling"], 24)
        for record in self.perf("allgather", "--ranks", "8", "--sizes", "64,1024", "--algorithm", "all", "--iterations",
                                "256", "--warmup", "0", "--nic-option=--nack-us=1000000",
                                "--nic-option=--nack-max-us=2000000"):
            wanted = 56 if record["algorithm"] == "all-to-all-broadcast" else None
            self.assertEqual(record["packets_repair"], 0)
            if wanted is not None:
                self.assertEqual(record["packets_collective"], wanted)

    def test_floor(self):
        records = self.perf("allgather", "--ranks", "4", "--sizes", "4,1024", "--floor", "--iterations", "100", "--rounds", "4",
                            "--warmup", "5", "--memory", "both")
        self.assertEqual([record["algorithm"] for record in records], ["ideal-card", "auto"] * 4)
        for record in records[1::2]:
            self.assertLessEqual(record["floor_ratio_min"], record["floor_ratio"])
        barrier = self.perf("barrier", "--ranks", "4", "--floor", "--iterations", "100", "--rounds", "2")
        self.assertEqual(len(barrier), 2)

    def others(self, operation, ranks, *words, sizes="0,1,4,1000,5000,20000", iterations=60):
        """As allgather(), of the operations that have one algorithm."""
        records = self.perf(operation, "--ranks", str(ranks), "--sizes", sizes, "--memory", "both", "--iterations", str(iterations), "--warmup",
                            "5", *words)
        self.assertEqual({(record["operation"], record["bytes"], record["memory"]) for record in records},
                         {(operation, int(size), memory) for size in sizes.split(",") for memory in ("alloc", "registered")})
        return records

    def test_broadcast(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.others("broadcast", ranks)

    def test_broadcast_from_one_root(self):
        self.others("broadcast", 5, "--root", "4")
        done = subprocess.run([jobs.program("peal-perf"), "broadcast", "--ranks", "2", "--root", "2"], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("peal-perf: --root: there is no rank 2 of 2\n", done.stderr)

    def test_alltoall(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.others("alltoall", ranks)

    def test_alltoall_in_place(self):
        self.others("alltoall", 5, "--in-place")

    def test_new_operations_on_bad_wires(self):
        for operation in ("broadcast", "alltoall"):
            for ranks in (3, 8):
                with self.subTest(operation=operation, ranks=ranks):
                    self.others(operation, ranks, *ALL_FAULTS, sizes="4,1000,5000", iterations=30)

    def test_floor_of_the_new_operations(self):
        for operation in ("broadcast", "alltoall"):
            with self.subTest(operation=operation):
                records = self.others(operation, 4, "--floor", "--rounds", "4", sizes="0,4,1024", iterations=100)
                self.assertEqual([record["algorithm"] for record in records], ["ideal-card", "auto"] * 6)

    def test_mistakes(self):
        for words, wrong in (
                (["reduce"], "OPERATION: 'reduce' is none of barrier, allgather, broadcast, alltoall"),
                (["allgather", "--sizes", "4,x"], "--sizes: '4,x' is no list A,B,... of bytes from 0 to 64M"),
                (["allgather", "--algorithm", "ring"],
                 "--algorithm: 'ring' is none of auto, all-to-all-broadcast, recursive-doubling, all"),
                (["alltoall", "--algorithm", "ring"], "--algorithm: 'ring' is none of auto, bruck, all"),
                (["broadcast", "--root", "1024"], "--root: '1024' is no whole number from 0 to 1023"),
                (["barrier", "--ranks", "0"], "--ranks: '0' is no whole number from 1 to 1024"),
                (["barrier", "--iterations", "0"], "--iterations: '0' is no whole number from 1 to 100000000"),
                (["barrier", "--corrupt", "-1"], "--corrupt: '-1' is no number from 0 to 1"),
                (["barrier", "allgather"], "'allgather' is one word too many"),
                ([], "OPERATION is missing: one of barrier, allgather, broadcast, alltoall")):
            done = subprocess.run([jobs.program("peal-perf"), *words], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"peal-perf: {wrong}\nTry 'peal-perf --help'.\n"), words)


if __name__ == "__main__":
    jobs.main()
