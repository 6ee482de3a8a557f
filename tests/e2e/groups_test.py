# SPDX-License-Identifier: BSD-2-Clause
"""Many groups, overlapping groups, several ranks per card, and several threads on one context."""

import jobs


class GroupsTest(jobs.JobCase):
    def test_one_after_the_other(self):
        self.scenario(4, "churn", "60")

    def test_one_after_the_other_with_loss(self):
        self.scenario(3, "churn", "30", options=("--loss", "0.05"))

    def test_a_rank_alone(self):
        self.scenario(1, "churn", "30")

    def test_overlapping(self):
        self.scenario(6, "overlap")

    def test_overlapping_on_two_cards(self):
        self.scenario(6, "overlap", options=("--cards", "2", "--loss", "0.02"))

    def test_all_on_one_card(self):
        self.scenario(6, "overlap", options=("--cards", "1"))

    def test_more_than_the_card_has(self):
        """All ranks are refused together, and what was given back can be used again."""
        self.scenario(4, "exhaust", options=("--cards", "2"))

    def test_threads(self):
        self.scenario(3, "threads", "4")

    def test_threads_with_loss(self):
        self.scenario(2, "threads", "6", options=("--loss", "0.02"))


if __name__ == "__main__":
    jobs.main()
