#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How peal.ko comes and goes: cards that do not let it in, strangers with the same ids, a machine that sleeps, a machine that
is shut down while processes use the card, and (with the debug kernel) allocations that fail."""

import re
import sys
import time

import fake_card
import guest_options
import guest_vm

PCI = "/sys/bus/pci/devices/0000:00:08.0"
SECOND = "/sys/bus/pci/devices/0000:00:0a.0"
STRANGER = "0000:00:09.0"
STRANGER_CONFIG = f"/sys/bus/pci/devices/{STRANGER}/config"


def strangers_see_nothing(guest, memory):
    """Neither a register nor a byte nor a line of the log."""
    guest.run(f"printf '\\000\\000' | dd of={STRANGER_CONFIG} bs=1 seek=4 conv=notrunc")
    guest.run("dmesg -c >/dev/null")
    before = guest.run(f"hexdump -C {STRANGER_CONFIG}")
    guest.run("insmod /modules/*peal.ko && test -c /dev/peal0 && test ! -e /dev/peal1")
    after = guest.run(f"hexdump -C {STRANGER_CONFIG}")
    if before != after:
        raise guest_vm.TestFailure(f"a stranger's registers were\n{before}\nand are\n{after}")
    if guest.run("ls /sys/bus/pci/drivers/peal").split().count(STRANGER):
        raise guest_vm.TestFailure("peal.ko has bound to a stranger")
    log = guest.run("dmesg")
    if STRANGER in log:
        raise guest_vm.TestFailure(f"the log speaks of a stranger:\n{log}")
    if memory.read_bytes() != b"x" * (1 << 20):
        raise guest_vm.TestFailure("peal.ko has written into a stranger's memory")
    print("strangers: ok", flush=True)


def selftest(guest, name):
    started = time.monotonic()
    text = guest.run(f"peal-guest-selftest {name}")
    print(f"{name} in {time.monotonic() - started:.1f} s: {text}", flush=True)


def with_a_card(lab):
    card = guest_vm.Card(lab, 1)
    memory = lab.folder / "stranger"
    memory.write_bytes(b"x" * (1 << 20))
    stranger = ["-object", f"memory-backend-file,id=stranger,size=1M,mem-path={memory},share=on",
                "-device", "ivshmem-plain,memdev=stranger,addr=09.0"]
    guest = guest_vm.Guest(lab, "guest", card.sockets[0], card.memories[0], network=stranger)
    strangers_see_nothing(guest, memory)
    selftest(guest, "sleep")
    if lab.debug:
        selftest(guest, f"allocation {PCI}")
    guest.run("rmmod peal")
    guest.check_kernel_log(allocations_failed=lab.debug)
    guest.power_off()
    card.stop()


def expect_cards(guest, names):
    for place in ("grep -o 'peal[0-9]*$' /proc/misc | sort", "ls /dev | grep peal", "ls /sys/class/misc | grep peal"):
        seen = guest.run(f"{place}; true").split()
        if seen != names:
            raise guest_vm.TestFailure(f"{place}: {seen}, not {names}")


def two_cards(lab):
    """Each has the first number that is free, and takes nothing of the other's with it when it goes."""
    first, second = fake_card.FakeCard(lab, "first"), fake_card.FakeCard(lab, "second")
    guest = guest_vm.Guest(lab, "guest-two", first.sockets[0], first.memories[0], network=[
        "-chardev", f"socket,path={second.sockets[0]},id=second",
        "-device", "ivshmem-doorbell,chardev=second,vectors=2,addr=0a.0"])
    guest.run("insmod /modules/*peal.ko")
    expect_cards(guest, ["peal0", "peal1"])
    for pci, left in ((SECOND, "peal0"), (PCI, "peal1")):
        address = pci.rsplit("/", 1)[1]
        guest.run(f"echo {address} > /sys/bus/pci/drivers/peal/unbind")
        expect_cards(guest, [left])
        if left == "peal0":
            selftest(guest, "counter operations_completed")
        guest.run(f"echo {address} > /sys/bus/pci/drivers/peal/bind")
        expect_cards(guest, ["peal0", "peal1"])
    guest.run("rmmod peal")
    expect_cards(guest, [])
    guest.check_kernel_log()
    guest.power_off()
    if (first.finish().count("open"), second.finish().count("open")) != (1, 0):
        raise guest_vm.TestFailure(f"the cards were asked for {first.log} and {second.log}")
    print("two cards: ok", flush=True)


def refused(lab):
    """The card never acknowledges a reset, and meanwhile calls for housekeeping, which must not outlive the probe."""
    card = fake_card.FakeCard(lab, "restless", resets=0, restless=True)
    guest = guest_vm.Guest(lab, "guest-refused", card.sockets[0], card.memories[0])
    for _ in range(5):
        guest.run("insmod /modules/*peal.ko command_timeout_ms=200 && test ! -e /dev/peal0 && rmmod peal")
    guest.check_kernel_log()
    guest.power_off()
    if card.finish():
        raise guest_vm.TestFailure(f"the driver asked for {card.log} of a card that is not its own")
    print("refused: ok", flush=True)


def shutdown(lab):
    """Processes use the card until the very end; behind the last reset nothing is asked of it any more."""
    card = fake_card.FakeCard(lab, "last")
    guest = guest_vm.Guest(lab, "guest-shutdown", card.sockets[0], card.memories[0], processors=2)
    guest.run("insmod /modules/*peal.ko")
    for _ in range(4):
        guest.run("while :; do peal-guest-selftest counter operations_completed; done >/dev/null 2>&1", background=True)
    card.wait_for("open", 20)
    # What is judged is there: nobody can ask for the log of a machine that is shut down.
    guest.run("echo 'WARNING: on purpose' >/dev/kmsg")
    guest.expect("WARNING: on purpose")
    guest.power_off()
    words = " ".join(card.finish())
    print(f"shutdown: {words.count('open')} opens and then {words[-40:]}", flush=True)
    if not re.fullmatch(r"reset( open| counters| close)+ reset", words):
        raise guest_vm.TestFailure(f"the card was asked for: {words}")


def body(lab):
    with_a_card(lab)
    two_cards(lab)
    refused(lab)
    shutdown(lab)


if __name__ == "__main__":
    sys.exit(guest_options.run_in_guests(__doc__, body))
