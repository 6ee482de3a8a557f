# SPDX-License-Identifier: BSD-2-Clause
"""A completed request's buffers are the user's: overwritten at once, while late NACKs still ask for the data."""

import jobs

ALGORITHMS = {"all-to-all broadcast": "1", "recursive doubling": "2"}


class OverwriteTest(jobs.JobCase):
    def check(self, block_bytes, iterations, *faults, ranks=8):
        for name, algorithm in ALGORITHMS.items():
            with self.subTest(algorithm=name, bytes=block_bytes):
                self.scenario(ranks, "overwrite", algorithm, str(iterations), str(block_bytes), options=faults)

    def test_without_loss(self):
        self.check(1024, 100)

    def test_small_blocks(self):
        self.check(64, 200, "--loss", "0.05", "--seed", "3")

    def test_blocks_of_one_packet(self):
        self.check(4000, 100, "--loss", "0.05", "--seed", "4")

    def test_many_pieces(self):
        self.check(60000, 12, "--loss", "0.02", "--seed", "5", ranks=5)

    def test_everything_goes_wrong(self):
        self.check(3000, 60, "--loss", "0.03", "--duplicate", "0.03", "--reorder", "0.05", "--corrupt", "0.01",
                   "--delay", "0.02", "--seed", "6", ranks=6)


if __name__ == "__main__":
    jobs.main()
