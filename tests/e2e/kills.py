#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Kills ranks, cards and launchers with SIGKILL, and stops others for a while, at random moments of jobs that check
every result. Survivors must go on with right results, or be told the right name; nobody may hang, and nothing may be
left behind.

usage: kills.py PROGRAMS [--ranks N] [--cards N] [--launchers N] [--seed S]

The same seed kills the same victims after the same delays (the machine's own timing is what it is). The last lines
are a table; the status is 0 only if everything was as it should be."""

import argparse
import collections
import os
import random
import re
import select
import signal
import subprocess
import sys
import tempfile
import time

import jobs

PATIENCE_S = 120  # only a hang reaches it
LINE = re.compile(r"^rank (\d+) (done|dead|card-gone) (\d+) after (\d+)$")
MARK = "PEAL_KILLS_MARK"
# Where DPDK makes the folders of its processes.
RUNTIME_PLACES = ("/var/run/dpdk", "/tmp/dpdk", os.path.join(os.environ.get("XDG_RUNTIME_DIR", "/tmp"), "dpdk"))


class Wrong(Exception):
    """Something was not as it should be."""


class Victim:
    """A process that is ours to disturb, whatever becomes of its number. It may have ended by itself."""

    def __init__(self, pid):
        self.pid, self.fd = pid, os.pidfd_open(pid)

    def send(self, number):
        """False when it had ended."""
        try:
            signal.pidfd_send_signal(self.fd, number)
            return True
        except ProcessLookupError:
            return False

    def has_ended(self):
        return bool(select.select([self.fd], [], [], 0)[0])

    def close(self):
        os.close(self.fd)


class Job:
    """One job of e2e-rank's soak, with everything random drawn beforehand."""

    def __init__(self, dice, folder, environment):
        self.dice, self.folder, self.environment = dice, folder, environment
        self.groups = dice.choice((1, 1, 2, 3))
        self.size = self.groups * dice.choice((2, 3, 4))
        cards = dice.choice((self.size, self.size, max(1, self.size // 2), 1))
        loss = dice.choice(("0", "0", "0.01", "0.05"))
        self.command = [jobs.program("pealrun"), "-n", str(self.size), "--cards", str(cards), "--loss", loss,
                        "--seed", str(dice.randrange(1 << 30)), "--grace", "never", "--timeout", str(PATIENCE_S + 60),
                        jobs.program("e2e-rank"), "soak", str(self.groups), str(dice.choice((1, 2, 4)))]
        self.log = os.path.join(folder, "log")
        self.cards, self.ranks = None, {}

    def __enter__(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(self.command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log,
                                            stderr=log)
        try:
            jobs.until(lambda: "ready" in self.lines() or self.process.poll() is not None, "the ranks", PATIENCE_S)
            if self.process.poll() is not None:
                raise Wrong(f"the job ended with {self.process.returncode} before it began\n{self.text()}")
            for pid in jobs.children(self.process.pid):
                rank = jobs.environment_of(pid).get("PEAL_RANK")
                if rank is None:
                    self.cards = Victim(pid)
                else:
                    self.ranks[int(rank)] = Victim(pid)
            if self.cards is None or len(self.ranks) != self.size:
                raise Wrong(f"{len(self.ranks)} of {self.size} ranks, cards {self.cards}")
        except BaseException:
            self.end()
            raise
        return self

    def __exit__(self, kind, error, trace):
        self.end()

    def end(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.unlink(self.log)
        for victim in [self.cards, *self.ranks.values()]:
            if victim is not None:
                victim.close()

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as file:
            return file.read()

    def lines(self):
        return self.text().split("\n")

    def reports(self):
        """How each rank ended, by its own word."""
        found = {}
        for line in self.lines():
            match = LINE.match(line)
            if match:
                found[int(match[1])] = (match[2], int(match[3]), int(match[4]))
        return found

    def wait_for_reports(self, ranks):
        try:
            jobs.until(lambda: set(ranks) <= set(self.reports()) or self.process.poll() is not None,
                       "the survivors' reports", PATIENCE_S)
        except jobs.Hang as hang:
            raise Wrong(f"ranks {sorted(set(ranks) - set(self.reports()))} hang") from hang
        return self.reports()

    def wait_for_the_end(self, status):
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired as hang:
            raise Wrong("the launcher hangs") from hang
        if status is not None and self.process.returncode != status:
            raise Wrong(f"the launcher ended with {self.process.returncode} instead of {status}")

    def group_of(self, rank):
        return rank % self.groups


class Soak:
    def __init__(self, arguments, folder):
        self.arguments, self.folder = arguments, folder
        self.environment = dict(os.environ, TMPDIR=folder)
        self.environment[MARK] = folder
        for name in ("PEAL_RANK", "PEAL_OOB_TOKEN"):
            self.environment.pop(name, None)
        self.killed = collections.Counter()
        self.stopped = collections.Counter()
        self.saw = collections.defaultdict(collections.Counter)
        self.wrong = 0
        self.card_pids = set()
        self.ended_early = False
        for number in (signal.SIGINT, signal.SIGTERM):  # the table says how far it came
            signal.signal(number, self.end_early)

    def end_early(self, *_):
        self.ended_early = True

    # --- disturbing ---

    def pause(self, job):
        time.sleep(job.dice.choice((0, 0.001, 0.01, 0.05)) * job.dice.random())

    def stop_for_a_while(self, job, kind, victim, meanwhile=None):
        """For up to a third of a second; something may happen to others meanwhile."""
        stopped = victim.send(signal.SIGSTOP)
        time.sleep(0.3 * job.dice.random() ** 2)
        if meanwhile is not None:
            meanwhile()
        if stopped:
            victim.send(signal.SIGCONT)
            self.stopped[kind] += 1

    def kill(self, kind, victim):
        if victim.send(signal.SIGKILL):
            self.killed[kind] += 1

    # --- what each kind of kill must look like ---

    def kill_ranks(self, job, count):
        victims = job.dice.sample(sorted(job.ranks), min(count, job.size - 1))
        for rank in victims:
            self.pause(job)
            others = [victim for other, victim in job.ranks.items() if other not in victims]
            self.stop_for_a_while(job, "ranks", job.dice.choice(others),
                                  lambda rank=rank: self.kill("ranks", job.ranks[rank]))
        # Some had heard of another's death, and ended, before it was their turn.
        jobs.until(lambda: all(job.ranks[rank].has_ended() for rank in victims), "the end of the victims", PATIENCE_S)
        victims = [rank for rank in victims if rank not in job.reports()]
        touched = {job.group_of(rank) for rank in victims}
        survivors = [rank for rank in job.ranks if rank not in victims]
        told = [rank for rank in survivors if job.group_of(rank) in touched]
        job.wait_for_reports(told)
        job.process.send_signal(signal.SIGUSR1)  # enough for those whom nothing has happened to
        job.wait_for_the_end(128 + signal.SIGKILL)
        reports = job.reports()
        if set(reports) != set(survivors):
            raise Wrong(f"ranks {sorted(set(survivors) ^ set(reports))} ended without a word, or should not have")
        for rank, (how, named, checked) in reports.items():
            self.saw["ranks"]["results"] += checked
            if rank in told:
                if how != "dead" or named not in victims or job.group_of(named) != job.group_of(rank):
                    raise Wrong(f"rank {rank} was told '{how} {named}', the dead are {victims}")
                self.saw["ranks"]["told"] += 1
            else:
                if how != "done":
                    raise Wrong(f"rank {rank} was told '{how} {named}', and nobody of its group is dead: {victims}")
                self.saw["ranks"]["untouched"] += 1

    def kill_cards(self, job, _):
        self.stop_for_a_while(job, "cards", job.cards)
        self.pause(job)
        self.kill("cards", job.cards)
        reports = job.wait_for_reports(job.ranks)
        job.wait_for_the_end(1)
        for rank in job.ranks:
            how, _, checked = reports.get(rank, ("nothing", 0, 0))
            if how != "card-gone":
                raise Wrong(f"rank {rank} saw '{how}' when the cards were killed")
            self.saw["cards"]["results"] += checked
            self.saw["cards"]["told"] += 1

    def kill_launcher(self, job, _):
        launcher = Victim(job.process.pid)
        self.stop_for_a_while(job, "launchers", launcher)
        self.pause(job)
        self.kill("launchers", launcher)
        launcher.close()
        job.wait_for_the_end(-signal.SIGKILL)
        for victim in [job.cards, *job.ranks.values()]:
            jobs.until(victim.has_ended, f"process {victim.pid} of a killed launcher to end", PATIENCE_S)
            self.saw["launchers"]["gone"] += 1
        if job.reports():
            raise Wrong(f"ranks of a killed launcher reported {job.reports()}")

    # --- the whole ---

    def is_ours(self, pid):
        try:
            return jobs.environment_of(pid).get(MARK) == self.folder
        except OSError:
            return False

    def run_one(self, kind, count, number):
        dice = random.Random(f"{self.arguments.seed} {kind} {number}")
        job = Job(dice, self.folder, self.environment)
        try:
            with job:
                self.card_pids.add(job.cards.pid)
                try:
                    {"ranks": self.kill_ranks, "cards": self.kill_cards, "launchers": self.kill_launcher}[kind](job, count)
                except (Wrong, jobs.Hang) as error:
                    raise Wrong(f"{error}\n{job.text()}") from error
        except Wrong as error:
            self.wrong += 1
            print(f"kills: {kind} {number} (seed {self.arguments.seed}): {' '.join(job.command)}\n  {error}", flush=True)

    def run(self):
        wanted = {"ranks": self.arguments.ranks, "cards": self.arguments.cards, "launchers": self.arguments.launchers}
        order = random.Random(self.arguments.seed)
        number = 0
        said = time.monotonic()
        while any(wanted.values()) and not self.ended_early:
            kind = order.choices(list(wanted), weights=list(wanted.values()))[0]
            count = min(wanted[kind], order.choice((1, 1, 2, 4)) if kind == "ranks" else 1)
            before = self.killed[kind]
            self.run_one(kind, count, number)
            wanted[kind] -= max(1, self.killed[kind] - before)
            number += 1
            if time.monotonic() > said + 60:
                said = time.monotonic()
                print(f"kills: {number} jobs, still to kill: {wanted}, wrong: {self.wrong}", file=sys.stderr, flush=True)
        return number

    def left_behind(self, shared_before):
        """After one more start, which collects what the killed ones left: whatever is still there."""
        subprocess.run([jobs.program("pealrun"), "-n", "1", "true"], env=self.environment, check=True)
        left = [os.path.join(self.folder, name) for name in os.listdir(self.folder)]
        left += sorted(shared_memory() - shared_before)
        # Others may run cards on this machine; these are ours.
        left += [os.path.join(place, f"peal-{pid}") for place in RUNTIME_PLACES for pid in self.card_pids
                 if os.path.exists(os.path.join(place, f"peal-{pid}"))]
        left += [f"process {pid}" for pid in os.listdir("/proc") if pid.isdigit() and self.is_ours(int(pid))
                 and int(pid) != os.getpid()]
        return left

    def table(self, seconds, number):
        saw = self.saw
        print(f"{number} jobs in {seconds:.0f} s, seed {self.arguments.seed}{', ended early' if self.ended_early else ''}")
        print(f"{'':<10} {'killed':>7} {'stopped':>8}   what the others saw")
        print(f"{'ranks':<10} {self.killed['ranks']:>7} {self.stopped['ranks']:>8}   {saw['ranks']['told']} were told, by the "
              f"right name; {saw['ranks']['untouched']} of other groups went on; {saw['ranks']['results']} results, all right")
        print(f"{'cards':<10} {self.killed['cards']:>7} {self.stopped['cards']:>8}   {saw['cards']['told']} ranks were told; "
              f"{saw['cards']['results']} results before, all right")
        print(f"{'launchers':<10} {self.killed['launchers']:>7} {self.stopped['launchers']:>8}   {saw['launchers']['gone']} "
              f"processes went with them")


def shared_memory():
    return {f"/dev/shm/{name}" for name in os.listdir("/dev/shm") if name.startswith(("peal", "rte", "dpdk"))}


def main():
    jobs.programs()
    parser = argparse.ArgumentParser(prog="kills.py PROGRAMS", description=__doc__.split("\n\n", maxsplit=1)[0])
    for name, default in (("ranks", 500), ("cards", 60), ("launchers", 40)):
        parser.add_argument(f"--{name}", type=int, default=default, help=f"how many to kill (default {default})")
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30), help="default: a new one")
    arguments = parser.parse_args()
    started = time.monotonic()
    before = shared_memory()
    with tempfile.TemporaryDirectory(prefix="peal-kills-") as folder:
        soak = Soak(arguments, folder)
        number = soak.run()
        left = soak.left_behind(before)
    soak.table(time.monotonic() - started, number)
    print(f"left behind: {', '.join(left) or 'nothing'}")
    print(f"wrong: {soak.wrong}")
    sys.exit(1 if soak.wrong or left or soak.ended_early else 0)


if __name__ == "__main__":
    main()
