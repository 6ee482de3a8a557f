# SPDX-License-Identifier: BSD-2-Clause
"""Cards on several polling cores (pealrun --placement spread): where they are, every operation over frames that cross between cores, with
loss and late ranks too, and that a death is told across them."""

import json
import os
import signal
import subprocess

import jobs

SPREAD = ("--placement", "spread")
LOSS = ("--loss", "0.02", "--seed", "5")


class PollingCoresTest(jobs.JobCase):
    def setUp(self):
        super().setUp()
        self.cores = len(os.sched_getaffinity(0))

    def test_a_rank_and_its_card_are_on_the_same_processor(self):
        cpus = sorted(os.sched_getaffinity(0))
        done = self.run_job(5, "sh", "-c", "echo $PEAL_RANK ${PEAL_CARD##*/} $(taskset -cp $$ | cut -d: -f2)", options=SPREAD)
        cores = min(self.cores, 5)
        expected = [f"{rank} cards{rank % cores or ''},card={rank // cores} {cpus[rank % self.cores]}" for rank in range(5)]
        self.assertEqual(sorted(done.out.strip().split("\n")), expected)

    def test_a_core_for_each_card_at_most(self):
        done = self.run_job(4, "sh", "-c", "echo ${PEAL_CARD##*/}", options=(*SPREAD, "--cards", "1"))
        self.assertEqual(done.out.split(), ["cards,card=0"] * 4)

    def test_a_core_on_each_processor_that_is_named(self):
        cpus = ",".join(map(str, sorted(os.sched_getaffinity(0))))
        done = self.run_job(3, "sh", "-c", "echo ${PEAL_CARD##*/}", options=("--card-cpu", cpus))
        cores = min(self.cores, 3)
        self.assertEqual(sorted(done.out.split()), sorted(f"cards{card % cores or ''},card={card // cores}" for card in range(3)))
        self.scenario(3, "mixed", "100", "20000", "4", options=("--card-cpu", cpus))

    def test_cards_give_way_where_ranks_are(self):
        last = str(max(os.sched_getaffinity(0)))
        path = os.path.join(self.folder.name, "counters.json")
        options = ("--card-cpu", last, "--rank-cpus", last)
        done = self.run_job(2, "sh", "-c", "echo [$PEAL_CARD_YIELDS]", options=options)
        self.assertEqual(done.out.split(), ["[1]"] * 2)
        self.scenario(2, "churn", "2", options=(*options, "--counters", path))
        with open(path, encoding="utf-8") as file:
            self.assertGreater(json.load(file)["loop"]["yields"], 0)
        os.unlink(path)

    def counted(self, *options):
        path = os.path.join(self.folder.name, "counters.json")
        self.scenario(5, "mixed", "200", "20000", "3", options=(*SPREAD, "--counters", path, *options))
        with open(path, encoding="utf-8") as file:
            counters = json.load(file)
        os.unlink(path)
        return counters

    def test_every_operation(self):
        counters = self.counted()
        self.assertEqual([card["card"] for card in counters["cards"]], list(range(5)))
        self.assertEqual(len(counters["interfaces"]), min(self.cores, 5))
        self.assertEqual(sum(interface["accepted"] for interface in counters["interfaces"].values()), 5)
        self.assertEqual((counters["wire"]["no_such_card"], counters["faults"]["lost"]), (0, 0))
        self.assertGreater(counters["wire"]["sent"], 0)
        self.assertEqual(counters["wire"]["delivered"], counters["wire"]["sent"])
        self.assertGreater(counters["loop"]["yields"], 0)

    def test_every_operation_with_faults(self):
        counters = self.counted(*LOSS, "--duplicate", "0.02", "--reorder", "0.02", "--corrupt", "0.01")
        for fault in ("lost", "duplicated", "reordered", "corrupted"):
            self.assertGreater(counters["faults"][fault], 0, fault)

    def test_in_threads_and_late(self):
        self.scenario(5, "mixed-threads", "4", "200", "5000", "5", options=SPREAD)
        self.scenario(5, "late", "60", "100003", "5", options=SPREAD)

    def test_long_blocks_of_registered_memory(self):
        for operation in ("broadcast", "allgather", "alltoall"):
            with self.subTest(operation=operation):
                self.run_job(5, jobs.program("peal-perf"), operation, "--sizes", "1000,300000", "--memory", "both", "--iterations", "20",
                             "--warmup", "2", options=SPREAD)

    def test_a_death_is_told(self):
        done = self.scenario(5, "death-in", "alltoall", "3", "20000", options=("--grace", "never", *SPREAD), status=128 + signal.SIGKILL)
        self.expect_told(done, 5, 3)

    def test_groups_come_and_go(self):
        self.scenario(5, "churn", "20", options=SPREAD)

    def test_mistakes(self):
        for words, wrong in (
                (["--placement", "spread", "--card", "emu:/x"],
                 "--placement spread is of cards that are started here, and --card names others"),
                (["--placement", "spread", "--rank-cpus", "none"],
                 "--placement spread binds each rank to a processor, and --rank-cpus none does not"),
                (["--placement", "spread", "--card-cpu", "0"],
                 "--placement spread has cards where the ranks are, and --card-cpu names others"),
                (["--nic-option=--socket=/x"], "--nic-option: --socket is pealrun's to give (--cards, --card-cpu)")):
            done = subprocess.run([jobs.program("pealrun"), "-n", "2", *words, "true"], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"pealrun: {wrong}\nTry 'pealrun --help'.\n"), words)
        allowed = sorted(os.sched_getaffinity(0))
        for options, wrong in ((("--card-cpu", "some"), "--card-cpu needs a list such as 0,2-3 or 'none', not some"),
                               (("--card-cpu", f"{allowed[0]},1023"), "processor 1023 is not among the allowed "),
                               ((*SPREAD, "--rank-cpus", f"{allowed[0]},1023"), "processor 1023 is not among the allowed ")):
            done = self.run_job(2, "true", options=options, status=125)
            self.assertTrue(done.err.startswith(f"pealrun: {wrong}"), done.err)


if __name__ == "__main__":
    jobs.main()
