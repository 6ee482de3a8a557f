# SPDX-License-Identifier: BSD-2-Clause
"""A neighbour takes all there is: connections, contexts, groups, keys, memory. What others are sure of it does not get."""

import os
import struct
import sys
import time
import unittest

from neighbour import NeighbourCase, Victim, compare, stand
from nic_client import (ABANDON, ADDRESS_BYTES, ALLOCATE, OPEN, READ, REGISTER, RESERVE, WRITE, Connection, Host, command)

BINARY = sys.argv.pop(1)
STRANGER = 54321  # a user who is nobody here
# What a card has (configs/emulator).
CONTEXTS = 32
MEMBERS = 256
KEYS = 4096


def take(host, request, limit=5000):
    """How often the request was granted before it was refused."""
    for count in range(limit):
        reply = host.ask(request)
        for fd in reply.fds:
            os.close(fd)
        if reply.status != "OK":
            assert reply.status == "NO_RESOURCES", reply.status
            return count
    raise AssertionError(f"never refused: {limit}")


def allocation(size):
    return command(REGISTER, struct.pack("<IIQQII", ALLOCATE, READ | WRITE, 0, size, 0, 0))


GROUP = command(RESERVE, struct.pack("<IIQQ", 2, 0, 0, 0))


def bury(host, group):
    """A group of two whose other rank never comes is made and abandoned. False when it could not be made."""
    reply = host.ask(GROUP)
    if reply.status != "OK":
        assert reply.status == "NO_RESOURCES", reply.status
        return False
    own = reply.body[:ADDRESS_BYTES]
    other = own[:6] + struct.pack("<H", 1) + own[8:]
    member = host.connect_group(own, 0, [own, other], group)
    assert host.ask(command(ABANDON, struct.pack("<II", member, 0))).status == "OK"
    return True


def take_all(path, cards):
    """All contexts first, then through the connections all connections, groups, keys and memory; as often as any is granted."""
    hosts = []
    for card in range(cards):
        while True:
            client = Connection(path)
            reply = client.ask(command(OPEN, struct.pack("<II", card, 0)))
            if reply is None:
                return hosts  # no more connections
            for fd in reply.fds:
                os.close(fd)
            if reply.status != "OK":
                assert reply.status == "NO_RESOURCES", reply.status
                client.close()
                break
            hosts.append(client)
    for host in hosts:
        take(host, GROUP)
        take(host, allocation(8 << 20))
        take(host, allocation(4096))
    while True:  # connections that open nothing
        client = Connection(path)
        if client.ask(command(99)) is None:
            break
        hosts.append(client)
    return hosts


class SharesTest(NeighbourCase):
    binary = BINARY

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_another_user_takes_all(self):
        card = self.start("--admit", str(STRANGER))
        os.chmod(card.folder, 0o755)
        old = Victim(card.path, 4001)
        calm = old.median()

        def attack(say):
            kept = take_all(card.path, 2)
            say()
            stand()
            del kept

        self.attacked_by(attack, STRANGER)
        compare("a neighbour who took all, for a victim from before", calm, old.median())
        new = Victim(card.path, 4002)
        compare("a neighbour who took all, for a newcomer", calm, new.median())
        host = new.hosts[0]
        self.assertGreaterEqual(1 + take(host, GROUP), MEMBERS // 4 - 1)  # half of the pool is divided between the two
        self.assertGreaterEqual(take(host, allocation(4096)), KEYS // 4 - 2)
        for _ in range(CONTEXTS // 4 - 2):
            Host(card.path, 1)
        refused = card.stop()["interfaces"]["0"]
        for name in ("contexts", "groups", "keys", "memory", "connections"):
            self.assertGreater(refused[f"refused_user_{name}"], 0, name)

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_groups_of_another_user_die_as_fast_as_they_are_made(self):
        """What remains of a group that died answers for seconds: places that are shared, too."""
        card = self.start("--admit", str(STRANGER))
        os.chmod(card.folder, 0o755)
        old = Victim(card.path, 4001)
        calm = old.median()
        died, told = os.pipe()

        def attack(say):
            host = Host(card.path)
            groups = 0
            while groups < 2 * MEMBERS and bury(host, 9000 + groups):
                groups += 1
            os.write(told, struct.pack("<I", groups))
            say()
            while True:
                bury(host, 9000)
                time.sleep(0.001)

        self.attacked_by(attack, STRANGER)
        # He has the half of the places, or nearly.
        self.assertGreaterEqual(struct.unpack("<I", os.read(died, 4))[0], MEMBERS)
        compare("a neighbour whose groups die, for a victim from before", calm, old.median())
        for group in range(4):
            Victim(card.path, 5000 + group).operate()

    @unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
    def test_a_user_who_was_not_admitted(self):
        card = self.start()
        os.chmod(card.folder, 0o755)
        os.chmod(card.path, 0o666)

        def attack(say):
            assert Connection(card.path).ask(command(OPEN, bytes(8))) is None
            say()

        self.attacked_by(attack, STRANGER)
        Victim(card.path).operate()
        self.assertEqual(card.stop()["interfaces"]["0"]["refused_user"], 1)

    def test_one_connection_takes_all(self):
        card = self.start()
        old = Victim(card.path, 4001)
        calm = old.median()

        def attack(say):
            host = Host(card.path)
            take(host, GROUP)
            take(host, allocation(64 << 20))  # and there is room for the smallest until there are no keys
            take(host, allocation(4096))
            say()
            stand()

        self.attacked_by(attack)
        compare("a connection that took all, for a victim from before", calm, old.median())
        compare("a connection that took all, for a newcomer", calm, Victim(card.path, 4002).median())
        refused = card.stop()["interfaces"]["0"]
        for name in ("groups", "keys", "memory"):
            self.assertGreater(refused[f"refused_connection_{name}"], 0, name)

    def test_limits_are_as_given(self):
        card = self.start("--user-contexts", "3", "--user-groups", "5", "--user-keys", "6", "--user-memory", "50",
                          "--user-connections", "7", "--connection-groups", "4", "--connection-keys", "5")
        hosts = [Host(card.path) for _ in range(3)]
        client = Connection(card.path)
        self.assertEqual(client.ask(command(OPEN, bytes(8))).status, "NO_RESOURCES")
        self.assertEqual([take(host, GROUP) for host in hosts], [4, 1, 0])
        self.assertEqual([take(host, allocation(4096)) for host in hosts], [5, 1, 0])
        self.assertEqual(take(Host(card.path, 1), allocation(4 << 20)), 5)  # twenty for groups, windows: less than one
        others = [Connection(card.path) for _ in range(2)]
        self.assertEqual([other.ask(command(99)).status for other in others], ["BAD_OPCODE"] * 2)
        self.assertIsNone(Connection(card.path).ask(command(OPEN, bytes(8))))
        refused = card.stop()["interfaces"]["0"]
        self.assertEqual({name: count for name, count in refused.items() if name.startswith("refused_") and count},
                         {"refused_user_contexts": 1, "refused_user_groups": 2, "refused_user_keys": 2,
                          "refused_connection_groups": 1, "refused_connection_keys": 2,
                          "refused_user_connections": 1, "refused_too_many": 1})


if __name__ == "__main__":
    unittest.main()
