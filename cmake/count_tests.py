#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Prints "passed failed skipped" of one ctest JUnit file. ctest's own summary line counts a skipped test as
passed, which would let a gate pass that ran nothing; a test that could not run counts as failed."""

import sys
import xml.etree.ElementTree as ElementTree


def asked_to_skip(case):
    """The test itself said so (its skip status or text), not: its program or its fixture is missing."""
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP_")


def main():
    passed = failed = skipped = 0
    for case in ElementTree.parse(sys.argv[1]).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            passed += 1
        elif status == "disabled" or asked_to_skip(case):
            skipped += 1
        else:
            failed += 1
    print(passed, failed, skipped)


if __name__ == "__main__":
    main()
