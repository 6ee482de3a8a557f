# SPDX-License-Identifier: BSD-2-Clause
"""A host that talks to peal-nic without libpeal: messages and rings written out by hand from abi/, so that
the tests can also say what no library would. One process may play many ranks."""

import array
import contextlib
import ctypes
import json
import mmap
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import abi_lists  # noqa: E402  pylint: disable=wrong-import-position
from waiting import threads_named, until  # noqa: E402  pylint: disable=wrong-import-position

ADMIN_BYTES = 512
ABI_VERSION = abi_lists.version()
OPEN, CLOSE, REGISTER, UNREGISTER, RESERVE, CONNECT, ABANDON, COUNTERS = range(1, 9)
ALLOCATE, PROCESS, PAGES = 1, 2, 3
READ, WRITE = 1, 2
BARRIER, ALLGATHER, DESTROY = 1, 2, 3
DISSEMINATION, BROADCAST, DOUBLING = 1, 2, 3
STATUS = abi_lists.names("PEAL_STATUSES")
ADDRESS_BYTES = 20  # struct peal_peer_address

# Generous: only a hang may reach it.
PATIENCE_S = 60

HOST_PAGE = 0x1000
SUBMISSIONS = 0x2000
TAIL_AT, HEAD_AT, HOST_SLEEPING_AT, RESET_REQUEST_AT = HOST_WORDS = [HOST_PAGE + at for at in (0, 8, 64, 128)]
RING_ENTRIES_AT = 0x100 + 48  # peal_device.ring_entries
INDICES_AT = 0x1C0
SLEEPING_AT = 0x200
RESET_AT = 0x180
HEARTBEAT_AT = 0x140


def command(opcode, body=b"", *, version=ABI_VERSION, size=ADMIN_BYTES, tag=7, context=0, reserved=0):
    head = struct.pack("<HHIQII", version, opcode, size, tag, context, reserved)
    return (head + body).ljust(ADMIN_BYTES, b"\0")


class Reply:
    def __init__(self, data, fds):
        self.version, self.opcode, self.bytes, self.tag, status, _ = struct.unpack_from("<HHIQII", data)
        self.status = STATUS[status]
        self.body = data[24:]
        self.fds = fds


class Connection:
    """A connection to the socket; one message at a time."""

    living = []  # closed together with their card

    def __init__(self, path):
        self.living.append(self)
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(PATIENCE_S)
        self.socket.connect(path)

    def send_raw(self, data, fds=()):
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], ancillary)

    def receive(self):
        """The reply, or None when the connection was closed."""
        room = socket.CMSG_SPACE(8 * 4)
        # Of a socket that was closed with something unread in it the kernel says so first, once, and then gives what was sent.
        for _ in range(2):
            try:
                data, ancillary, _, _ = self.socket.recvmsg(ADMIN_BYTES, room)
                break
            except ConnectionResetError:
                data = b""
        if not data:
            return None
        fds = array.array("i")
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                fds.frombytes(payload[:len(payload) - len(payload) % 4])
        return Reply(data, list(fds))

    def ask(self, data, fds=()):
        """The reply, or None when the connection was closed."""
        try:
            self.send_raw(data, fds)
        except (BrokenPipeError, ConnectionResetError):
            return None
        return self.receive()

    def close(self):
        self.socket.close()


class Host(Connection):
    """A connection with a context: window, rings, memory, groups."""

    def __init__(self, path, card=0):
        super().__init__(path)
        reply = self.ask(command(OPEN, struct.pack("<II", card, 0)))
        assert reply.status == "OK", reply.status
        self.context, self.window_bytes, _ = struct.unpack_from("<IIQ", reply.body)
        self.window_fd, self.broadcast_fd, self.kick_fd = reply.fds
        self.window = mmap.mmap(self.window_fd, self.window_bytes)
        self.entries = struct.unpack_from("<I", self.window, RING_ENTRIES_AT)[0]
        self.completions_at = SUBMISSIONS + 64 * self.entries
        # Words that the card polls are stored at once; struct.pack_into would write them byte by byte.
        self.words = {at: ctypes.c_uint64.from_buffer(self.window, at) for at in HOST_WORDS}
        self.tail = 0
        self.head = 0
        self.sequence = {}

    def close(self):
        super().close()
        self.words.clear()
        self.window.close()
        for fd in (self.window_fd, self.broadcast_fd, self.kick_fd):
            os.close(fd)

    # --- memory ---
    def allocate(self, size, access=READ | WRITE):
        reply = self.ask(command(REGISTER, struct.pack("<IIQQII", ALLOCATE, access, 0, size, 0, 0)))
        assert reply.status == "OK", reply.status
        key = struct.unpack_from("<I", reply.body)[0]
        memory = mmap.mmap(reply.fds[0], size)
        os.close(reply.fds[0])
        return key, memory

    def register_process(self, address, size, access=READ | WRITE):
        reply = self.ask(command(REGISTER, struct.pack("<IIQQII", PROCESS, access, address, size, 0, 0)))
        assert reply.status == "OK", reply.status
        return struct.unpack_from("<I", reply.body)[0]

    # --- groups ---
    def reserve(self, ranks, rank):
        reply = self.ask(command(RESERVE, struct.pack("<IIQQ", ranks, rank, 0, 0)))
        assert reply.status == "OK", reply.status
        return reply.body[:ADDRESS_BYTES]

    def connect_group(self, address, rank, addresses, group=77):
        ranks = len(addresses)
        rounds = (ranks - 1).bit_length()
        peers = b"".join(addresses[(rank + 2**j) % ranks] + addresses[(rank - 2**j) % ranks]
                         for j in range(rounds))
        member = struct.unpack_from("<I", address, 8)[0]
        reply = self.ask(command(CONNECT, struct.pack("<QIIII", group, member, 0x1234, 2 * rounds, 0) + peers))
        assert reply.status == "OK", reply.status
        self.sequence[member] = 0
        return member

    # --- rings ---
    def store_submission(self, index, entry):
        phase = 2 if index & self.entries else 1
        at = SUBMISSIONS + 64 * (index & (self.entries - 1))
        self.window[at:at + 64] = entry[:63] + bytes([phase])  # seen only once the tail is stored

    def store(self, at, value):
        self.words[at].value = value

    def set_tail(self, tail):
        self.store(TAIL_AT, tail)

    def kick(self):
        os.write(self.kick_fd, struct.pack("<Q", 1))

    def submit(self, opcode, algorithm, member, *, sequence=None, cookie=0, send=(0, 0), receive=(0, 0),
               block_bytes=0, flags=0, root=0, kick=True):
        if sequence is None:
            sequence = self.sequence[member]
            self.sequence[member] += 1
        entry = struct.pack("<BBHIQQQQQIII4x", opcode, algorithm, flags, member, sequence, cookie,
                            send[1], receive[1], block_bytes, send[0], receive[0], root)
        self.store_submission(self.tail, entry)
        self.tail += 1
        self.set_tail(self.tail)
        if kick and struct.unpack_from("<I", self.window, SLEEPING_AT)[0]:
            self.kick()

    def poll(self):
        """The next completion as (status, cookie, failed_rank), or None."""
        at = self.completions_at + 64 * (self.head & (self.entries - 1))
        phase = 2 if self.head & self.entries else 1
        if self.window[at + 63] != phase:
            return None
        cookie, _, _, _, failed, status = struct.unpack_from("<QQQIIH", self.window, at)
        self.head += 1
        self.store(HEAD_AT, self.head)
        return STATUS[status], cookie, failed

    def wait(self):
        return until(self.poll, "a completion")

    # --- the card page ---
    def faults(self):
        return struct.unpack_from("<Q", self.window, INDICES_AT + 8)[0]

    def beats(self):
        return struct.unpack_from("<Q", self.window, HEARTBEAT_AT)[0]

    def reset_epoch(self):
        return struct.unpack_from("<I", self.window, RESET_AT)[0]


def make_group(hosts, group=77, ranks_of=None):
    """Connects hosts[r] as rank r; returns the member handles."""
    addresses = [host.reserve(len(hosts), rank) for rank, host in enumerate(hosts)]
    return [host.connect_group(addresses[rank], rank, addresses, group) for rank, host in enumerate(hosts)]


class Nic:
    """A peal-nic of one's own, in a folder of its own."""

    def __init__(self, binary, *arguments, cards=2):
        self.folder = tempfile.mkdtemp(prefix="peal-nic-test-")
        self.path = os.path.join(self.folder, "socket")
        self.counters_path = os.path.join(self.folder, "counters.json")
        read_end, write_end = os.pipe()
        self.process = subprocess.Popen(
            [binary, "--cards", str(cards), "--socket", self.path, "--ready-fd", str(write_end),
             "--counters-json", self.counters_path, *arguments], pass_fds=[write_end])
        os.close(write_end)
        with os.fdopen(read_end) as ready:
            if ready.read() != "ready\n":
                raise RuntimeError(f"peal-nic did not start: {self.process.wait()}")
        self.pid = self.process.pid

    def wake_ups(self):
        """How often the loop has slept, and who stands by for it."""
        return sum(self.sleeps_of(thread) for thread in threads_named(self.pid, "peal-loop"))

    def sleeps_of(self, thread):
        """How often that thread has."""
        with open(f"/proc/{self.pid}/task/{thread}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary_ctxt_switches"))

    def stop(self, number=signal.SIGTERM):
        """Ends it; returns its counters."""
        self.process.send_signal(number)
        status = self.process.wait(timeout=PATIENCE_S)
        if status != 0:
            raise RuntimeError(f"peal-nic ended with {status}")
        with open(self.counters_path, encoding="utf-8") as file:
            return json.load(file)

    def clean(self):
        for connection in Connection.living:
            connection.socket.close()
        Connection.living.clear()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def nic(binary, *arguments, cards=2):
    instance = Nic(binary, *arguments, cards=cards)
    try:
        yield instance
    finally:
        instance.clean()


def block(rank, iteration, size):
    """Data that tells origin, offset and iteration."""
    return bytes((rank * 37 + iteration * 11 + i * 7 + (i >> 8)) & 0xFF for i in range(size))


def allow_everybody_to_read_me():
    """Under Yama, process_vm_* needs the target's leave."""
    ctypes.CDLL(None, use_errno=True).prctl(0x59616D61, ctypes.c_ulong(-1).value, 0, 0, 0)
