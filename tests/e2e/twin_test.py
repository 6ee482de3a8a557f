# SPDX-License-Identifier: BSD-2-Clause
"""Open MPI's twin defines every function of libpeal that peal-matmul and peal-perf call.

usage: twin_test.py FOLDER_OF_THE_PROGRAMS NM OBJECT_OF_THE_TWIN"""

import os
import subprocess
import sys
import unittest

PROGRAMS, NM, TWIN = sys.argv[1:4]


def names(*arguments):
    lines = subprocess.run([NM, *arguments], capture_output=True, text=True, check=True).stdout.splitlines()
    return {name for line in lines if (name := line.split()[-1].split("@")[0]).startswith("peal_")}


class TwinTest(unittest.TestCase):
    def test_functions(self):
        defined = names("--defined-only", "--extern-only", TWIN)
        for program in ("peal-matmul", "peal-perf"):
            called = names("--dynamic", "--undefined-only", os.path.join(PROGRAMS, program))
            self.assertIn("peal_allgather", called)
            self.assertEqual(called - defined, set(), f"{program} calls these")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
