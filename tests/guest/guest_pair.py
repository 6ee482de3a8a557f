# SPDX-License-Identifier: BSD-2-Clause
"""Two guests, each with a card of one peal-nic: programs over libpeal and peal.ko run as ranks of one job in both. The guests have
an Ethernet between them for the out-of-band exchange; no payload goes that way."""

import json
import os
import re

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


def rank_command(rank, size, command):
    return (f"PEAL_RANK={rank} PEAL_SIZE={size} PEAL_CARD=char:/dev/peal0 PEAL_OOB={OOB} PEAL_OOB_TOKEN={TOKEN} "
            f"{command}")


def begin_ranks(guests, ranks_per_guest, command):
    """Starts all ranks; each guest's command ends when its ranks have (finish_ranks())."""
    size = len(guests) * ranks_per_guest
    for index, guest in enumerate(guests):
        ranks = [index * ranks_per_guest + i for i in range(ranks_per_guest)]
        jobs = "; ".join(f"{rank_command(rank, size, command)} & jobs=\"$jobs $!\"" for rank in ranks)
        guest.begin(f"jobs=; {jobs}; ended=; for job in $jobs; do wait $job; ended=\"$ended $?\"; done; "
                    "echo; echo \"ranks ended with$ended\"")


def finish_ranks(guest):
    """(the exit status of each of its ranks, what they printed)"""
    status, text = guest.finish()
    text, _, ended = text.rpartition("ranks ended with ")
    if status != 0 or not re.fullmatch(r"\d+( \d+)*", ended):
        raise guest_vm.TestFailure(f"{guest.name}: its ranks' end is not known, only {status}:\n{text}{ended}")
    return [int(each) for each in ended.split()], text.strip()


def run_ranks(guests, ranks_per_guest, command):
    begin_ranks(guests, ranks_per_guest, command)
    for guest in guests:
        ended, text = finish_ranks(guest)
        if ended != [0] * ranks_per_guest:
            raise guest_vm.TestFailure(f"{guest.name}: {command} ended with {ended}:\n{text}")


def end_pair(card, guests):
    """Nothing is left of the driver's, and packets were lost."""
    for guest in guests:
        guest.check_kernel_log()
        guest.run("rmmod peal")
        guest.check_kernel_log()
        guest.power_off()
    faults = json.loads(card.stop())["faults"]
    print(f"the wire lost {faults['lost']} of {faults['judged']} packets")
    if faults["lost"] == 0:
        raise guest_vm.TestFailure("no packet was lost: this was no test of repair")
