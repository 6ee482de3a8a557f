# SPDX-License-Identifier: BSD-2-Clause
"""Death is told: of a rank, by name, to all the others; of the cards, to all ranks."""

import os
import signal

import jobs


class DeathTest(jobs.JobCase):
    def check(self, ranks, victim, how, *options, status):
        done = self.scenario(ranks, "death", str(victim), how, options=("--grace", "never", *options), status=status)
        self.expect_told(done, ranks, victim)

    def test_killed(self):
        self.check(4, 2, "kill", status=128 + signal.SIGKILL)

    def test_rank_0_killed(self):
        self.check(8, 0, "kill", status=128 + signal.SIGKILL)

    def test_of_five(self):
        self.check(5, 4, "kill", status=128 + signal.SIGKILL)

    def test_killed_on_a_lossy_wire(self):
        self.check(8, 5, "kill", "--loss", "0.05", status=128 + signal.SIGKILL)

    def test_left_without_a_word(self):
        self.check(3, 1, "leave", status=0)

    def test_two_ranks_per_card(self):
        self.check(4, 3, "kill", "--cards", "2", status=128 + signal.SIGKILL)

    def test_a_child_does_not_hide_it(self):
        """Nor does the child use its parent's connection, or its parent's memory by one of its own."""
        self.scenario(3, "fork", "1", options=("--grace", "never"), status=128 + signal.SIGKILL)

    def test_cards_killed(self):
        job = self.start(4, jobs.program("e2e-rank"), "card-gone", options=("--grace", "never"))
        job.expect_line("ready")
        os.kill(job.cards(), signal.SIGKILL)
        job.go_on()
        done = job.finish(status=1)  # the ranks are content, the launcher is not
        self.assertEqual(done.err, "pealrun: peal-nic ended before the ranks\n")

    def test_cards_stopped(self):
        """To the ranks they are gone; nobody waits for them to close, and they end as ever when they go on."""
        job = self.start(4, jobs.program("e2e-rank"), "card-gone", options=("--grace", "never"))
        job.expect_line("ready")
        cards, ranks = job.cards(), job.ranks().values()
        os.kill(cards, signal.SIGSTOP)
        jobs.until(lambda: jobs.state_of(cards) == "T", "the cards to stop")
        job.go_on()
        jobs.until(lambda: not any(jobs.state_of(pid) for pid in ranks), "all ranks to end")
        os.kill(cards, signal.SIGCONT)
        job.finish()


if __name__ == "__main__":
    jobs.main()
