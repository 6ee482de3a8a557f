# SPDX-License-Identifier: BSD-2-Clause
"""A neighbour of another user registers all of his memory, and becomes another program. A card of root's may reach every process;
what it does for a client is no more than the client's user may."""

import ctypes
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from neighbour import NeighbourCase, Victim
from nic_client import ALLGATHER, BROADCAST, Host, allow_everybody_to_read_me, block, make_group

BINARY = sys.argv.pop(1)
STRANGER = 54321  # a user who is nobody here
EVERYTHING = 0x1000, 1 << 56
SIZE = 1024
# Where the program that runs as root has something to be read and to be changed.
SECRET = 0x200000000
PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  unsigned char* const secret = mmap((void*)0x200000000, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (secret == MAP_FAILED) return 1;
  memset(secret, 0x5a, 65536);
  dprintf(1, "user %d\n", (int)geteuid());
  char byte;
  while (read(0, &byte, 1) > 0) continue;
  int changed = 0;
  for (int i = 0; i < 65536; i++) changed += secret[i] != 0x5a;
  dprintf(1, "changed %d\n", changed);
  return 0;
}
"""


def program_of_root(folder):
    """A program that whoever executes it becomes root in."""
    os.chmod(folder, 0o755)
    source, program = (os.path.join(folder, name) for name in ("program.c", "program"))
    with open(source, "w", encoding="ascii") as file:
        file.write(PROGRAM)
    subprocess.run(["cc", "-o", program, source], check=True)
    os.chmod(program, 0o4755)
    return program


def allgather(hosts, members, keys, at):
    """One, from and to these places; how it ended at each."""
    for host, member, key, offset in zip(hosts, members, keys, at):
        host.submit(ALLGATHER, BROADCAST, member, send=(key, offset), receive=(key, offset + 4096), block_bytes=SIZE)
    return [host.wait()[0] for host in hosts]


def become_root(path, program, pipes, say):
    """All of this process's memory is registered; it becomes that program, and a child goes on with its key."""
    allow_everybody_to_read_me()
    hosts = [Host(path, card) for card in range(2)]
    members = make_group(hosts, 900)
    keys = [hosts[0].register_process(*EVERYTHING), hosts[1].allocate(16384)[0]]
    own = mmap.mmap(-1, 16384, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    own[:SIZE] = block(0, 0, SIZE)
    own_at = ctypes.addressof(ctypes.c_char.from_buffer(own)) - EVERYTHING[0]
    assert allgather(hosts, members, keys, [own_at, 0]) == ["OK", "OK"]
    assert own[4096:4096 + SIZE] == block(0, 0, SIZE)
    standard_input, said = pipes
    if os.fork() != 0:
        os.dup2(standard_input[0], 0)
        os.dup2(said[1], 1)
        os.execv(program, [program])
    assert os.read(said[0], 64) == b"user 0\n"
    say(allgather(hosts, members, keys, [SECRET - EVERYTHING[0], 0])[0].encode())


@unittest.skipUnless(os.geteuid() == 0, "only root can be two users")
class ExecTest(NeighbourCase):
    binary = BINARY

    def start_for_the_stranger(self):
        card = self.start("--admit", str(STRANGER))
        os.chmod(card.folder, 0o755)
        return card

    @unittest.skipUnless(shutil.which("cc"), "no C compiler")
    def test_a_program_of_another_user_is_out_of_reach(self):
        folder = tempfile.mkdtemp(prefix="peal-nic-test-")
        self.addCleanup(shutil.rmtree, folder)
        if os.statvfs(folder).f_flag & os.ST_NOSUID:
            self.skipTest(f"{folder} is mounted nosuid")
        program = program_of_root(folder)
        card = self.start_for_the_stranger()
        standard_input, said = os.pipe(), os.pipe()
        neighbour = self.attacked_by(lambda say: become_root(card.path, program, (standard_input, said), say), STRANGER)
        for fd in (*standard_input, said[1]):
            os.close(fd)
        with os.fdopen(said[0], "rb") as verdict:
            self.assertEqual(verdict.read(), b"changed 0\n")
        self.assertEqual(neighbour.said, b"DMA_FAULT")
        Victim(card.path, registered=True).operate()

    def test_another_users_memory_is_reached_while_it_is_his(self):
        card = self.start_for_the_stranger()

        def operate(say):
            for group, size in enumerate((64, 1024, 4096)):
                Victim(card.path, 5000 + group, size, registered=True).median()
            say()

        self.attacked_by(operate, STRANGER)
        self.assertEqual(sum(each["admin"]["region_faults"] for each in card.stop()["cards"]), 0)


if __name__ == "__main__":
    unittest.main()
