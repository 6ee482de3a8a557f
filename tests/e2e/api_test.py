# SPDX-License-Identifier: BSD-2-Clause
"""Corners of the API that need real ranks: abort, step by step, detached, any, signals, memory that is gone."""

import jobs


class ApiTest(jobs.JobCase):
    def test_abort(self):
        self.scenario(4, "abort", "1")
        self.scenario(5, "abort", "0", options=("--loss", "0.05"))

    def test_abort_of_two(self):
        self.scenario(2, "abort", "1")

    def test_step_by_step_and_detached(self):
        self.scenario(4, "steps")

    def test_any(self):
        self.scenario(4, "any", "100")

    def test_any_with_loss(self):
        self.scenario(3, "any", "100", options=("--loss", "0.05"))

    def test_signals(self):
        self.scenario(3, "signals")

    def test_signals_while_asleep(self):
        self.environment["PEAL_SPIN_US"] = "0"
        self.scenario(3, "signals")

    def test_memory_that_is_gone(self):
        self.scenario(4, "unmapped", "2")

    def test_memory_that_comes_back(self):
        self.scenario(3, "remapped", "24", "10000", options=("--loss", "0.01"))

    def test_more_buffers_than_are_kept(self):
        self.scenario(2, "buffers", "300")


if __name__ == "__main__":
    jobs.main()
