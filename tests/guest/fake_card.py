# SPDX-License-Identifier: BSD-2-Clause
"""A card that is nothing but its mailbox: the ivshmem server that QEMU talks to, played by a thread. It answers what it is
told to answer, and writes down what the driver asked for, in order."""

import ctypes
import mmap
import os
import select
import socket
import struct
import threading
import time

import guest_vm

HOST_PAGE = 0x1000
WINDOWS = 0x2000
CONTEXTS = 4
ENTRIES = 16
WINDOW_BYTES = 0x2000 + 0x1000 * ((2 * ENTRIES * 64 + 0xFFF) // 0x1000)
BAR_BYTES = 1 << 20
OPCODES = ["", "open", "close", "register", "unregister", "reserve", "connect", "abandon", "counters", "reap", "add", "commit", "free"]
OK, NO_RESOURCES, CLOSED = 0, 14, 16


def abi_version():
    """From abi/types.h: whatever it is, the driver was built with it."""
    text = (guest_vm.ROOT / "abi" / "types.h").read_text()
    return int(text.split("#define PEAL_ABI_VERSION", 1)[1].split()[0].rstrip("u"), 0)


class FakeCard:
    """resets: how many are acknowledged. restless: each doorbell is answered by an interrupt that speaks of channels."""

    def __init__(self, lab, name, resets=1 << 30, restless=False):
        self.sockets = [lab.folder / f"{name}.socket"]
        self.memories = [lab.folder / f"{name}.memory"]
        with open(self.memories[0], "wb") as memory:
            memory.truncate(lab.guest_mib << 20)
        self.resets = resets
        self.restless = restless
        self.log = []
        self.contexts = set()
        self.bar_fd = os.memfd_create("bar")
        os.ftruncate(self.bar_fd, BAR_BYTES)
        self.bar = mmap.mmap(self.bar_fd, BAR_BYTES)
        self.doorbells = [os.eventfd(0) for _ in range(2)]
        self.interrupts = [os.eventfd(0) for _ in range(2)]
        self.version = abi_version()
        self.describe()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.sockets[0]))
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def describe(self):
        struct.pack_into("<IIIQ", self.bar, 4, self.version, CONTEXTS, WINDOW_BYTES, WINDOWS)
        # struct peal_device at 64: members_max, channels, channel_bytes.
        struct.pack_into("<I", self.bar, 64 + 24, 4)
        struct.pack_into("<I", self.bar, 64 + 28, 1)
        struct.pack_into("<I", self.bar, 64 + 44, 4096)
        self.bar[0:4] = b"plpc"

    def word(self, at):
        return ctypes.c_uint32.from_buffer(self.bar, at)

    def long(self, at):
        return ctypes.c_uint64.from_buffer(self.bar, at)

    def greet(self, connection):
        connection.sendall(struct.pack("<qq", 0, 0))
        socket.send_fds(connection, [struct.pack("<q", -1)], [self.bar_fd])
        for peer, fds in ((1, self.doorbells), (0, self.interrupts)):
            for fd in fds:
                socket.send_fds(connection, [struct.pack("<q", peer)], [fd])

    def serve(self):
        connection, _ = self.listener.accept()
        self.greet(connection)
        while True:
            ready = select.select([connection] + self.doorbells, [], [], 0.05)[0]
            self.long(128).value += 1  # the heart
            for fd in ready:
                if fd is not connection:
                    os.eventfd_read(fd)
            self.look()
            if connection in ready and not connection.recv(4096):
                return

    def look(self):
        if self.restless and self.word(HOST_PAGE).value != 0:
            self.long(200).value += 1
            os.eventfd_write(self.interrupts[0], 1)
        epoch = self.word(HOST_PAGE).value
        if epoch != self.word(24).value and self.resets > 0:
            self.resets -= 1
            self.contexts.clear()
            self.log.append("reset")
            self.word(24).value = epoch
            os.eventfd_write(self.interrupts[0], 1)
        serial = self.long(HOST_PAGE + 64).value
        if serial != self.long(192).value:
            self.answer(serial)

    def answer(self, serial):
        version, opcode, size, tag, context = struct.unpack_from("<HHIQI", self.bar, HOST_PAGE + 512)
        self.log.append(OPCODES[opcode])
        status, body = OK, b""
        if OPCODES[opcode] == "open":
            context = next((i for i in range(CONTEXTS) if i not in self.contexts), None)
            status = NO_RESOURCES if context is None else OK
            if status == OK:
                self.contexts.add(context)
                body = struct.pack("<IIQ", context, WINDOW_BYTES, WINDOWS + context * WINDOW_BYTES)
        elif OPCODES[opcode] == "close":
            status = OK if context in self.contexts else CLOSED
            self.contexts.discard(context)
        self.bar[512:1024] = struct.pack("<HHIQII488s", version, opcode, size, tag, status, 0, body.ljust(488, b"\0"))
        self.long(192).value = serial
        os.eventfd_write(self.interrupts[0], 1)

    def wait_for(self, what, count):
        deadline = time.monotonic() + guest_vm.PATIENCE_S
        while self.log.count(what) < count:
            if time.monotonic() > deadline:
                raise guest_vm.TestFailure(f"the card was asked for {self.log}, not {count} times for {what}")
            time.sleep(0.01)

    def finish(self):
        """What was asked for, once the guest is gone."""
        self.thread.join(guest_vm.PATIENCE_S)
        if self.thread.is_alive():
            raise guest_vm.TestFailure("the guest has not left its card")
        return self.log
