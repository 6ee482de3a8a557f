# SPDX-License-Identifier: BSD-2-Clause
"""Every program: --help in sentences, one line for each option; each option is in the man page, and the man page knows no other."""

import os
import re
import subprocess

import jobs

MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "man")
PROGRAMS = ("pealrun", "peal-perf", "peal-nic", "ideal-card", "peal-matmul", "peal-sim", "pealctl")
# What some do besides, each with options of its own.
COMMANDS = {"peal-sim": ("soak", "replay", "overlap", "throughput", "broadcast-figure", "alltoall-figure", "allgather-figure",
                         "program-cost"),
            "pealctl": ("choose",)}
# Options of other programs, named in a page in passing.
OTHERS = {"ideal-card": {"--floor"}, "peal-matmul": {"--loss"}}
# Without these there is nothing to do.
NEEDED = {("pealrun",): {"--ranks"}, ("peal-sim", "replay"): {"--seed"},
          ("peal-sim", "broadcast-figure"): {"--model"}, ("peal-sim", "alltoall-figure"): {"--model"},
          ("peal-sim", "allgather-figure"): {"--model"}, ("pealctl", "choose"): {"--ranks"}}
EVERYWHERE = {"--help", "--version"}


def run(name, *words):
    return subprocess.run([jobs.program(name), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def help_lines(name, *command):
    """Option to its sentences."""
    done = run(name, *command, "--help")
    assert (done.returncode, done.stderr) == (0, ""), done
    return dict(re.findall(r"^  (?:-\w, |    )(--[\w-]+)(?: \S+)? {2,}(.*)$", done.stdout, re.MULTILINE)), done.stdout


def with_value(name, *command):
    """The options that take one."""
    return set(re.findall(r"^  (?:-\w, |    )(--[\w-]+) \S+ {2,}", run(name, *command, "--help").stdout, re.MULTILINE))


def all_words():
    """Every program, and every command of one."""
    for name in PROGRAMS:
        yield (name,)
        for command in COMMANDS.get(name, ()):
            yield (name, command)


class CommandLineTest(jobs.JobCase):
    def test_help_is_sentences(self):
        for words in all_words():
            options, text = help_lines(*words)
            self.assertEqual(set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE)), set(options), words)
            for option, sentences in options.items():
                self.assertRegex(sentences, r"^[A-Z].*[.]$", f"{words} {option}")

    def test_help_says_what_an_option_is_left_out_for(self):
        """Every option that takes a value has a default, is there to be repeated, or must be given."""
        for words in all_words():
            needed = NEEDED.get(words, set())
            silent = {name for name, text in help_lines(*words)[0].items()
                      if name in with_value(*words) and "Default: " not in text and "Repeatable" not in text}
            self.assertEqual(silent, needed, words)

    def test_units_are_written_out(self):
        for words in all_words():
            for option, sentences in help_lines(*words)[0].items():
                self.assertNotRegex(sentences, r"\b(us|ms|ns|secs?)\b", f"{words} {option}")

    def test_help_names_the_commands(self):
        for name, commands in COMMANDS.items():
            text = help_lines(name)[1]
            self.assertEqual(re.findall(r"^  ([\w-]+) {2,}[A-Z].*[.]$", text, re.MULTILINE), list(commands), text)

    def test_help_and_man_page_name_the_same_options(self):
        for name in PROGRAMS:
            with open(os.path.join(MAN, f"{name}.1"), encoding="utf-8") as file:
                page = re.sub(r"\\f.", "", file.read()).replace("\\-", "-")
            named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page)) - OTHERS.get(name, set()) - EVERYWHERE
            offered = {option for words in all_words() if words[0] == name for option in help_lines(*words)[0]}
            self.assertEqual(offered - EVERYWHERE, named, name)

    def test_version(self):
        for name in PROGRAMS:
            for option in ("-V", "--version"):
                done = run(name, option)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, rf"^{name} \d+\.\d+\.\d+\n$")

    def test_one_line_and_one_status_for_a_mistake(self):
        for words in all_words():
            needed = [word for option in sorted(NEEDED.get(words, ())) if words[0] == "peal-sim"
                      for word in (option, "1")]
            done = run(*words, *needed, "--no-such-option")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"{words[0]}: there is no option --no-such-option\nTry '{words[0]} --help'.\n"))


if __name__ == "__main__":
    jobs.main()
