# SPDX-License-Identifier: BSD-2-Clause
"""The longest frames between real processes: 8936 bytes behind a header of 64, by cards with the sizes of configs/bluefield. Every byte is
looked at, with and without loss."""

import os
import re

import jobs

LONGEST = 8936
LOSS = ("--loss", "0.02", "--seed", "5")


class FramesTest(jobs.JobCase):
    def longest(self, *words, options=()):
        """Of the payloads that the job's cards sent."""
        path = os.path.join(self.folder.name, "trace")
        self.scenario(4, *words, options=("--nic", jobs.program("peal-nic-bluefield"), f"--nic-option=--trace={path}", *options))
        with open(path, encoding="ascii") as file:
            lengths = [int(each) for each in re.findall(r" len=(\d+)", file.read())]
        os.remove(path)
        return max(lengths)

    def test_long_blocks(self):
        for words in (("overwrite", "0", "4", "65536"), ("broadcast", "65536", "2"), ("alltoall", "65536", "2")):
            for options in ((), LOSS):
                with self.subTest(words=words, options=options):
                    self.assertEqual(self.longest(*words, options=options), LONGEST)

    def test_long_messages(self):
        """The bytes of a message stand behind 32 of its own, and are whole lines."""
        self.assertEqual(self.longest("p2p-ring", "20", "65536", "1"), 32 + LONGEST // 64 * 64)


if __name__ == "__main__":
    jobs.main()
