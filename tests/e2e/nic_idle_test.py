# SPDX-License-Identifier: BSD-2-Clause
"""A card without work sleeps, wakes for its heart alone, and comes back at the first doorbell."""

import os
import struct
import sys
import unittest

from nic_client import BARRIER, DISSEMINATION, SLEEPING_AT, Host, make_group, nic, until

BINARY = sys.argv.pop(1)
BEATS = 4


def sleeps_and_says_so(card, host):
    """All threads sleep in the kernel, and hosts are told to ring."""
    states = set()
    for thread in os.listdir(f"/proc/{card.pid}/task"):
        with open(f"/proc/{card.pid}/task/{thread}/stat", encoding="ascii") as file:
            states.add(file.read().rsplit(")", 1)[1].split()[0])
    return states == {"S"} and struct.unpack_from("<I", host.window, SLEEPING_AT)[0] == 1


class IdleTest(unittest.TestCase):
    def wake_ups_in(self, card, host):
        """While its heart beats BEATS times, with a sleep after each beat."""
        until(lambda: sleeps_and_says_so(card, host), "the card to fall asleep")
        before = card.wake_ups()
        for _ in range(BEATS):
            beats = host.beats()
            until(lambda b=beats: host.beats() > b, "a heartbeat")
            until(lambda: sleeps_and_says_so(card, host), "the card to go on sleeping")
        return card.wake_ups() - before

    def test_without_work_only_its_heart_wakes_it(self):
        with nic(BINARY, cards=8) as card:
            hosts = [Host(card.path, i) for i in range(8)]
            members = make_group(hosts)
            for round_ in range(20):
                for host, member in zip(hosts, members):
                    host.submit(BARRIER, DISSEMINATION, member, cookie=round_)
                for host in hosts:
                    self.assertEqual(host.wait()[:2], ("OK", round_))
            self.assertLessEqual(self.wake_ups_in(card, hosts[0]), 3 * BEATS)
            # Asleep, it still answers.
            for host, member in zip(hosts, members):
                host.submit(BARRIER, DISSEMINATION, member, cookie=99)
            for host in hosts:
                self.assertEqual(host.wait()[:2], ("OK", 99))
            self.assertGreater(card.stop()["loop"]["sleeps"], BEATS)

    def test_lcores_of_engines_sleep_with_it(self):
        with nic(BINARY, "--engine-lcore", str(min(os.sched_getaffinity(0))), cards=2) as card:
            hosts = [Host(card.path, i) for i in range(2)]
            members = make_group(hosts)
            for round_ in range(20):
                for host, member in zip(hosts, members):
                    host.submit(BARRIER, DISSEMINATION, member, cookie=round_)
                for host in hosts:
                    self.assertEqual(host.wait()[:2], ("OK", round_))
                if round_ % 4 == 3:
                    until(lambda: sleeps_and_says_so(card, hosts[0]), "the card to fall asleep")
            self.assertLessEqual(self.wake_ups_in(card, hosts[0]), 5 * BEATS)
            counters = card.stop()
            carried, = counters["engine_lcores"]
            # Two signals a round; the last words may still be under way.
            self.assertLessEqual(40, carried)
            self.assertLessEqual(carried, counters["wire"]["sent"])

    def test_a_late_rank_wakes_it_ever_more_seldom(self):
        """At the longest interval between questions; at the first one it would be hundreds of times a beat."""
        with nic(BINARY, cards=2) as card:
            hosts = [Host(card.path, i) for i in range(2)]
            members = make_group(hosts)
            hosts[0].submit(BARRIER, DISSEMINATION, members[0])
            self.assertLess(self.wake_ups_in(card, hosts[0]), 100 * BEATS)
            hosts[1].submit(BARRIER, DISSEMINATION, members[1])
            self.assertEqual(hosts[0].wait()[0], "OK")
            self.assertEqual(hosts[1].wait()[0], "OK")

    def test_after_an_end_it_lingers(self):
        """An hour of it, for a host that was told of an end; before that it sleeps as ever, and where it lost its processor to others."""
        with nic(BINARY, "--linger-us", "3600000000", cards=2) as card:
            hosts = [Host(card.path, i) for i in range(2)]
            members = make_group(hosts)
            until(lambda: sleeps_and_says_so(card, hosts[0]), "the card to fall asleep")
            for host, member in zip(hosts, members):
                host.submit(BARRIER, DISSEMINATION, member)
            for host in hosts:
                self.assertEqual(host.wait()[0], "OK")
            slept = False
            for _ in range(BEATS):
                beats = hosts[0].beats()
                until(lambda b=beats: hosts[0].beats() > b, "a heartbeat")
                slept = slept or sleeps_and_says_so(card, hosts[0])
            lost = card.stop()["loop"]["lost_turns"]
            self.assertTrue(not slept or lost > 0, "it slept, and had its processor")

    def test_with_a_processor_of_its_own_it_sleeps_too(self):
        with nic(BINARY, "--lcore-affinity", str(min(os.sched_getaffinity(0))), cards=2) as card:
            hosts = [Host(card.path, i) for i in range(2)]
            members = make_group(hosts)
            for host, member in zip(hosts, members):
                host.submit(BARRIER, DISSEMINATION, member)
            for host in hosts:
                self.assertEqual(host.wait()[0], "OK")
            until(lambda: sleeps_and_says_so(card, hosts[0]), "the card to fall asleep")

    def test_no_sleep_polls(self):
        with nic(BINARY, "--no-sleep", cards=1) as card:
            host = Host(card.path, 0)
            beats = host.beats()
            until(lambda: host.beats() > beats, "a heartbeat")
            loop = card.stop()["loop"]
            self.assertEqual(loop["sleeps"], 0)
            self.assertGreater(loop["turns"], 1000)


if __name__ == "__main__":
    unittest.main()
