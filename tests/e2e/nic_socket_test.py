# SPDX-License-Identifier: BSD-2-Clause
"""What a client may send to the socket: everything. What is wrong is refused by name and counted, changes nothing for
others, and never stalls the cards."""

import ctypes
import itertools
import os
import random
import resource
import signal
import socket
import struct
import sys
import tempfile
import unittest

from nic_client import (ABANDON, ABI_VERSION, ADMIN_BYTES, ALLGATHER, ALLOCATE, BARRIER, BROADCAST, CLOSE, CONNECT, COUNTERS,
                        DISSEMINATION, OPEN, PAGES, PATIENCE_S, PROCESS, READ, REGISTER, RESERVE, UNREGISTER, WRITE,
                        Connection, Host, block, command, make_group, nic, until)

BINARY = sys.argv.pop(1)


def register(kind, access=READ | WRITE, address=0, size=4096, offset=0, shift=0):
    return command(REGISTER, struct.pack("<IIQQII", kind, access, address, size, offset, shift))


def fork_as(number):
    """fork() with a number that is free (clone3, set_tid)."""
    wanted = ctypes.c_int32(number)
    arguments = struct.pack("<11Q", 0, 0, 0, 0, signal.SIGCHLD, 0, 0, 0, ctypes.addressof(wanted), 1, 0)
    libc = ctypes.CDLL(None, use_errno=True)
    pid = libc.syscall(435, arguments, len(arguments))
    if pid < 0:
        raise OSError(ctypes.get_errno(), "clone3")
    return pid


def knows_who_connected():
    near, far = socket.socketpair()
    with near, far:
        try:
            os.close(near.getsockopt(socket.SOL_SOCKET, 77))  # SO_PEERPIDFD
            return True
        except OSError:
            return False


class SocketTest(unittest.TestCase):
    def setUp(self):
        self.manager = nic(BINARY, "--memory-budget", "64", cards=2)
        self.card = self.manager.__enter__()
        self.addCleanup(self.manager.__exit__, None, None, None)

    def check_alive(self):
        """The cards still work for others."""
        hosts = [Host(self.card.path, i) for i in range(2)]
        members = make_group(hosts, group=4711)
        for host, member in zip(hosts, members):
            host.submit(BARRIER, DISSEMINATION, member, cookie=5)
        for host in hosts:
            self.assertEqual(host.wait()[:2], ("OK", 5))
        for host in hosts:
            host.close()

    def interface_counters(self):
        return self.card.stop()["interfaces"]["0"]

    def test_wrong_length_is_refused(self):
        client = Connection(self.card.path)
        for size in (1, 23, 24, 511):
            self.assertEqual(client.ask(command(OPEN, bytes(8))[:size]).status, "BAD_VERSION")
        self.assertEqual(client.ask(command(OPEN, bytes(8)) + b"\0").status, "BAD_VERSION")
        self.assertEqual(client.ask(command(OPEN, bytes(8)) * 30).status, "BAD_VERSION")
        self.assertEqual(client.ask(command(OPEN, bytes(8))).status, "OK")
        self.check_alive()
        self.assertEqual(self.interface_counters()["refused_size"], 6)

    def test_envelope_is_checked(self):
        client = Connection(self.card.path)
        body = struct.pack("<II", 0, 0)
        self.assertEqual(client.ask(command(OPEN, body, version=ABI_VERSION + 1)).status, "BAD_VERSION")
        self.assertEqual(client.ask(command(OPEN, body, size=511)).status, "BAD_VERSION")
        self.assertEqual(client.ask(command(0, body)).status, "BAD_OPCODE")
        self.assertEqual(client.ask(command(999, body)).status, "BAD_OPCODE")
        self.assertEqual(client.ask(command(OPEN, body, reserved=1)).status, "BAD_FLAGS")
        self.assertEqual(client.ask(command(OPEN, body, context=1)).status, "BAD_FLAGS")
        self.assertEqual(client.ask(command(OPEN, struct.pack("<II", 0, 1))).status, "BAD_FLAGS")
        self.assertEqual(client.ask(command(OPEN, body + b"x")).status, "BAD_FLAGS")
        self.assertEqual(client.ask(command(OPEN, struct.pack("<II", 2, 0))).status, "BAD_ADDRESS")
        self.assertEqual(client.ask(command(OPEN, struct.pack("<II", 2**32 - 1, 0))).status, "BAD_ADDRESS")
        reply = client.ask(command(OPEN, body, tag=0x1122334455667788))
        self.assertEqual((reply.status, reply.tag, len(reply.fds)), ("OK", 0x1122334455667788, 3))
        self.assertEqual(client.ask(command(OPEN, body)).status, "BUSY")
        counters = self.interface_counters()
        self.assertEqual((counters["refused_card"], counters["refused_context"]), (2, 1))

    def test_commands_before_open_are_refused(self):
        client = Connection(self.card.path)
        for opcode in (CLOSE, UNREGISTER, CONNECT, ABANDON, COUNTERS):
            self.assertEqual(client.ask(command(opcode)).status, "CLOSED", opcode)
        self.assertEqual(client.ask(register(ALLOCATE)).status, "CLOSED")
        self.assertEqual(client.ask(command(RESERVE, struct.pack("<IIQQ", 2, 0, 0, 0))).status, "CLOSED")

    def test_descriptors_are_refused_with_their_connection(self):
        Host(self.card.path).close()
        before = len(os.listdir(f"/proc/{self.card.pid}/fd"))
        with tempfile.TemporaryFile() as file:
            for count in (1, 3, 16, 60):
                client = Connection(self.card.path)
                self.assertEqual(client.ask(command(OPEN, bytes(8)), [file.fileno()] * count).status, "BAD_ADDRESS")
                self.assertIsNone(client.receive())
        until(lambda: len(os.listdir(f"/proc/{self.card.pid}/fd")) <= before, "the connections to be closed")
        self.check_alive()
        self.assertEqual(self.interface_counters()["refused_descriptors"], 4)

    def test_who_comes_when_descriptors_have_run_out_is_refused(self):
        host = Host(self.card.path)
        most = 1 + max(int(name) for name in os.listdir(f"/proc/{self.card.pid}/fd"))
        limit = resource.prlimit(self.card.pid, resource.RLIMIT_NOFILE, (most, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
        while (status := host.ask(register(PROCESS, address=4096)).status) == "OK":  # each takes one
            pass
        self.assertEqual(status, "NO_RESOURCES")
        for _ in range(20):
            self.assertIsNone(Connection(self.card.path).receive())
        self.assertEqual(host.ask(command(COUNTERS)).status, "OK")
        resource.prlimit(self.card.pid, resource.RLIMIT_NOFILE, limit)
        self.check_alive()
        self.assertEqual(self.interface_counters()["refused_too_many"], 20)

    def test_registrations_are_checked(self):
        host = Host(self.card.path)
        for request, status in (
                (register(0), "BAD_ADDRESS"), (register(4), "BAD_ADDRESS"),
                (register(PAGES, shift=12), "BAD_ADDRESS"),  # not over a socket
                (register(ALLOCATE, access=0), "BAD_ACCESS"), (register(ALLOCATE, access=4), "BAD_FLAGS"),
                (register(ALLOCATE, size=0), "BAD_LENGTH"),
                (register(ALLOCATE, address=4096), "BAD_ADDRESS"),
                (register(ALLOCATE, offset=1), "BAD_FLAGS"), (register(ALLOCATE, shift=12), "BAD_FLAGS"),
                (register(ALLOCATE, size=65 << 20), "NO_RESOURCES"),  # over the budget
                (register(ALLOCATE, size=2**64 - 1), "BAD_LENGTH"),
                (register(PROCESS, address=0), "BAD_ADDRESS"),
                (register(PROCESS, address=2**64 - 4096, size=8192), "BAD_BOUNDS")):
            self.assertEqual(host.ask(request).status, status, request[24:56].hex())
        for key in (0, 1, 0xFFFFFFFF):
            self.assertEqual(host.ask(command(UNREGISTER, struct.pack("<II", key, 0))).status, "BAD_KEY")
        key, _ = host.allocate(4096)
        other = Host(self.card.path)
        self.assertEqual(other.ask(command(UNREGISTER, struct.pack("<II", key, 0))).status, "BAD_KEY")
        self.assertEqual(host.ask(command(UNREGISTER, struct.pack("<II", key, 0))).status, "OK")
        self.assertEqual(host.ask(command(UNREGISTER, struct.pack("<II", key, 0))).status, "BAD_KEY")
        self.check_alive()

    @unittest.skipUnless(os.geteuid() == 0 and knows_who_connected(), "only root gives out numbers, and since Linux 6.5 they do not count")
    def test_who_has_the_number_of_who_connected_is_somebody_else(self):
        client = Connection.__new__(Connection)
        client.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        client.socket.settimeout(PATIENCE_S)
        os.kill(self.card.pid, signal.SIGSTOP)  # whoever connects is gone before it is looked at
        first = os.fork()
        if first == 0:
            client.socket.connect(self.card.path)
            os._exit(0)
        os.waitpid(first, 0)
        second = fork_as(first)
        if second == 0:
            status = 1
            try:
                os.kill(self.card.pid, signal.SIGCONT)
                if client.ask(command(OPEN, bytes(8))).status == "OK":
                    status = 2 if client.ask(register(PROCESS, address=4096)).status == "BAD_ADDRESS" else 3
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(second, 0)[1]), 2)
        client.close()
        self.check_alive()
        self.assertEqual(self.interface_counters()["refused_process"], 1)

    def test_budget_comes_back(self):
        host = Host(self.card.path)
        for _ in range(20):  # 20 * 40 MiB through a budget of 64
            reply = until(lambda: (r := host.ask(register(ALLOCATE, size=40 << 20))).status == "OK" and r,
                          "memory given back")
            os.close(reply.fds[0])
            key = struct.unpack_from("<I", reply.body)[0]
            self.assertEqual(host.ask(command(UNREGISTER, struct.pack("<II", key, 0))).status, "OK")

    def test_groups_are_checked(self):
        host = Host(self.card.path)
        for ranks, rank in ((0, 0), (2, 2), (2**32 - 1, 0), (1025, 0)):
            self.assertEqual(host.ask(command(RESERVE, struct.pack("<IIQQ", ranks, rank, 0, 0))).status, "BAD_RANK")
        self.assertEqual(host.ask(command(RESERVE, struct.pack("<IIQQ", 2, 0, 4096, 0))).status, "BAD_FLAGS")
        self.assertEqual(host.ask(command(ABANDON, struct.pack("<II", 0xFFFFFFFF, 0))).status, "BAD_GROUP")
        self.check_alive()

    def test_malformed_messages_close_the_connection_in_the_end(self):
        client = Connection(self.card.path)
        replies = 0
        while client.ask(b"garbage") is not None:
            replies += 1
            self.assertLess(replies, 1000)
        self.check_alive()
        self.assertEqual(self.interface_counters()["strikes_closed"], 1)

    def test_random_commands(self):
        generator = random.Random(1)
        for _ in range(20):
            client = Connection(self.card.path)
            client.ask(command(OPEN, bytes(8)))
            for _ in range(200):
                data = bytearray(command(generator.randrange(0, 10), generator.randbytes(488)))
                if generator.randrange(2):  # most of it zero, so that it gets further
                    for i in range(24 + generator.randrange(40), ADMIN_BYTES):
                        data[i] = 0
                reply = client.ask(bytes(data))
                if reply is None:
                    break
                for fd in reply.fds:
                    os.close(fd)
            client.close()
        self.check_alive()

    def test_flood_does_not_stop_others(self):
        hosts = [Host(self.card.path, i) for i in range(2)]
        members = make_group(hosts)
        flooder = Host(self.card.path)
        flooder.socket.setblocking(False)
        rounds = 0
        closed = False
        while not closed or rounds < 200:
            for _ in range(50):  # replies are never read
                try:
                    flooder.send_raw(command(COUNTERS))
                except BlockingIOError:
                    break
                except (BrokenPipeError, ConnectionResetError):
                    closed = True
                    break
            for host, member in zip(hosts, members):
                host.submit(BARRIER, DISSEMINATION, member, cookie=rounds)
            for host in hosts:
                self.assertEqual(host.wait()[:2], ("OK", rounds))
            rounds += 1
            self.assertLess(rounds, 100000)
        self.assertEqual(self.interface_counters()["slow_reader_closed"], 1)

    def test_half_open_clients_are_bounded(self):
        clients = []
        for _ in range(400):
            try:
                clients.append(Connection(self.card.path))
            except (BlockingIOError, ConnectionRefusedError):
                break
        until(lambda: clients[-1].ask(command(COUNTERS)) is None, "a refused connection")
        for client in clients:
            client.close()
        self.check_alive_when_room()
        self.assertGreater(self.interface_counters()["refused_too_many"], 0)

    def check_alive_when_room(self):
        def opened():
            client = Connection(self.card.path)
            reply = client.ask(command(OPEN, bytes(8)))
            client.close()
            return reply is not None and reply.status == "OK"
        until(opened, "room for a client")
        self.check_alive()

    def test_contexts_run_out_and_come_back(self):
        hosts = []
        while True:
            client = Connection(self.card.path)
            reply = client.ask(command(OPEN, bytes(8)))
            if reply.status != "OK":
                self.assertEqual(reply.status, "NO_RESOURCES")
                break
            hosts.append(client)
            for fd in reply.fds:
                os.close(fd)
        self.assertGreaterEqual(len(hosts), 4)
        for host in hosts:
            host.close()
        self.check_alive_when_room()

    def test_close_context_ends_the_connection(self):
        host = Host(self.card.path)
        host.allocate(4096)
        reply = host.ask(command(CLOSE))
        self.assertIn(reply.status, ("OK", "BUSY"))
        self.assertIsNone(host.receive())
        self.check_alive()

    def test_counters_can_be_read(self):
        hosts = [Host(self.card.path, i) for i in range(2)]
        members = make_group(hosts)
        for host, member in zip(hosts, members):
            host.submit(BARRIER, DISSEMINATION, member)
        for host in hosts:
            host.wait()
        values = []
        total = 1
        while len(values) < total:
            reply = hosts[0].ask(command(COUNTERS, struct.pack("<II", len(values), 0)))
            total, count = struct.unpack_from("<II", reply.body)
            values += struct.unpack_from(f"<{count}Q", reply.body, 8)
            self.assertGreater(count, 0)
        named = list(self.card.stop()["cards"][0]["counters"].values())
        self.assertEqual(len(named), total)
        self.assertEqual(named[1], values[1])  # sent_signal
        self.assertGreater(values[1], 0)

    def test_the_same_buffer_for_all(self):
        """A foreign key in a submission reaches nothing."""
        hosts = [Host(self.card.path, i) for i in range(2)]
        members = make_group(hosts)
        stranger = Host(self.card.path, 0)
        key, memory = stranger.allocate(8192)
        memory[0:64] = block(9, 9, 64)
        hosts[0].submit(ALLGATHER, BROADCAST, members[0], send=(key, 0), receive=(key, 4096), block_bytes=64)
        self.assertEqual(hosts[0].wait()[0], "BAD_KEY")
        self.assertEqual(memory[4096:8192], bytes(4096))


if __name__ == "__main__":
    unittest.main()
