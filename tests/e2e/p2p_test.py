# SPDX-License-Identifier: BSD-2-Clause
"""Point-to-point over real cards: messages in a ring, from many to one, out of order and long, with what a wire does to them; memory of
other ranks; what is refused; and a rank that dies."""

import signal

import jobs

LOSS = ("--loss", "0.02", "--seed", "5")
ROUGH = ("--loss", "0.01", "--reorder", "0.05", "--duplicate", "0.02", "--delay", "0.01", "--corrupt", "0.005", "--seed", "7")


class PointToPointTest(jobs.JobCase):
    def test_ring(self):
        for ranks in (1, 2, 5, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "p2p-ring", "150", "20000", str(ranks))

    def test_ring_on_a_bad_wire(self):
        self.scenario(4, "p2p-ring", "100", "30000", "3", options=ROUGH)

    def test_ring_on_two_cards(self):
        self.scenario(6, "p2p-ring", "100", "20000", "9", options=("--cards", "2"))

    def test_many_to_one(self):
        self.scenario(9, "p2p-gather", "100", "5000", "1")
        self.scenario(9, "p2p-gather", "40", "5000", "2", options=LOSS)
        self.scenario(9, "p2p-gather", "40", "5000", "3", options=("--cards", "2"))

    def test_tags_out_of_order(self):
        self.scenario(3, "p2p-tags", "1")
        self.scenario(3, "p2p-tags", "2", options=ROUGH)

    def test_long_messages_on_a_bad_wire(self):
        self.scenario(2, "p2p-ring", "6", str(8 << 20), "11", options=ROUGH)

    def test_memory_of_others(self):
        for ranks in (1, 2, 4):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "p2p-memory", "100000")
        self.scenario(3, "p2p-memory", str(2 << 20), options=ROUGH)
        self.scenario(4, "p2p-memory", "30000", options=("--cards", "2"))

    def test_what_is_refused_says_why_and_whose_it_was(self):
        self.scenario(3, "p2p-refused")
        self.scenario(2, "p2p-refused", options=LOSS)
        self.scenario(4, "p2p-refused", options=("--cards", "2"))

    def test_messages_that_are_too_long(self):
        self.scenario(3, "p2p-truncated")
        self.scenario(2, "p2p-truncated", options=LOSS)

    def dies(self, where, ranks, victim, *options):
        done = self.scenario(ranks, "p2p-death", where, str(victim), options=("--grace", "never", *options),
                             status=128 + signal.SIGKILL)
        self.expect_told(done, ranks, victim)

    def test_a_rank_that_dies_before_it_sends(self):
        self.dies("receive", 4, 2)
        self.dies("receive", 3, 0, "--cards", "1")

    def test_a_rank_that_dies_in_the_midst_of_a_message(self):
        self.dies("message", 3, 1)
        self.dies("message", 3, 1, *LOSS)

    def test_a_rank_that_dies_while_others_put_into_its_memory(self):
        self.dies("put", 3, 2)


if __name__ == "__main__":
    jobs.main()
