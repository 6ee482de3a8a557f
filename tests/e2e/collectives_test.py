# SPDX-License-Identifier: BSD-2-Clause
"""Broadcast, all-to-all, allgatherv and alltoallv over real cards: every byte, from every root, in place and not, mixed with all others and deep; ranks that
disagree are told, and so are those that wait for a rank that dies."""

import signal

import jobs

LOSS = ("--loss", "0.02", "--seed", "5")


class CollectivesTest(jobs.JobCase):
    def test_broadcast(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "broadcast", str(1 << 20))

    def test_broadcast_with_loss(self):
        for ranks in (3, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "broadcast", "9000", "5", options=LOSS)

    def test_broadcast_on_two_cards(self):
        self.scenario(6, "broadcast", "65536", "2", options=("--cards", "2"))

    def test_alltoall(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "alltoall", str(1 << 20) if ranks < 5 else "100003")

    def test_alltoall_with_loss(self):
        for ranks in (3, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "alltoall", "9000", "5", options=LOSS)

    def test_alltoall_on_two_cards(self):
        self.scenario(6, "alltoall", "65536", "2", options=("--cards", "2"))

    def test_allgatherv(self):
        for ranks in (1, 2, 3, 5, 8, 16):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "allgatherv", "20000")

    def test_alltoallv(self):
        for ranks in (1, 2, 3, 5, 8, 16):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "alltoallv", "20000" if ranks < 16 else "3000")

    def test_alltoallv_in_steps(self):
        self.environment["PEAL_ALGORITHMS"] = "alltoallv:bruck"
        for ranks in (1, 2, 3, 16):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "alltoallv", "3000")
                self.scenario(ranks, "alltoallv", "3000", "5", options=LOSS)

    def test_blocks_far_above_a_channel(self):
        for operation in ("allgatherv", "alltoallv"):
            with self.subTest(operation=operation):
                self.scenario(3, operation, str(5 << 20), "1")

    def test_blocks_that_differ_with_loss(self):
        for operation in ("allgatherv", "alltoallv"):
            for ranks in (3, 8):
                with self.subTest(operation=operation, ranks=ranks):
                    self.scenario(ranks, operation, "9000", "5", options=LOSS)

    def test_blocks_that_differ_on_two_cards(self):
        for operation in ("allgatherv", "alltoallv"):
            with self.subTest(operation=operation):
                self.scenario(6, operation, "65536", "2", options=("--cards", "2"))

    def test_mixed(self):
        for ranks in (2, 5, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "mixed", "400", "20000", str(ranks))

    def test_mixed_with_loss(self):
        self.scenario(4, "mixed", "200", "5000", "7", options=LOSS)

    def test_mixed_in_threads(self):
        for ranks in (1, 2, 5):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "mixed-threads", "4", "300", "5000", str(ranks))

    def test_mixed_in_threads_with_loss(self):
        self.scenario(3, "mixed-threads", "5", "100", "3000", "7", options=LOSS)

    def test_a_rank_that_is_late(self):
        for ranks in (2, 5, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "late", "80", "100003", str(ranks))

    def test_a_rank_that_is_late_with_loss(self):
        self.scenario(5, "late", "60", "20000", "7", options=LOSS)

    def test_disagreement(self):
        for what in ("root", "broadcast-length", "alltoall-length", "allgatherv-length", "alltoallv-length", "operation"):
            with self.subTest(what=what):
                self.scenario(4, "disagree-on", what, "2")

    def test_disagreement_with_loss(self):
        for what in ("root", "alltoall-length", "alltoallv-length"):
            with self.subTest(what=what):
                self.scenario(5, "disagree-on", what, "1", options=LOSS)

    def dies(self, ranks, operation, victim, size, *options):
        done = self.scenario(ranks, "death-in", operation, str(victim), str(size), options=("--grace", "never", *options),
                             status=128 + signal.SIGKILL)
        self.expect_told(done, ranks, victim)

    def test_a_rank_that_dies_in_a_barrier(self):
        self.dies(4, "barrier", 2, 1000)

    def test_a_root_that_dies(self):
        self.dies(4, "broadcast", 2, 1000)
        self.dies(8, "broadcast", 0, 100000, *LOSS)

    def test_a_rank_that_dies_in_an_allgatherv(self):
        self.dies(4, "allgatherv", 1, 1000)
        self.dies(8, "allgatherv", 7, 20000, *LOSS)

    def test_a_rank_that_dies_in_an_alltoallv(self):
        self.dies(4, "alltoallv", 2, 1000)
        self.dies(8, "alltoallv", 0, 20000, *LOSS)

    def test_a_rank_that_dies_in_an_allgather(self):
        self.dies(4, "allgather", 3, 20000)

    def test_a_rank_that_dies_in_an_alltoall(self):
        self.dies(4, "alltoall", 1, 1000)
        self.dies(5, "alltoall", 4, 20000, *LOSS)


if __name__ == "__main__":
    jobs.main()
