#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The PCI card against a driver that does everything wrong. No QEMU: this program plays it, and the guest, over the ivshmem
socket. Every refusal is named, counted and without effect, and what one guest leaves no other finds."""

import ctypes
import json
import mmap
import os
import pathlib
import select
import socket
import struct
import sys

import guest_options
import guest_vm

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "support"))

import abi_lists  # noqa: E402  pylint: disable=wrong-import-position

ABI_VERSION = abi_lists.version()
PAGE = 4096
HOST_PAGE = 0x1000
COMMAND = struct.Struct("<HHIQII488s")
REPLY = struct.Struct("<HHIQII488s")
OK, BAD_FLAGS, BAD_GROUP, BAD_KEY = 0, 5, 6, 8
BAD_OPCODE, BAD_ACCESS, BAD_LENGTH, NO_RESOURCES = 3, 10, 11, 14
CLOSED, BAD_VERSION, BAD_ADDRESS, BAD_BOUNDS = 16, 18, 19, 9
(OPEN, CLOSE, REGISTER, UNREGISTER, RESERVE, CONNECT, ABANDON, COUNTERS, REAP, ADD_PEERS, COMMIT_PROGRAM,
 FREE_PROGRAM) = range(1, 13)
PAGES = 3
BOTH = 3
ALLGATHER, ALL_TO_ALL_BROADCAST = 2, 2


def check(condition, text):
    if not condition:
        raise guest_vm.TestFailure(text)


def equal(got, wanted, text):
    check(got == wanted, f"{text}: {got!r}, not {wanted!r}")


class FakeGuest:
    """What QEMU does with the socket, and a mailbox with nothing between it and the test."""

    def __init__(self, card):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(card.sockets[0]))
        self.socket.settimeout(guest_vm.PATIENCE_S)
        numbers, fds = [], []
        for _ in range(7):
            data, got, _, _ = socket.recv_fds(self.socket, 8, 1)
            check(len(data) == 8, "the server hung up in its greeting")
            numbers.append(struct.unpack("<q", data)[0])
            fds += got
        equal(numbers, [0, 0, -1, 1, 1, 0, 0], "greeting")
        equal(len(fds), 5, "descriptors")
        self.bar_fd, self.doorbells, self.interrupts = fds[0], fds[1:3], fds[3:5]
        self.bar_bytes = os.fstat(self.bar_fd).st_size
        self.bar = mmap.mmap(self.bar_fd, self.bar_bytes)
        ram_fd = os.open(card.memories[0], os.O_RDWR)
        self.ram_fd = ram_fd
        self.ram_bytes = os.fstat(ram_fd).st_size
        self.ram = mmap.mmap(ram_fd, self.ram_bytes)
        self.serial = self.word64(HOST_PAGE + 64)
        self.tag = 0x7A60000

    def word(self, at):
        return struct.unpack_from("<I", self.bar, at)[0]

    def word64(self, at):
        # One aligned load, as the driver does it.
        return ctypes.c_uint64.from_buffer(self.bar, at).value

    def put64(self, at, value):
        ctypes.c_uint64.from_buffer(self.bar, at).value = value

    def ring(self, vector):
        os.eventfd_write(self.doorbells[vector], 1)

    def wait(self, vector, done, text):
        """Until done(), looking again only when an interrupt comes."""
        while not done():
            ready = select.select([self.interrupts[vector]], [], [], guest_vm.PATIENCE_S)[0]
            check(ready, f"no interrupt: {text}")
            os.eventfd_read(self.interrupts[vector])

    def reset(self):
        epoch = self.word(24) + 1
        struct.pack_into("<I", self.bar, HOST_PAGE, epoch)
        self.ring(0)
        self.wait(0, lambda: self.word(24) == epoch, "reset")

    def raw(self, command, step=1):
        """(status, body) of a command given as 512 bytes."""
        self.bar[HOST_PAGE + 512:HOST_PAGE + 1024] = command
        self.serial = self.word64(HOST_PAGE + 64) + step
        self.put64(HOST_PAGE + 64, self.serial)
        self.ring(0)
        self.wait(0, lambda: self.word64(192) == self.serial, "reply")
        version, opcode, size, tag, status, reserved, body = REPLY.unpack(self.bar[512:1024])
        equal((version, size, reserved), (ABI_VERSION, 512, 0), "reply")
        equal((opcode, tag), struct.unpack_from("<H", command, 2) + struct.unpack_from("<Q", command, 8), "reply")
        check(status == OK or body == bytes(488), "a refusal carries nothing")
        return status, body

    def command(self, opcode, context=0, body=b"", version=ABI_VERSION, size=512, reserved=0, **how):
        self.tag += 1
        return self.raw(COMMAND.pack(version, opcode, size, self.tag, context, reserved, body.ljust(488, b"\0")), **how)

    def open(self):
        status, body = self.command(OPEN, body=bytes(8))
        if status != OK:
            return status, None, None
        context, window_bytes, offset = struct.unpack_from("<IIQ", body)
        equal(window_bytes, self.word(12), "window size")
        return status, context, offset

    def register(self, context, address, size, access=BOTH, kind=PAGES, offset=0, shift=12):
        status, body = self.command(REGISTER, context, struct.pack("<IIQQII", kind, access, address, size, offset, shift))
        return status, struct.unpack_from("<I", body)[0]

    def unregister(self, context, key):
        return self.command(UNREGISTER, context, struct.pack("<II", key, 0))[0]

    def reserve(self, context, address, size, ranks=2, rank=0):
        status, body = self.command(RESERVE, context, struct.pack("<IIQQ", ranks, rank, address, size))
        return status, struct.unpack_from("<6sHIII", body)

    def channel_bytes(self):
        # struct peal_device at 64: channels at +28, channel_bytes at +44.
        return self.word(64 + 28) * self.word(64 + 44)

    def page_list(self, at, pages):
        self.ram[at:at + 8 * len(pages)] = struct.pack(f"<{len(pages)}Q", *pages)
        return at

    def leave(self):
        self.socket.close()
        for fd in [self.bar_fd, self.ram_fd] + self.doorbells + self.interrupts:
            os.close(fd)


def fails_to_shrink(fd):
    for size in (0, PAGE, 1 << 40):
        try:
            os.ftruncate(fd, size)
        except PermissionError:
            continue
        raise guest_vm.TestFailure("shared memory could be resized")


def layout(guest):
    equal(guest.bar[0:4], b"plpc", "magic")
    check(guest.bar_bytes & (guest.bar_bytes - 1) == 0, "BAR2 is a power of two")
    windows = struct.unpack_from("<Q", guest.bar, 16)[0]
    check(windows + guest.word(8) * guest.word(12) <= guest.bar_bytes, "the windows fit the BAR")
    fails_to_shrink(guest.bar_fd)
    fails_to_shrink(guest.ram_fd)


def envelopes(guest):
    _, context, _ = guest.open()
    for version in (0, 1, 0xFFFF):
        equal(guest.command(COUNTERS, context, version=version)[0], BAD_VERSION, "version")
    for size in (0, 511, 513, 0xFFFFFFFF):
        equal(guest.command(COUNTERS, context, size=size)[0], BAD_VERSION, "size")
        equal(guest.command(REAP, size=size)[0], BAD_VERSION, "size of REAP_CHANNELS")
    for opcode in (0, 13, 99, 0xFFFF):
        equal(guest.command(opcode, context)[0], BAD_OPCODE, "opcode")
    equal(guest.command(COUNTERS, context, reserved=1)[0], BAD_FLAGS, "reserved")
    for opcode in (OPEN, REAP, COUNTERS, CLOSE, UNREGISTER, ABANDON, ADD_PEERS, COMMIT_PROGRAM, FREE_PROGRAM):
        who = 0 if opcode in (OPEN, REAP) else context
        equal(guest.command(opcode, who, body=b"\0" * 487 + b"\1")[0], BAD_FLAGS, f"bytes behind opcode {opcode}")
    equal(guest.command(OPEN, context=1, body=bytes(8))[0], BAD_FLAGS, "OPEN_CONTEXT of a context")
    equal(guest.command(REAP, context=1)[0], BAD_FLAGS, "REAP_CHANNELS of a context")
    for stranger in (context + 1, 31, 32, 0x7FFFFFFF, 0xFFFFFFFF):
        for opcode in (CLOSE, REGISTER, UNREGISTER, RESERVE, CONNECT, ABANDON, COUNTERS, ADD_PEERS, COMMIT_PROGRAM, FREE_PROGRAM):
            equal(guest.command(opcode, stranger)[0], CLOSED, f"opcode {opcode} for context {stranger}")
    equal(guest.command(COUNTERS, context, struct.pack("<II", 9999, 0))[0], BAD_BOUNDS, "counters")
    # A serial number may jump; what counts is that it is another one.
    equal(guest.command(COUNTERS, context, step=1 << 40)[0], OK, "serial")
    equal(guest.command(COUNTERS, context, step=-5)[0], OK, "serial")
    equal(guest.raw(b"\xff" * 512)[0], CLOSED, "ones")
    equal(guest.command(CLOSE, context)[0], OK, "close")
    equal(guest.command(CLOSE, context)[0], CLOSED, "close again")


def page_lists(guest):
    _, context, _ = guest.open()
    _, other, _ = guest.open()
    end = guest.ram_bytes
    at = guest.page_list(0x10000, [0x20000, 0x22000, 0x21000])
    equal(guest.register(context, (1 << 64) - PAGE, 2 * PAGE)[0], BAD_BOUNDS, "overflow")
    for address in (end, end - 8, end + (1 << 32), (1 << 63), at + 1, at + 4):
        equal(guest.register(context, address, 2 * PAGE)[0], BAD_ADDRESS, f"page list at {address:#x}")
    for page in (end, end + PAGE, 0x20001, 1 << 63, (1 << 64) - PAGE):
        guest.page_list(0x11000, [0x20000, page])
        equal(guest.register(context, 0x11000, 2 * PAGE)[0], BAD_ADDRESS, f"page {page:#x}")
    equal(guest.register(context, at, 0)[0], BAD_LENGTH, "no bytes")
    equal(guest.register(context, at, end + 1)[0], BAD_LENGTH, "more than the guest has")
    equal(guest.register(context, at, (1 << 64) - at)[0], BAD_BOUNDS, "overflow")
    check(guest.register(context, at, (1 << 64) - 1)[0] != OK, "overflow")
    for shift in (0, 11, 31, 64, 0xFFFFFFFF):
        equal(guest.register(context, at, PAGE, shift=shift)[0], BAD_FLAGS, f"page shift {shift}")
    for offset in (PAGE, 0xFFFFFFFF):
        equal(guest.register(context, at, PAGE, offset=offset)[0], BAD_FLAGS, f"offset {offset}")
    for kind in (0, 1, 2, 4, 0xFFFFFFFF):
        check(guest.register(context, at, PAGE, kind=kind)[0] != OK, f"kind {kind}")
    equal(guest.register(context, at, PAGE, access=0)[0], BAD_ACCESS, "access 0")
    equal(guest.register(context, at, PAGE, access=4)[0], BAD_FLAGS, "access 4")
    status, key = guest.register(context, at, 3 * PAGE - 7, offset=7)
    equal(status, OK, "registration")
    equal(guest.unregister(other, key), BAD_KEY, "another context's key")
    equal(guest.unregister(context, key + 1), BAD_KEY, "no key")
    equal(guest.unregister(context, key), OK, "unregister")
    equal(guest.unregister(context, key), BAD_KEY, "unregister again")
    for each in (context, other):
        equal(guest.command(CLOSE, each)[0], OK, "close")


def channels(guest):
    _, context, _ = guest.open()
    size = guest.channel_bytes()
    pages = list(range(0x100000, 0x100000 + size, PAGE))
    lists = [guest.page_list(0x40000 + i * 0x8000, pages) for i in range(3)]
    for wrong in (0, size - 1, size + 1, 1 << 63):
        equal(guest.reserve(context, lists[0], wrong)[0], BAD_LENGTH, f"channels of {wrong} bytes")
    for address in (guest.ram_bytes - size // PAGE * 8 + 8, (1 << 64) - 8, lists[0] + 1):
        equal(guest.reserve(context, address, size)[0], BAD_ADDRESS, f"list at {address:#x}")
    check(guest.reserve(context, lists[0], size, rank=2)[0] != OK, "rank 2 of 2")
    equal(guest.word64(200), 0, "no refused channels are released")
    members = []
    for address in lists:
        status, reply = guest.reserve(context, address, size)
        equal(status, OK, "reserve")
        members.append(reply[2])
    status, body = guest.command(REAP)
    equal((status, body), (OK, bytes(488)), "nothing to reap")
    for member in members:
        equal(guest.command(ABANDON, context, struct.pack("<II", member, 0))[0], OK, "abandon")
        equal(guest.command(ABANDON, context, struct.pack("<II", member, 0))[0], BAD_GROUP, "abandon again")
    guest.wait(0, lambda: guest.word64(200) == 3, "channels released")
    status, body = guest.command(REAP)
    count, more, *named = struct.unpack_from("<II3Q", body)
    equal((status, count, more, sorted(named)), (OK, 3, 0, lists), "reaped")
    equal(guest.command(REAP)[1], bytes(488), "named once")
    equal(guest.command(CLOSE, context)[0], OK, "close")


def window_indices(guest, window):
    return window + 0x2000, window + 0x2000 + 64 * guest.word(64 + 48)


def list_is_copied_once(guest):
    """The driver rewrites the page list after registration: the card must go on with what it checked."""
    _, context, window = guest.open()
    size = guest.channel_bytes()
    channel_list = guest.page_list(0x40000, list(range(0x100000, 0x100000 + size, PAGE)))
    at = guest.page_list(0x10000, [0x30000, 0x31000])
    status, key = guest.register(context, at, 2 * PAGE)
    equal(status, OK, "registration")
    guest.page_list(0x10000, [1 << 62, 0x50000])
    status, reply = guest.reserve(context, channel_list, size, ranks=1)
    equal(status, OK, "reserve")
    guest.page_list(channel_list, [1 << 62] * 16)
    member = reply[2]
    equal(guest.command(CONNECT, context, struct.pack("<QIIII", 5, member, 0, 0, 0))[0], OK, "connect")
    payload = bytes(range(1, 101))
    guest.ram[0x30000:0x30000 + 100] = payload
    guest.ram[0x31000:0x31000 + 100] = bytes(100)
    submissions, completions = window_indices(guest, window)
    entry = struct.pack("<BBHIQQQQQIII3sB", ALLGATHER, ALL_TO_ALL_BROADCAST, 0, member, 0, 99, 0, PAGE, 100, key, key,
                        0, b"\0\0\0", 1)
    guest.bar[submissions:submissions + 64] = entry
    guest.put64(window + 0x1000 + 64, 1)  # sleeping: interrupt me
    guest.put64(window + 0x1000, 1)
    guest.ring(1)
    guest.wait(1, lambda: guest.bar[completions + 63] == 1, "completion")
    cookie, sequence = struct.unpack_from("<QQ", guest.bar, completions)
    equal((cookie, sequence, struct.unpack_from("<H", guest.bar, completions + 32)[0]), (99, 0, OK), "completion")
    equal(guest.ram[0x31000:0x31000 + 100], payload, "the block")
    equal(guest.command(CLOSE, context)[0], OK, "close")


def windows(guest):
    opened = []
    while True:
        status, context, offset = guest.open()
        if status != OK:
            break
        opened.append((context, offset))
    equal(status, NO_RESOURCES, "one context too many")
    equal(len(opened), guest.word(8), "contexts")
    equal(len(set(opened)), len(opened), "every context has its own window")
    # An index runs wild: that context ends, but its window is nobody else's until it is closed.
    wild, offset = opened[3]
    guest.put64(offset + 0x1000, 1 << 50)
    guest.ring(1)
    while guest.command(COUNTERS, wild)[0] == OK:
        pass
    equal(guest.command(COUNTERS, opened[4][0])[0], OK, "others go on")
    equal(guest.open()[0], NO_RESOURCES, "its window is still taken")
    equal(guest.command(CLOSE, wild)[0], OK, "close")
    equal(guest.open()[1:], (wild, offset), "the window that came free")
    guest.reset()
    for context, _ in opened:
        equal(guest.command(COUNTERS, context)[0], CLOSED, "after a reset")
    equal(guest.open()[0], OK, "after a reset")
    guest.reset()


def hangs_up(connection, text):
    connection.settimeout(guest_vm.PATIENCE_S)
    try:
        while connection.recv(4096):
            pass
    except ConnectionResetError:
        pass
    except TimeoutError:
        raise guest_vm.TestFailure(f"not hung up on: {text}") from None


def visitors(card, guest):
    """A second guest is turned away; the first notices nothing. A guest that talks is hung up on."""
    second = socket.socket(socket.AF_UNIX)
    second.connect(str(card.sockets[0]))
    hangs_up(second, "the second guest")
    second.close()
    _, context, offset = guest.open()
    equal(guest.command(COUNTERS, context)[0], OK, "the first guest goes on")
    guest.bar[offset + 0x1000 + 2000] = 77
    guest.socket.send(b"garbage!" * 100)
    hangs_up(guest.socket, "a guest that sends garbage")
    guest.leave()
    fresh = FakeGuest(card)
    equal(fresh.bar[offset + 0x1000 + 2000], 0, "what an earlier guest left")
    equal(fresh.word64(192), 0, "serial of a new guest")
    equal(fresh.open()[0], OK, "a new guest")
    # Leaves in the middle of a command.
    fresh.bar[HOST_PAGE + 512:HOST_PAGE + 1024] = b"\xff" * 512
    fresh.put64(HOST_PAGE + 64, 7)
    fresh.leave()


def body(lab):
    card = guest_vm.Card(lab, 1)
    guest = FakeGuest(card)
    guest.reset()
    for step in (layout, envelopes, page_lists, channels, list_is_copied_once, windows):
        step(guest)
        print(f"{step.__name__}: ok", flush=True)
    visitors(card, guest)
    print("visitors: ok", flush=True)
    last = FakeGuest(card)
    last.reset()
    equal(last.open()[0], OK, "the last guest")
    counters = json.loads(card.stop())
    last.leave()
    pci = counters["interfaces"]["0"]
    equal((pci["guests"], pci["guests_gone"], pci["guests_turned_away"]), (3, 2, 1), "guests")
    check(pci["commands_refused"] > 100 and pci["page_lists_refused"] > 10, f"refusals are counted: {pci}")
    equal(counters["cards"][0]["admin"]["regions"], 0, "regions left")
    equal(counters["cards"][0]["admin"]["windows_broken"], 1, "broken windows")


def main():
    return guest_vm.run_test(body, guest_options.parse(__doc__))


if __name__ == "__main__":
    sys.exit(main())
