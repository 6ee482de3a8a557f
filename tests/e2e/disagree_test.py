# SPDX-License-Identifier: BSD-2-Clause
"""Ranks that disagree are all told, and are never left hanging."""

import jobs


class DisagreeTest(jobs.JobCase):
    def test_about_the_length(self):
        self.scenario(4, "disagree", "length", "1")

    def test_about_the_length_among_five(self):
        self.scenario(5, "disagree", "length", "4")

    def test_about_the_operation(self):
        self.scenario(4, "disagree", "operation", "0")

    def test_on_a_lossy_wire(self):
        self.scenario(8, "disagree", "length", "3", options=("--loss", "0.05"))

    def test_about_the_table_of_algorithms(self):
        self.scenario(4, "choice", "2")


if __name__ == "__main__":
    jobs.main()
