#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Two guests on one peal-nic that loses 1% of the packets: peal-perf over /dev/peal0 runs every operation between them, verified,
with one and with two ranks in each guest; then one guest is killed in the middle of it, and the other is told who died.
The guests have an Ethernet between them for the out-of-band exchange; no payload goes that way."""

import json
import os
import sys

import guest_options
import guest_vm

OOB = "tcp:10.0.0.1:5555,serve"
TOKEN = os.urandom(16).hex()


def start_guest(lab, card, index):
    mine, theirs = (lab.folder / f"ether{i}.socket" for i in (index, 1 - index))
    guest = guest_vm.Guest(
        lab, f"guest{index}", card.sockets[index], card.memories[index],
        append="pci=resource_alignment=12@pci:1af4:1110" if index == 0 else "",
        network=["-netdev", f"dgram,id=net,local.type=unix,local.path={mine},remote.type=unix,remote.path={theirs}",
                 "-device", f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{index + 1},romfile=,addr=05.0"])
    guest.run("insmod /modules/*peal.ko")
    guest.run(f"ifconfig eth0 10.0.0.{index + 1} netmask 255.255.255.0 up")
    return guest


def perf(rank, size, arguments):
    return (f"PEAL_RANK={rank} PEAL_SIZE={size} PEAL_CARD=char:/dev/peal0 PEAL_OOB={OOB} PEAL_OOB_TOKEN={TOKEN} "
            f"peal-perf {arguments}")


def begin_perf(guests, ranks_per_guest, arguments):
    """Starts all ranks; each guest's command ends when its ranks have, with 0 only if all did well."""
    size = len(guests) * ranks_per_guest
    for index, guest in enumerate(guests):
        ranks = [index * ranks_per_guest + i for i in range(ranks_per_guest)]
        jobs = "; ".join(f"{perf(rank, size, arguments)} & jobs=\"$jobs $!\"" for rank in ranks)
        guest.begin(f"jobs=; {jobs}; ok=0; for job in $jobs; do wait $job || ok=$?; done; exit $ok")


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
    begin_perf(guests, ranks_per_guest, arguments)
    for guest in guests:
        status, text = guest.finish()
        if status != 0:
            raise guest_vm.TestFailure(f"{guest.name}: peal-perf {operation} ended with {status}:\n{text}")
    check_records(guests[0], operation, len(guests) * ranks_per_guest, sizes)


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
    guests = [start_guest(lab, card, index) for index in range(2)]
    verified(guests, 1, "barrier", [0])
    for operation in ("allgather", "broadcast", "alltoall"):
        verified(guests, 1, operation, [4, 1000, 40000])
    verified(guests, 2, "barrier", [0])
    for operation in ("allgather", "broadcast", "alltoall"):
        verified(guests, 2, operation, [0, 1, 5000])
    no_context_is_left(guests[0])
    survivor_is_told(guests)
    guests[0].check_kernel_log()
    guests[0].run("rmmod peal")
    guests[0].check_kernel_log()
    guests[0].power_off()
    counters = json.loads(card.stop())
    lost = counters["faults"]["lost"]
    print(f"the wire lost {lost} of {counters['faults']['judged']} packets")
    if lost == 0:
        raise guest_vm.TestFailure("no packet was lost: this was no test of repair")


def main():
    arguments = guest_options.parse(__doc__)

    def test(lab):
        guest_options.make_initramfs(lab, arguments, [arguments.selftest, lab.bin / "peal-perf"])
        body(lab)

    return guest_vm.run_test(test, arguments)


if __name__ == "__main__":
    sys.exit(main())
