# SPDX-License-Identifier: BSD-2-Clause
"""A card without work costs no CPU, and comes back at the first doorbell."""

import sys
import time
import unittest

from nic_client import BARRIER, DISSEMINATION, PATIENCE_S, Host, make_group, nic, until

BINARY = sys.argv.pop(1)


class IdleTest(unittest.TestCase):
    def measure(self, card):
        """Seconds of CPU per second, over a window of time: processor time, not latency."""
        before, began = card.cpu_seconds(), time.monotonic()
        until(lambda: time.monotonic() - began >= 3.0, "time to pass")
        return (card.cpu_seconds() - before) / (time.monotonic() - began)

    def test_less_than_2_percent_of_a_core(self):
        with nic(BINARY, cards=8) as card:
            hosts = [Host(card.path, i) for i in range(8)]
            members = make_group(hosts)
            for round_ in range(20):
                for host, member in zip(hosts, members):
                    host.submit(BARRIER, DISSEMINATION, member, cookie=round_)
                for host in hosts:
                    self.assertEqual(host.wait()[:2], ("OK", round_))
            began = time.monotonic()
            until(lambda: time.monotonic() - began >= 1.0, "the card to fall asleep")
            self.assertLess(self.measure(card), 0.02)
            # Asleep, it still shows that it lives, and answers.
            beats = hosts[0].beats()
            until(lambda: hosts[0].beats() > beats, "a heartbeat", PATIENCE_S)
            for host, member in zip(hosts, members):
                host.submit(BARRIER, DISSEMINATION, member, cookie=99)
            for host in hosts:
                self.assertEqual(host.wait()[:2], ("OK", 99))
            self.assertGreater(card.stop()["loop"]["sleeps"], 0)

    def test_waiting_for_a_late_rank_costs_little(self):
        with nic(BINARY, cards=2) as card:
            hosts = [Host(card.path, i) for i in range(2)]
            members = make_group(hosts)
            hosts[0].submit(BARRIER, DISSEMINATION, members[0])
            began = time.monotonic()
            until(lambda: time.monotonic() - began >= 1.0, "the NACK interval to grow")
            self.assertLess(self.measure(card), 0.10)
            hosts[1].submit(BARRIER, DISSEMINATION, members[1])
            self.assertEqual(hosts[0].wait()[0], "OK")
            self.assertEqual(hosts[1].wait()[0], "OK")

    def test_no_sleep_polls(self):
        with nic(BINARY, "--no-sleep", cards=1) as card:
            # More than any sleeper may; how much more is up to what else the machine does.
            self.assertGreater(self.measure(card), 0.02)
            self.assertEqual(card.stop()["loop"]["sleeps"], 0)


if __name__ == "__main__":
    unittest.main()
