# SPDX-License-Identifier: BSD-2-Clause
"""Many groups, overlapping groups, several ranks per card, and several threads on one context."""

import sys

import jobs


def touched_bytes(pids):
    """Memory that the processes have touched, other than files: what several share is divided among them."""
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith(("Pss_Anon:", "Pss_Shmem:")))
    return total * 1024


class GroupsTest(jobs.JobCase):
    def test_one_after_the_other(self):
        self.scenario(4, "churn", "60")

    def test_one_after_the_other_with_loss(self):
        self.scenario(3, "churn", "30", options=("--loss", "0.05"))

    def test_a_rank_alone(self):
        self.scenario(1, "churn", "30")

    def test_overlapping(self):
        self.scenario(6, "overlap")

    def test_overlapping_on_two_cards(self):
        self.scenario(6, "overlap", options=("--cards", "2", "--loss", "0.02"))

    def test_all_on_one_card(self):
        self.scenario(6, "overlap", options=("--cards", "1"))

    def test_more_than_the_card_has(self):
        """All ranks are refused together, and what was given back can be used again."""
        self.scenario(4, "exhaust", options=("--cards", "2"))

    def many(self, ranks, groups, *options, each_kind=False):
        """Makes and uses so many groups at once, twice; what one of their members costs."""
        job = self.start(ranks, jobs.program("e2e-rank"), "many", str(groups), str(int(each_kind)), options=options)
        job.expect_line("ready")
        pids = [job.cards(), *job.ranks().values()]
        before = touched_bytes(pids)
        job.go_on()
        job.expect_line("ready")
        each = (touched_bytes(pids) - before) / (ranks * groups)
        job.go_on()
        job.expect_line("ready")
        again = (touched_bytes(pids) - before) / (ranks * groups)
        self.assertLess(again, 1.1 * each, "what others had before is used again, and no more of it")
        job.go_on()
        job.finish()
        print(f"{each / 1024:.1f} KiB for each of {groups} groups of {ranks} ranks", file=sys.stderr)
        return each

    def test_all_of_a_card(self):
        """All of a card's memberships, by one process on each of two cards."""
        self.assertLess(self.many(2, 256, "--cards", "2", "--nic-option=--connection-groups=256"), 65536)

    def test_all_of_a_card_by_several_processes(self):
        """By four on each of two cards, and with ranks that are no peers."""
        self.assertLess(self.many(8, 64, "--cards", "2"), 65536)

    def test_all_of_a_card_by_each_kind(self):
        """Each group carries out one operation of each kind."""
        self.assertLess(self.many(2, 256, "--cards", "2", "--nic-option=--connection-groups=256", each_kind=True), 65536)
        self.assertLess(self.many(8, 64, "--cards", "2", each_kind=True), 65536)

    def test_threads(self):
        self.scenario(3, "threads", "4")

    def test_threads_with_loss(self):
        self.scenario(2, "threads", "6", options=("--loss", "0.02"))


if __name__ == "__main__":
    jobs.main()
