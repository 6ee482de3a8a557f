# SPDX-License-Identifier: BSD-2-Clause
"""Right results over a wire that loses, repeats, reorders, delays and corrupts; and the same frames in the trace as the
protocol says."""

import collections
import os
import sys
import unittest

from nic_client import ALLGATHER, BARRIER, BROADCAST, DISSEMINATION, DOUBLING, Host, block, make_group, nic

BINARY = sys.argv.pop(1)


class FaultsTest(unittest.TestCase):
    def gather(self, card, ranks, sizes):
        hosts = [Host(card.path, r) for r in range(ranks)]
        members = make_group(hosts)
        room = max(sizes)
        memory = [host.allocate((ranks + 1) * room) for host in hosts]
        for algorithm in (BROADCAST, DOUBLING):
            for size in sizes:
                blocks = [block(r, size, size) for r in range(ranks)]
                for r, host in enumerate(hosts):
                    key, buffer = memory[r]
                    buffer[ranks * room:ranks * room + size] = blocks[r]
                    host.submit(ALLGATHER, algorithm, members[r], send=(key, ranks * room), receive=(key, 0),
                                block_bytes=size)
                for r, host in enumerate(hosts):
                    self.assertEqual(host.wait()[0], "OK")
                    # The user's buffer is free at once.
                    memory[r][1][ranks * room:ranks * room + size] = b"\xee" * size
                for r in range(ranks):
                    self.assertEqual(memory[r][1][0:ranks * size], b"".join(blocks), (algorithm, size, r))
        for r, host in enumerate(hosts):
            host.submit(BARRIER, DISSEMINATION, members[r])
        for host in hosts:
            self.assertEqual(host.wait()[0], "OK")
        return card.stop()

    def test_each_fault(self):
        for option, counter in (("--loss", "lost"), ("--duplicate", "duplicated"), ("--reorder", "reordered"),
                                ("--delay", "delayed"), ("--corrupt", "corrupted")):
            with self.subTest(option), nic(BINARY, option, "0.05", "--seed", "3", cards=5) as card:
                counters = self.gather(card, 5, [1, 1000, 20000])
                self.assertGreater(counters["faults"][counter], 0)

    def test_all_faults_at_once(self):
        with nic(BINARY, "--fault-plan", "loss=0.02,duplicate=0.02,reorder=0.02,delay=0.02,corrupt=0.02", cards=4) \
                as card:
            counters = self.gather(card, 4, [64, 5000, 100000])
            repairs = sum(card["counters"]["sent_repair"] for card in counters["cards"])
            self.assertGreater(repairs, 0)

    def test_partition_that_heals(self):
        with nic(BINARY, "--fault-plan", "partition=0-1:0-1500000", cards=4) as card:
            counters = self.gather(card, 4, [64, 4096])
            self.assertGreater(counters["faults"]["partitioned"], 0)

    def test_trace(self):
        """Without loss each block crosses N - 1 edges, once."""
        with nic(BINARY, "--trace", "/dev/null", cards=1):
            pass
        ranks = 4
        trace = None
        with nic(BINARY, cards=1) as scratch:
            trace = os.path.join(scratch.folder, "trace")
            with nic(BINARY, "--trace", trace, cards=ranks) as card:
                self.gather(card, ranks, [64])
            with open(trace, encoding="ascii") as file:
                lines = file.read().splitlines()
        firsts = [line for line in lines if " DATA allgather all-to-all-broadcast " in line and "repair" not in line]
        # (place of the sender, place of the receiver, hop) in every origin's tree
        tree = ((0, 1, 0), (0, 2, 1), (1, 3, 1))
        expected = [f"{(origin + a) % ranks}>{(origin + b) % ranks} DATA allgather all-to-all-broadcast seq=0 piece=0 "
                    f"origin={origin} hop={hop} frag=0 len=64" for origin in range(ranks) for a, b, hop in tree]
        self.assertEqual(sorted(firsts), sorted(expected))


if __name__ == "__main__":
    unittest.main()
