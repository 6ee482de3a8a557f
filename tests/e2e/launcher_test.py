# SPDX-License-Identifier: BSD-2-Clause
"""pealrun: environment, exit status, signals, labels, jobs in two parts, and that nothing is left behind."""

import json
import os
import signal
import socket
import struct
import subprocess

import jobs


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

    def test_exit_status_of_the_first_failure(self):
        done = self.scenario(3, "exit", "7", "1", options=("--grace", "0.5"), status=7)
        self.assertIn("rank 1", done.err)
        self.assertIn("killing the other", done.err)

    def test_status_of_a_killed_rank(self):
        self.run_job(2, "sh", "-c", "[ $PEAL_RANK = 0 ] || kill -SEGV $$", status=128 + signal.SIGSEGV)

    def test_no_such_program(self):
        done = self.run_job(2, "no-such-program", status=127)
        self.assertIn("cannot start no-such-program", done.err)

    def test_timeout(self):
        command = [jobs.program("pealrun"), "-n", "2", "--timeout", "0.5", "sh", "-c", "kill -STOP $$"]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 124, done.stderr)

    def test_signals_are_forwarded(self):
        job = self.start(2, "sh", "-c", "trap 'exit 5' TERM; [ $PEAL_RANK != 0 ] || echo ready; while :; do wait; done")
        job.expect_line("ready")
        # Both shells must have set their trap: the second is ready when it spins, too.
        jobs.until(lambda: len(job.ranks()) == 2, "both ranks")
        job.process.send_signal(signal.SIGTERM)
        self.assertIn(job.finish(status=None).status, (5, 128 + signal.SIGTERM))

    def test_killed_launcher_takes_everything_along(self):
        job = self.start(2, "sh", "-c", "[ $PEAL_RANK != 0 ] || echo ready; kill -STOP $$")
        job.expect_line("ready")
        family = list(job.ranks().values()) + [job.cards()]
        job.process.kill()
        job.process.wait()
        for pid in family:
            jobs.until(lambda pid=pid: jobs.state_of(pid) in ("", "Z"), "the whole job to end")
        # A killed launcher cannot remove its folder.
        subprocess.run(["rm", "-rf", *[os.path.join(self.folder.name, name) for name in os.listdir(self.folder.name)]],
                       check=True)

    def test_counters(self):
        path = os.path.join(self.folder.name, "counters.json")
        self.scenario(2, "churn", "2", options=("--counters", path))
        with open(path, encoding="utf-8") as file:
            self.assertEqual(len(json.load(file)["cards"]), 2)
        os.unlink(path)

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
                                   PEAL_OOB=f"tcp:127.0.0.1:{port},serve", PEAL_CARD=f"emu:{sockets},card={rank}")
                ranks.append(subprocess.Popen([jobs.program("peal-perf"), "barrier", "--iterations", "50"],
                                              env=environment, stdout=subprocess.DEVNULL))
            self.assertEqual([rank.wait(jobs.PATIENCE_S) for rank in ranks], [0, 0])
        finally:
            nic.terminate()
            nic.wait()

    def test_strangers_at_the_exchange(self):
        """Garbage, a wrong size and a rank that is there already are turned away; the job does not notice."""
        path = os.path.join(self.folder.name, "oob")
        job = self.start(2, jobs.program("e2e-rank"), "gate", options=("--oob", f"unix:{path}"))
        job.expect_line("ready")
        hello = struct.Struct("<IIIIQII")
        for message in (b"GET / HTTP/1.1\r\n\r\n" + bytes(32), hello.pack(0x6F616570, 1, 0, 2, 0, 0, 1),
                        hello.pack(0x6F616570, 1, 0, 9, 0, 0, 1), hello.pack(0x6F616570, 2, 0, 2, 0, 8, 1)):
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(path)
                stranger.sendall(message)
                stranger.settimeout(jobs.PATIENCE_S)
                try:
                    self.assertEqual(stranger.recv(100), b"")  # closed
                except ConnectionResetError:
                    pass
        job.go_on()
        job.finish()

    def test_mistakes(self):
        for words in ([], ["-n", "2"], ["-n", "0", "true"], ["-n", "2", "--cards", "x", "true"],
                      ["-n", "2", "--ranks-here", "0-5", "--oob", "unix:/x", "true"], ["-n", "2", "--ranks-here", "0", "true"],
                      ["-n", "2", "--card", "emu:/x", "--loss", "0.1", "true"], ["--no-such-option"]):
            done = subprocess.run([jobs.program("pealrun"), *words], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual(done.returncode, 2, words)
        done = subprocess.run([jobs.program("pealrun"), "-n", "1", "--nic-option=--no-such-option", "true"], env=self.environment,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 125)
        self.assertIn("did not become ready", done.stderr)


if __name__ == "__main__":
    jobs.main()
