# SPDX-License-Identifier: BSD-2-Clause
"""Shared memory that no client can turn against the card: sizes are sealed, the broadcast page is read-only, indices that run
wild end only their own context, entries are read once, a process may die in the middle of everything."""

import ctypes
import fcntl
import mmap
import os
import signal
import struct
import sys
import unittest

from nic_client import (ABI_VERSION, ADDRESS_BYTES, ALLGATHER, BARRIER, BROADCAST, DISSEMINATION, DOUBLING, HEAD_AT, HOST_SLEEPING_AT, INDICES_AT,
                        RESET_REQUEST_AT, SUBMISSIONS, Host,
                        allow_everybody_to_read_me, block, make_group, nic, until)

BINARY = sys.argv.pop(1)
F_GET_SEALS = 1034
SEAL_SEAL, SEAL_SHRINK, SEAL_GROW = 1, 2, 4


def buffer_address(buffer):
    return ctypes.addressof(ctypes.c_char.from_buffer(buffer))


def submission_head(host):
    """How far the card has taken submissions."""
    return struct.unpack_from("<Q", host.window, INDICES_AT)[0]


class MemoryTest(unittest.TestCase):
    def setUp(self):
        self.manager = nic(BINARY, "--dead-ms", "500", cards=3)
        self.card = self.manager.__enter__()
        self.addCleanup(self.manager.__exit__, None, None, None)

    def pair(self, group=77):
        hosts = [Host(self.card.path, i) for i in range(2)]
        return hosts, make_group(hosts, group)

    def check_pair(self, hosts, members, cookie):
        for host, member in zip(hosts, members):
            host.submit(BARRIER, DISSEMINATION, member, cookie=cookie)
        for host in hosts:
            self.assertEqual(host.wait()[:2], ("OK", cookie))

    def check_sealed(self, fd, size):
        seals = fcntl.fcntl(fd, F_GET_SEALS)
        self.assertEqual(seals & (SEAL_SEAL | SEAL_SHRINK | SEAL_GROW), SEAL_SEAL | SEAL_SHRINK | SEAL_GROW)
        for length in (0, size - 1, size + 4096):
            with self.assertRaises(PermissionError):
                os.ftruncate(fd, length)
        self.assertEqual(os.fstat(fd).st_size, size)

    def test_sizes_are_sealed(self):
        hosts, members = self.pair()
        self.check_sealed(hosts[0].window_fd, hosts[0].window_bytes)
        self.check_sealed(hosts[0].broadcast_fd, 4096)
        reply = hosts[0].ask(
            b"".join([struct.pack("<HHIQII", ABI_VERSION, 3, 512, 1, 0, 0), struct.pack("<IIQQII", 1, 3, 0, 100000, 0, 0)])
            .ljust(512, b"\0"))
        self.check_sealed(reply.fds[0], 102400)
        self.check_pair(hosts, members, 1)

    def test_broadcast_page_is_read_only(self):
        hosts, members = self.pair()
        mmap.mmap(hosts[0].broadcast_fd, 4096, prot=mmap.PROT_READ).close()
        with self.assertRaises(PermissionError):
            mmap.mmap(hosts[0].broadcast_fd, 4096)
        with self.assertRaises(PermissionError):
            os.write(hosts[0].broadcast_fd, b"x")
        self.check_pair(hosts, members, 1)

    def test_sleeping_host_is_told(self):
        """The broadcast word changes for a host that said it sleeps, and only for such a one."""
        hosts, members = self.pair()
        word = mmap.mmap(hosts[0].broadcast_fd, 4096, prot=mmap.PROT_READ)
        self.check_pair(hosts, members, 1)
        before = struct.unpack_from("<I", word)[0]
        self.check_pair(hosts, members, 2)
        self.assertEqual(struct.unpack_from("<I", word)[0], before)
        hosts[0].store(HOST_SLEEPING_AT, 1)
        self.check_pair(hosts, members, 3)
        until(lambda: struct.unpack_from("<I", word)[0] != before, "a changed broadcast word")

    def test_wild_submission_index(self):
        hosts, members = self.pair()
        others, other_members = self.pair(group=78)
        for wild in (hosts[0].entries + 1, 2**63, 2**64 - 1):
            victim = Host(self.card.path, 2)
            victim.set_tail(wild)
            victim.kick()
            until(lambda v=victim: v.faults() == 1, "the fault to be counted")
            self.assertIsNone(victim.receive())  # and the connection is closed
        hosts[0].set_tail(2**40)
        hosts[0].kick()
        until(lambda: hosts[0].faults() == 1, "the fault to be counted")
        # Its group is told that rank 0 is gone.
        hosts[1].submit(BARRIER, DISSEMINATION, members[1])
        status, _, failed = hosts[1].wait()
        self.assertEqual((status, failed), ("PEER_DEAD", 0))
        self.check_pair(others, other_members, 1)
        counters = self.card.stop()
        self.assertEqual(sum(card["admin"]["windows_broken"] for card in counters["cards"]), 4)

    def test_wild_completion_index(self):
        hosts, members = self.pair()
        hosts[0].store(HEAD_AT, 2**50)
        hosts[0].submit(BARRIER, DISSEMINATION, members[0])
        until(lambda: hosts[0].faults() == 1, "the fault to be counted")
        others, other_members = self.pair(group=78)
        self.check_pair(others, other_members, 1)

    def test_full_completion_ring_is_back_pressure(self):
        """A host that consumes nothing gets no more than its ring holds, and loses nothing."""
        hosts, members = self.pair()
        count = 3 * hosts[0].entries
        posted = [0, 0]
        done = [0, 0]

        def post(which):
            host = hosts[which]
            if posted[which] < count and host.tail - submission_head(host) < host.entries and posted[which] - done[which] < 8:
                host.submit(BARRIER, DISSEMINATION, members[which], cookie=posted[which])
                posted[which] += 1

        # Wrong opcodes complete at once, without the other rank: they fill the ring of host 0.
        host = hosts[0]
        for i in range(host.entries):
            host.submit(99, 0, members[0], sequence=0, cookie=i)
        until(lambda: submission_head(host) == host.entries, "all entries taken")
        for i in range(host.entries // 2):
            host.submit(99, 0, members[0], sequence=0, cookie=host.entries + i)
        for i in range(host.entries + host.entries // 2):
            status, cookie, _ = host.wait()
            self.assertEqual((status, cookie), ("BAD_OPCODE", i))
        self.assertEqual(host.faults(), 0)
        while min(done) < count:
            for which in range(2):
                post(which)
                completion = hosts[which].poll()
                if completion:
                    self.assertEqual(completion[:2], ("OK", done[which]))
                    done[which] += 1

    def test_entry_rewritten_after_posting(self):
        """What counts is what the card copied, once; afterwards the slot means nothing."""
        hosts, members = self.pair()
        for round_ in range(300):
            for host, member in zip(hosts, members):
                slot = SUBMISSIONS + 64 * (host.tail & (host.entries - 1))
                host.submit(BARRIER, DISSEMINATION, member, cookie=round_)
                until(lambda: submission_head(host) == host.tail, "the entry to be taken")
                host.window[slot:slot + 63] = b"\xff" * 63
            for host in hosts:
                self.assertEqual(host.wait()[:2], ("OK", round_))

    def test_reset_is_acknowledged(self):
        hosts, members = self.pair()
        self.check_pair(hosts, members, 1)
        hosts[0].store(RESET_REQUEST_AT, 5)
        hosts[0].kick()
        until(lambda: hosts[0].reset_epoch() == 5, "the reset to be acknowledged")
        hosts[1].submit(BARRIER, DISSEMINATION, members[1])
        self.assertEqual(hosts[1].wait()[::2], ("PEER_DEAD", 0))
        hosts, members = self.pair(group=79)
        self.check_pair(hosts, members, 2)

    def test_process_memory(self):
        allow_everybody_to_read_me()
        hosts, members = self.pair()
        for size in (64, 5000, 70000):
            for algorithm in (BROADCAST, DOUBLING):
                send = [bytearray(block(rank, size, size)) for rank in range(2)]
                receive = [bytearray(2 * size) for _ in range(2)]
                keys = [(hosts[r].register_process(buffer_address(send[r]), size, 1),
                         hosts[r].register_process(buffer_address(receive[r]), 2 * size, 2)) for r in range(2)]
                for r in range(2):
                    hosts[r].submit(ALLGATHER, algorithm, members[r], send=(keys[r][0], 0),
                                    receive=(keys[r][1], 0), block_bytes=size)
                for r in range(2):
                    self.assertEqual(hosts[r].wait()[0], "OK")
                    self.assertEqual(receive[r], send[0] + send[1])

    def test_unmapped_process_memory_is_a_fault(self):
        allow_everybody_to_read_me()
        hosts, members = self.pair()
        area = mmap.mmap(-1, 8192)
        address = buffer_address(area)
        keys = [hosts[0].register_process(address, 8192), hosts[1].allocate(8192)[0]]
        # Out of reach, as if unmapped, but nobody else can be given the address meanwhile.
        self.assertEqual(ctypes.CDLL(None).mprotect(ctypes.c_void_p(address), 8192, 0), 0)
        for r in range(2):
            hosts[r].submit(ALLGATHER, BROADCAST, members[r], send=(keys[r], 0), receive=(keys[r], 4096),
                            block_bytes=64)
        self.assertEqual(hosts[0].wait()[0], "DMA_FAULT")
        others, other_members = self.pair(group=80)
        self.check_pair(others, other_members, 1)
        counters = self.card.stop()
        self.assertGreater(counters["cards"][0]["admin"]["region_faults"], 0)

    def test_process_dies_half_way(self):
        """Rank 1 is killed with operations posted, in memory that dies with it."""
        for kind in ("process", "allocated"):
            with self.subTest(kind):
                self.die_half_way(kind)

    def die_half_way(self, kind):
        address_r, address_w = os.pipe()
        peer_r, peer_w = os.pipe()
        group = 90 if kind == "process" else 91
        size = 400000
        child = os.fork()
        if child == 0:
            try:
                allow_everybody_to_read_me()
                host = Host(self.card.path, 1)
                own = host.reserve(2, 1)
                os.write(address_w, own)
                member = host.connect_group(own, 1, [os.read(peer_r, ADDRESS_BYTES), own], group)
                if kind == "process":
                    area = mmap.mmap(-1, 3 * size)
                    key = host.register_process(buffer_address(area), 3 * size)
                else:
                    key, area = host.allocate(3 * size)
                os.write(address_w, b"connected...........")
                sequence = 0
                while True:  # until killed
                    host.submit(ALLGATHER, BROADCAST, member, send=(key, 0), receive=(key, size), block_bytes=size,
                                cookie=sequence)
                    host.wait()
                    sequence += 1
            finally:
                os._exit(1)
        host = Host(self.card.path, 0)
        own = host.reserve(2, 0)
        peer = os.read(address_r, ADDRESS_BYTES)
        os.write(peer_w, own)
        member = host.connect_group(own, 0, [own, peer], group)
        self.assertEqual(os.read(address_r, ADDRESS_BYTES), b"connected...........")
        key, _ = host.allocate(3 * size)
        killed = False
        for i in range(1000):
            host.submit(ALLGATHER, BROADCAST, member, send=(key, 0), receive=(key, size), block_bytes=size, cookie=i)
            if i == 3:
                os.kill(child, signal.SIGKILL)
                killed = True
            status, _, failed = host.wait()
            if status == "DMA_FAULT":
                # A dying process loses its memory a moment before its connection: one operation
                # is told of that, by name; the next one of the death.
                self.assertEqual((kind, failed, killed), ("process", 1, True))
                continue
            if status != "OK":
                break
        os.waitpid(child, 0)
        for fd in (address_r, address_w, peer_r, peer_w):
            os.close(fd)
        self.assertTrue(killed)
        self.assertEqual((status, failed), ("PEER_DEAD", 1))
        hosts, members = self.pair(group=group + 10)
        self.check_pair(hosts, members, 1)


if __name__ == "__main__":
    unittest.main()
