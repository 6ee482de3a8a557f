# SPDX-License-Identifier: BSD-2-Clause
"""Ways of waiting: asleep without cost, through a descriptor, with a time-out."""

import jobs


class WaitingTest(jobs.JobCase):
    def test_who_waits_long_sleeps(self):
        """In the kernel, with all threads, until the last rank comes; by its own count, too."""
        job = self.start(4, jobs.program("e2e-rank"), "sleep")
        job.expect_line("ready")
        waiting = [pid for rank, pid in job.ranks().items() if rank != 0]
        self.assertEqual(len(waiting), 3)
        jobs.until(lambda: all(jobs.is_asleep(pid) for pid in waiting), "the others to sleep")
        job.go_on()
        job.finish()

    def test_descriptor(self):
        self.scenario(4, "epoll", "50")

    def test_descriptor_with_loss(self):
        self.scenario(3, "epoll", "50", options=("--loss", "0.05"))

    def test_timeout(self):
        self.scenario(3, "timeout")

    def test_never_spinning(self):
        self.environment["PEAL_SPIN_US"] = "0"
        self.scenario(4, "overwrite", "1", "100", "64")
        self.scenario(3, "threads", "3")


if __name__ == "__main__":
    jobs.main()
