# SPDX-License-Identifier: BSD-2-Clause
"""What a caller of libpeal may get wrong is refused by name, and has no effect."""

import jobs


class InputTest(jobs.JobCase):
    def test_every_mistake(self):
        self.scenario(3, "input")


if __name__ == "__main__":
    jobs.main()
