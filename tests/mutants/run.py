#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""How good are the suites? Each *.patch beside this file puts one subtle fault into the firmware, the emulator, the
host library or the rings that both share; the unit tests or the simulated cluster must fail for it.

Every patch is applied in a copy of the tree (build/mutants/N/tree, one per worker), what it touches is built again,
and the suites run until their first failure: a wrong result, an assertion, a crash, too much memory or too much time.
Unit tests have the pools of configs/unit, the cluster has those of configs/emulator; both are built as the
release preset is, without sanitizers.

A program that fails without any mutant ends the run: it would "catch" everything.

What is known stays in build/mutants/results.json, so that a run that was stopped goes on where it was. A mutant is
tried again when its patch or a file that it patches has changed; one that survived also when anything else has.
--fresh forgets all.

usage: run.py [--only PATTERN] [--jobs N] [--quick | --suite NAME] [--fresh] [--list] [--table FILE]
       run.py --self-test

  --only PATTERN  mutants whose file name has PATTERN in it (a regular expression)
  --jobs N        workers, each with its own copy of the tree (default 2)
  --quick         the cluster only for mutants that the unit tests let through
  --suite NAME    only this suite: unit or sim
  --fresh         forget what earlier runs found
  --list          say what the mutants are, and do nothing
  --table FILE    write the table of everything that is known to FILE, as Markdown, too
  --self-test     show that a mutant that changes only a comment survives, and that others do not

The exit status is 0 if every mutant was caught, 1 if one survived, 2 if one could not be tried."""

import argparse
import collections
import concurrent.futures
import difflib
import hashlib
import json
import os
import pathlib
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
SETTINGS = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DPEAL_WERROR=OFF", "-DPEAL_DPDK=OFF",
            "-DPEAL_DRIVER=OFF", "-DPEAL_GUEST=OFF"]
MEMORY_BYTES = 6 << 30  # a mutant that sends for ever must not take the machine with it
WAITING = 3  # times the processor time may pass, on a busy machine or asleep

Suite = collections.namedtuple("Suite", "name config seconds programs")
# The programs of a suite, by the part of the tree that a patch touches. Far more processor time than any of them takes.
SUITES = [
    Suite("unit", "unit", 60, {"firmware/": ["peal-unit-tests", "peal-collective-tests", "peal-point-to-point-tests",
                                             "peal-queue-tests"],
                               "abi/": ["peal-ring-tests", "peal-emulator-tests", "peal-hostlib-tests"],
                               "emulator/common/": ["peal-emulator-tests"],
                               "hostlib/": ["peal-hostlib-tests", "peal-hostlib-thread-tests", "peal-program-tests"]}),
    Suite("sim", "emulator", 400, {"firmware/": ["peal-cluster-tests", "peal-engine-tests"],
                                  "emulator/common/": ["peal-cluster-tests"]}),
]
PARTS = tuple(SUITES[0].programs)
SURVIVED = "survived"
UNTRIED = "untried"  # by this suite, because another caught it


class Broken(Exception):
    """Something that says nothing about the suites: a patch that does not apply, a tree that does not build."""


def say(text):
    print(f"mutants: {text}", file=sys.stderr, flush=True)


class Mutant:
    def __init__(self, path):
        self.name = path.stem
        self.path = path
        self.text = text = path.read_text(encoding="utf-8")
        self.what = " ".join(text.partition("\n\n")[0].split())
        self.files = re.findall(r"^\+\+\+ b/(\S+)", text, re.MULTILINE)
        if not self.files or not self.what or self.what.startswith("---"):
            raise Broken(f"{path.name}: expected a sentence, an empty line, and a unified diff")
        parts = {next((part for part in PARTS if file.startswith(part)), None) for file in self.files}
        if len(parts) != 1:
            raise Broken(f"{path.name}: expected a patch of one part of the tree")
        self.part = parts.pop()  # None: it has no suite here (peal-nic, the driver), and is not tried

    def programs(self, suite):
        return suite.programs.get(self.part, [])



def tree_files():
    """What git knows or would add: the copy has the same."""
    out = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, check=True).stdout
    return sorted({name for name in out.decode().split("\0") if name and (ROOT / name).is_file()})


def digest(names):
    total = hashlib.sha256()
    for name in names:
        total.update(name.encode() + b"\0" + hashlib.sha256((ROOT / name).read_bytes()).digest())
    return total.hexdigest()


def environment():
    chosen = dict(os.environ)
    ccache = shutil.which("ccache")
    if ccache is not None:  # what one worker has built, and what was there before a mutant, is not compiled again
        chosen.setdefault("CMAKE_C_COMPILER_LAUNCHER", ccache)
        chosen.setdefault("CMAKE_CXX_COMPILER_LAUNCHER", ccache)
        chosen.setdefault("CCACHE_BASEDIR", str(ROOT))
        chosen.setdefault("CCACHE_NOHASHDIR", "1")
    # git must not take the copy for a part of this clone: it would skip what the clone ignores.
    chosen["GIT_CEILING_DIRECTORIES"] = str(ROOT / "build")
    return chosen


def limit(seconds):
    """For a child, before it becomes what it shall run."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))


def first_failure(log, ended):
    """The first test that failed; for a program that did not come to its end, the one that was running."""
    failed = re.search(r"^\[  FAILED  \] ([^\s,]+)", log, re.MULTILINE)
    if failed is not None:
        return failed.group(1)
    running = re.findall(r"^\[ RUN      \] (\S+)", log, re.MULTILINE)
    return f"{running[-1] if running else 'start'} ({ended})"


class Worker:
    """One copy of the tree, with a build folder for each suite."""

    def __init__(self, folder, patience):
        self.folder = folder
        self.patience = patience  # 1, or the part of its time that a suite gets
        self.tree = folder / "tree"
        self.environment = environment()

    def build_folder(self, suite):
        return self.folder / suite.config

    def sync(self, names):
        """Makes the copy equal to the tree; what is equal keeps its time, and is not built again."""
        for name in names:
            self.restore(name)
        known = set(names)
        for path in [path for path in self.tree.rglob("*") if path.is_file()]:
            if str(path.relative_to(self.tree)) not in known:
                path.unlink()

    def restore(self, name):
        source, target = ROOT / name, self.tree / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)

    def call(self, arguments, what, **more):
        run = subprocess.run(arguments, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                             text=True, errors="replace", check=False, **more)
        if run.returncode != 0:
            raise Broken(f"{what}:\n" + "\n".join(run.stdout.splitlines()[-30:]))

    def configure(self, suite):
        build = self.build_folder(suite)
        if not (build / "build.ninja").is_file():
            self.call(["cmake", "-S", self.tree, "-B", build, *SETTINGS, f"-DPEAL_CONFIG=configs/{suite.config}"],
                      f"configuring for the {suite.name} tests")

    def build(self, suite, programs):
        self.call(["ninja", "-C", self.build_folder(suite), "-j", "2", *programs], "does not build")

    def run(self, suite, program):
        """None if the program passes, else its first failure."""
        seconds = int(suite.seconds * self.patience)
        with tempfile.TemporaryFile("w+", errors="replace") as log:
            process = subprocess.Popen(  # in its own process group: what it leaves behind ends with it
                [self.build_folder(suite) / "bin" / program, "--gtest_fail_fast", "--gtest_color=no"], stdout=log,
                stderr=subprocess.STDOUT, process_group=0, preexec_fn=lambda: limit(seconds), cwd=self.folder)
            try:
                status = process.wait(WAITING * seconds)
                ended = signal.Signals(-status).name if status < 0 else f"status {status}"
            except subprocess.TimeoutExpired:
                status, ended = 1, "no end"
            finally:
                try:
                    os.killpg(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
                process.wait()
            if status == -signal.SIGXCPU:
                ended = "no end"
            log.seek(0)
            return None if status == 0 else first_failure(log.read(), ended)

    def try_mutant(self, mutant, options):
        """The first failure of each suite, SURVIVED or UNTRIED."""
        found = {}
        before = {name: (self.tree / name).read_bytes() for name in mutant.files if (self.tree / name).is_file()}
        try:
            self.call(["git", "apply", "--whitespace=nowarn", "-C1"], "does not apply", input=mutant.text, cwd=self.tree)
            for suite in SUITES:
                programs = mutant.programs(suite)
                if not programs or options.suite not in ("", suite.name) or (options.quick and is_caught(found)):
                    found[suite.name] = UNTRIED
                    continue
                self.build(suite, programs)
                failures = (self.run(suite, program) for program in programs)
                found[suite.name] = next((what for what in failures if what is not None), SURVIVED)
        except Broken as broken:
            raise Broken(f"{mutant.name} {broken}") from None
        finally:
            for name, content in before.items():  # not from the tree itself, where somebody may be working
                (self.tree / name).write_bytes(content)
        return found


class Results:
    """What is known, on disk after each mutant."""

    def __init__(self, path, names):
        self.path = path
        self.lock = threading.Lock()
        self.tree = digest([name for name in names if not name.startswith(("tests/mutants/", "docs/", "README"))])
        self.known = json.loads(path.read_text()) if path.is_file() else {}
        self.keys = {}

    def key(self, mutant):
        """Of the mutant as it was when this run began."""
        if mutant.name not in self.keys:
            content = mutant.text + digest([name for name in mutant.files if (ROOT / name).is_file()])
            self.keys[mutant.name] = hashlib.sha256(content.encode()).hexdigest()
        return self.keys[mutant.name]

    def get(self, mutant, options):
        """What each suite found, or None if that is not known."""
        entry = self.known.get(mutant.name)
        if entry is None or entry["mutant"] != self.key(mutant):
            return None
        found = entry["found"]
        wanted = [suite.name for suite in SUITES if mutant.programs(suite) and options.suite in ("", suite.name)]
        if options.quick and is_caught(found):
            return found
        if any(found.get(name, UNTRIED) == UNTRIED for name in wanted):
            return None
        stale = entry["tree"] != self.tree and any(found[name] == SURVIVED for name in wanted)
        return None if stale else found

    def found(self, mutant):
        """What was found, be it before the suites changed."""
        entry = self.known.get(mutant.name)
        return entry["found"] if entry is not None and entry["mutant"] == self.key(mutant) else None

    def put(self, mutant, found):
        with self.lock:
            key = self.key(mutant)
            entry = self.known.get(mutant.name)
            if entry is not None and entry["mutant"] == key:  # what this run did not try
                found.update({suite: what for suite, what in entry["found"].items() if found[suite] == UNTRIED})
            self.known[mutant.name] = {"mutant": key, "tree": self.tree, "found": found}
            fresh = self.path.with_suffix(".new")
            fresh.write_text(json.dumps(self.known, indent=1, sort_keys=True))
            fresh.replace(self.path)


def is_caught(found):
    return any(what not in (SURVIVED, UNTRIED) for what in found.values())


def verdict(found):
    return "caught" if is_caught(found) else SURVIVED


class Progress:
    def __init__(self, total):
        self.total = total
        self.done = 0
        self.start = time.monotonic()
        self.lock = threading.Lock()

    def tell(self, text):
        with self.lock:
            self.done += 1
            seconds = int(time.monotonic() - self.start)
            say(f"{self.done}/{self.total} {seconds // 60}:{seconds % 60:02d} {text}")


def make_workers(folder, count, patience, names, suites):
    """Copies that are built, and pass: a test that fails without a mutant proves nothing."""
    workers = [Worker(folder / str(i + 1), patience) for i in range(count)]

    def prepare(worker):
        worker.sync(names)
        for suite, programs in suites:
            worker.configure(suite)
            worker.build(suite, programs)
        for suite, programs in suites if worker is workers[0] else []:
            for program in programs:
                failure = worker.run(suite, program)
                if failure is not None:
                    raise Broken(f"without any mutant, {program} fails: {failure}")

    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(prepare, workers))
    return workers


def run_mutants(mutants, options, folder):
    """Tries what is not known yet. Returns what was found for each mutant, and what could not be tried."""
    names = tree_files()
    folder.mkdir(parents=True, exist_ok=True)
    if options.fresh:
        (folder / "results.json").unlink(missing_ok=True)
    results = Results(folder / "results.json", names)
    found = {mutant.name: results.get(mutant, options) for mutant in mutants}
    left = [mutant for mutant in mutants if found[mutant.name] is None]
    broken = []
    if not left:
        return results, found, broken
    wanted = [(suite, sorted({program for mutant in left for program in mutant.programs(suite)})) for suite in SUITES
              if options.suite in ("", suite.name)]
    say(f"{len(mutants) - len(left)} known, {len(left)} to try; building without any")
    free = queue.Queue()
    suites = [(suite, programs) for suite, programs in wanted if programs]
    for worker in make_workers(folder, min(options.jobs, len(left)), options.patience, names, suites):
        free.put(worker)
    progress = Progress(len(left))

    def try_one(mutant):
        worker = free.get()
        try:
            found[mutant.name] = worker.try_mutant(mutant, options)
            results.put(mutant, found[mutant.name])
            progress.tell(f"{verdict(found[mutant.name])} {mutant.name}")
        except Broken as problem:
            broken.append(str(problem))
            progress.tell(f"NOT TRIED {problem}")
        finally:
            free.put(worker)

    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(try_one, left))
    return results, found, broken


def counts(rows):
    """One line: how many each suite caught."""
    def number(suite, other=None):
        caught = [found for _, found in rows if found[suite] not in (SURVIVED, UNTRIED)]
        return len([found for found in caught if other is None or found[other] in (SURVIVED, UNTRIED)])
    survived = len([found for _, found in rows if not is_caught(found)])
    untried = len([found for _, found in rows if found["sim"] == UNTRIED])
    return (f"{len(rows)} mutants: {number('unit')} caught by unit, {number('sim')} by sim "
            f"({number('unit', 'sim')} by unit alone, {number('sim', 'unit')} by sim alone; sim did not try {untried}), "
            f"{survived} survived")


def print_table(rows):
    print(f"{'mutant':48} {'unit':60} {'sim':60} result")
    for mutant, found in rows:
        print(f"{mutant.name:48} {found['unit']:60} {found['sim']:60} {verdict(found)}")
    print(counts(rows))


def write_markdown(path, rows):
    """Replaces the table of the page, from the line of its counts to its end."""
    text = path.read_text(encoding="utf-8") if path.is_file() else "# Mutants\n\n"
    text = re.split(r"^\d+ mutants: ", text, maxsplit=1, flags=re.MULTILINE)[0]
    lines = [counts(rows), "", "| mutant | what is wrong | unit | sim |", "| --- | --- | --- | --- |"]
    for mutant, found in rows:
        said = [found[suite.name] if found[suite.name] in (SURVIVED, UNTRIED) else f"`{found[suite.name]}`"
                for suite in SUITES]
        lines.append(f"| {mutant.name} | {mutant.what.replace('|', chr(92) + '|')} | {said[0]} | {said[1]} |")
    path.write_text(text + "\n".join(lines) + "\n", encoding="utf-8")


def self_test(options):
    """A comment, something gross, and a patch of a file that is not there."""
    def patch(folder, name, sentence, file, before, after):
        old = (ROOT / file).read_text(encoding="utf-8")
        new = old.replace(before, after, 1)
        assert old != new, f"{file} has no {before!r}"
        diff = "".join(difflib.unified_diff(old.splitlines(True), new.splitlines(True), f"a/{file}", f"b/{file}"))
        path = folder / f"{name}.patch"
        path.write_text(f"{sentence}\n\n{diff}", encoding="utf-8")
        return Mutant(path)

    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        mutants = [
            patch(folder, "a-comment", "Changes a comment.", "firmware/base/pace.h", "// How fast", "// How slowly"),
            patch(folder, "b-gross", "Nobody has anything to pay with.", "firmware/base/pace.cpp",
                  "credit_ns = most_credit", "credit_ns = 0 * most_credit"),
            patch(folder, "c-loop", "Comes to no end.", "firmware/base/timer_heap.cpp", "if (child >= count) break;",
                  "if (child >= count) continue;"),
        ]
        absent = (folder / "d-absent.patch")
        absent.write_text(mutants[0].path.read_text().replace("How fast", "How late"), encoding="utf-8")
        options.quick, options.fresh, options.patience, options.suite = True, True, 0.25, ""
        _, found, broken = run_mutants([*mutants, Mutant(absent)], options, ROOT / "build/mutants/self-test")
    wrong = [name for name, expected in (("a-comment", SURVIVED), ("b-gross", "caught"), ("c-loop", "caught"))
             if verdict(found[name]) != expected]
    if not (len(broken) == 1 and "d-absent does not apply" in broken[0]):
        wrong.append("d-absent")
    print(f"mutants: self-test {'passed' if not wrong else 'failed: ' + ', '.join(wrong)}")
    return 1 if wrong else 0


def main():
    parser = argparse.ArgumentParser(usage=__doc__, add_help=False)
    parser.add_argument("-h", "--help", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", type=pathlib.Path)
    parser.add_argument("--suite", default="", choices=[suite.name for suite in SUITES])
    for flag in ("--quick", "--fresh", "--list", "--self-test"):
        parser.add_argument(flag, action="store_true")
    options = parser.parse_args()
    if options.help:
        print(__doc__)
        return 0
    options.patience = 1
    started = time.monotonic()
    if options.self_test:
        return self_test(options)
    everything = [Mutant(path) for path in sorted(HERE.glob("*.patch"))]
    mutants = [mutant for mutant in everything if re.search(options.only, mutant.name)]
    if not mutants:
        raise Broken(f"no mutant has '{options.only}' in its name")
    if options.list:
        for mutant in mutants:
            print(f"{mutant.name}: {mutant.what}")
        return 0
    for mutant in [mutant for mutant in mutants if mutant.part is None]:
        say(f"not tried, for {mutant.files[0]} has no suite: {mutant.name}")
    everything, mutants = ([mutant for mutant in some if mutant.part is not None] for some in (everything, mutants))
    results, found, broken = run_mutants(mutants, options, ROOT / "build/mutants")
    rows = [(mutant, found[mutant.name]) for mutant in mutants if found[mutant.name] is not None]
    print_table(rows)
    if options.table is not None:
        known = [(mutant, results.found(mutant)) for mutant in everything]
        write_markdown(options.table, [(mutant, what) for mutant, what in known if what is not None])
    for problem in broken:
        say(problem)
    survivors = [mutant for mutant, what in rows if not is_caught(what)]
    for mutant in survivors:
        say(f"SURVIVED {mutant.name}: {mutant.what}")
    seconds = int(time.monotonic() - started)
    say(f"took {seconds // 60} min {seconds % 60} s")
    return 2 if broken else 1 if survivors else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Broken as problem:
        say(problem)
        sys.exit(2)
