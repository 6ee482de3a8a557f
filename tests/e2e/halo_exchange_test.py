# SPDX-License-Identifier: BSD-2-Clause
"""The example of a program: a plate's tiles exchange their edges, in grids of several shapes, and tiles that are not alike."""

import jobs


class HaloExchangeTest(jobs.JobCase):
    def relaxed(self, ranks, order, steps, grid, points, options=()):
        done = self.run_job(ranks, jobs.program("peal-halo-exchange"), str(order), str(steps), options=options)
        self.assertEqual(done.out, f"rank 0 of {grid} has {points} points: after {steps} steps of 3 plates all as computed alone\n")

    def test_grids(self):
        self.relaxed(1, 8, 50, "1 x 1", "8 x 8")
        self.relaxed(2, 9, 100, "1 x 2", "9 x 5")
        self.relaxed(6, 61, 200, "2 x 3", "31 x 21")
        self.relaxed(7, 40, 100, "1 x 7", "40 x 6")

    def test_with_loss(self):
        self.relaxed(4, 50, 100, "2 x 2", "25 x 25", options=("--loss", "0.02", "--seed", "3"))

    def test_edges_of_several_packets(self):
        self.relaxed(4, 1400, 6, "2 x 2", "700 x 700")

    def test_on_two_cards(self):
        self.relaxed(6, 24, 300, "2 x 3", "12 x 8", options=("--cards", "2"))

    def test_mistakes(self):
        for words in (("0",), ("2001",), ("60x",), ("10", "100001"), ("10", "some"), ("10", "10", "10")):
            done = self.run_job(2, jobs.program("peal-halo-exchange"), *words, status=2)
            self.assertEqual(jobs.lines_without_pids(done.err),
                             ["peal-halo-exchange: expected an ORDER from 1 to 2000, and STEPS from 1 to 100000"] * 2 +
                             [f"pealrun: rank {rank} (pid) exited with status 2" for rank in range(2)])
        done = self.run_job(2, jobs.program("peal-halo-exchange"), "3", status=2)
        self.assertIn("peal-halo-exchange: 3 points are too few for tiles of 2 ranks", done.err)


if __name__ == "__main__":
    jobs.main()
