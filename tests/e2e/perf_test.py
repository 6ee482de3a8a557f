# SPDX-License-Identifier: BSD-2-Clause
"""peal-perf verifies what it measures, for group sizes that are powers of two and others, on good and on bad wires."""

import itertools
import json
import os
import platform
import shutil
import signal
import subprocess
import tempfile

import jobs

ALL_FAULTS = ("--loss=0.02", "--duplicate=0.02", "--reorder=0.05", "--corrupt=0.01", "--delay=0.01", "--seed=11")
OPERATIONS = "barrier, allgather, broadcast, alltoall, allgatherv, alltoallv, sendrecv, put, get, group"
OVERLAP_SPREADS = ["comm_us", "work_us", "both_us", "work_cpu_us", "both_ratio", "overlap", "start_cpu_us", "done_cpu_us", "done_before"]

SPOILS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
int peal_allgather(void* group, const void* send, void* receive, size_t bytes) {
  int (*real)(void*, const void*, void*, size_t) = dlsym(RTLD_NEXT, "peal_allgather");
  const int error = real(group, send, receive, bytes);
  if (*getenv("PEAL_RANK") == '1') *(char*)receive ^= 1;
  return error;
}
"""


class PerfTest(jobs.JobCase):
    def perf(self, *words, status=0):
        json_file = os.path.join(self.folder.name, "records.json")
        done = subprocess.run([jobs.program("peal-perf"), *words, "--json", json_file,
                               f"--timeout={jobs.PATIENCE_S}"], env=self.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        records = jobs.records(json_file)
        os.unlink(json_file)
        self.assertTrue(records)
        spreads = OVERLAP_SPREADS if "--overlap" in words else ["latency_us"]
        for record in records:
            self.assertIs(record["verified"], True)
            for spread in spreads:
                if record[spread] is None:
                    self.assertEqual((spread, record["done_before"]), ("done_cpu_us", 0))
                    continue
                self.assertLessEqual(record[spread + "_min"], record[spread])
                self.assertLessEqual(record[spread], record[spread + "_max"])
        return records

    def allgather(self, ranks, *words, sizes="0,1,4,1000,5000,20000", iterations=60):
        records = self.perf("allgather", "--ranks", str(ranks), "--sizes", sizes, "--algorithm", "all", "--memory",
                            "both", "--iterations", str(iterations), "--warmup", "5", *words)
        self.assertEqual(len(records), 8 * len(sizes.split(",")))
        self.assertEqual({record["algorithm"] for record in records}, {"all-to-all-broadcast", "recursive-doubling", "direct", "ring"})
        self.assertEqual({record["memory"] for record in records}, {"alloc", "registered"})
        return records

    def test_two_ranks(self):
        self.allgather(2)

    def test_three_ranks(self):
        self.allgather(3)

    def test_far_above_a_channel(self):
        self.allgather(3, sizes="700000", iterations=6)

    def test_five_ranks(self):
        self.allgather(5)

    def test_eight_ranks(self):
        self.allgather(8)

    def test_one_rank(self):
        self.allgather(1, iterations=20)

    def test_in_place(self):
        self.allgather(5, "--in-place")

    def test_bad_wire_two_ranks(self):
        self.allgather(2, *ALL_FAULTS)

    def test_bad_wire_three_ranks(self):
        self.allgather(3, *ALL_FAULTS)

    def test_bad_wire_five_ranks(self):
        self.allgather(5, *ALL_FAULTS, iterations=30)

    def test_bad_wire_eight_ranks(self):
        self.allgather(8, *ALL_FAULTS, sizes="4,1000,5000", iterations=30)

    def test_several_ranks_per_card(self):
        self.allgather(8, "--cards=3", "--loss=0.01", sizes="4,5000", iterations=30)

    def test_barriers(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.perf("barrier", "--ranks", str(ranks), "--iterations", "200", "--warmup", "5")
                self.perf("barrier", "--ranks", str(ranks), "--iterations", "200", "--warmup", "5", *ALL_FAULTS)

    def test_packets_are_counted(self):
        """Without loss, exactly the packets that the algorithms need."""
        barrier, = self.perf("barrier", "--ranks", "8", "--iterations", "512", "--warmup", "0", "--nic-option=--nack-us=1000000",
                             "--nic-option=--nack-max-us=2000000")
        self.assertEqual(barrier["packets_repair"], 0)
        # Making and destroying the group are outside; N log2 N.
        self.assertEqual(barrier["packets_collective"], 24)
        # Barriers prove by themselves that their epochs are over.
        self.assertEqual(barrier["packets_recycling"], 0)
        for record in self.perf("allgather", "--ranks", "8", "--sizes", "64,1024", "--algorithm", "all", "--iterations",
                                "256", "--warmup", "0", "--nic-option=--nack-us=1000000",
                                "--nic-option=--nack-max-us=2000000"):
            wanted = {"all-to-all-broadcast": 56, "recursive-doubling": 24, "direct": 56, "ring": 56}
            self.assertEqual(record["packets_repair"], 0)
            self.assertEqual(record["packets_collective"], wanted[record["algorithm"]], record["algorithm"])

    def test_hardly_any_packet_is_for_repairs(self):
        """Nothing is lost, sixteen ranks are as late as so few processors make them, and time-outs are those of every job."""
        for operation in ("barrier", "allgather", "alltoall", "broadcast", "allgatherv", "alltoallv"):
            sizes = () if operation == "barrier" else ("--sizes", "1k,64k")
            for record in self.perf(operation, "--ranks", "16", *sizes, "--iterations", "40", "--warmup", "5"):
                with self.subTest(operation=operation, bytes=record["bytes"]):
                    self.assertLessEqual(record["packets_repair"], 0.05 * record["packets"])

    def test_floor(self):
        records = self.perf("allgather", "--ranks", "4", "--sizes", "4,1024", "--floor", "--iterations", "100", "--rounds", "4",
                            "--warmup", "5", "--memory", "both")
        self.assertEqual([record["algorithm"] for record in records], ["ideal-card", "auto"] * 4)
        for record in records[1::2]:
            self.assertLessEqual(record["floor_ratio_min"], record["floor_ratio"])
        barrier = self.perf("barrier", "--ranks", "4", "--floor", "--iterations", "100", "--rounds", "2")
        self.assertEqual(len(barrier), 2)

    def test_large_results_go_past_the_caches(self):
        """What Linux says of the caches decides it, or --cache: of one MiB, which four ranks with 200,000 bytes for each outdo, and of none."""
        counters = os.path.join(self.folder.name, "counters.json")
        for placement in ("apart", "spread"):
            for cache in (1, 0):
                with self.subTest(placement=placement, cache=cache):
                    self.perf("alltoall", "--ranks", "4", "--sizes", "200000", "--iterations", "10", "--warmup", "0", "--placement", placement,
                              f"--nic-option=--cache={cache}", "--counters", counters)
                    with open(counters, encoding="utf-8") as file:
                        read = json.load(file)
                    written = sum(card["counters"]["dma_write_bytes"] for card in read["cards"])
                    past = read["loop"]["bytes_past_caches"]
                    can = platform.machine() == "x86_64"
                    self.assertLessEqual(past, cache * can * written)
                    self.assertGreaterEqual(past, cache * can * written / 2)
                    os.unlink(counters)

    def test_what_is_lent_is_copied_once(self):
        """But for what is on its way when its sender is over; and for all of it where the cards compute sums."""
        counters = os.path.join(self.folder.name, "counters.json")
        for operation, size, copies in (("alltoall", 200000, 16), ("broadcast", 2000000, 3)):
            for placement, checksums in itertools.product(("apart", "spread"), ("skip", "software")):
                with self.subTest(operation=operation, placement=placement, checksums=checksums):
                    self.perf(operation, "--ranks", "4", "--sizes", str(size), "--iterations", "10", "--warmup", "0", "--placement", placement,
                              f"--nic-option=--checksums={checksums}", "--counters", counters)
                    with open(counters, encoding="utf-8") as file:
                        read = json.load(file)
                    once = read["loop"]["bytes_copied_once"]
                    if checksums == "software":
                        self.assertEqual(once, 0)
                    else:
                        self.assertGreaterEqual(once, 10 * copies * size / 2)
                    os.unlink(counters)

    def others(self, operation, ranks, *words, sizes="0,1,4,1000,5000,20000", iterations=60):
        """As allgather(), of the operations that have one algorithm."""
        records = self.perf(operation, "--ranks", str(ranks), "--sizes", sizes, "--memory", "both", "--iterations", str(iterations), "--warmup",
                            "5", *words)
        self.assertEqual({(record["operation"], record["bytes"], record["memory"]) for record in records},
                         {(operation, int(size), memory) for size in sizes.split(",") for memory in ("alloc", "registered")})
        return records

    def test_broadcast(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.others("broadcast", ranks)

    def test_broadcast_from_one_root(self):
        self.others("broadcast", 5, "--root", "4")
        done = subprocess.run([jobs.program("peal-perf"), "broadcast", "--ranks", "2", "--root", "2"], env=self.environment,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(jobs.lines_without_pids(done.stderr),
                         ["peal-perf: --root: there is no rank 2 of 2"] +
                         [f"pealrun: rank {rank} (pid) exited with status 2" for rank in range(2)])

    def test_alltoall(self):
        for ranks in (1, 2, 3, 5, 8):
            with self.subTest(ranks=ranks):
                self.others("alltoall", ranks)

    def test_alltoall_in_place(self):
        self.others("alltoall", 5, "--in-place")

    def test_new_operations_on_bad_wires(self):
        for operation in ("broadcast", "alltoall"):
            for ranks in (3, 8):
                with self.subTest(operation=operation, ranks=ranks):
                    self.others(operation, ranks, *ALL_FAULTS, sizes="4,1000,5000", iterations=30)

    def test_floor_of_the_new_operations(self):
        for operation in ("broadcast", "alltoall"):
            with self.subTest(operation=operation):
                records = self.others(operation, 4, "--floor", "--rounds", "4", sizes="0,4,1024", iterations=100)
                self.assertEqual([record["algorithm"] for record in records], ["ideal-card", "auto"] * 6)

    def test_floor_where_cards_give_way(self):
        for placement in ("shared", "balanced"):
            with self.subTest(placement=placement):
                self.others("alltoall", 5, "--floor", "--rounds", "2", "--placement", placement, sizes="4,5000", iterations=20)

    def test_blocks_that_differ(self):
        """However the bytes are spread: the ideal card, in place and not, in both kinds of memory."""
        for operation in ("allgatherv", "alltoallv"):
            for ranks in (1, 3, 8):
                with self.subTest(operation=operation, ranks=ranks):
                    self.others(operation, ranks, iterations=20)
            with self.subTest(operation=operation, beside="the ideal card"):
                self.others(operation, 4, "--floor", "--rounds", "2", sizes="0,4,5000", iterations=20)
            for spread in ("even", "one"):
                with self.subTest(operation=operation, spread=spread):
                    self.others(operation, 5, "--spread", spread, "--in-place", iterations=20)
            with self.subTest(operation=operation, wire="bad"):
                self.others(operation, 5, *ALL_FAULTS, sizes="4,1000,5000", iterations=30)

    def test_packets_of_blocks_that_differ(self):
        """A packet each way for each two ranks where a block fits into one, whatever is empty; in steps one a step."""
        for spread in ("rising", "even", "one"):
            for operation, packets in (("allgatherv", 56), ("alltoallv", 24)):
                with self.subTest(operation=operation, spread=spread):
                    record, = self.perf(operation, "--ranks", "8", "--sizes", "64", "--spread", spread, "--iterations", "256", "--warmup", "0",
                                        "--nic-option=--nack-us=1000000", "--nic-option=--nack-max-us=2000000")
                    self.assertEqual((record["packets_collective"], record["packets_repair"]), (packets, 0))

    def overlap(self, operation, *words):
        sizes = [] if operation == "barrier" else ["--sizes", "0,4,5000"]
        records = self.perf(operation, "--overlap", *sizes, "--iterations", "40", "--warmup", "2", "--rounds", "4", *words)
        self.assertEqual(len(records), (3 if sizes else 1) * (2 if "--floor" in words else 1))
        return records

    def test_overlap(self):
        for operation in ("barrier", "allgather", "broadcast", "alltoall"):
            with self.subTest(operation=operation):
                for record in self.overlap(operation, "--ranks", "4", "--work-us", "300"):
                    self.assertEqual(record["work_cpu_us"], 300)
                    self.assertEqual(list(record), ["operation", "algorithm", "ranks", "bytes", "memory", "iterations",
                                                    *(spread + end for spread in OVERLAP_SPREADS for end in ("", "_min", "_max")), "verified"])

    def test_overlap_work_is_as_long_as_the_operation(self):
        for record in self.overlap("allgather", "--ranks", "3"):
            self.assertEqual(record["work_cpu_us"], record["comm_us"])

    def test_overlap_beside_the_ideal_card(self):
        for operation in ("barrier", "allgather", "broadcast", "alltoall", "allgatherv", "alltoallv"):
            with self.subTest(operation=operation):
                records = self.overlap(operation, "--ranks", "4", "--floor", "--tests", "3")
                self.assertEqual([record["algorithm"] for record in records][0::2], ["ideal-card"] * (len(records) // 2))

    def test_overlap_on_a_bad_wire(self):
        self.overlap("allgather", "--ranks", "5", *ALL_FAULTS)
        self.overlap("alltoall", "--ranks", "1")

    def test_compare_loss(self):
        """One side loses packets and repairs them, the other none: what the cards counted says so."""
        counters = os.path.join(self.folder.name, "counters.json")
        records = self.perf("allgather", "--ranks", "4", "--sizes", "1024", "--compare-loss", "--loss=0.05", "--seed=3",
                            "--iterations", "400", "--warmup", "5", "--rounds", "4", "--counters", counters)
        self.assertEqual([record["algorithm"] for record in records], ["auto, no loss", "auto"])
        self.assertGreater(records[1]["packets_repair"], 0)
        self.assertLessEqual(records[1]["good_wire_ratio_min"], records[1]["good_wire_ratio"])
        self.assertIn("good_wire_ratio_mean", records[1])
        cards = [card["counters"] for card in jobs.records(counters)["cards"]]
        self.assertEqual(len(cards), 8)
        os.unlink(counters)
        bad, good = (sum(card["sent_repair"] for card in part) for part in (cards[:4], cards[4:]))
        self.assertGreater(bad, 10 * good)  # a rank that is late may be asked

    def test_compare_loss_on_several_polling_cores(self):
        """Of an odd number of ranks, where a rank's two cards are of two cores; each card is somebody's."""
        counters = os.path.join(self.folder.name, "counters.json")
        self.perf("allgather", "--ranks", "3", "--sizes", "1024", "--compare-loss", "--loss=0.05", "--seed=3", "--placement", "spread",
                  "--iterations", "400", "--warmup", "5", "--rounds", "4", "--counters", counters)
        cards = jobs.records(counters)["cards"]
        os.unlink(counters)
        self.assertEqual([card["admin"]["contexts_opened"] for card in cards], [1] * 6)
        bad, good = (sum(card["counters"]["sent_repair"] for card in part) for part in (cards[:3], cards[3:]))
        self.assertGreater(bad, 10 * good)

    def test_compare_loss_needs_two_cards_for_each_rank(self):
        done = self.run_job(2, jobs.program("peal-perf"), "barrier", "--compare-loss", options=("--cards", "3"), status=1)
        self.assertEqual(set(jobs.lines_without_pids(done.err)) - {f"pealrun: rank {rank} (pid) exited with status 1" for rank in range(2)},
                         {"peal-perf: already under a launcher, so --cards has no effect",
                          "peal-perf: --compare-loss: no $PEAL_SECOND_CARD, which pealrun sets where it starts two cards for each rank"})

    def test_groups(self):
        """Made and destroyed one at a time, and several at a time, among ranks that have cards of their own or share them."""
        json_file = os.path.join(self.folder.name, "groups.json")
        for words, at_once, groups in (([], 1, 20), (["--at-once", "6"], 6, 24), (["--cards", "2", "--loss=0.01", "--at-once", "4"], 4, 20)):
            with self.subTest(words=words):
                done = subprocess.run([jobs.program("peal-perf"), "group", "--ranks", "5", "--iterations", "20", "--warmup", "2", *words,
                                       "--json", json_file, f"--timeout={jobs.PATIENCE_S}"], env=self.environment,
                                      stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                record, = jobs.records(json_file)
                self.assertEqual((record["ranks"], record["at_once"], record["groups"]), (5, at_once, groups))
                for spread in ("create_us", "create_own_us", "destroy_us"):
                    self.assertLessEqual(record[spread + "_min"], record[spread])
                    self.assertLessEqual(record[spread], record[spread + "_max"])
                self.assertLessEqual(record["create_own_us"], record["create_us"])
                os.unlink(json_file)

    def talk(self, operation, ranks, *words, sizes="0,1,1000,8192,20000"):
        records = self.perf(operation, "--ranks", str(ranks), "--sizes", sizes, "--memory", "both", "--iterations", "40", "--warmup", "2",
                            "--rounds", "2", *words)
        self.assertEqual([(record["operation"], record["bytes"], record["memory"], record["pairs"]) for record in records],
                         [(operation, int(size), memory, ranks // 2) for memory in ("alloc", "registered") for size in sizes.split(",")])
        for record in records:
            self.assertLessEqual(record["latency_us"], record["latency_us_p99"])
            self.assertLessEqual(record["latency_us_p99"], record["latency_us_max"])
            self.assertGreater(record["message_us"], 0)
            self.assertAlmostEqual(record["bytes_per_s"], record["messages_per_s"] * record["bytes"], delta=record["bytes"] * 1e-3)
        return records

    def test_point_to_point(self):
        """Pairs and one rank without a peer; cards of their own and shared, good wires and bad ones."""
        for operation in ("sendrecv", "put", "get"):
            with self.subTest(operation=operation):
                self.assertEqual({record["window"] for record in self.talk(operation, 2)}, {16})
                self.talk(operation, 5, "--cards=2", "--window", "30", *ALL_FAULTS, sizes="8,20000")

    def test_what_point_to_point_counts(self):
        """Ten single ones and two windows of five, each message ending at both sides; puts and gets end where they were called, and
        each of the twelve times the owner waits for a message and answers, or was answered by, another."""
        counters = os.path.join(self.folder.name, "counters.json")
        for operation, even, odd in (("sendrecv", 40, 40), ("put", 20 + 24, 24), ("get", 20 + 24, 24)):
            self.perf(operation, "--ranks", "2", "--sizes", "0", "--iterations", "10", "--warmup", "0", "--window", "5", "--counters", counters)
            ended = [card["counters"]["operations_completed"] for card in jobs.records(counters)["cards"]]
            self.assertEqual(ended, [even + 1, odd + 1], operation)  # and the group's end
            os.unlink(counters)

    def test_nothing_overtakes_messages_that_are_still_read(self):
        """A wire that keeps the order brings nothing out of it, however many messages are announced behind others' bytes."""
        counters = os.path.join(self.folder.name, "counters.json")
        self.addCleanup(os.unlink, counters)
        self.perf("sendrecv", "--ranks", "2", "--sizes", "4096,8192,9216", "--iterations", "400", "--warmup", "0", "--counters", counters)
        self.assertEqual([card["counters"]["drop_p2p_order"] for card in jobs.records(counters)["cards"]], [0, 0])

    def test_json_on_standard_output(self):
        """And nothing else."""
        for words in (["barrier"], ["group"], ["put"], ["allgather", "--overlap"], ["broadcast", "--floor"]):
            with self.subTest(words=words):
                done = subprocess.run([jobs.program("peal-perf"), *words, "--ranks", "2", "--iterations", "20", "--warmup", "0", "--json", "-",
                                       f"--timeout={jobs.PATIENCE_S}"], env=self.environment, cwd=self.folder.name, stdin=subprocess.DEVNULL,
                                      capture_output=True, text=True, check=False)
                self.assertEqual((done.returncode, done.stderr), (0, ""))
                self.assertTrue(json.loads(done.stdout))

    def test_packets_of_programs_are_counted(self):
        """A block for the other, of each rank, however it is sent."""
        for words in ([], ["--persistent"]):
            with self.subTest(words=words):
                record, = self.perf("allgather", "--ranks", "2", "--sizes", "64", "--iterations", "512", "--warmup", "0", *words)
                self.assertGreaterEqual(record["packets"], 2)

    def test_a_wrong_result_is_found(self):
        """One bit of what rank 1 has received."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        source, library = (os.path.join(folder.name, name) for name in ("spoils.c", "spoils.so"))
        with open(source, "w", encoding="utf-8") as file:
            file.write(SPOILS)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
        done = subprocess.run([jobs.program("peal-perf"), "allgather", "--ranks", "2", "--sizes", "64", "--iterations", "20", "--json", "-",
                               f"--timeout={jobs.PATIENCE_S}"], env=dict(self.environment, LD_PRELOAD=library), stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([record["verified"] for record in json.loads(done.stdout)], [False])

    def expect_no_ideal_card(self, done):
        self.assertEqual(done.status, 1)
        self.assertRegex(done.err, r"peal-perf: rank \d: the ideal card has ended\n")

    def test_the_ideal_card_is_killed(self):
        """In the middle of what would take for ever."""
        running = self.start(3, jobs.program("peal-perf"), "allgather", "--floor", "--iterations", "100000000", "--rounds", "1")

        def ideal_card():
            for rank in running.ranks().values():
                for pid in jobs.children(rank):
                    if jobs.names_of([pid]) == ["ideal-card"]:
                        return pid
            return None

        os.kill(jobs.until(ideal_card, "no ideal card"), signal.SIGKILL)
        self.expect_no_ideal_card(running.finish(status=1))

    def test_there_is_no_ideal_card(self):
        """Beside the program, where it is looked for."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        alone = shutil.copy(jobs.program("peal-perf"), folder.name)
        self.environment["LD_LIBRARY_PATH"] = os.path.join(jobs.programs(), "../lib")
        done = self.run_job(2, alone, "barrier", "--floor", status=1)
        self.assertIn(f"peal-perf: {folder.name}/ideal-card: No such file or directory\n", done.err)
        self.expect_no_ideal_card(done)

    def test_mistakes(self):
        for words, wrong in (
                (["reduce"], "OPERATION: 'reduce' is none of " + OPERATIONS),
                (["allgather", "--spread", "one"], "--spread is of allgatherv and alltoallv"),
                (["alltoallv", "--spread", "falling"], "--spread: 'falling' is none of rising, even, one"),
                (["allgather", "--sizes", "4,x"], "--sizes: '4,x' is no list A,B,... of bytes from 0 to 64M"),
                (["allgather", "--algorithm", "tree"],
                 "--algorithm: 'tree' is none of auto, all-to-all-broadcast, recursive-doubling, direct, ring, all"),
                (["alltoall", "--algorithm", "ring"], "--algorithm: 'ring' is none of auto, bruck, direct, all"),
                (["broadcast", "--root", "1024"], "--root: '1024' is no whole number from 0 to 1023"),
                (["barrier", "--ranks", "0"], "--ranks: '0' is no whole number from 1 to 1024"),
                (["barrier", "--iterations", "0"], "--iterations: '0' is no whole number from 1 to 100000000"),
                (["barrier", "--corrupt", "-1"], "--corrupt: '-1' is no number from 0 to 1"),
                (["barrier", "--tests", "3"], "--work-us and --tests are of --overlap"),
                (["barrier", "--at-once", "2"], "--at-once is of group"),
                (["broadcast", "--in-place"], "--in-place is not of broadcast"),
                (["allgather", "--in-place", "--floor"], "--in-place and --floor: one of them, as the ideal card copies every block"),
                (["barrier", "--window", "2"], "--window is of sendrecv, put and get"),
                (["put", "--window", "31"], "--window: '31' is no whole number from 1 to 30"),
                *(([operation, *words], words[0] + " is of collectives, which sendrecv, put and get are not")
                  for operation in ("sendrecv", "get")
                  for words in (["--floor"], ["--overlap"], ["--persistent"], ["--in-place"], ["--root", "1"], ["--compare-loss"],
                                ["--algorithm", "ring"])),
                *(([operation, *words], f"{words[0]} means nothing for {operation}") for operation in ("barrier", "group")
                  for words in (["--sizes", "4,1024"], ["--memory", "alloc"], ["--root", "0"], ["--in-place"])),
                *((["group", *words], f"{words[0]} means nothing for group")
                  for words in (["--algorithm", "auto"], ["--rounds", "1"], ["--persistent"])),
                (["group", "--floor"], "--floor, --compare-loss and --overlap are of operations"),
                (["group", "--at-once", "0"], "--at-once: '0' is no whole number from 1 to 4096"),
                (["barrier", "--compare-loss", "--floor"], "--compare-loss and --floor: one of them"),
                (["barrier", "--compare-loss", "--cards", "3"], "--compare-loss and --cards: each rank has cards of its own"),
                (["barrier", "allgather"], "'allgather' is one word too many"),
                ([], "OPERATION is missing: one of " + OPERATIONS)):
            done = subprocess.run([jobs.program("peal-perf"), *words], env=self.environment, capture_output=True, text=True,
                                  check=False)
            self.assertEqual((done.returncode, done.stderr), (2, f"peal-perf: {wrong}\nTry 'peal-perf --help'.\n"), words)


if __name__ == "__main__":
    jobs.main()
