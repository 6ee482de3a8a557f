# SPDX-License-Identifier: BSD-2-Clause
"""No host instruction between the doorbell and the completion: all ranks are stopped by SIGSTOP after posting, only then
may the cards run, and an observer outside reads the completions in the rings' memory, many operations deep."""

import os
import signal
import struct

import jobs

RANKS = 8
WINDOW_MAGIC = 0x6C616570  # abi/window.h
RING_ENTRIES_AT = 0x100 + 48  # peal_device.ring_entries
SUBMISSIONS_AT = 0x2000
ENTRY = struct.Struct("<QQQIIHB28sB")  # struct peal_completion


def completions(pid):
    """What the card has written into the completion ring of a process: (sequence, status) as they came. The window is a memory file
    that the process holds open."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        if "memfd" not in os.readlink(path):
            continue
        with open(path, "rb") as file:
            memory = file.read()
        if len(memory) < SUBMISSIONS_AT or struct.unpack_from("<I", memory)[0] != WINDOW_MAGIC:
            continue
        entries, = struct.unpack_from("<I", memory, RING_ENTRIES_AT)
        at = SUBMISSIONS_AT + entries * 64
        found = []
        for index in range(entries):
            _, sequence, _, _, _, status, _, _, phase = ENTRY.unpack_from(memory, at + index * 64)
            if phase != 1:  # the first pass of the ring
                break
            found.append((sequence, status))
        return found
    raise jobs.Hang(f"process {pid} has no window")


class NoHostTest(jobs.JobCase):
    def check(self, deep, block_bytes, *options):
        job = self.start(RANKS, jobs.program("e2e-rank"), "deep", str(deep), str(block_bytes), options=options)
        job.expect_line("ready")
        cards, ranks = job.cards(), job.ranks()
        self.assertEqual(sorted(ranks), list(range(RANKS)))
        # Hold the cards, let the ranks post and stop themselves.
        os.kill(cards, signal.SIGSTOP)
        jobs.until(lambda: jobs.state_of(cards) == "T", "the cards to stop")
        job.go_on()
        jobs.until(lambda: all(jobs.state_of(pid) == "T" for pid in ranks.values()), "all ranks to stop")
        for pid in ranks.values():
            self.assertEqual(completions(pid), [])
        # Now only the cards run.
        os.kill(cards, signal.SIGCONT)
        for pid in ranks.values():
            jobs.until(lambda pid=pid: len(completions(pid)) == deep, "the cards to complete without hosts")
            # Later operations may overtake one that waits for a repair.
            self.assertEqual(sorted(completions(pid)), [(i, 0) for i in range(deep)])
        self.assertTrue(all(jobs.state_of(pid) == "T" for pid in ranks.values()))
        for pid in ranks.values():
            os.kill(pid, signal.SIGCONT)
        job.finish()

    def test_k_operations_deep(self):
        self.check(8, 1024)

    def test_parked_operations_too(self):
        self.check(16, 64)

    def test_with_loss(self):
        self.check(8, 1024, "--loss", "0.02", "--seed", "5")

    def test_long_blocks(self):
        self.check(8, 50000)


if __name__ == "__main__":
    jobs.main()
