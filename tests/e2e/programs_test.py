# SPDX-License-Identifier: BSD-2-Clause
"""Programs on real processes: the library's collectives, several starts outstanding, with and without loss; what is refused, by which
words; ranks that die; and cards that carry out whole queues of starts while no host runs."""

import os
import signal

import jobs
import no_host_test

LOSS = ("--loss", "0.02", "--seed", "5")
STARTS = 4  # CONFIG_QUEUE_STARTS


class ProgramsTest(jobs.JobCase):
    def test_collectives(self):
        for ranks in (1, 2, 3, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "programs", "30", "20000", str(ranks))

    def test_collectives_with_loss(self):
        self.scenario(4, "programs", "30", "9000", "3", options=LOSS)

    def test_on_two_cards(self):
        self.scenario(6, "programs", "30", "5000", "9", options=("--cards", "2"))

    def test_long_segments(self):
        self.scenario(3, "programs", "6", "2000000", "4", options=LOSS)

    def test_what_is_wrong_is_named(self):
        self.scenario(3, "programs-bad")
        self.scenario(4, "programs-bad", options=("--cards", "2"))

    def test_giving_back(self):
        self.scenario(3, "programs-free")

    def test_more_than_a_card_has_places_for(self):
        self.scenario(2, "programs-many", "400")
        self.scenario(4, "programs-many", "20", options=("--cards", "2"))

    def test_trinary(self):
        nic = ("--nic", jobs.program("peal-nic-papers"))
        self.scenario(12, "programs-trinary", "6", "2", "2", "3", options=nic)
        self.scenario(12, "programs-trinary", "3", "2", "2", "3", options=(*nic, "--cards", "6", *LOSS))
        self.scenario(8, "programs-trinary", "4", "2", "2", "2", options=nic)

    def test_engines_on_an_lcore_of_their_own(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor only")
        nic = ("--nic", jobs.program("peal-nic-papers"), f"--nic-option=--engine-lcore={min(os.sched_getaffinity(0))}")
        self.scenario(12, "programs-trinary", "6", "2", "2", "3", options=nic)
        self.scenario(8, "programs-trinary", "4", "2", "2", "2", options=(*nic, "--cards", "4", *LOSS))

    def test_engines_that_are_not_there(self):
        self.scenario(8, "programs-one-engine")

    def dies(self, where, ranks, victim, *options):
        done = self.scenario(ranks, "programs-death", where, str(victim), options=("--grace", "never", *options),
                             status=128 + signal.SIGKILL)
        self.expect_told(done, ranks, victim)

    def test_a_rank_that_dies_before_a_commit(self):
        self.dies("commit", 4, 1)

    def test_a_rank_that_dies_before_it_starts(self):
        self.dies("start", 4, 0)

    def test_a_rank_that_dies_in_a_start(self):
        self.dies("wait", 4, 3)
        self.dies("wait", 5, 1, *LOSS)

    def stopped(self, ranks, iterations, *options):
        job = self.start(ranks, jobs.program("e2e-rank"), "programs-stopped", str(iterations), options=options)
        job.expect_line("ready")
        cards, processes = job.cards(), job.ranks()
        before = {pid: len(no_host_test.completions(pid)) for pid in processes.values()}
        # Hold the cards, let the ranks post and stop themselves; then only the cards run.
        os.kill(cards, signal.SIGSTOP)
        jobs.until(lambda: jobs.state_of(cards) == "T", "the cards to stop")
        job.go_on()
        jobs.until(lambda: all(jobs.state_of(pid) == "T" for pid in processes.values()), "all ranks to stop")
        for pid, count in before.items():
            self.assertEqual(len(no_host_test.completions(pid)), count)
        os.kill(cards, signal.SIGCONT)
        for pid, count in before.items():
            jobs.until(lambda pid=pid, count=count: len(no_host_test.completions(pid)) == count + 2 * STARTS,
                       "the cards to complete all starts without hosts")
            self.assertEqual({status for _, status in no_host_test.completions(pid)}, {0})
        self.assertTrue(all(jobs.state_of(pid) == "T" for pid in processes.values()))
        for pid in processes.values():
            os.kill(pid, signal.SIGCONT)
        job.finish()

    def test_starts_without_hosts(self):
        self.stopped(8, 50)

    def test_starts_without_hosts_with_loss(self):
        self.stopped(5, 10, *LOSS)


if __name__ == "__main__":
    jobs.main()
