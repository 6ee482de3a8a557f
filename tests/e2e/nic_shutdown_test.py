# SPDX-License-Identifier: BSD-2-Clause
"""Starting and ending: clear errors, a clean end, nothing left behind."""

import ctypes
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

from neighbour import Neighbour
from nic_client import (ALLGATHER, BARRIER, BROADCAST, DISSEMINATION, PATIENCE_S, Host, allow_everybody_to_read_me, make_group, nic,
                        until)

BINARY = sys.argv.pop(1)


def dpdk_folders():
    """Where DPDK keeps runtime files: one folder per process."""
    found = set()
    for folder in ("/var/run/dpdk", "/tmp/dpdk", os.path.join(os.environ.get("XDG_RUNTIME_DIR", "/none"), "dpdk")):
        if os.path.isdir(folder):
            found |= {os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("peal-")}
    return found


def operate_for_ever(path, say):
    """Two hosts whose memory is registered."""
    allow_everybody_to_read_me()
    size = 256 * 1024
    hosts = [Host(path, card) for card in range(2)]
    members = make_group(hosts)
    memory = [mmap.mmap(-1, 3 * size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) for _ in hosts]
    keys = [host.register_process(ctypes.addressof(ctypes.c_char.from_buffer(each)), 3 * size) for host, each in zip(hosts, memory)]
    for operation in range(1 << 30):
        for host, member, key in zip(hosts, members, keys):
            host.submit(ALLGATHER, BROADCAST, member, send=(key, 0), receive=(key, size), block_bytes=size)
        if operation < 8:
            continue  # so many are under way
        for host in hosts:
            host.wait()
        if operation == 20:
            say()


def run(*arguments):
    return subprocess.run([BINARY, *arguments], capture_output=True, text=True, timeout=PATIENCE_S, check=False)


def in_use(path):
    return f"peal-nic: cannot listen on '{path}': Address already in use (another peal-nic? choose another path)\n"


class ShutdownTest(unittest.TestCase):
    def test_nothing_is_left(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            shared = set(os.listdir("/dev/shm"))
            with nic(BINARY, cards=4) as card:
                hosts = [Host(card.path, i) for i in range(4)]
                members = make_group(hosts)
                for host, member in zip(hosts, members):
                    host.submit(BARRIER, DISSEMINATION, member)
                for host in hosts:
                    host.wait()
                hosts[0].submit(BARRIER, DISSEMINATION, members[0])  # never completes
                runtime = {f for f in dpdk_folders() if f.endswith(f"peal-{card.pid}")}
                self.assertEqual(len(runtime), 1)
                card.stop(number)
                self.assertEqual(sorted(os.listdir(card.folder)), ["counters.json"])
                self.assertIsNone(hosts[0].receive())  # clients learn it
                self.assertFalse(runtime & dpdk_folders())
                self.assertEqual(set(os.listdir("/dev/shm")) - shared, set())

    def test_nothing_is_left_where_copies_are_under_way(self):
        for _ in range(5):
            with nic(BINARY, cards=2) as card:
                hosts = Neighbour(lambda say, path=card.path: operate_for_ever(path, say))
                try:
                    runtime = [f for f in dpdk_folders() if f.endswith(f"peal-{card.pid}")]
                    self.assertEqual(len(runtime), 1)
                    card.stop()
                    self.assertFalse(os.path.exists(runtime[0]))
                    self.assertEqual(os.listdir(card.folder), ["counters.json"])
                finally:
                    hosts.end()

    def test_socket_of_a_killed_card_is_taken_over(self):
        with nic(BINARY, cards=1) as card:
            card.process.kill()
            card.process.wait()
            self.assertTrue(os.path.exists(card.path))
            read_end, write_end = os.pipe()
            with subprocess.Popen([BINARY, "--socket", card.path, "--ready-fd", str(write_end)],
                                  pass_fds=[write_end]) as second:
                os.close(write_end)
                with os.fdopen(read_end) as ready:
                    self.assertEqual(ready.read(), "ready\n")
                Host(card.path).close()
                second.terminate()
                self.assertEqual(second.wait(timeout=PATIENCE_S), 0)

    def test_what_a_killed_card_left_is_collected(self):
        for arguments in ((), ("--no-telemetry",)):
            with nic(BINARY, *arguments, cards=1) as card:
                folder = [f for f in dpdk_folders() if f.endswith(f"peal-{card.pid}")]
                self.assertEqual(len(folder), 1)
                card.process.kill()
                card.process.wait()
                self.assertTrue(os.path.isdir(folder[0]))
                with nic(BINARY, cards=1) as living:
                    self.assertFalse(os.path.exists(folder[0]))
                    with nic(BINARY, cards=1):
                        self.assertTrue(any(f.endswith(f"peal-{living.pid}") for f in dpdk_folders()))

    def test_socket_in_use_is_left_alone(self):
        with nic(BINARY, cards=1) as card:
            second = run("--socket", card.path)
            self.assertEqual(second.returncode, 1)
            self.assertEqual(second.stderr, in_use(card.path))
            Host(card.path).close()

    def test_each_socket_has_its_share_of_the_cards(self):
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("one", "other")]
            read_end, write_end = os.pipe()
            with subprocess.Popen([BINARY, "--cards", "3", "--socket", paths[0], "--socket", paths[1], "--ready-fd", str(write_end)],
                                  pass_fds=[write_end]) as cards:
                os.close(write_end)
                with os.fdopen(read_end) as ready:
                    self.assertEqual(ready.read(), "ready\n")
                for path, count in zip(paths, (2, 1)):
                    for card in range(count):
                        Host(path, card).close()
                    with self.assertRaisesRegex(AssertionError, "BAD_ADDRESS"):
                        Host(path, count)
                cards.terminate()
                self.assertEqual(cards.wait(timeout=PATIENCE_S), 0)
            self.assertEqual(os.listdir(folder), [])

    def test_a_file_in_the_way_is_left_alone(self):
        with tempfile.NamedTemporaryFile() as file:
            result = run("--socket", file.name)
            self.assertEqual(result.returncode, 1)
            self.assertEqual(result.stderr, in_use(file.name))
            self.assertTrue(os.path.isfile(file.name))

    def test_options_are_checked(self):
        for arguments, wrong in (
                ([], "no host could reach the cards; give --socket PATH, --pci SOCKET,RAMFILE, or both"),
                (["--socket", "/x", "--cards", "0"], "--cards: '0' is no whole number from 1 to 256"),
                (["--socket", "/x", "--loss", "2"], "--loss: '2' is no number from 0 to 1"),
                (["--socket", "/x", "--loss", "0.1", "--checksums", "skip"],
                 "--checksums skip is only for a wire without faults; use auto or software"),
                (["--socket", "/x", "--checksums", "some"], "--checksums: 'some' is none of auto, software, skip"),
                (["--socket", "/x", "--engine-lcore", "-1"], "--engine-lcore '-1': expected the number of a CPU"),
                (["--socket", "/x", "--lcore-affinity", "0", "--engine-lcore", "0"],
                 "--engine-lcore 0: that CPU has a polling core already"),
                (["--socket", "/x", *(word for cpu in range(9) for word in ("--engine-lcore", str(cpu)))],
                 "--engine-lcore is given 9 times, and these cards have 1 transmit engines"),
                (["--socket", "/x", "--lcore-affinity", "some"], "--lcore-affinity 'some': expected the number of a CPU"),
                (["--socket", "/x", "--socket", "/y"], "--socket is given 2 times: it may be 1, one for each card"),
                (["--cards", "3", "--socket", "/x", "--socket", "/y", "--lcore-affinity", "0"],
                 "--lcore-affinity is given 1 times for 2 polling cores; give it once for each, or not at all"),
                (["--cards", "3", "--socket", "/x", "--socket", "/y", "--lcore-affinity", "0", "--lcore-affinity", "0"],
                 "--lcore-affinity 0: that CPU has a polling core already"),
                (["--cards", "3", "--socket", "/x", "--socket", "/y", "--pci", "a,b"],
                 "--pci and --engine-lcore are for one polling core; give one --socket"),
                (["--socket", "/x", "--nack-us", "0"], "--nack-us: '0' is no whole number from 1 to 315360000000000"),
                (["--socket", "/x", "--dead-ms", "4294968"], "--dead-ms: '4294968' is no whole number from 1 to 4294967"),
                (["--socket", "/x", "--file-prefix", ".."], "--file-prefix names a folder of its own, not '..'"),
                (["--socket", "/x", "--ready-fd", "99"], "--ready-fd 99: no such descriptor is open"),
                (["--socket", "/x", "--cards", "2", "--fault-plan", "partition=1-2:0-5"],
                 "a partition names card 2 of 2; raise --cards"),
                (["--socket", "/x", "--fault-plan", "partition=3-1:0-5"],
                 "--fault-plan: partition of cards 3-1: the first card must not exceed the last"),
                (["--socket", "/x", "--dead-ms", "1"],
                 "--dead-ms must be longer than --probe-us, or peers die before they are asked"),
                (["--socket", "/x", "--linger-us", "-1"], "--linger-us: '-1' is no whole number from 0 to 315360000000000"),
                (["--socket", "/x", "--log-level", "loud"],
                 "--log-level 'loud': expected error, warning, notice, info or debug, or TYPE: and one of these"),
                (["--socket", "/x", "--no-such-option"], "there is no option --no-such-option"),
                (["--socket"], "--socket needs a value: --socket PATH"),
                (["--pci", "only-a-socket"], "--pci 'only-a-socket': expected SOCKET,RAMFILE or SOCKET,RAMFILE,MIB"),
                (["--pci", "a,b,0"], "--pci 'a,b,0': the guest's memory must be 1 to 3072 MiB, not '0'"),
                (["--pci", "a,b", "--pci", "c,d"], "--pci is given 2 times for 1 cards; raise --cards"),
                (["--socket", "/x", "--admit", "nobody-of-that-name"],
                 "--admit 'nobody-of-that-name': there is no such user")):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stderr), (2, f"peal-nic: {wrong}\nTry 'peal-nic --help'.\n"), arguments)

    def serve_and_stop(self, level, errors):
        """A card that says what is of this level to `errors`, and serves a host."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "socket")
            read_end, write_end = os.pipe()
            with subprocess.Popen([BINARY, "--socket", path, "--log-level", level, "--ready-fd", str(write_end)],
                                  pass_fds=[write_end], stderr=errors, text=True) as card:
                os.close(write_end)
                with os.fdopen(read_end) as ready:
                    self.assertEqual(ready.read(), "ready\n")
                Host(path).close()
                card.terminate()
                said = card.communicate(timeout=PATIENCE_S)[1]
                self.assertEqual(card.returncode, 0)
                return said

    def test_the_level_says_how_much_is_said(self):
        self.assertEqual(self.serve_and_stop("info", subprocess.PIPE), "peal-nic: cards ready: 1\n")
        self.assertEqual(self.serve_and_stop("notice", subprocess.PIPE), "")

    def test_a_log_that_nobody_reads_holds_up_nobody(self):
        log, full = os.pipe()
        os.set_blocking(full, False)
        with self.assertRaises(BlockingIOError):
            while True:
                os.write(full, b"x" * 4096)
        os.set_blocking(full, True)
        self.serve_and_stop("info", full)
        os.close(full)
        with os.fdopen(log) as pipe:
            self.assertEqual(pipe.read().strip("x"), "")

    def test_what_is_wrong_only_on_this_machine(self):
        for arguments, wrong in ((["--socket", "s" * 200], f"socket path '{'s' * 200}' must have 1 to 107 characters"),
                                 (["--socket", "/x", "--lcore-affinity", "1000"],
                                  "--lcore-affinity 1000: this process may not run on that CPU"),
                                 (["--socket", "/x", "--engine-lcore", "1000"],
                                  "--engine-lcore 1000: this process may not run on that CPU")):
            result = run(*arguments)
            self.assertEqual((result.returncode, result.stderr), (1, f"peal-nic: {wrong}\n"), arguments)
        self.assertEqual(run("--help").returncode, 0)
        self.assertRegex(run("--version").stdout, r"\Apeal-nic \d+\.\d+\.\d+\n\Z")

    def test_telemetry(self):
        with nic(BINARY, cards=3) as card:
            folder = next(f for f in dpdk_folders() if f.endswith(f"peal-{card.pid}"))
            with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
                client.settimeout(PATIENCE_S)
                client.connect(os.path.join(folder, "dpdk_telemetry.v2"))
                client.recv(65536)

                def ask(text):
                    client.send(text.encode())
                    return json.loads(client.recv(65536))

                self.assertEqual(ask("/peal/cards"), {"/peal/cards": [0, 1, 2]})
                counters = ask("/peal/counters,1")["/peal/counters"]
                self.assertEqual(counters["sent_data"], 0)
                self.assertIsNone(ask("/peal/counters,3")["/peal/counters"])
                self.assertIsNone(ask("/peal/counters,x")["/peal/counters"])
                self.assertEqual(ask("/peal/wire")["/peal/wire"]["sent"], 0)

    def test_pid_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "pid")
            with nic(BINARY, "--pid-file", path, cards=1) as card:
                with open(path, encoding="ascii") as file:
                    self.assertEqual(int(file.read()), card.pid)
                second = run("--socket", card.path, "--pid-file", path)
                self.assertEqual((second.returncode, second.stderr), (1, in_use(card.path)))
                with open(path, encoding="ascii") as file:
                    self.assertEqual(int(file.read()), card.pid, "it is the first one's")
                card.stop()
                until(lambda: not os.path.exists(path), "the file to go")

    def test_what_cannot_be_written_is_said(self):
        """At the end, for a trace is written as it comes."""
        with tempfile.TemporaryDirectory() as folder:
            job = subprocess.Popen([BINARY, "--socket", os.path.join(folder, "socket"), "--cards", "2", "--trace", "/dev/full"],
                                   stderr=subprocess.PIPE, text=True)
            until(lambda: os.path.exists(os.path.join(folder, "socket")), "the socket")
            hosts = [Host(os.path.join(folder, "socket"), card) for card in range(2)]
            for host, member in zip(hosts, make_group(hosts)):
                host.submit(BARRIER, DISSEMINATION, member)
            for host in hosts:
                host.wait()
            job.terminate()
            self.assertIn("cannot write '/dev/full': No space left on device", job.communicate(timeout=PATIENCE_S)[1])
            self.assertEqual(job.returncode, 1)


if __name__ == "__main__":
    unittest.main()
