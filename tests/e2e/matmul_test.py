# SPDX-License-Identifier: BSD-2-Clause
"""The demo: eight processes, two matrices, eight cards, a wire that loses 1%."""

import re
import subprocess

import jobs


class MatmulTest(jobs.JobCase):
    def test_demo(self):
        done = self.run_job(8, jobs.program("peal-matmul"), options=("--loss", "0.01", "--seed", "1"))
        self.assertIn("correct: on 8 of 8 ranks", done.out)
        cards = re.findall(r"^(?:[0-9a-f]{2}:){5}[0-9a-f]{2} +(.*)$", done.out, re.M)
        self.assertEqual(len(cards), 8)
        repairs = sum(int(card.split()[5]) for card in cards)
        self.assertGreater(repairs, 0, "1% was lost, so something must have been repaired")

    def test_three_ranks(self):
        done = self.run_job(3, jobs.program("peal-matmul"), "192", "4")
        self.assertIn("correct: on 3 of 3 ranks", done.out)

    def test_rows_that_cannot_be_dealt(self):
        done = self.run_job(3, jobs.program("peal-matmul"), "200", "4", status=2)
        self.assertIn("cannot be dealt", done.err)

    def test_mistakes(self):
        for words, wrong in ((["0"], "ORDER: '0' is no whole number from 1 to 16384"), (["8", "x"], "STRIPS: 'x' is no whole number from 1 to 16384"),
                             (["8", "1", "2"], "'2' is one word too many")):
            done = subprocess.run([jobs.program("peal-matmul"), *words], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"peal-matmul: {wrong}\nTry 'peal-matmul --help'.\n"), words)


if __name__ == "__main__":
    jobs.main()
