# SPDX-License-Identifier: BSD-2-Clause
"""What ./peal test counts: of a small project with one test of each kind, as ctest reports it.

usage: counts_test.py ROOT CTEST"""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT, CTEST = sys.argv[1:3]
SCRIPT = """import unittest
class Some(unittest.TestCase):
    def test_a(self): print("x" * 4000)
    def test_b(self): self.skipTest("there is no b")
    @unittest.skipUnless({all}, "there is no c")
    def test_c(self): pass
{all} or delattr(Some, "test_a")
unittest.main(verbosity=2)
"""
GTEST = """<testsuites><testsuite>
<testcase name="A" status="run" result="completed"/><testcase name="B" status="run" result="completed"/>
<testcase name="C" status="run" result="skipped"/></testsuite></testsuites>
"""


class CountsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="peal-counts-")
        self.addCleanup(self.folder.cleanup)
        self.tests = []

    def put(self, name, text):
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def add(self, name, *command, **properties):
        words = " ".join(f'"{word}"' for word in command)
        self.tests.append(f"add_test({name} {words})\n")
        for key, value in properties.items():
            self.tests.append(f"set_tests_properties({name} PROPERTIES {key} {value})\n")

    def counts(self):
        """passed, failed, skipped; and what is said of these."""
        self.put("CTestTestfile.cmake", "".join(self.tests))
        # As ./peal test calls it.
        with open(os.path.join(ROOT, "peal"), encoding="utf-8") as file:
            options = [line for line in file if "--test-output-truncation" in line]
        self.assertEqual(len(options), 1)
        subprocess.run([CTEST, "--output-junit", "junit.xml", *options[0].strip(" \\\n").split()], cwd=self.folder.name, check=False,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = subprocess.run([sys.executable, "-B", os.path.join(ROOT, "cmake/count_tests.py"), "junit.xml", "."], cwd=self.folder.name,
                              capture_output=True, text=True, check=True)
        return [int(word) for word in done.stdout.split()], done.stderr

    def test_programs(self):
        self.add("good", "true")
        self.add("bad", "false")
        self.add("missing", "no-such-program")
        self.add("skips", "sh", "-c", "exit 77", SKIP_RETURN_CODE=77)
        self.assertEqual(self.counts(), ([1, 2, 1], ""))

    def test_programs_of_googletest(self):
        self.put("good.xml", GTEST)
        self.add("good", "true")
        self.put("bad.xml", GTEST)
        self.add("bad", "false")
        self.assertEqual(self.counts(), ([4, 1, 2], ""))

    def test_scripts_of_unittest(self):
        """However much they print."""
        self.add("some", sys.executable, self.put("some.py", SCRIPT.format(all=True)))
        self.add("none", sys.executable, self.put("none.py", SCRIPT.format(all=False)))
        counts, said = self.counts()
        self.assertEqual(counts, [1, 0, 3])
        self.assertEqual([line.split(" ")[0:2] + line.split(" ... ")[1:] for line in said.splitlines()],
                         [["some:", "test_b", "skipped 'there is no b'"], ["none:", "test_b", "skipped 'there is no b'"],
                          ["none:", "test_c", "skipped 'there is no c'"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
