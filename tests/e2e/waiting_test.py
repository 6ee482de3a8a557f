# SPDX-License-Identifier: BSD-2-Clause
"""Ways of waiting: asleep without cost, through a descriptor, with a time-out."""

import jobs


class WaitingTest(jobs.JobCase):
    def test_a_sleeping_rank_costs_nothing(self):
        self.scenario(4, "sleep")

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
