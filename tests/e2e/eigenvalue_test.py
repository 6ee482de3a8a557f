# SPDX-License-Identifier: BSD-2-Clause
"""The example of an allgatherv: rows that divide among the ranks, that do not, and fewer rows than ranks."""

import jobs


class EigenvalueTest(jobs.JobCase):
    def found(self, ranks, order, value, options=()):
        done = self.run_job(ranks, jobs.program("peal-eigenvalue"), str(order), options=options)
        rows = -(-order // ranks)
        self.assertEqual(done.out, f"rank 0 has rows 0 to {rows} of {order}: the largest eigenvalue is {value}, as it should be\n")

    def test_rows_that_do_not_divide(self):
        self.found(3, 1001, "406501.584")
        self.found(7, 1001, "406501.584", options=("--loss", "0.02"))

    def test_rows_that_divide(self):
        self.found(4, 1000, "405690.204")

    def test_ranks_without_rows(self):
        self.found(5, 3, "5.049")

    def test_mistakes(self):
        for word in ("0", "100001"):
            done = self.run_job(2, jobs.program("peal-eigenvalue"), word, status=2)
            self.assertEqual(jobs.lines_without_pids(done.err),
                             ["peal-eigenvalue: expected one ORDER from 1 to 100000"] * 2 +
                             [f"pealrun: rank {rank} (pid) exited with status 2" for rank in range(2)])


if __name__ == "__main__":
    jobs.main()
