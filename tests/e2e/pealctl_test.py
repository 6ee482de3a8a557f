# SPDX-License-Identifier: BSD-2-Clause
"""pealctl choose: which algorithm would run, by which rule of which place; and the same rules are what a job runs by."""

import os
import subprocess

import jobs

HEADER = "operation       bytes          algorithm             decided by\n"
LONG = "allgather       64k-           direct                the default table: allgather:64k-:n3-16:direct\n"
BEYOND = "allgather       513-65535      all-to-all-broadcast  the default table: allgather:all-to-all-broadcast\n" + LONG


class PealctlTest(jobs.JobCase):
    def choose(self, *words):
        return subprocess.run([jobs.program("pealctl"), "choose", *words], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)

    def chosen(self, *words):
        done = self.choose("--operation", "allgather", *words)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertTrue(done.stdout.startswith(HEADER), done.stdout)
        return done.stdout[len(HEADER):]

    def refused(self, text, *words):
        done = self.choose(*words)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (2, "", f"pealctl: {text}\nTry 'pealctl --help'.\n"))

    def test_the_default_table(self):
        self.assertEqual(self.chosen("--ranks", "8"),
                         "allgather       0-512          recursive-doubling    the default table: allgather:0-512:n3-16:recursive-doubling\n" +
                         BEYOND)
        self.assertEqual(self.chosen("--ranks", "16", "--bytes", "64k"), LONG)

    def test_cards_that_remember_too_few(self):
        done = self.choose("--ranks", "17", "--operation", "alltoall", "--addresses", "16")
        self.assertEqual((done.returncode, done.stdout),
                         (0, HEADER +
                          "alltoall        0-1k           bruck                 the default table: alltoall:0-1k:n9-:bruck\n"
                          "alltoall        1025-          bruck                 the default table: alltoall:bruck "
                          "(the cards remember too few addresses for the default table: alltoall:direct)\n"))

    def test_every_operation(self):
        done = self.choose("--ranks", "8", "--bytes", "4")
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()[1:3]], ["barrier", "allgather"])

    def test_every_place(self):
        path = os.path.join(self.folder.name, "rules")
        with open(path, "w", encoding="utf-8") as file:
            file.write("# ours\nallgather:0-300:all-to-all-broadcast\n")
        self.addCleanup(os.unlink, path)
        self.environment.update(PEAL_ALGORITHMS_FILE=path, PEAL_ALGORITHMS="allgather:0-200:recursive-doubling")
        self.assertEqual(self.chosen("--ranks", "8", "--algorithms", "allgather:0-100:n8:all-to-all-broadcast"),
                         "allgather       0-100          all-to-all-broadcast  peal_group_params.algorithms: "
                         "allgather:0-100:n8:all-to-all-broadcast\n"
                         "allgather       101-200        recursive-doubling    $PEAL_ALGORITHMS: allgather:0-200:recursive-doubling\n"
                         f"allgather       201-300        all-to-all-broadcast  {path}:2: allgather:0-300:all-to-all-broadcast\n"
                         "allgather       301-512        recursive-doubling    the default table: "
                         "allgather:0-512:n3-16:recursive-doubling\n" + BEYOND)
        self.environment["PEAL_ALLGATHER_ALGORITHM"] = "recursive-doubling"
        self.assertEqual(self.chosen("--ranks", "8"),
                         "allgather       any            recursive-doubling    $PEAL_ALLGATHER_ALGORITHM: allgather:recursive-doubling\n")

    def test_a_job_runs_by_them(self):
        """8 ranks send 56 packets by all-to-all broadcast, where the default table sends 24."""
        self.environment["PEAL_ALGORITHMS"] = "allgather:0-64:all-to-all-broadcast"
        json_file = os.path.join(self.folder.name, "records.json")
        self.addCleanup(os.unlink, json_file)
        done = subprocess.run([jobs.program("peal-perf"), "allgather", "--ranks", "8", "--sizes", "64,65", "--iterations", "256", "--warmup", "0",
                               "--nic-option=--nack-us=1000000", "--nic-option=--nack-max-us=2000000", "--json", json_file,
                               f"--timeout={jobs.PATIENCE_S}"], env=self.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([record["packets_collective"] for record in jobs.records(json_file)], [56, 24])

    def test_persistent_requests(self):
        self.environment["PEAL_ALGORITHMS"] = "broadcast_init:8k-:chain"
        done = self.choose("--ranks", "8", "--operation", "broadcast_init")
        self.assertEqual((done.returncode, done.stdout),
                         (0, HEADER + "broadcast_init  0-8191         binomial              the default table: broadcast_init:0-1048575:binomial\n"
                                      "broadcast_init  8k-            chain                 $PEAL_ALGORITHMS: broadcast_init:8k-:chain\n"))

    def test_programs_are_what_rules_say(self):
        """The packets of a start (own copies are none): words that a rank is ready, and puts of up to 8 KiB."""
        counters = os.path.join(self.folder.name, "counters.json")
        self.addCleanup(os.unlink, counters)
        for operation, size, algorithm, packets in (("allgather", "64", "collected", 8 * 3),
                                                    ("allgather", "64", "recursive-doubling", 8 * (3 + 3)),
                                                    ("allgather", "64", "ring", 8 * (1 + 7)),
                                                    ("alltoall", "64", "collected", 8 * 7),
                                                    ("alltoall", "64", "direct", 8 * (7 + 7)),
                                                    ("broadcast", "128k", "binomial", 7 * (1 + 16)),
                                                    ("broadcast", "128k", "chain", 7 * (1 + 2 * 8))):
            self.environment["PEAL_ALGORITHMS"] = f"{operation}_init:{algorithm}"
            done = subprocess.run([jobs.program("peal-perf"), operation, "--persistent", "--ranks", "8", "--sizes", size, "--iterations", "50",
                                   "--warmup", "0", "--counters", counters, f"--timeout={jobs.PATIENCE_S}"], env=self.environment,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            sent = sum(card["counters"]["sent_p2p"] for card in jobs.records(counters)["cards"])
            self.assertEqual(sent, 50 * packets, (operation, algorithm))

    def test_ranks_whose_rules_differ(self):
        self.scenario(4, "rules", "1")

    def test_blocks_that_differ(self):
        done = self.choose("--ranks", "8", "--bytes", "64k", "--algorithms", "allgatherv:0-64k:direct")
        self.assertEqual(done.stdout.splitlines()[5:7],
                         ["allgatherv      0-64k          direct                peal_group_params.algorithms: allgatherv:0-64k:direct",
                          "alltoallv       any            bruck                 the default table: alltoallv:n5-8:bruck"])
        self.refused('peal_group_params.algorithms: "alltoallv:0-4k:direct": "0-4k" is a range of bytes, but in alltoallv ranks know no '
                     "common length", "--ranks", "8", "--algorithms", "alltoallv:0-4k:direct")

    def test_mistakes(self):
        self.refused("--ranks is missing")
        self.refused("--ranks: '0' is no whole number from 1 to 65536", "--ranks", "0")
        self.refused("--bytes: '4G' is no whole number from 0 to 4294967295", "--ranks", "8", "--bytes", "4G")
        self.refused('peal_group_params.algorithms: "allgather:tree": "tree" is no algorithm of allgather: expected '
                     "all-to-all-broadcast, recursive-doubling, direct or ring", "--ranks", "8", "--algorithms", "allgather:tree")
        self.environment["PEAL_ALGORITHMS_FILE"] = "/nowhere/rules"
        self.refused("opening the rules /nowhere/rules: No such file or directory", "--ranks", "8")
        done = subprocess.run([jobs.program("pealctl")], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (2, "pealctl: COMMAND is missing: choose\nTry 'pealctl --help'.\n"))


if __name__ == "__main__":
    jobs.main()
