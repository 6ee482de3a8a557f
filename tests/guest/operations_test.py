#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Three ranks in each of two guests, whose cards lose 1% of the packets: e2e-rank runs every operation over /dev/peal0 and looks at every
byte, of lengths around pages and channels, in place and not, all mixed and deep; ranks that come late; messages, memory of other
ranks, and programs that the cards run by themselves; and a rank that is killed in each of the operations, after which the others
are told and the driver is as good as before."""

import sys

import guest_options
import guest_pair
import guest_vm

RANKS_PER_GUEST = 3
COLLECTIVES = ("broadcast 65536", "broadcast 1000000", "mixed-threads 2 60 5000 1", "alltoall 9000", "allgatherv 9000", "alltoallv 9000", "mixed 100 20000 1", "late 36 20000 2", "remapped 16 10000", "buffers 300")
MESSAGES = ("p2p-ring 40 20000 3", "p2p-gather 20 5000 1", "p2p-tags 1", "p2p-memory 100000", "p2p-refused", "p2p-truncated")
PROGRAMS = ("programs 20 20000 1", "programs-bad", "programs-free", "programs-many 20")
# Not of rank 0, which serves the out-of-band exchange.
DEATHS = (("death-in barrier", 5, "5000"), ("death-in broadcast", 1, "5000"), ("death-in allgather", 2, "5000"), ("death-in alltoall", 3, "5000"),
          ("death-in allgatherv", 4, "5000"), ("death-in alltoallv", 5, "5000"), ("programs-death start", 4, ""), ("programs-death wait", 1, ""))

# Each of a rank's persistent requests has a group, and that a member's channels: memory for so many ranks' and no more.
PERSISTENT = ("persistent 12 5000 3", 2)


def runs(guests, scenario, ranks_per_guest=RANKS_PER_GUEST):
    guest_pair.run_ranks(guests, ranks_per_guest, f"e2e-rank {scenario}")
    print(f"{scenario}: every byte is right", flush=True)


def dies_in(guests, scenario, victim, more):
    """It lives in a process of its own, beside others that go on using the card."""
    guest_pair.begin_ranks(guests, RANKS_PER_GUEST, f"e2e-rank {scenario} {victim} {more}")
    told = []
    for index, guest in enumerate(guests):
        ended, text = guest_pair.finish_ranks(guest)
        first = index * RANKS_PER_GUEST
        wanted = [137 if rank == victim else 0 for rank in range(first, first + RANKS_PER_GUEST)]
        if ended != wanted:
            raise guest_vm.TestFailure(f"{guest.name}: {scenario} ended with {ended}, not {wanted}:\n{text}")
        told += [line for line in text.splitlines() if line.endswith(f"was told that rank {victim} is dead")]
    if len(told) != len(guests) * RANKS_PER_GUEST - 1:
        raise guest_vm.TestFailure(f"{scenario}: {told}")
    print(f"{scenario} of rank {victim}: {len(told)} others were told", flush=True)


def body(lab):
    card = guest_vm.Card(lab, 2, ["--loss", "0.01", "--seed", "11"])
    guests = [guest_pair.start_guest(lab, card, index) for index in range(2)]
    for scenario in COLLECTIVES + MESSAGES + PROGRAMS:
        runs(guests, scenario)
    runs(guests, *PERSISTENT)
    for death in DEATHS:
        dies_in(guests, *death)
    runs(guests, COLLECTIVES[0])
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
