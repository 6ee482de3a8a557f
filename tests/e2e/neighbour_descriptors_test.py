# SPDX-License-Identifier: BSD-2-Clause
"""A neighbour sends descriptors whose last close does not return. Nobody may wait for that: not those who connect, not those who
close, not SIGTERM. The card is stopped while the neighbour sends, so that each last close is surely the card's."""

import os
import signal
import sys
import unittest

from neighbour import Neighbour, Victim, compare, lingering_socket, stand
from nic_client import COUNTERS, OPEN, Connection, Host, command, nic

BINARY = sys.argv.pop(1)
ATTACKS = 6


class DescriptorsTest(unittest.TestCase):
    def setUp(self):
        self.manager = nic(BINARY, cards=2)
        self.card = self.manager.__enter__()
        self.addCleanup(self.manager.__exit__, None, None, None)
        self.victim = Victim(self.card.path)
        self.calm = self.victim.median()

    def attacked_by(self, send):
        """send(client, lingering descriptor), many times; the connections stay open where send() left them so."""
        def attack(say):
            kept = []
            for _ in range(ATTACKS):
                near, far = lingering_socket()
                client = Connection(self.card.path)
                send(client, near.fileno())
                near.close()
                kept.append((client, far))
            say()
            stand()

        os.kill(self.card.pid, signal.SIGSTOP)
        neighbour = Neighbour(attack)
        self.addCleanup(neighbour.end)

    def go_on(self):
        os.kill(self.card.pid, signal.SIGCONT)

    def check_victim(self, name):
        for _ in range(20):  # the control thread serves newcomers, and closes
            Host(self.card.path).close()
        compare(name, self.calm, self.victim.median())
        host = Host(self.card.path)
        self.assertEqual(host.ask(command(COUNTERS, bytes(8))).status, "OK")

    def test_commands_with_lingering_sockets(self):
        self.attacked_by(lambda client, fd: client.send_raw(command(OPEN, bytes(8)), [fd]))
        self.go_on()
        self.check_victim("commands with lingering sockets")
        counters = self.card.stop()["interfaces"]["0"]  # SIGTERM, while the attack stands
        self.assertEqual(counters["refused_descriptors"], ATTACKS)

    def test_connections_closed_over_lingering_sockets(self):
        """The queue goes with what is in it."""
        def send(client, fd):
            client.send_raw(b"too short")
            client.send_raw(b"this one comes with something", [fd])
            client.send_raw(command(OPEN, bytes(8)))
            client.close()

        self.attacked_by(send)
        self.go_on()
        self.check_victim("connections closed over lingering sockets")
        self.card.stop()

    def test_shut_down_over_lingering_sockets(self):
        """SIGTERM, with descriptors in queues that nobody has looked at."""
        self.attacked_by(lambda client, fd: client.send_raw(command(OPEN, bytes(8)), [fd]))
        self.card.process.send_signal(signal.SIGTERM)
        self.go_on()
        self.card.stop()


if __name__ == "__main__":
    unittest.main()
