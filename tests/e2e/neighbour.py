# SPDX-License-Identifier: BSD-2-Clause
"""A victim and a hostile neighbour on the same cards. The victim's results are checked, every byte; that it finishes while the
attack stands is the test. What the attack costs it is printed as a ratio, and asserted nowhere."""

import ctypes
import fcntl
import mmap
import os
import signal
import socket
import statistics
import struct
import sys
import time
import traceback
import unittest

from nic_client import ALLGATHER, BROADCAST, Host, allow_everybody_to_read_me, block, make_group, nic

PR_SET_DUMPABLE = 4


class Victim:
    """Two ranks on two cards, in memory that the card made, or that they registered."""

    def __init__(self, path, group=4001, size=1024, registered=False):
        self.size = size
        self.hosts = [Host(path, card) for card in range(2)]
        self.members = make_group(self.hosts, group)
        self.memory = [register(host) if registered else host.allocate(16384) for host in self.hosts]
        self.done = 0

    def operate(self):
        """One allgather; seconds from the first post to the last completion."""
        blocks = [block(rank, self.done, self.size) for rank in range(2)]
        for rank, (_, memory) in enumerate(self.memory):
            memory[:self.size] = blocks[rank]
            memory[4096:4096 + 2 * self.size] = bytes(2 * self.size)
        began = time.monotonic()
        for host, member, (key, _) in zip(self.hosts, self.members, self.memory):
            host.submit(ALLGATHER, BROADCAST, member, cookie=self.done, send=(key, 0), receive=(key, 4096),
                        block_bytes=self.size)
        ends = [host.wait() for host in self.hosts]
        seconds = time.monotonic() - began
        for rank, (_, memory) in enumerate(self.memory):
            assert ends[rank][:2] == ("OK", self.done), ends
            assert memory[4096:4096 + 2 * self.size] == b"".join(blocks), f"rank {rank}, operation {self.done}"
        self.done += 1
        return seconds

    def median(self, operations=200):
        return statistics.median(self.operate() for _ in range(operations))


def register(host):
    allow_everybody_to_read_me()
    memory = mmap.mmap(-1, 16384, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    return host.register_process(ctypes.addressof(ctypes.c_char.from_buffer(memory)), 16384), memory


def compare(name, calm, attacked):
    print(f"{name}: the victim's median latency is {attacked / calm:.2f} times its own without the attack",
          file=sys.stderr)


class Neighbour:
    """A process of its own that runs attack(say): it calls say() when the attack stands, and is killed in the end. `user`: as
    whom, if not as ourselves."""

    def __init__(self, attack, user=None):
        ready, write_end = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            status = 1
            try:
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                os.close(ready)
                if user is not None:
                    os.setgroups([])
                    os.setgid(user)
                    os.setuid(user)
                    # As after an execve(): what was root's memory may be read by nobody.
                    ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1)
                attack(lambda text=b"attacked": os.write(write_end, text))
                status = 0
            except BaseException:  # pylint: disable=broad-except
                traceback.print_exc()
            finally:
                os._exit(status)
        os.close(write_end)
        with os.fdopen(ready, "rb", buffering=0) as said:
            self.said = said.read(64)
        if not self.said:
            raise AssertionError(f"the neighbour could not attack: {self.end()}")

    def end(self):
        """Kills it (if it has not ended) and returns its status."""
        if self.pid is None:
            return None
        os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        self.pid = None
        return status


def stand():
    """The attack stands until its process is killed."""
    while True:
        signal.pause()


class StuckPage:
    """A page that whoever touches it waits for (userfaultfd), and who does can be waited for."""

    SYSCALL = 323 if os.uname().machine == "x86_64" else 282
    UFFD_API, API, REGISTER = 0xAA, 0xC018AA3F, 0xC020AA00
    MISSING = 1

    def __init__(self):
        libc = ctypes.CDLL(None, use_errno=True)
        self.memory = mmap.mmap(-1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        self.address = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        self.fd = libc.syscall(self.SYSCALL, os.O_CLOEXEC)
        if self.fd < 0:
            raise OSError(ctypes.get_errno(), "userfaultfd")
        fcntl.ioctl(self.fd, self.API, struct.pack("QQQ", self.UFFD_API, 0, 0))
        fcntl.ioctl(self.fd, self.REGISTER, struct.pack("QQQQ", self.address, 4096, self.MISSING, 0))

    def wait_for_toucher(self):
        os.read(self.fd, 32)


def can_make_pages_stuck():
    try:
        os.close(StuckPage().fd)
        return True
    except OSError:
        return False


def lingering_socket():
    """(socket whose last close does not return for hours, its peer, to be kept)."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
    near.setblocking(False)
    try:
        while True:
            near.send(bytes(65536))
    except BlockingIOError:
        pass
    near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 100000))
    return near, far


class NeighbourCase(unittest.TestCase):
    """Cards, and attacks on them, that end with the test."""

    binary = None

    def start(self, *arguments, cards=2):
        manager = nic(self.binary, *arguments, cards=cards)
        card = manager.__enter__()
        self.addCleanup(manager.__exit__, None, None, None)
        return card

    def attacked_by(self, attack, user=None):
        neighbour = Neighbour(attack, user)
        self.addCleanup(neighbour.end)
        return neighbour
