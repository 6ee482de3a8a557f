#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""peal.ko in one guest: bad arguments, mappings, operations, and a card that dies, comes back, is pulled out and put in
again. After each step no page is pinned, and at the end the kernel has not complained."""

import signal
import sys
import time

import guest_options
import guest_vm

PCI = "/sys/bus/pci/devices/0000:00:08.0"


def load(guest):
    guest.run("insmod /modules/*peal.ko dead_ms=2000 command_timeout_ms=60000")
    guest.run("test -c /dev/peal0")


def selftest(guest, *names):
    for name in names:
        started = time.monotonic()
        guest.run(f"peal-guest-selftest {name}")
        print(f"{guest.name}: {name} ok in {time.monotonic() - started:.1f} s", flush=True)


def other_ivshmem_devices_are_refused(guest):
    """A driver that took any ivshmem device would scribble over somebody's memory."""
    log = guest.run("ls /sys/bus/pci/drivers/peal")
    if "0000:00:08.0" not in log or "0000:00:09.0" in log:
        raise guest_vm.TestFailure(f"peal.ko has bound to the wrong devices: {log}")


def is_a_misc_device(guest):
    """What udev's rules and administrators look at (peal-driver(4))."""
    guest.run(f"test /sys/class/misc/peal0/device -ef {PCI}")
    guest.run(f"test -d {PCI}/misc/peal0")
    guest.run("grep -q ' peal0$' /proc/misc")
    seen = guest.run("stat -c '%F %a %u %t' /dev/peal0")
    if seen != "character special file 600 0 a":
        raise guest_vm.TestFailure(f"/dev/peal0 is a {seen}")


def death(guest, card):
    """The card's process is stopped, so that it is silent, and continued."""
    guest.begin("peal-guest-selftest death")
    guest.channel.read_until(rb"ready\n", guest_vm.PATIENCE_S)
    card.process.send_signal(signal.SIGSTOP)
    guest.channel.read_until(rb"dead\n", guest_vm.PATIENCE_S)
    card.process.send_signal(signal.SIGCONT)
    status, text = guest.finish()
    if status != 0:
        raise guest_vm.TestFailure(f"death: {text}")


def orphan(guest, card):
    """The card's process is killed: the driver cannot know that it will not write any more, and leaks what it pinned."""
    guest.begin("peal-guest-selftest orphan")
    guest.channel.read_until(rb"ready\n", guest_vm.PATIENCE_S)
    card.process.kill()
    status, text = guest.finish()
    if status != 0:
        raise guest_vm.TestFailure(f"orphan: {text}")
    guest.run("rmmod peal")
    guest.run("dmesg -c")
    guest.expect("the card did not let go: 4 pages are lost")
    # Nobody plays the card any more: a probe ends too.
    guest.run("insmod /modules/*peal.ko command_timeout_ms=1000 && test ! -e /dev/peal0 && rmmod peal")
    guest.check_kernel_log()


def unplug(guest):
    selftest(guest, f"unplug {PCI}")
    guest.run("test ! -e /dev/peal0")
    guest.run("rmmod peal")
    guest.run("echo 1 > /sys/bus/pci/rescan")
    load(guest)
    selftest(guest, "rings")
    # And once by QEMU's own way out: rmmod with nobody inside.
    guest.run("rmmod peal")
    load(guest)
    selftest(guest, "mappings")


def body(lab):
    card = guest_vm.Card(lab, 1)
    plain = lab.folder / "plain"
    plain.write_bytes(b"\0" * (1 << 20))
    other = ["-object", f"memory-backend-file,id=plain,size=1M,mem-path={plain},share=on",
             "-device", "ivshmem-plain,memdev=plain,addr=09.0"]

    # First as the platform lays BAR0 out: no page of its own, so the doorbell is an ioctl.
    guest = guest_vm.Guest(lab, "guest-kick", card.sockets[0], card.memories[0], network=other)
    load(guest)
    other_ivshmem_devices_are_refused(guest)
    is_a_misc_device(guest)
    selftest(guest, "arguments", "memory", "groups", "contexts", "first_use", "rings")
    if "doorbell: ioctl" not in guest.run("peal-guest-selftest mappings"):
        raise guest_vm.TestFailure("the doorbell should not have been mappable")
    guest.check_kernel_log()
    # Killed with a context open; the next guest must find a clean card.
    guest.begin("peal-guest-selftest death")
    guest.channel.read_until(rb"ready\n", guest_vm.PATIENCE_S)
    guest.kill()

    # Then with BAR0 given a page, as peal-driver(4) says: the doorbell needs no system call.
    guest = guest_vm.Guest(lab, "guest-doorbell", card.sockets[0], card.memories[0],
                           append="pci=resource_alignment=12@pci:1af4:1110")
    load(guest)
    if "doorbell: mapped" not in guest.run("peal-guest-selftest mappings"):
        raise guest_vm.TestFailure("the doorbell should have been mappable")
    selftest(guest, "contexts", "rings", "groups")
    death(guest, card)
    unplug(guest)
    guest.check_kernel_log()
    orphan(guest, card)
    guest.power_off()

    # What the killed card left in the file system is in nobody's way.
    card = guest_vm.Card(lab, 1)
    guest = guest_vm.Guest(lab, "guest-after", card.sockets[0], card.memories[0])
    load(guest)
    selftest(guest, "rings")
    guest.power_off()
    print(card.stop())


if __name__ == "__main__":
    sys.exit(guest_options.run_in_guests(__doc__, body))
