# SPDX-License-Identifier: BSD-2-Clause
"""A third client of the same cards takes part in a group of two others: it knows the group's id, or what the wire
shows of it, and every handle. The two must notice nothing, and it must learn nothing."""

import functools
import os
import random
import re
import struct
import sys
import unittest

from nic_client import (ALLGATHER, BARRIER, BROADCAST, COUNTERS, DISSEMINATION, DOUBLING, Host, command, nic, until)

BINARY = sys.argv.pop(1)
SIZE = 3000
GROUP = 0x5EC2E7_0_89ABCDEF
LOW = 0xFFFFFFFF

with open(os.path.join(os.path.dirname(__file__), "../../abi/counters.h"), encoding="ascii") as header:
    COUNTER_NAMES = re.findall(r'^\s+X\(\w+,\s*"(\w+)"', header.read(), re.MULTILINE)


def counters(host):
    """Of the host's card, by name."""
    values, total = [], 1
    while len(values) < total:
        reply = host.ask(command(COUNTERS, struct.pack("<II", len(values), 0)))
        assert reply.status == "OK", reply.status
        total, count = struct.unpack_from("<II", reply.body)
        values += struct.unpack_from(f"<{count}Q", reply.body, 8)
    assert len(values) == len(COUNTER_NAMES), f"{len(values)} counters, {len(COUNTER_NAMES)} names"
    return dict(zip(COUNTER_NAMES, values))


def refused(host):
    """Packets that the host's card has thrown away because of who sent them."""
    return sum(count for name, count in counters(host).items() if name.startswith("drop_"))


@functools.cache
def block(rank, iteration):
    """Nobody else has these bytes."""
    return random.Random(f"{rank} {iteration}").randbytes(SIZE)


class Refused(Exception):
    """The card did not connect the group."""


class Member:
    """A client with a member of some group and memory to gather in."""

    def __init__(self, path, card, ranks, rank):
        self.host = Host(path, card)
        self.rank = rank
        self.address = self.host.reserve(ranks, rank)
        self.key, self.memory = self.host.allocate(4 * SIZE)
        self.member = None

    def connect(self, addresses, group):
        try:
            self.member = self.host.connect_group(self.address, self.rank, addresses, group)
        except AssertionError as error:
            raise Refused(error) from error

    def gather(self, iteration, own, algorithm):
        self.memory[:SIZE] = block(own, iteration)
        self.memory[SIZE:3 * SIZE] = bytes(2 * SIZE)
        self.host.submit(ALLGATHER, algorithm, self.member, send=(self.key, 0), receive=(self.key, SIZE),
                         block_bytes=SIZE, cookie=iteration)

    def gathered(self):
        return self.memory[SIZE:2 * SIZE], self.memory[2 * SIZE:3 * SIZE]


class StrangerTest(unittest.TestCase):
    def check_attack(self, card, known, algorithm):
        """The stranger, on that card, connects as rank 1 with `known` as the group's id."""
        with nic(BINARY, "--nack-us", "200", "--nack-max-us", "2000", cards=2) as cards:
            zero, one = Member(cards.path, 0, 2, 0), Member(cards.path, 1, 2, 1)
            addresses = [zero.address, one.address]
            zero.connect(addresses, GROUP)
            one.connect(addresses, GROUP)
            self.check_pair(zero, one, 0, algorithm)
            stranger = Member(cards.path, card, 2, 1)
            try:
                stranger.connect([zero.address, stranger.address], known)
            except Refused as refusal:
                # There is a rank 1 of that group on that card; what the wire shows does not tell.
                self.assertEqual((card, known), (1, GROUP), refusal)
                self.assertIn("BAD_GROUP", str(refusal))
            else:
                self.assertNotEqual((card, known), (1, GROUP), "a second rank 1 of the group on its card")
                self.check_faster_stranger(zero, one, stranger, algorithm)
            for iteration in range(2, 12):
                self.check_pair(zero, one, iteration, algorithm)
            self.check_learnt_nothing(stranger)
            # Its death is not that of rank 1.
            stranger.host.close()
            for iteration in range(12, 22):
                self.check_pair(zero, one, iteration, algorithm)
            for each in (zero, one):
                each.host.submit(BARRIER, DISSEMINATION, each.member, cookie=99)
            for each in (zero, one):
                self.assertEqual(each.host.wait(), ("OK", 99, LOW))

    def check_faster_stranger(self, zero, one, stranger, algorithm):
        """It is as far as the others, and posts before the true rank 1 does."""
        stranger.gather(0, 66, algorithm)
        stranger.gather(1, 66, algorithm)
        before = refused(zero.host)
        zero.gather(1, 0, algorithm)
        # Its blocks, and its questions for rank 0's, have arrived: again and again.
        done = until(lambda: zero.host.poll() or refused(zero.host) > before + 5, "packets of the stranger")
        self.assertIs(done, True, f"rank 0 completed without rank 1: {done}")
        self.check_learnt_nothing(stranger)
        one.gather(1, 1, algorithm)
        self.check_done(zero, one, 1)

    def check_learnt_nothing(self, stranger):
        memory = stranger.memory[:]
        for rank in (0, 1):
            for iteration in range(12):
                secret = block(rank, iteration)
                for at in range(0, SIZE - 16, 16):
                    self.assertLess(memory.find(secret[at:at + 16]), 0, f"it has read rank {rank}'s block {iteration}")
        completion = stranger.host.poll()
        self.assertTrue(completion is None or completion[0] != "OK", completion)

    def check_pair(self, zero, one, iteration, algorithm):
        zero.gather(iteration, 0, algorithm)
        one.gather(iteration, 1, algorithm)
        self.check_done(zero, one, iteration)

    def check_done(self, zero, one, iteration):
        for each in (zero, one):
            self.assertEqual(each.host.wait(), ("OK", iteration, LOW))
            self.assertEqual(each.gathered(), (block(0, iteration), block(1, iteration)),
                             f"rank {each.rank}, operation {iteration}")

    def test_knows_the_whole_id(self):
        self.check_attack(1, GROUP, BROADCAST)

    def test_knows_the_whole_id_and_steps(self):
        self.check_attack(1, GROUP, DOUBLING)

    def test_knows_what_the_wire_shows(self):
        self.check_attack(1, GROUP & LOW | 1 << 32, BROADCAST)

    def test_knows_what_the_wire_shows_and_steps(self):
        self.check_attack(1, GROUP & LOW | 1 << 32, DOUBLING)

    def test_on_the_victims_card(self):
        self.check_attack(0, GROUP, BROADCAST)

    def test_on_the_victims_card_and_steps(self):
        self.check_attack(0, GROUP, DOUBLING)


if __name__ == "__main__":
    unittest.main(verbosity=2)
