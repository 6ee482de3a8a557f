# SPDX-License-Identifier: BSD-2-Clause
"""A neighbour sends descriptors whose last close does not return. Nobody may wait for that: not those who connect, not those who
close, not SIGTERM. The card is stopped while the neighbour sends, so that each last close is surely the card's."""

import os
import signal
import sys
import unittest

from neighbour import Neighbour, Victim, compare, lingering_socket, stand
from nic_client import COUNTERS, OPEN, Connection, Host, command, nic, until

BINARY = sys.argv.pop(1)
ATTACKS = 6
REFUSALS = 100


class AttackedCase(unittest.TestCase):
    arguments = ()

    def setUp(self):
        self.manager = nic(BINARY, *self.arguments, cards=2)
        self.card = self.manager.__enter__()
        self.addCleanup(self.manager.__exit__, None, None, None)
        self.victim = Victim(self.card.path)
        self.calm = self.victim.median()

    def attacked_by(self, send, times=ATTACKS):
        """send(client, lingering descriptor), many times; the connections stay open where send() left them so."""
        def attack(say):
            kept = []
            for _ in range(times):
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


class DescriptorsTest(AttackedCase):
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


class RefusalsTest(AttackedCase):
    """The victim has two connections, and there is one more."""

    arguments = ("--user-connections", "3")

    def threads(self):
        return len(os.listdir(f"/proc/{self.card.pid}/task"))

    def is_served(self):
        client = Connection(self.card.path)
        reply = client.ask(command(OPEN, bytes(8)))
        client.close()
        return reply is not None and reply.status == "OK"

    def test_refused_connections_with_lingering_sockets(self):
        """Who is refused has no place that bounds what his descriptors cost."""
        before = self.threads()
        self.attacked_by(lambda client, fd: client.send_raw(command(OPEN, bytes(8)), [fd]), times=REFUSALS)
        self.go_on()
        until(self.is_served, "the one more")  # who comes next waits behind all of them
        self.assertLess(self.threads(), before + REFUSALS // 2)  # none of those goes
        compare("refused connections with lingering sockets", self.calm, self.victim.median())
        self.assertGreater(self.card.stop()["interfaces"]["0"]["refused_too_many"], REFUSALS // 2)


if __name__ == "__main__":
    unittest.main()
