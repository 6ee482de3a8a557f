# SPDX-License-Identifier: BSD-2-Clause
"""Programs built with older headers run on today's library."""

import jobs


class OlderHeaderTest(jobs.JobCase):
    def test_version_1(self):
        self.run_job(4, jobs.program("e2e-older-1"))

    def test_version_2(self):
        self.run_job(4, jobs.program("e2e-older-2"))

    def test_version_3(self):
        self.run_job(4, jobs.program("e2e-older-3"))

    def test_version_4(self):
        self.run_job(4, jobs.program("e2e-older-4"))

    def test_version_5(self):
        self.run_job(4, jobs.program("e2e-older-5"))

    def test_version_6(self):
        self.run_job(4, jobs.program("e2e-older-6"))

    def test_version_7(self):
        self.run_job(4, jobs.program("e2e-older-7"))


if __name__ == "__main__":
    jobs.main()
