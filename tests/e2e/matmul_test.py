# SPDX-License-Identifier: BSD-2-Clause
"""The demo: eight processes, two matrices, eight cards, a wire that loses 1%."""

import re
import subprocess
import sys

import jobs
import product


class MatmulTest(jobs.JobCase):
    def test_demo(self):
        """What is lost is repaired, for three questions each at most: of nine runs together. (One has some 50 repairs, and now and then more questions.)"""
        packets = nacks = late = repairs = 0
        for seed in range(1, 10):
            done = self.run_job(8, jobs.program("peal-matmul"), options=("--loss", "0.01", "--seed", str(seed)))
            self.assertRegex(done.out, product.report(8, 500, cards=8))
            cards = [card.split() for card in re.findall(r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2} +(.*)$", done.out, re.M)]
            packets += sum(int(card[column]) for card in cards for column in (0, 2, 3, 4, 5))
            nacks += sum(int(card[3]) for card in cards)
            late += sum(int(card[4]) for card in cards)
            repairs += sum(int(card[5]) for card in cards)
        print(f"{nacks / repairs:.2f} questions for a repair, {late} of {nacks} for what was late", file=sys.stderr)
        self.assertGreater(repairs, 0, "1% was lost, so something must have been repaired")
        self.assertLessEqual(nacks - late, 1.5 * repairs)
        self.assertLessEqual(late, 0.05 * packets)
        self.assertLessEqual(nacks, 3 * repairs)

    def test_three_ranks(self):
        done = self.run_job(3, jobs.program("peal-matmul"), "200", "4")
        self.assertRegex(done.out, product.report(3, 200, cards=3))

    def test_fewer_rows_than_ranks_and_strips(self):
        """Some bands, and most strips, are of nothing."""
        done = self.run_job(4, jobs.program("peal-matmul"), "3", "5")
        self.assertRegex(done.out, product.report(4, 3, cards=4))

    def test_mistakes(self):
        for words, wrong in ((["0"], "ORDER: '0' is no whole number from 1 to 16384"), (["8", "x"], "STRIPS: 'x' is no whole number from 1 to 16384"),
                             (["8", "1", "2"], "'2' is one word too many")):
            done = subprocess.run([jobs.program("peal-matmul"), *words], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"peal-matmul: {wrong}\nTry 'peal-matmul --help'.\n"), words)


if __name__ == "__main__":
    jobs.main()
