# SPDX-License-Identifier: BSD-2-Clause
"""Starts jobs with pealrun and judges them. Time-outs are there only to end a hang."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from waiting import PATIENCE_S, Hang, until

_bin = None


def programs():
    """The folder of the programs: the script's first argument, taken away before unittest sees it."""
    global _bin
    if _bin is None:
        _bin = os.path.abspath(sys.argv.pop(1))
    return _bin


def program(name):
    return os.path.join(programs(), name)


def children(pid):
    """Direct children, whichever thread started them."""
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
            found += [int(each) for each in file.read().split()]
    return found


def names_of(pids):
    """Of their programs, sorted; of those that are gone meanwhile none."""
    found = []
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open(f"/proc/{pid}/comm", encoding="ascii") as file:
                found.append(file.read().strip())
    return sorted(found)


def environment_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        pairs = file.read().decode(errors="replace").split("\0")
    return dict(pair.split("=", 1) for pair in pairs if "=" in pair)


def state_of(pid):
    """'R', 'S', 'T' (stopped), ... or '' when it is gone."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


def is_asleep(pid):
    """All its threads."""
    return all(state_of(f"{pid}/task/{thread}") == "S" for thread in os.listdir(f"/proc/{pid}/task"))


class Result:
    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err


class JobCase(unittest.TestCase):
    """A test case whose jobs must leave nothing behind."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="peal-e2e-")
        self.addCleanup(self.folder.cleanup)
        self.shared_before = set(os.listdir("/dev/shm"))
        self.environment = dict(os.environ, TMPDIR=self.folder.name)
        self.environment.pop("PEAL_RANK", None)
        self.addCleanup(self.check_leftovers)  # runs after the cleanups of the test's own jobs

    def check_leftovers(self):
        self.assertEqual(os.listdir(self.folder.name), self.kept(), "left in the temporary folder")
        new = {name for name in set(os.listdir("/dev/shm")) - self.shared_before
               if name.startswith(("peal", "rte", "dpdk"))}
        self.assertEqual(new, set(), "left in /dev/shm")

    def left(self):
        """Command lines of processes that have the environment of this test's jobs."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                if environment_of(pid).get("TMPDIR") != self.folder.name:
                    continue
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    found.append(file.read().replace("\0", " ").strip())
            except OSError:  # it has ended, or is not ours
                pass
        return found

    def kept(self):
        """Files that the test itself asked for."""
        return []

    def command(self, ranks, options, words):
        return [program("pealrun"), "-n", str(ranks), "--timeout", str(PATIENCE_S), *options, "--", *words]

    def run_job(self, ranks, *words, options=(), status=0):
        """Runs `words` on that many ranks; the job must exit with that status (None: any)."""
        command = self.command(ranks, options, words)
        done = subprocess.run(command, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=PATIENCE_S + 60, check=False)
        if status is not None:
            self.assertEqual(done.returncode, status, f"{' '.join(command)}\n{done.stdout}{done.stderr}")
        return Result(done.returncode, done.stdout, done.stderr)

    def scenario(self, ranks, *words, options=(), status=0):
        return self.run_job(ranks, program("e2e-rank"), *words, options=options, status=status)

    def expect_told(self, done, ranks, victim):
        """Every rank but the dead one says so, and nobody anything else."""
        self.assertEqual(sorted(done.out.splitlines()),
                         [f"rank {rank} was told that rank {victim} is dead" for rank in range(ranks) if rank != victim])

    def start(self, ranks, *words, options=()):
        """Starts a job that the test goes on to disturb."""
        return Running(self, self.command(ranks, options, words))


class Running:
    """A running job. Rank 0 has its standard input and output here."""

    def __init__(self, case, command):
        self.case = case
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.process = subprocess.Popen(command, env=case.environment, stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.errors, text=True)
        case.addCleanup(self.clean_up)

    def clean_up(self):
        if self.process.poll() is None:
            self.process.terminate()
            for pid in children(self.process.pid):
                with_suppressed(os.kill, pid, signal.SIGCONT)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.errors):
            with_suppressed(stream.close)

    def expect_line(self, text):
        """The next line of output."""
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE_S)
        line = self.process.stdout.readline().strip() if ready else None
        if line != text:
            self.errors.seek(0)
            self.case.fail(f"expected {text!r}, got {line!r}\n{self.errors.read()}")

    def go_on(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def cards(self):
        """The process id of peal-nic."""
        for pid in children(self.process.pid):
            if names_of([pid]) == ["peal-nic"]:
                return pid
        raise Hang("no peal-nic")

    def ranks(self):
        """Process ids by rank."""
        found = {}
        for pid in children(self.process.pid):
            rank = environment_of(pid).get("PEAL_RANK")
            if rank is not None:
                found[int(rank)] = pid
        return found

    def finish(self, status=0):
        out, _ = self.process.communicate(timeout=PATIENCE_S)
        self.errors.seek(0)
        err = self.errors.read()
        if status is not None:
            self.case.assertEqual(self.process.returncode, status, out + err)
        return Result(self.process.returncode, out, err)


def with_suppressed(call, *arguments):
    try:
        call(*arguments)
    except OSError:
        pass


def records(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def lines_without_pids(text):
    """Lines of what pealrun and its ranks say, sorted, since ranks speak when they like."""
    return sorted(re.sub(r"\(pid \d+\)", "(pid)", line) for line in text.splitlines())


def main():
    programs()
    unittest.main(verbosity=2)
