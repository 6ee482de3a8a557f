# SPDX-License-Identifier: BSD-2-Clause
"""Programs that cards run by themselves, written through the C API: with and without loss, on one card and on two."""

import jobs


class ProgramTest(jobs.JobCase):
    def test_a_chain(self):
        for ranks in (1, 2, 4, 8):
            with self.subTest(ranks=ranks):
                self.scenario(ranks, "program", "20", "5000", "7")

    def test_a_chain_with_loss(self):
        self.scenario(4, "program", "20", "20000", "5", options=("--loss", "0.02", "--seed", "5"))

    def test_on_two_cards(self):
        self.scenario(6, "program", "10", "3000", "40", options=("--cards", "2"))


if __name__ == "__main__":
    jobs.main()
