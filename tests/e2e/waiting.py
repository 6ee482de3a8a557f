# SPDX-License-Identifier: BSD-2-Clause
"""Waiting for what must happen, and looks at processes."""

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


def threads_named(pid, name):
    """Numbers of a process's threads of that name."""
    found = []
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as comm:
            if comm.read().strip() == name:
                found.append(int(thread))
    return found
