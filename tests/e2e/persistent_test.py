# SPDX-License-Identifier: BSD-2-Clause
"""Persistent requests over real cards: all kinds, in any order, with and without loss; ranks that disagree about one, and one that dies
while it is made, started or waited for."""

import signal

import jobs

LOSS = ("--loss", "0.02", "--seed", "5")


class PersistentTest(jobs.JobCase):
    def test_all_kinds(self):
        for ranks in (1, 2, 5, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "persistent", "60", "20000", str(ranks))

    def test_all_kinds_with_loss(self):
        self.scenario(4, "persistent", "40", "9000", "3", options=LOSS)

    def test_on_two_cards(self):
        self.scenario(6, "persistent", "40", "5000", "9", options=("--cards", "2"))

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
