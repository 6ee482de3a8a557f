# SPDX-License-Identifier: BSD-2-Clause
"""Small malice, each of which worked once: stolen sleepers, the memory of a parent, a card that is kept awake; and a card that is
stopped itself, which must take nobody for dead."""

import ctypes
import mmap
import os
import signal
import struct
import sys
import threading
import time
import unittest

from neighbour import Neighbour, NeighbourCase, Victim, compare, stand
from nic_client import (BARRIER, DISSEMINATION, HEARTBEAT_AT, HOST_SLEEPING_AT, PROCESS, READ, REGISTER, SLEEPING_AT,
                        WRITE, Host, command, make_group, until)

BINARY = sys.argv.pop(1)
SYS_FUTEX = 202 if os.uname().machine == "x86_64" else 98
FUTEX_WAIT, FUTEX_REQUEUE = 0, 3
libc = ctypes.CDLL(None, use_errno=True)


def address_of(mapping):
    """Also of a mapping that may not be written to."""
    libc.mmap.restype = ctypes.c_void_p
    return libc.mmap(None, 4096, mmap.PROT_READ, mmap.MAP_SHARED, mapping, 0)


def futex_wait(address, value, seconds):
    """0 when woken, else an error number."""
    timeout = struct.pack("qq", seconds, 0)
    result = libc.syscall(SYS_FUTEX, ctypes.c_void_p(address), FUTEX_WAIT, ctypes.c_uint32(value), timeout, None, 0)
    return 0 if result == 0 else ctypes.get_errno()


class SmallTest(NeighbourCase):
    binary = BINARY

    def test_sleepers_cannot_be_stolen(self):
        """FUTEX_REQUEUE moves all who sleep on a word, and needs only to read it."""
        card = self.start()
        victim = Victim(card.path)
        calm = victim.median()
        path = card.path

        def attack(say):
            host = Host(path)
            word = address_of(host.broadcast_fd)
            mine = mmap.mmap(-1, 4096)
            target = ctypes.addressof(ctypes.c_char.from_buffer(mine))
            say()
            while True:  # whoever sleeps, sleeps here from now on
                libc.syscall(SYS_FUTEX, ctypes.c_void_p(word), FUTEX_REQUEUE, 0,
                             ctypes.c_void_p(2**31 - 1), ctypes.c_void_p(target), 0)
                time.sleep(0.001)  # many times while anybody sleeps

        self.attacked_by(attack)
        host, other = victim.hosts
        word = address_of(host.broadcast_fd)
        host.store(HOST_SLEEPING_AT, 1)
        for round_ in range(20):
            value = ctypes.c_uint32.from_address(word).value
            woken = []
            sleeper = threading.Thread(target=lambda v=value, w=woken: w.append(futex_wait(word, v, 50)))
            sleeper.start()
            host.submit(BARRIER, DISSEMINATION, victim.members[0], cookie=round_)
            began = time.monotonic()
            until(lambda b=began: time.monotonic() - b > 0.02, "the thief to have had his chance")
            other.submit(BARRIER, DISSEMINATION, victim.members[1], cookie=round_)
            sleeper.join()
            self.assertIn(woken, ([0], [11]), "woken, or too late to sleep; not timed out")
            self.assertEqual(host.wait()[:2], ("OK", round_))
            self.assertEqual(other.wait()[:2], ("OK", round_))
        host.store(HOST_SLEEPING_AT, 0)
        compare("stolen sleepers", calm, victim.median())

    def test_a_child_registers_nothing_of_its_parent(self):
        """An address means the process that connected, and a child has other memory."""
        card = self.start()
        host = Host(card.path)
        memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        request = command(REGISTER, struct.pack("<IIQQII", PROCESS, READ | WRITE, address, 4096, 0, 0))
        child = Neighbour(lambda say: say(host.ask(request).status.encode()))
        child.end()
        self.assertEqual(child.said, b"BAD_ADDRESS")
        self.assertEqual(host.ask(request).status, "OK")
        self.assertEqual(card.stop()["interfaces"]["0"]["refused_process"], 1)

    def test_a_tail_without_its_entry_lets_the_card_sleep(self):
        card = self.start()
        victim = Victim(card.path)
        calm = victim.median()
        path = card.path

        def attack(say):
            hosts = [Host(path, i % 2) for i in range(4)]
            for host in hosts:
                host.set_tail(1)
                host.kick()
            say()
            stand()

        self.attacked_by(attack)
        compare("tails without entries", calm, victim.median())
        until(lambda: struct.unpack_from("<I", victim.hosts[0].window, SLEEPING_AT)[0], "the card to sleep")
        before, beats = card.wake_ups(), victim.hosts[0].beats()
        until(lambda: victim.hosts[0].beats() >= beats + 4, "four heartbeats")
        # For its own heart, not every 2 ms for these.
        self.assertLess(card.wake_ups() - before, 100)

    def test_a_window_shows_the_interval_of_the_heart_at_once(self):
        card = self.start()
        for _ in range(50):
            host = Host(card.path)
            self.assertEqual(struct.unpack_from("<I", host.window, HEARTBEAT_AT + 8)[0], 250000)
            host.close()

    def test_a_card_that_was_stopped_takes_nobody_for_dead(self):
        card = self.start("--dead-ms", "40", "--probe-us", "5000", cards=4)
        hosts = [Host(card.path, i) for i in range(4)]
        members = make_group(hosts)
        for round_ in range(10):
            for host, member in zip(hosts[1:], members[1:]):
                host.submit(BARRIER, DISSEMINATION, member, cookie=round_)
            os.kill(card.pid, signal.SIGSTOP)
            began = time.monotonic()
            until(lambda b=began: time.monotonic() - b > 0.1, "the time after which a peer is dead")
            os.kill(card.pid, signal.SIGCONT)
            hosts[0].submit(BARRIER, DISSEMINATION, members[0], cookie=round_)
            for host in hosts:
                self.assertEqual(host.wait()[:2], ("OK", round_))


if __name__ == "__main__":
    unittest.main()
