# SPDX-License-Identifier: BSD-2-Clause
"""Every program: --help in sentences, one line for each option; each option is in the man page, and the man page knows no other."""

import os
import re
import subprocess

import jobs

MAN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "man")
PROGRAMS = ("pealrun", "peal-perf", "peal-nic", "ideal-card", "peal-matmul")
# Options of other programs, named in a page in passing.
OTHERS = {"ideal-card": {"--floor"}, "peal-matmul": {"--loss"}}
EVERYWHERE = {"--help", "--version"}


def run(name, *words):
    return subprocess.run([jobs.program(name), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)


def help_lines(name):
    """Option to its sentences."""
    done = run(name, "--help")
    assert (done.returncode, done.stderr) == (0, ""), done
    return dict(re.findall(r"^  (?:-\w, |    )(--[\w-]+)(?: \S+)? {2,}(.*)$", done.stdout, re.MULTILINE)), done.stdout


class CommandLineTest(jobs.JobCase):
    def test_help_is_sentences(self):
        for name in PROGRAMS:
            options, text = help_lines(name)
            self.assertEqual(set(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", text, re.MULTILINE)), set(options), name)
            for option, sentences in options.items():
                self.assertRegex(sentences, r"^[A-Z].*[.]$", f"{name} {option}")

    def test_help_and_man_page_name_the_same_options(self):
        for name in PROGRAMS:
            with open(os.path.join(MAN, f"{name}.1"), encoding="utf-8") as file:
                page = re.sub(r"\\f.", "", file.read()).replace("\\-", "-")
            named = set(re.findall(r"(?<![\w-])--[a-z][\w-]*", page)) - OTHERS.get(name, set()) - EVERYWHERE
            self.assertEqual(set(help_lines(name)[0]) - EVERYWHERE, named, name)

    def test_version(self):
        for name in PROGRAMS:
            for option in ("-V", "--version"):
                done = run(name, option)
                self.assertEqual(done.returncode, 0)
                self.assertRegex(done.stdout, rf"^{name} \d+\.\d+\.\d+\n$")

    def test_one_line_and_one_status_for_a_mistake(self):
        for name in PROGRAMS:
            done = run(name, "--no-such-option")
            self.assertEqual((done.returncode, done.stdout, done.stderr),
                             (2, "", f"{name}: there is no option --no-such-option\nTry '{name} --help'.\n"))


if __name__ == "__main__":
    jobs.main()
