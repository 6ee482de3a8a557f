# SPDX-License-Identifier: BSD-2-Clause
"""The example of five operations: keys that go to the rank they belong to; fewer keys than ranks; lost packets."""

import re

import jobs


class SortTest(jobs.JobCase):
    def sorts(self, ranks, keys, options=()):
        done = self.run_job(ranks, jobs.program("peal-sort"), str(keys), options=options)
        self.assertRegex(done.out, rf"^rank 0 has \d+ of {ranks * keys} keys, from \d+ to \d+: all are in order\n$")
        return int(re.match(r"rank 0 has (\d+)", done.out)[1])

    def test_shares_are_alike(self):
        for ranks in (1, 2, 5, 8):
            with self.subTest(ranks=ranks):
                share = self.sorts(ranks, 20000)
                self.assertGreater(share, 10000)
                self.assertLess(share, 30000)

    def test_fewer_keys_than_ranks(self):
        self.sorts(5, 1)
        self.sorts(7, 3)

    def test_with_loss(self):
        self.sorts(4, 50000, options=("--loss", "0.02"))

    def test_mistakes(self):
        for word in ("0", "10000001"):
            done = self.run_job(2, jobs.program("peal-sort"), word, status=2)
            self.assertEqual(jobs.lines_without_pids(done.err),
                             ["peal-sort: expected one number of KEYS from 1 to 10000000"] * 2 +
                             [f"pealrun: rank {rank} (pid) exited with status 2" for rank in range(2)])


if __name__ == "__main__":
    jobs.main()
