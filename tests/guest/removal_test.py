#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""peal.ko is taken away from processes that leave at that very moment, that wait for pages of their own, whose memory
cannot be unpinned, and that do everything at once (a storm); and a card that is silent holds up nobody who does not need it."""

import sys
import time

import guest_options
import guest_vm

PCI = "/sys/bus/pci/devices/0000:00:08.0"
# Neither is to be reached.
PATIENT = "dead_ms=600000 command_timeout_ms=600000"


def load(guest, parameters=""):
    guest.run(f"insmod /modules/*peal.ko {parameters}")
    guest.run("test -c /dev/peal0")


def step(guest, card, name, argument=""):
    started = time.monotonic()
    text = guest.run_with_card(f"peal-guest-selftest {name} {argument}", card)
    print(f"{guest.name}: {name} in {time.monotonic() - started:.1f} s: {text}", flush=True)


def removals(guest, card):
    load(guest, "dead_ms=1000 command_timeout_ms=60000")
    for name in ("hangup", "hangup", "hangup", "late"):
        step(guest, card, name, PCI)
        guest.run("echo 1 > /sys/bus/pci/rescan; test -c /dev/peal0")
    step(guest, card, "stuck_reset")
    step(guest, card, "storm", PCI)
    guest.run("rmmod peal")


def silence(guest, card):
    load(guest, PATIENT)
    step(guest, card, "silence")
    step(guest, card, "half_way")
    step(guest, card, "silent_removal", PCI)
    guest.run("echo 1 > /sys/bus/pci/rescan; test -c /dev/peal0")
    step(guest, card, "stuck", PCI)


def body(lab):
    card = guest_vm.Card(lab, 1)
    guest = guest_vm.Guest(lab, "guest", card.sockets[0], card.memories[0])
    removals(guest, card)
    silence(guest, card)
    guest.check_kernel_log()
    guest.power_off()
    card.stop()


if __name__ == "__main__":
    sys.exit(guest_options.run_in_guests(__doc__, body))
