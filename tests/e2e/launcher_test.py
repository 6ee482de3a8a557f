# SPDX-License-Identifier: BSD-2-Clause
"""pealrun: environment, exit status, signals, labels, jobs in two parts, and that nothing is left behind."""

import contextlib
import ctypes
import errno
import json
import os
import platform
import pty
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import sys
import unittest.mock

import jobs
from waiting import threads_named

# hostlib/oob_protocol.h
MAGIC, HELLO, REFUSED = 0x6F616570, 1, 8


class LauncherTest(jobs.JobCase):
    def test_environment(self):
        done = self.run_job(3, "sh", "-c", 'echo "$PEAL_RANK of $PEAL_SIZE on ${PEAL_CARD##*,}"', options=("--label",))
        self.assertEqual(sorted(done.out.split("\n"))[1:],
                         [f"[{rank}] {rank} of 3 on card={rank}" for rank in range(3)])

    def test_ranks_share_cards(self):
        done = self.run_job(4, "sh", "-c", "echo ${PEAL_CARD##*,}", options=("--cards", "2"))
        self.assertEqual(sorted(done.out.split()), ["card=0", "card=0", "card=1", "card=1"])

    def test_ranks_keep_off_the_cards_processor(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor only")
        done = self.run_job(2, "sh", "-c", "echo $PEAL_CARD_CPU; taskset -cp $$")
        card = str(max(os.sched_getaffinity(0)))
        lines = done.out.strip().split("\n")
        self.assertEqual([line for line in lines if ":" not in line], [card, card])
        for line in lines:
            if ":" in line:
                self.assertNotIn(card, line.split(":")[1].replace(",", " ").split())

    def test_ranks_use_all_processors_in_turn(self):
        cpus = sorted(os.sched_getaffinity(0))
        words = ("sh", "-c", "echo $PEAL_RANK [$PEAL_CARD_YIELDS] $(taskset -cp $$ | cut -d: -f2)")
        done = self.run_job(3, *words, options=("--placement", "shared"))
        self.assertEqual(sorted(done.out.strip().split("\n")), [f"{rank} [1] {cpus[rank % len(cpus)]}" for rank in range(3)])
        done = self.run_job(2, *words, options=("--placement", "shared", "--rank-cpus", str(cpus[-1])))
        self.assertEqual(sorted(done.out.strip().split("\n")), [f"{rank} [1] {cpus[-1]}" for rank in range(2)])

    def test_processors_that_pealrun_may_not_use_are_no_ranks(self):
        last = max(os.sched_getaffinity(0))
        allowed = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        for placement in ("apart", "shared", "balanced", "spread"):
            done = self.run_job(1, "true", options=("--placement", placement, "--rank-cpus", f"{last}-{last + 1}"), status=125)
            self.assertEqual(done.err, f"pealrun: processor {last + 1} is not among the allowed {allowed}\n")

    def test_a_rank_that_cannot_be_bound_to_its_processors_does_not_run(self):
        """A filter forbids it, as some containers have one."""
        if platform.machine() != "x86_64":
            self.skipTest("the filter knows the system calls of x86_64 only")

        def prepare():
            load, jump_equal, give = 0x20, 0x15, 0x06  # of the call's number, the first word of what a filter sees
            allow, errno_is, sched_setaffinity = 0x7FFF0000, 0x00050000, 203
            steps = [(load, 0, 0, 0), (jump_equal, 0, 1, sched_setaffinity), (give, 0, 0, errno_is | errno.EPERM), (give, 0, 0, allow)]
            words = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
            program = ctypes.create_string_buffer(struct.pack("@HP", len(steps), ctypes.addressof(words)))
            libc = ctypes.CDLL(None, use_errno=True)
            set_no_new_privileges, set_seccomp, filtered = 38, 22, 2
            for call in ((set_no_new_privileges, 1, 0, 0, 0), (set_seccomp, filtered, program, 0, 0)):
                if libc.prctl(*call) != 0:
                    raise OSError(ctypes.get_errno(), "prctl")

        cpu = min(os.sched_getaffinity(0))
        done = subprocess.run([jobs.program("pealrun"), "-n", "1", "--card", "emu:/nowhere", "--rank-cpus", str(cpu), "echo", "a rank"],
                              env=self.environment, preexec_fn=prepare, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stdout), (127, ""))
        self.assertEqual(jobs.lines_without_pids(done.stderr),
                         [f"pealrun: cannot run rank 0 on the processors {cpu}: Operation not permitted",
                          "pealrun: rank 0 (pid) exited with status 127"])

    def test_fewer_ranks_are_beside_the_cards_where_they_are_balanced(self):
        """Each polling core counts as two ranks."""
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("there is one processor only")
        two = low, high = cpus[0], cpus[-1]
        words = ("sh", "-c", "echo $PEAL_RANK [$PEAL_CARD_YIELDS] $(taskset -cp $$ | cut -d: -f2)")
        for options, expected in (((), [low, high, low, low, low, high, low, high]),
                                  (("--card-cpu", str(low)), [low, high, high, high, low, high, low, high]),
                                  (("--card-cpu", f"{low},{high}"), [low, high] * 4),
                                  (("--card-cpu", "none"), [low, high] * 4)):
            with self.subTest(options=options):
                done = self.run_job(8, *words, options=("--placement", "balanced", "--rank-cpus", ",".join(map(str, two)), *options))
                self.assertEqual(sorted(done.out.strip().split("\n")), [f"{rank} [1] {cpu}" for rank, cpu in enumerate(expected)])

    def test_a_part_of_the_job_deals_ranks_as_the_whole(self):
        cpus = sorted(os.sched_getaffinity(0))
        if len(cpus) < 2:
            self.skipTest("there is one processor only")
        self.environment["PEAL_OOB_TOKEN"] = "5a" * 16
        done = self.run_job(8, "sh", "-c", "echo $PEAL_RANK $(taskset -cp $$ | cut -d: -f2)",
                            options=("--placement", "balanced", "--rank-cpus", f"{cpus[0]},{cpus[-1]}", "--oob", "unix:/x", "--ranks-here", "4-6"))
        self.assertEqual(sorted(done.out.strip().split("\n")), [f"4 {cpus[0]}", f"5 {cpus[-1]}", f"6 {cpus[0]}"])

    def test_a_rank_finds_sigpipe_as_pealrun_did(self):
        """A program whose reader is gone ends by it, unless whoever starts pealrun has it ignored, as Python itself has."""
        for ignored in (False, True):
            done = subprocess.run([jobs.program("pealrun"), "-n", "1", "grep", "SigIgn", "/proc/self/status"], env=self.environment,
                                  restore_signals=not ignored, capture_output=True, text=True, check=True)
            self.assertEqual(bool(int(done.stdout.split()[1], 16) >> (signal.SIGPIPE - 1) & 1), ignored)

    def test_children_are_waited_for_where_nobody_waits_for_pealrun(self):
        """SIGCHLD is ignored by some daemons. A rank finds it, and its limit of descriptors, as pealrun did."""
        def prepare(ignored):
            signal.signal(signal.SIGCHLD, signal.SIG_IGN if ignored else signal.SIG_DFL)
            resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000))

        # (A shell has its own way with that signal.)
        words = ("import os, resource as r, signal as s, sys\n"
                 "print(s.getsignal(s.SIGCHLD) == s.SIG_IGN, *(r.prlimit(pid, r.RLIMIT_NOFILE) for pid in (0, os.getppid())))\n"
                 "sys.exit(3)\n")
        for ignored in (False, True):
            done = subprocess.run([jobs.program("pealrun"), "-n", "1", "--timeout", "60", sys.executable, "-c", words], env=self.environment,
                                  preexec_fn=lambda ignored=ignored: prepare(ignored), capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (3, f"{ignored} (100, 1000) (1000, 1000)\n"))
            self.assertEqual(jobs.lines_without_pids(done.stderr), ["pealrun: rank 0 (pid) exited with status 3"])

    def test_cards_have_the_limit_that_pealrun_was_given(self):
        starter, told = (os.path.join(self.folder.name, name) for name in ("starter", "told"))
        with open(starter, "w", encoding="ascii") as file:
            file.write(f'#!/bin/sh\nulimit -n > "{told}"\nexec "{jobs.program("peal-nic")}" "$@"\n')
        os.chmod(starter, 0o755)
        subprocess.run([jobs.program("pealrun"), "-n", "1", "--nic", starter, "true"], env=self.environment,
                       preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, 1000)), check=True)
        with open(told, encoding="ascii") as file:
            self.assertEqual(file.read(), "100\n")
        for name in (starter, told):
            os.unlink(name)

    def test_a_rank_without_input_has_none_however_few_descriptors_it_may_have(self):
        """What is opened for it counts among pealrun's."""
        done = subprocess.run([jobs.program("pealrun"), "-n", "2", "-l", "--card", "emu:/nowhere", "readlink", "/proc/self/fd/0"],
                              env=self.environment, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (5, 1000)),
                              input="", capture_output=True, text=True, check=True)
        self.assertIn("[1] /dev/null", done.stdout.splitlines())

    def test_what_another_launcher_said_of_its_cards_is_not_said_of_these(self):
        said = {"PEAL_CARD_YIELDS": "1", "PEAL_CARD_CPU": "99", "PEAL_SECOND_CARD": "emu:/x,card=1"}
        with unittest.mock.patch.dict(self.environment, said):
            done = self.run_job(1, "sh", "-c", "echo [$PEAL_CARD_YIELDS] [$PEAL_SECOND_CARD] [$PEAL_CARD_CPU]")
        self.assertRegex(done.out.strip(), r"^\[\] \[\] \[(?!99\])[0-9]*\]$")

    def test_second_cards_are_behind_those_of_all_ranks(self):
        """In a part of the job too, and wherever cards poll: a rank's two cards may be of two polling cores."""
        self.environment["PEAL_OOB_TOKEN"] = "5a" * 16
        several = min(len(os.sched_getaffinity(0)), 10)
        words = ("sh", "-c", "echo $PEAL_RANK [${PEAL_SECOND_CARD##*/}]")
        for options, cores, ranks in ((("--cards", "10"), 1, range(5)),
                                      (("--cards", "11"), 1, range(5)),
                                      (("--cards", "10", "--placement", "balanced"), 1, range(5)),
                                      (("--cards", "10", "--placement", "spread"), several, range(5)),
                                      (("--cards", "10", "--ranks-here", "2-3", "--oob", "unix:/x"), 1, range(2, 4)),
                                      ((), 0, range(5)),
                                      (("--cards", "9"), 0, range(5)),
                                      (("--cards", "4", "--ranks-here", "2-3", "--oob", "unix:/x"), 0, range(2, 4)),
                                      (("--card", "emu:/x,card=0"), 0, range(5))):
            with self.subTest(options=options):
                done = self.run_job(5, *words, options=options)
                self.assertEqual(sorted(done.out.strip().split("\n")),
                                 [f"{rank} [{f'cards{(rank + 5) % cores or str()},card={(rank + 5) // cores}' if cores else ''}]"
                                  for rank in ranks])

    def test_cards_give_way_where_ranks_share_their_processor(self):
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor only")
        path = os.path.join(self.folder.name, "counters.json")
        for placement in ("apart", "shared", "balanced", "spread"):
            self.scenario(2, "churn", "2", options=("--placement", placement, "--counters", path))
            with open(path, encoding="utf-8") as file:
                self.assertEqual(json.load(file)["loop"]["yields"] > 0, placement != "apart")
            os.unlink(path)

    def test_only_the_loop_has_the_cards_processor(self):
        """Who wakes hosts would wait there for the loop, which polls."""
        if len(os.sched_getaffinity(0)) < 2:
            self.skipTest("there is one processor only")
        job = self.start(2, "sh", "-c", "[ $PEAL_RANK != 0 ] || echo ready; kill -STOP $$")
        job.expect_line("ready")
        card = max(os.sched_getaffinity(0))
        cards = job.cards()

        def threads():
            return [int(name) for name in os.listdir(f"/proc/{cards}/task")]

        def there():
            return [thread for thread in threads() if card in os.sched_getaffinity(thread)]

        # (Its thread has the processor before it has its name.)
        jobs.until(lambda: len(there()) == 1 and len(threads()) > 2 and set(there()) <= set(threads_named(cards, "peal-loop")),
                   "the loop to have the processor alone")
        job.process.kill()
        job.process.wait()
        jobs.until(lambda: jobs.state_of(cards) in ("", "Z"), "the whole job to end")
        self.run_job(1, "true")  # removes the folder that a killed launcher left

    def test_exit_status_of_the_first_failure(self):
        done = self.scenario(3, "exit", "7", "1", options=("--grace", "0.5"), status=7)
        self.assertRegex(done.err, r"\Apealrun: rank 1 \(pid \d+\) exited with status 7\n"
                                   r"pealrun: killing the other 2 ranks\n"
                                   r"(pealrun: rank [02] \(pid \d+\) was killed by signal 9 \(Killed\)\n){2}\Z")

    def test_grace_begins_when_the_cards_die(self):
        """For ranks that do not notice."""
        job = self.start(2, "sh", "-c", "[ $PEAL_RANK != 0 ] || echo ready; kill -STOP $$", options=("--grace", "0.5"))
        job.expect_line("ready")
        os.kill(job.cards(), signal.SIGKILL)
        self.assertEqual(jobs.lines_without_pids(job.finish(status=1).err),
                         ["pealrun: killing the other 2 ranks", "pealrun: peal-nic ended before the ranks",
                          *(f"pealrun: rank {rank} (pid) was killed by signal 9 (Killed)" for rank in range(2))])

    def test_status_of_a_killed_rank(self):
        self.run_job(2, "sh", "-c", "[ $PEAL_RANK = 0 ] || kill -SEGV $$", status=128 + signal.SIGSEGV)

    def test_no_such_program(self):
        done = self.run_job(2, "no-such-program", status=127)
        self.assertEqual(jobs.lines_without_pids(done.err),
                         ["pealrun: cannot start no-such-program: No such file or directory"] * 2 +
                         [f"pealrun: rank {rank} (pid) exited with status 127" for rank in range(2)])

    def test_timeout(self):
        command = [jobs.program("pealrun"), "-n", "2", "--timeout", "0.5", "sh", "-c", "kill -STOP $$"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 124, done.stderr)

    def test_timeout_kills_what_ranks_started(self):
        """In their process group or in a session of its own; and nobody waits for output that these might write."""
        command = [jobs.program("pealrun"), "-n", "2", "-l", "--timeout", "1", "sh", "-c",
                   "setsid sh -c 'sleep 1000; true' & echo started; sleep 1000; true"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=jobs.PATIENCE_S, check=False)
        self.assertEqual((done.returncode, sorted(done.stdout.splitlines())), (124, ["[0] started", "[1] started"]))
        self.assertEqual(jobs.lines_without_pids(done.stderr),
                         ["pealrun: killing 2 ranks after 1 s",
                          *(f"pealrun: rank {rank} (pid) was killed by signal 9 (Killed)" for rank in range(2))])
        self.assertEqual(self.left(), [])

    def test_who_does_not_end_is_not_waited_for(self):
        """Who is traced has not ended for his parent, however often he is killed, before his tracer has seen it. Nobody else is said not to end."""
        job = self.start(2, "sh", "-c", "[ $PEAL_RANK = 0 ] || exec sleep 1000; setsid sleep 1000 & setsid sleep 1000 & echo ready; read line; exit 7",
                         options=("--grace", "0.1"))
        job.expect_line("ready")
        ranks = {}  # (one that begins another program has no environment for a moment)
        jobs.until(lambda: ranks.update(job.ranks()) or 1 in ranks, "rank 1")
        traced = ranks[1]
        seize = 0x4206
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.ptrace(seize, traced, None, None) != 0:
            self.skipTest(f"may not trace: {os.strerror(ctypes.get_errno())}")
        job.go_on()
        done = job.finish(status=7)
        os.waitpid(traced, 0)
        self.assertEqual(jobs.lines_without_pids(done.err),
                         ["pealrun: 1 processes do not end", "pealrun: killing the other 1 ranks",
                          "pealrun: rank 0 (pid) exited with status 7"])

    def test_nothing_that_ranks_started_outlives_the_job(self):
        for options in ((), ("--label",)):
            for status in (0, 7):
                with self.subTest(options=options, status=status):
                    done = self.run_job(1, "sh", "-c", f"setsid sleep 1000 & sleep 1000 & exit {status}",
                                        options=("--grace", "0.1", *options), status=status)
                    said = [] if status == 0 else [f"pealrun: rank 0 (pid) exited with status {status}"]
                    self.assertEqual(jobs.lines_without_pids(done.err), ["pealrun: ending what the ranks left behind", *said])
                    self.assertEqual(self.left(), [])

    def test_what_ranks_started_is_asked_to_end_before_it_is_killed(self):
        """Those who were left behind only then, too."""
        tidy = "trap 'echo tidied; exit' TERM; echo ready; while :; do sleep 0.01; done"
        for other, said in (("true", []), ("(trap '' TERM; exec sleep 1000)", ["pealrun: killing what the ranks left behind"])):
            job = self.start(1, "sh", "-c", f'{other} & setsid sh -c "{tidy}" & read line; (sh -c "{tidy}"; true) & read line',
                             options=("--grace", "2"))
            for _ in range(2):
                job.expect_line("ready")
                job.go_on()
            done = job.finish()
            self.assertEqual(done.out.split(), ["tidied", "tidied"])
            self.assertEqual(done.err.splitlines(), ["pealrun: ending what the ranks left behind", *said])
            self.assertEqual(self.left(), [])

    def test_cards_that_another_program_has_started_end_with_it(self):
        """Wherever that is, and in good order: they leave nothing."""
        starter, counters = (os.path.join(self.folder.name, name) for name in ("starter", "counters"))
        for words in ('"$NIC" "$@"; true', 'setsid "$NIC" "$@" & wait'):
            with open(starter, "w", encoding="ascii") as file:
                file.write(f"#!/bin/sh\n{words}\n")
            os.chmod(starter, 0o755)
            with unittest.mock.patch.dict(self.environment, {"NIC": jobs.program("peal-nic")}):
                done = self.scenario(2, "churn", "2", options=("--nic", starter, "--counters", counters), status=1)
            self.assertEqual(done.err, "pealrun: peal-nic did not end well\n")
            self.assertEqual(self.left(), [])
            for name in (starter, counters):  # who is killed writes none
                os.unlink(name)

    def test_what_ranks_started_may_finish(self):
        """A tee has their last words. When it ends the job does."""
        for status in (0, 3):
            done = self.run_job(1, "sh", "-c", f"{{ while [ -d /proc/$$ ]; do sleep 0.1; done; sleep 0.1; echo last; }} & exit {status}",
                                options=("--label", "--grace", "1000"), status=status)
            self.assertEqual(done.out, "[0] last\n")

    def test_signals_are_forwarded_to_what_ranks_left_behind(self):
        job = self.start(1, "sh", "-c", "sleep 1000 & echo ready", options=("--grace", "1000"))
        job.expect_line("ready")
        jobs.until(lambda: jobs.names_of(jobs.children(job.process.pid)) == ["peal-nic", "sleep"], "the end of the rank")
        job.process.send_signal(signal.SIGTERM)
        job.finish()
        self.assertEqual(self.left(), [])

    def test_children_that_pealrun_came_with_are_not_the_jobs(self):
        """A shell that becomes pealrun leaves it its own."""
        words = 'sleep 1000 >&- 2>&- & echo $!; exec "$0" -n 1 --grace 0.1 sh -c "sleep 1000 &"'
        done = subprocess.run(["sh", "-c", words, jobs.program("pealrun")], env=self.environment, capture_output=True, text=True,
                              timeout=jobs.PATIENCE_S, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, "pealrun: ending what the ranks left behind\n"))
        self.assertEqual(self.left(), ["sleep 1000"])
        os.kill(int(done.stdout), signal.SIGKILL)

    def test_output_that_somebody_else_holds_is_not_waited_for(self):
        job = self.start(1, "sh", "-c", "echo ready; kill -STOP $$", options=("--label",))
        job.expect_line("[0] ready")
        rank = job.ranks()[0]
        with open(f"/proc/{rank}/fd/1", "w", encoding="ascii"):
            os.kill(rank, signal.SIGKILL)
            job.finish(status=128 + signal.SIGKILL)

    def test_labelled_output_is_all_that_ranks_say(self):
        """Zero bytes, a last line without an end, and what they say to standard error: all comes out at standard output."""
        done = self.run_job(1, "sh", "-c", r"printf 'a\0b\n'; echo error >&2; printf 'c\0d'", options=("-l",))
        self.assertEqual((done.out, done.err), ("[0] a\0b\n[0] error\n[0] c\0d\n", ""))

    def test_all_output_comes_however_slow_its_reader(self):
        """Whole lines, in order, of ranks that write faster than anybody reads; to a file, a pipe, a socket and a terminal."""
        count = 20000
        ours, its = socket.socketpair()
        terminal, tty = pty.openpty()
        path = os.path.join(self.folder.name, "output")
        readers = {"file": (os.open(path, os.O_WRONLY | os.O_CREAT), os.open(path, os.O_RDONLY)), "pipe": os.pipe()[::-1],
                   "socket": (its.detach(), ours.detach()), "terminal": (tty, terminal)}
        os.unlink(path)
        for name, (output, reader) in readers.items():
            with self.subTest(output=name):
                job = subprocess.Popen([jobs.program("pealrun"), "-n", "2", "-l", "--card", "emu:/nowhere", "seq", str(count)],
                                       env=self.environment, stdout=output)
                os.close(output)
                if name == "file":
                    job.wait()
                text = b""
                with contextlib.suppress(OSError):  # (what a terminal says at its end)
                    while piece := os.read(reader, 1000):
                        text += piece
                os.close(reader)
                self.assertEqual(job.wait(), 0)
                lines = text.decode().split()
                for rank in range(2):
                    said = [int(number) for label, number in zip(lines[::2], lines[1::2]) if label == f"[{rank}]"]
                    self.assertEqual(said, list(range(1, count + 1)))

    def test_who_does_not_read_the_output_keeps_nobody_waiting(self):
        """Neither --timeout nor signals. Afterwards a signal ends the wait for the reader."""
        reader, output = os.pipe()
        self.addCleanup(os.close, reader)
        command = [jobs.program("pealrun"), "-l", "-n", "2", "yes"]
        done = subprocess.run([*command[:1], "--timeout", "0.5", *command[1:]], env=self.environment, stdout=output,
                              stderr=subprocess.PIPE, text=True, timeout=jobs.PATIENCE_S, check=False)
        self.assertEqual(done.returncode, 124)
        self.assertEqual(jobs.lines_without_pids(done.stderr),
                         ["pealrun: killing 2 ranks after 0.5 s", "pealrun: output that nobody has read is lost",
                          *(f"pealrun: rank {rank} (pid) was killed by signal 9 (Killed)" for rank in range(2))])
        os.close(output)
        for again in (False, True):
            job = jobs.Running(self, command)
            pid = job.process.pid
            jobs.until(lambda pid=pid: jobs.names_of(jobs.children(pid)) == ["peal-nic", "yes", "yes"], "the ranks")
            self.assertNotEqual(select.select([job.process.stdout], [], [], jobs.PATIENCE_S)[0], [])
            # Their pipes are full then: with labels that is more than the one that nobody reads takes.
            ranks = [child for child in jobs.children(pid) if jobs.names_of([child]) == ["yes"]]
            jobs.until(lambda ranks=ranks: {jobs.state_of(rank) for rank in ranks} == {"S"}, "ranks that wait")
            job.process.send_signal(signal.SIGTERM)
            jobs.until(lambda pid=pid: jobs.names_of(jobs.children(pid)) == ["peal-nic"], "the end of the ranks")
            said = [f"pealrun: rank {rank} (pid) was killed by signal 15 (Terminated)" for rank in range(2)]
            if again:
                job.process.send_signal(signal.SIGTERM)
                job.process.wait(jobs.PATIENCE_S)
                said.insert(0, "pealrun: output that nobody has read is lost")
            done = job.finish(status=128 + signal.SIGTERM)
            self.assertEqual(jobs.lines_without_pids(done.err), said)
            lines = done.out.splitlines()  # (the last may be cut where the rest is lost)
            self.assertLessEqual(set(lines[:-1] if again else lines), {"[0] y", "[1] y"})

    def test_signals_are_forwarded(self):
        job = self.start(2, "sh", "-c", "trap 'exit 5' TERM; [ $PEAL_RANK != 0 ] || echo ready; while :; do wait; done")
        job.expect_line("ready")
        # Both shells must have set their trap: the second is ready when it spins, too.
        jobs.until(lambda: len(job.ranks()) == 2, "both ranks")
        job.process.send_signal(signal.SIGTERM)
        self.assertIn(job.finish(status=None).status, (5, 128 + signal.SIGTERM))

    def test_a_terminals_signal_reaches_each_rank_once(self):
        """Those in pealrun's process group have it from the terminal, and others from pealrun."""
        script = "trap 'echo got' INT; trap 'exit 0' USR1; echo ready; while :; do sleep 0.01; done"
        command = [jobs.program("pealrun"), "-n", "2", "-l", "--timeout", "60", "sh", "-c",
                   f'[ $PEAL_RANK = 0 ] || exec setsid sh -c "{script}"; {script}']
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(command[0], command, self.environment)
        output = ""

        def expect(count, line):
            nonlocal output
            while output.count(f"[0] {line}") < count or output.count(f"[1] {line}") < count:
                self.assertNotEqual(select.select([terminal], [], [], jobs.PATIENCE_S)[0], [], output)
                output += os.read(terminal, 4096).decode()

        self.addCleanup(os.close, terminal)
        expect(1, "ready")
        # Each is forwarded before the next, and may become one with it while that waits.
        for count in range(1, 11):
            os.write(terminal, b"\x03")
            expect(count, "got")
        os.kill(pid, signal.SIGUSR1)
        while True:
            try:
                output += os.read(terminal, 4096).decode()
            except OSError:  # nobody has it open any more
                break
        self.assertEqual(os.waitpid(pid, 0)[1], 0, output)
        self.assertEqual(output.count("got"), 20, output)

    def script(self, name, words):
        """A program that a shell runs, in the test's folder."""
        path = os.path.join(self.folder.name, name)
        with open(path, "w", encoding="ascii") as file:
            file.write(f"#!/bin/sh\n{words}\n")
        os.chmod(path, 0o755)
        self.addCleanup(os.unlink, path)
        return path

    def interrupted_at(self, word, command):
        """What is at the terminal of a job that is interrupted there when it has said this, and ends by it."""
        pid, terminal = pty.fork()
        if pid == 0:
            os.execve(command[0], command, self.environment)
        self.addCleanup(os.close, terminal)
        output, interrupted = "", False
        while True:
            try:
                output += os.read(terminal, 4096).decode()
            except OSError:  # nobody has it open any more
                break
            if word in output and not interrupted:
                interrupted = os.write(terminal, b"\x03") == 1
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 128 + signal.SIGINT, output)
        return output

    def test_a_terminals_signal_ends_a_job_whose_cards_start(self):
        """No rank is there that it could reach, and the cards are in a process group of their own."""
        starter = self.script("starter", 'echo "starting"; sleep 1000; exec "$NIC" "$@"')
        command = [jobs.program("pealrun"), "-n", "1", "--nic", starter, "echo", "a rank"]
        with unittest.mock.patch.dict(self.environment, {"NIC": jobs.program("peal-nic")}):
            output = self.interrupted_at("starting", command)
        self.assertEqual(output.replace("^C", "").split("\r\n"),
                         ["starting", "pealrun: ended by signal 2 (Interrupt) before all ranks were started", ""])
        self.assertEqual(self.left(), [])

    def test_a_terminals_signal_ends_a_job_whose_ranks_start(self):
        """Those that come after it have not got it. (Where all are there before it, they have: the same.)"""
        command = [jobs.program("pealrun"), "-n", "300", "--grace", "never", "--timeout", "60", "--card", "emu:/nowhere",
                   "sh", "-c", '[ "$PEAL_RANK" != 0 ] || echo "ready"; exec sleep 1000']
        self.interrupted_at("ready", command)
        self.assertEqual(self.left(), [])

    def test_a_signal_ends_a_job_before_its_ranks(self):
        """Unless pealrun was started to ignore it: then ranks are, too."""
        def prepare(number, handler):
            signal.signal(number, handler)
            signal.pthread_sigmask(signal.SIG_BLOCK, {number})
            os.kill(os.getpid(), number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            for ignored in (False, True):
                handler = signal.SIG_IGN if ignored else signal.SIG_DFL
                done = subprocess.run([jobs.program("pealrun"), "-n", "1", "--card", "emu:/nowhere", "echo", "a rank"], env=self.environment,
                                      preexec_fn=lambda number=number, handler=handler: prepare(number, handler),
                                      capture_output=True, text=True, check=False)
                said = f"pealrun: ended by signal {number:d} ({signal.strsignal(number)}) before all ranks were started\n"
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "a rank\n", "") if ignored else (128 + number, "", said))

    def test_killed_launcher_takes_everything_along(self):
        job = self.start(2, "sh", "-c", "[ $PEAL_RANK != 0 ] || echo ready; kill -STOP $$")
        job.expect_line("ready")
        family = list(job.ranks().values()) + [job.cards()]
        job.process.kill()
        job.process.wait()
        for pid in family:
            jobs.until(lambda pid=pid: jobs.state_of(pid) in ("", "Z"), "the whole job to end")
        # A killed launcher cannot remove its folder: the next one does.
        self.assertEqual(len(os.listdir(self.folder.name)), 1)
        self.run_job(1, "true")

    def test_only_what_the_dead_left_is_collected(self):
        """Not the folder of a living job, nor anything else that is called so."""
        job = self.start(1, jobs.program("e2e-rank"), "gate")
        job.expect_line("ready")
        living = os.listdir(self.folder.name)
        self.assertEqual(len(living), 1)
        inside = os.listdir(os.path.join(self.folder.name, living[0]))
        others = ["pealrun-abcdef", "pealrun-of-mine", "pealrun-link00"]
        for name in others[:2]:
            os.mkdir(os.path.join(self.folder.name, name))
        target = os.path.join(self.folder.name, "pealrun-of-mine")
        os.symlink(target, os.path.join(self.folder.name, others[2]))
        with open(os.path.join(target, "file"), "w", encoding="ascii"):
            pass
        os.mkdir(os.path.join(self.folder.name, "pealrun-abcdef", "cards"))
        self.run_job(1, "true")
        self.assertEqual(sorted(os.listdir(self.folder.name)), sorted([*living, "pealrun-link00", "pealrun-of-mine"]))
        self.assertEqual(os.listdir(target), ["file"])
        self.assertEqual(os.listdir(os.path.join(self.folder.name, living[0])), inside)
        os.unlink(os.path.join(self.folder.name, "pealrun-link00"))
        os.unlink(os.path.join(target, "file"))
        os.rmdir(target)
        job.go_on()
        job.finish()

    def test_counters(self):
        path = os.path.join(self.folder.name, "counters.json")
        self.scenario(2, "churn", "2", options=("--counters", path))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["cards"]), 2)
        os.unlink(path)

    def test_a_rank_that_ends_before_it_connects_is_missed(self):
        done = self.run_job(3, "sh", "-c", '[ $PEAL_RANK = 1 ] || exec "$0" gate', jobs.program("e2e-rank"),
                            options=("--grace", "never"), status=1)
        self.assertEqual(len(re.findall(r"last text: [^\n]*rank 1 is gone or out of step\n", done.err)), 2, done.err)

    def test_a_child_connects_for_its_rank(self):
        """And may go on when that has ended."""
        self.run_job(2, "sh", "-c", '"$0" churn 1 && true', jobs.program("e2e-rank"))
        path = os.path.join(self.folder.name, "end")
        job = self.start(2, "sh", "-c", f'[ $PEAL_RANK = 1 ] || exec "$0" gate; "$0" gate & while [ ! -e "{path}" ]; do sleep 0.01; done',
                         jobs.program("e2e-rank"), options=("--grace", "1000"))
        job.expect_line("ready")
        rank = job.ranks()[1]
        with open(path, "w", encoding="ascii"):
            pass
        jobs.until(lambda: jobs.state_of(rank) == "", "the end of the rank")
        os.unlink(path)
        job.go_on()
        job.finish()

    def test_two_parts_over_tcp(self):
        """Half the ranks are started elsewhere, on the same cards."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        sockets = os.path.join(self.folder.name, "cards")
        nic = subprocess.Popen([jobs.program("peal-nic"), "--cards", "4", "--socket", sockets], env=self.environment,
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            jobs.until(lambda: os.path.exists(sockets), "the cards")
            urls = [word for card in range(4) for word in ("--card", f"emu:{sockets},card={card}")]
            oob = ("--oob", f"tcp:127.0.0.1:{port}")
            self.environment["PEAL_OOB_TOKEN"] = os.urandom(16).hex()
            words = [jobs.program("e2e-rank"), "churn", "3"]
            second = self.start(4, *words, options=(*urls, *oob, "--ranks-here", "2-3"))
            self.run_job(4, *words, options=(*urls, *oob, "--ranks-here", "0-1"))
            second.finish()
        finally:
            nic.terminate()
            nic.wait()

    def test_rank_0_serves_the_exchange(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        sockets = os.path.join(self.folder.name, "cards")
        nic = subprocess.Popen([jobs.program("peal-nic"), "--cards", "2", "--socket", sockets], env=self.environment,
                               stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        try:
            jobs.until(lambda: os.path.exists(sockets), "the cards")
            ranks = []
            for rank in range(2):
                environment = dict(self.environment, PEAL_RANK=str(rank), PEAL_SIZE="2",
                                   PEAL_OOB=f"tcp:127.0.0.1:{port},serve", PEAL_OOB_TOKEN="5a" * 16, PEAL_CARD=f"emu:{sockets},card={rank}")
                ranks.append(subprocess.Popen([jobs.program("peal-perf"), "barrier", "--iterations", "50"],
                                              env=environment, stdout=subprocess.DEVNULL))
            self.assertEqual([rank.wait(jobs.PATIENCE_S) for rank in ranks], [0, 0])
        finally:
            nic.terminate()
            nic.wait()

    def test_strangers_at_the_exchange(self):
        """Garbage, half-open connections, a wrong token and a rank that is there already are turned away by name,
        and counted; the job does not notice."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            address = probe.getsockname()
        job = self.start(2, jobs.program("e2e-rank"), "gate", options=("--oob", f"tcp:127.0.0.1:{address[1]}"))
        job.expect_line("ready")
        message = struct.Struct("<IIIIQII")
        nonsense, token = 0, 3
        for text, reason in ((b"GET / HTTP/1.1\r\n\r\n" + bytes(32), nonsense),
                             (message.pack(MAGIC, HELLO, 1, 2, 0, 32, 2) + bytes(32), token)):
            with socket.create_connection(address) as stranger:
                stranger.settimeout(jobs.PATIENCE_S)
                stranger.sendall(text)
                answer = message.unpack(stranger.recv(message.size, socket.MSG_WAITALL))
                self.assertEqual(answer[:3], (MAGIC, REFUSED, reason))
                self.assertEqual(stranger.recv(100), b"")  # closed
        half_open = socket.create_connection(address)
        self.addCleanup(half_open.close)
        # A program of the same user that knows the token, but is no rank that is missing.
        knowing = dict(self.environment, PEAL_RANK="0", PEAL_SIZE="2", PEAL_OOB=f"tcp:127.0.0.1:{address[1]}",
                       PEAL_OOB_TOKEN=jobs.environment_of(job.ranks()[0])["PEAL_OOB_TOKEN"])
        for environment, reason in ((knowing, "rank there already"), (dict(knowing, PEAL_SIZE="3"), "another size of the job"),
                                    (dict(knowing, PEAL_OOB_TOKEN="5a" * 16), "wrong token")):
            done = subprocess.run([jobs.program("e2e-rank"), "gate"], env=environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 1)
            self.assertRegex(done.stderr,
                             r'\A[^ ]+/rank_main\.cpp:\d+: rank 0: peal_oob_connect\(nullptr, job\.rank, job\.size, 0, &job\.oob\): '
                             r'"the out-of-band exchange failed" instead of "success"; last text: '
                             rf"tcp:127\.0\.0\.1:{address[1]} refused rank 0 of {environment['PEAL_SIZE']}: {reason}\n\Z")
        job.go_on()
        self.assertEqual(job.finish().err, "pealrun: at the exchange 5 strangers refused: 1 no exchange of Peal's, 2 wrong "
                                           "token, 1 another size of the job, 1 rank there already\n")

    def test_token_is_nowhere_to_be_seen(self):
        """Every job has another; it is in the ranks' environment and in no command line."""
        tokens = set()
        for _ in range(2):
            job = self.start(2, jobs.program("e2e-rank"), "gate")
            job.expect_line("ready")
            family = [job.process.pid, job.cards(), *job.ranks().values()]
            token = jobs.environment_of(job.ranks()[0])["PEAL_OOB_TOKEN"]
            self.assertRegex(token, "^[0-9a-f]{32}$")
            for pid in family:
                with open(f"/proc/{pid}/cmdline", encoding="utf-8") as file:
                    self.assertNotIn(token, file.read())
            self.assertNotIn("PEAL_OOB_TOKEN", jobs.environment_of(job.cards()))
            tokens.add(token)
            job.go_on()
            job.finish()
        self.assertEqual(len(tokens), 2)

    def test_mistakes(self):
        self.environment["PEAL_OOB_TOKEN"] = "5a" * 16
        oob = ["--oob", "unix:/x"]
        for words, wrong in (
                ([], "-n RANKS is missing"),
                (["-n", "2"], "PROGRAM is missing"),
                (["-n", "0", "true"], "--ranks: '0' is no whole number from 1 to 65536"),
                (["-n", "2", "--cards", "x", "true"], "--cards: 'x' is no whole number from 1 to 65536"),
                (["-n", "2", "--loss", "1.5", "true"], "--loss: '1.5' is no number from 0 to 1"),
                (["-n", "2", "--fault-plan", "partition=3-1:0-5", "true"],
                 "--fault-plan: partition of cards 3-1: the first card must not exceed the last"),
                (["-n", "2", "--grace", "soon", "true"], "--grace: 'soon' is neither seconds nor 'never'"),
                (["-n", "2", "--timeout", "-1", "true"], "--timeout: '-1' is no number from 0 to 1e+09"),
                (["-n", "2", "--ranks-here", "0-5", *oob, "true"], "--ranks-here: '0-5' is no A-B within the ranks 0-1"),
                (["-n", "2", "--ranks-here", "0", "true"], "--ranks-here needs --oob ADDRESS"),
                (["-n", "2", "--card", "emu:/x", "--loss", "0.1", "true"],
                 "--card names cards that are not started here, so --cards, --nic-option and faults make no sense"),
                (["-n", "2", "--placement", "near", "true"], "--placement: 'near' is none of apart, shared, balanced, spread"),
                *((["-n", "2", "--placement", placement, *words, "true"], f"--placement {placement} {wrong}")
                  for placement in ("shared", "balanced")
                  for words, wrong in ((["--card", "emu:/x"], "is of cards that are started here, and --card names others"),
                                       (["--rank-cpus", "none"], "binds each rank to a processor, and --rank-cpus none does not"))),
                (["--no-such-option", "-n", "2", "true"], "there is no option --no-such-option")):
            done = subprocess.run([jobs.program("pealrun"), *words], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"pealrun: {wrong}\nTry 'pealrun --help'.\n"), words)

    def test_what_follows_the_program_is_the_programs(self):
        for mark in ([], ["--"]):
            done = subprocess.run([jobs.program("pealrun"), "-n", "1", *mark, "echo", "-n", "--label", "--", "[a,b]"],
                                  env=self.environment, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "--label -- [a,b]", ""))

    def test_mistakes_that_show_later(self):
        self.environment["PEAL_OOB_TOKEN"] = "5a" * 16
        for token, status, wrong in (
                ("", 2, "--ranks-here needs the same 32 secret hexadecimal digits in all parts' $PEAL_OOB_TOKEN\n"
                        "Try 'pealrun --help'."),
                ("5a", 125, "$PEAL_OOB_TOKEN has 2 characters or strange ones: expected 32 hexadecimal digits")):
            environment = dict(self.environment, PEAL_OOB_TOKEN=token)
            done = subprocess.run([jobs.program("pealrun"), "-n", "2", "--ranks-here", "0-0", "--oob", "tcp:127.0.0.1:1", "true"],
                                  env=environment, capture_output=True, text=True, check=False)
            self.assertEqual((done.returncode, done.stderr), (status, f"pealrun: {wrong}\n"))
        done = subprocess.run([jobs.program("pealrun"), "-n", "1", "--nic-option=--no-such-option", "true"], env=self.environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr),
                         (125, "peal-nic: there is no option --no-such-option\nTry 'peal-nic --help'.\n"
                               f"pealrun: {jobs.program('peal-nic')} did not become ready\n"))


if __name__ == "__main__":
    jobs.main()
