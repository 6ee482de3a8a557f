# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for what must happen."""

import os
import time

# Generous: only a hang may reach it.
PATIENCE_S = 200


class Hang(Exception):
    """Something that must happen did not."""


def until(condition, what, patience_s=PATIENCE_S):
    """Waits for a condition; how long does not matter, only that it comes true."""
    end = time.monotonic() + patience_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise Hang(what)
        os.sched_yield()
