#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Three ranks in each of two guests, whose cards lose 1% of the packets: e2e-rank runs every operation over /dev/peal0 and looks at every
byte, of lengths around pages and channels, in place and not, all mixed and deep; ranks that come late; and a rank that is
killed in each of the operations, after which the others are told and the driver is as good as before."""

import sys

import guest_options
import guest_pair
import guest_vm

RANKS_PER_GUEST = 3
SCENARIOS = ("broadcast 65536", "alltoall 9000", "allgatherv 9000", "alltoallv 9000", "mixed 100 20000 1", "late 36 20000 2", "remapped 16 10000", "buffers 300")
DEADLY = ("broadcast", "allgather", "alltoall", "allgatherv", "alltoallv")


# Each of a rank's persistent requests has a group, and that a member's channels: memory for so many ranks' and no more.
PERSISTENT = ("persistent 12 5000 3", 2)


def runs(guests, scenario, ranks_per_guest=RANKS_PER_GUEST):
    guest_pair.run_ranks(guests, ranks_per_guest, f"e2e-rank {scenario}")
    print(f"{scenario}: every byte is right", flush=True)


def dies_in(guests, operation, victim):
    """It lives in a process of its own, beside others that go on using the card."""
    guest_pair.begin_ranks(guests, RANKS_PER_GUEST, f"e2e-rank death-in {operation} {victim} 5000")
    told = []
    for index, guest in enumerate(guests):
        status, text = guest.finish()
        mine = victim // RANKS_PER_GUEST == index
        if status != (137 if mine else 0):
            raise guest_vm.TestFailure(f"{guest.name}: death-in {operation} ended with {status}:\n{text}")
        told += [line for line in text.splitlines() if line.endswith(f"was told that rank {victim} is dead")]
    if len(told) != len(guests) * RANKS_PER_GUEST - 1:
        raise guest_vm.TestFailure(f"death-in {operation}: {told}")
    print(f"death in {operation} of rank {victim}: {len(told)} others were told", flush=True)


def body(lab):
    card = guest_vm.Card(lab, 2, ["--loss", "0.01", "--seed", "11"])
    guests = [guest_pair.start_guest(lab, card, index) for index in range(2)]
    for scenario in SCENARIOS:
        runs(guests, scenario)
    runs(guests, *PERSISTENT)
    # Not rank 0, which serves the out-of-band exchange.
    for victim, operation in enumerate(DEADLY, 1):
        dies_in(guests, operation, victim)
    runs(guests, SCENARIOS[0])
    # Channels of the dead are the card's for a while.
    for guest in guests:
        guest.run("while test $(cat /sys/module/peal/parameters/channel_pages) -gt 0; do usleep 100000; done")
    guest_pair.end_pair(card, guests)


def main():
    arguments = guest_options.parse(__doc__)

    def test(lab):
        guest_options.make_initramfs(lab, arguments, [arguments.selftest, lab.bin / "e2e-rank"])
        body(lab)

    return guest_vm.run_test(test, arguments)


if __name__ == "__main__":
    sys.exit(main())
