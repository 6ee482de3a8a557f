#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""peal.ko is taken away from processes that leave at that very moment."""

import sys

import guest_options
import guest_vm

PCI = "/sys/bus/pci/devices/0000:00:08.0"


def load(guest, parameters=""):
    guest.run(f"insmod /modules/*peal.ko {parameters}")
    guest.run("test -c /dev/peal0")


def hangup(guest):
    for _ in range(3):
        guest.run(f"peal-guest-selftest hangup {PCI}")
        guest.run("echo 1 > /sys/bus/pci/rescan; test -c /dev/peal0")


def body(lab):
    card = guest_vm.Card(lab, 1)
    guest = guest_vm.Guest(lab, "guest", card.sockets[0], card.memories[0])
    load(guest)
    hangup(guest)
    guest.check_kernel_log()
    guest.power_off()
    card.stop()


def main():
    arguments = guest_options.parse(__doc__)

    def test(lab):
        guest_options.make_initramfs(lab, arguments, [arguments.selftest])
        body(lab)

    return guest_vm.run_test(test, arguments)


if __name__ == "__main__":
    sys.exit(main())
