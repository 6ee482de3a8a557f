#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two guests on one peal-nic that loses 1% of the packets: peal-perf over /dev/peal0 runs every operation between them, verified,
with one and with two ranks in each guest; then one guest is killed in the middle of it, and the other is told who died.
The guests have an Ethernet between them for the out-of-band exchange; no payload goes that way."""

import json
import sys

import guest_options
import guest_pair
import guest_vm

OPERATIONS = ("allgather", "broadcast", "alltoall", "allgatherv", "alltoallv")


def check_records(guest, operation, ranks, sizes):
    records = json.loads(guest.run("cat /tmp/perf.json"))
    seen = [(record["operation"], record["ranks"], record["bytes"]) for record in records]
    if sorted(set(seen)) != sorted((operation, ranks, size) for size in sizes):
        raise guest_vm.TestFailure(f"peal-perf reports {seen}")
    for record in records:
        if record["verified"] is not True:
            raise guest_vm.TestFailure(f"not verified: {record}")
        print(f"{operation} {record['algorithm']} ranks {ranks} bytes {record['bytes']}: verified, "
              f"{record['packets']} packets")


def verified(guests, ranks_per_guest, operation, sizes):
    arguments = f"{operation} --iterations 100 --warmup 5 --json /tmp/perf.json"
    if operation != "barrier":
        arguments += f" --memory both --algorithm all --sizes {','.join(map(str, sizes))}"
    guest_pair.run_ranks(guests, ranks_per_guest, f"peal-perf {arguments}")
    check_records(guests[0], operation, len(guests) * ranks_per_guest, sizes)


def perf(rank, size, arguments):
    return guest_pair.rank_command(rank, size, f"peal-perf {arguments}")


def groups_without_memory(guests):
    """Of the kernel's, for their channels: whom the driver refuses is told why, and what there was is there again."""
    guest_pair.begin_ranks(guests, 1, "peal-perf group --at-once 64 --iterations 1 --warmup 0")
    ends = [guest_pair.finish_ranks(guest) for guest in guests]
    # The other may be in the next exchange, which fails when the first ends.
    if any(0 in ended for ended, _ in ends) or not any("Cannot allocate memory" in text for _, text in ends):
        raise guest_vm.TestFailure(f"64 groups at once ended with {ends}")
    print(f"64 groups at once: {ends}", flush=True)
    verified(guests, 1, "barrier", [0])


def no_context_is_left(guest):
    """libpeal says what it is that the card has no more of."""
    text = guest.run(f"peal-guest-selftest full '{perf(0, 1, 'barrier')} 2>&1'")
    if "all contexts of the card are taken" not in text:
        raise guest_vm.TestFailure(f"a program without a context was told:\n{text}")
    print(f"without a context: {text}")


def survivor_is_told(guests):
    """The second guest dies in the middle of an endless run; rank 1 was there."""
    before = int(guests[0].run("peal-guest-selftest counter operations_completed"))
    for rank, guest in enumerate(guests):
        guest.run(f"({perf(rank, 2, 'allgather --sizes 1000 --iterations 500000')}) >/tmp/endless 2>&1; "
                  "echo $? >/tmp/endless.status", background=True)
    guests[0].run("while ! test -s /tmp/endless.status && test $(peal-guest-selftest counter operations_completed) "
                  f"-lt {before + 200}; do usleep 100000; done; ! test -s /tmp/endless.status || ! cat /tmp/endless")
    guests[1].kill()
    guests[0].run("while ! test -s /tmp/endless.status; do usleep 100000; done")
    status = int(guests[0].run("cat /tmp/endless.status"))
    text = guests[0].run("cat /tmp/endless")
    if status == 0 or "rank 1" not in text:
        raise guest_vm.TestFailure(f"the survivor ended with {status} and was not told that rank 1 died:\n{text}")
    print(f"the survivor says: {text}")


def body(lab):
    card = guest_vm.Card(lab, 2, ["--loss", "0.01", "--seed", "7"])
    guests = [guest_pair.start_guest(lab, card, index) for index in range(2)]
    verified(guests, 1, "barrier", [0])
    for operation in OPERATIONS:
        verified(guests, 1, operation, [4, 1000, 40000])
    verified(guests, 2, "barrier", [0])
    for operation in OPERATIONS:
        verified(guests, 2, operation, [0, 1, 5000])
    groups_without_memory(guests)
    no_context_is_left(guests[0])
    survivor_is_told(guests)
    guest_pair.end_pair(card, guests[:1])


def main():
    arguments = guest_options.parse(__doc__)

    def test(lab):
        guest_options.make_initramfs(lab, arguments, [arguments.selftest, lab.bin / "peal-perf"])
        body(lab)

    return guest_vm.run_test(test, arguments)


if __name__ == "__main__":
    sys.exit(main())
