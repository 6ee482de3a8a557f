#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints "passed failed skipped" of one ctest JUnit file. ctest's own summary line counts a skipped test as
passed, which would let a gate pass that ran nothing; a test that could not run counts as failed. A test that left
a report of GoogleTest, REPORTS/its name.xml, counts as those tests that the report lists; those that Python's unittest
has skipped count as skipped, and are named on standard error.

usage: count_tests.py JUNIT REPORTS"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def asked_to_skip(case):
    """The test itself said so (its skip status or text), not: its program or its fixture is missing."""
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP_")


def reported(report):
    """Of one report: passed, failed, skipped."""
    counts = [0, 0, 0]
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        if case.find("failure") is not None:
            counts[1] += 1
        elif case.get("status") == "run" and case.get("result") == "completed":
            counts[0] += 1
        else:
            counts[2] += 1
    return counts


def counts_of_unittest(case):
    """Of a test that passed, which may be a script of them: one, unless all of them were skipped."""
    output = case.findtext("system-out", "")
    ended = re.search(r"^Ran (\d+) tests? in .*\n\nOK \(.*skipped=(\d+)", output, re.MULTILINE)
    if ended is None:
        return 1, 0, 0
    for line in re.findall(r"^.* \.\.\. skipped .*$", output, re.MULTILINE):
        print(f"{case.get('name')}: {line}", file=sys.stderr)
    ran, skipped = map(int, ended.groups())
    return int(skipped < ran), 0, skipped


def counts_of(case, report):
    if report.is_file():
        passed, failed, skipped = reported(report)
        # It crashed at the end, or ran nothing.
        if (case.get("status") != "run" and failed == 0) or passed + failed + skipped == 0:
            failed += 1
        return passed, failed, skipped
    if case.get("status") == "run":
        return counts_of_unittest(case)
    if case.get("status") == "disabled" or asked_to_skip(case):
        return 0, 0, 1
    return 0, 1, 0


def main():
    cases = ElementTree.parse(sys.argv[1]).getroot().iter("testcase")
    reports = pathlib.Path(sys.argv[2])
    print(*(sum(column) for column in zip((0, 0, 0), *(counts_of(case, reports / (case.get("name") + ".xml")) for case in cases))))


if __name__ == "__main__":
    main()
