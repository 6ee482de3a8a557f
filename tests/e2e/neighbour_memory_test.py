# SPDX-License-Identifier: BSD-2-Clause
"""A neighbour registers memory that nobody can reach: whoever copies from it waits for as long as the neighbour likes. That may
cost the neighbour his context, and nobody else anything."""

import os
import sys
import unittest

from neighbour import NeighbourCase, StuckPage, Victim, can_make_pages_stuck, compare, stand
from nic_client import ALLGATHER, BROADCAST, Connection, Host, command, make_group, until
from nic_client import OPEN, allow_everybody_to_read_me

BINARY = sys.argv.pop(1)
CONTEXTS = 6


def attack_with(path, contexts, touched):
    """Operations whose own block cannot be read: in groups of two, each on both cards."""
    allow_everybody_to_read_me()
    kept = []
    for i in range(contexts // 2):
        hosts = [Host(path, card) for card in range(2)]
        members = make_group(hosts, 900 + i)
        pages = [StuckPage() for _ in hosts]
        for host, member, page in zip(hosts, members, pages):
            key = host.register_process(page.address, 4096)
            for _ in range(8):
                host.submit(ALLGATHER, BROADCAST, member, send=(key, 0), receive=(key, 2048), block_bytes=1024)
        kept.append((hosts, pages))
    for _, pages in kept:
        for page in pages:
            page.wait_for_toucher()
    touched()
    return kept


@unittest.skipUnless(can_make_pages_stuck(), "the kernel gives this user no userfaultfd")
class MemoryTest(NeighbourCase):
    binary = BINARY

    def test_the_victim_gets_on_while_the_attack_stands(self):
        card = self.start("--copy-deadline-ms", "3600000")
        victims = {"allocated": Victim(card.path, 4001), "registered": Victim(card.path, 4002, registered=True)}
        calm = {name: victim.median() for name, victim in victims.items()}

        def attack(say):
            attack_with(card.path, CONTEXTS, say)
            stand()

        self.attacked_by(attack)
        for name, victim in victims.items():
            compare(f"memory that cannot be reached, {name} memory of the victim", calm[name], victim.median())
        Victim(card.path, 4003, registered=True).operate()  # newcomers too
        card.stop()  # SIGTERM, with workers that never come back

    def test_the_neighbour_is_ended_by_name(self):
        card = self.start("--copy-deadline-ms", "200")
        victim = Victim(card.path, registered=True)

        def attack(say):
            for hosts, _ in attack_with(card.path, 2, lambda: None):
                for host in hosts:
                    assert host.receive() is None  # the connection is closed
            say()
            stand()

        self.attacked_by(attack)
        for _ in range(50):
            victim.operate()
        counters = card.stop()
        self.assertEqual(counters["interfaces"]["0"]["overdue_closed"], 2)
        self.assertEqual(sum(each["admin"]["copies_overdue"] for each in counters["cards"]), 2)

    def test_what_is_stuck_stays_reserved_until_it_lets_go(self):
        card = self.start("--copy-deadline-ms", "100")

        def attack(say):
            for hosts, _ in attack_with(card.path, 2, lambda: None):
                for host in hosts:
                    assert host.receive() is None
            say()
            stand()

        neighbour = self.attacked_by(attack)

        def free_contexts():
            """How many contexts card 0 has to give."""
            clients = []
            while True:
                client = Connection(card.path)
                reply = client.ask(command(OPEN, bytes(8)))
                clients.append(client)
                if reply.status != "OK":
                    break
                for fd in reply.fds:
                    os.close(fd)
            for client in clients:
                client.close()
            return len(clients) - 1

        all_of_them = until(free_contexts, "contexts")
        until(lambda: free_contexts() == all_of_them, "those of the clients before")
        neighbour.end()  # its pages go with it
        until(lambda: free_contexts() == all_of_them + 1, "the neighbour's context")
        victim = Victim(card.path, registered=True)
        for _ in range(50):
            victim.operate()


if __name__ == "__main__":
    unittest.main()
