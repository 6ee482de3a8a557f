# SPDX-License-Identifier: BSD-2-Clause
"""Persistent requests over real cards: all kinds, in any order, with and without loss; ranks that disagree about one, and one that dies
while it is made, started or waited for."""

import signal

import jobs

LOSS = ("--loss", "0.02", "--seed", "5")


class PersistentTest(jobs.JobCase):
    def test_all_kinds(self):
        for ranks in (2, 3, 5, 8, 9):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "persistent", "60", "20000", str(ranks), "programs")

    def test_one_rank_has_nobody_to_tell(self):
        self.scenario(1, "persistent", "60", "20000", "1", "ordinary")

    def test_nothing_but_descriptors_runs(self):
        self.scenario(5, "persistent-descriptors", "20", "20000")
        self.scenario(4, "persistent-descriptors", "20", "5000", options=LOSS)

    def test_as_ordinary_operations(self):
        self.environment["PEAL_PROGRAMS"] = "0"
        self.scenario(4, "persistent", "40", "9000", "3", "ordinary", options=LOSS)

    def test_long_ones(self):
        """Rings; chains, of one segment and of several."""
        self.environment["PEAL_ALGORITHMS"] = "broadcast_init:8k-:chain"
        self.scenario(5, "persistent", "12", "900000", "6", "programs")

    def test_rules_choose_among_programs(self):
        self.environment["PEAL_ALGORITHMS"] = "allgather_init:ring,broadcast_init:chain,alltoall_init:direct"
        self.scenario(5, "persistent", "40", "20000", "5", "programs")
        self.environment["PEAL_ALGORITHMS"] = "allgather_init:recursive-doubling,broadcast_init:binomial,alltoall_init:collected"
        self.scenario(4, "persistent", "20", "300000", "5", "programs")
        self.environment["PEAL_ALGORITHMS"] = "allgather_init:collected"
        self.scenario(5, "persistent", "40", "20000", "5", "programs", options=LOSS)

    def test_all_kinds_with_loss(self):
        self.scenario(4, "persistent", "40", "9000", "3", "programs", options=LOSS)

    def test_where_cards_have_no_room_for_all(self):
        """Six ranks of a card with eight requests each, of which many are two programs; a card has 32 queues."""
        self.scenario(6, "persistent", "40", "5000", "9", "both", options=("--cards", "1"))

    def test_more_than_a_card_has_groups(self):
        """Each round ends one request and makes another."""
        self.scenario(2, "persistent", "400", "300", "4")

    def test_disagreement(self):
        self.scenario(4, "persistent-disagree")

    def dies(self, where, ranks, victim, *options):
        done = self.scenario(ranks, "persistent-death", where, str(victim), options=("--grace", "never", *options),
                             status=128 + signal.SIGKILL)
        self.expect_told(done, ranks, victim)

    def test_a_rank_that_dies_while_it_is_made(self):
        self.dies("init", 4, 2)

    def test_a_rank_that_dies_before_it_starts(self):
        self.dies("start", 4, 0)

    def test_a_rank_that_dies_while_others_wait(self):
        self.dies("wait", 4, 3)
        self.dies("wait", 5, 1, *LOSS)


if __name__ == "__main__":
    jobs.main()
