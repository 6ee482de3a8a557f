# SPDX-License-Identifier: BSD-2-Clause
"""What ./peal setup and build say before they do it: the packages, sudo, the configuration, the build. The package manager, sudo
and cmake are scripts here, and ./peal is a copy, with a list of three packages.

usage: setup_test.py ROOT"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = sys.argv[1]
NOBODY = 65534
APT = "apt-get -y -q -o DPkg::Lock::Timeout=600 -o Acquire::Retries=3"


class SetupTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="peal-setup-")
        self.addCleanup(self.folder.cleanup)
        os.chmod(self.folder.name, 0o777)
        self.tools = os.path.join(self.folder.name, "tools")
        os.makedirs(os.path.join(self.folder.name, "cmake"))
        os.mkdir(self.tools)
        shutil.copy(os.path.join(ROOT, "peal"), self.folder.name)
        with open(os.path.join(self.folder.name, "cmake/debian-packages"), "w", encoding="utf-8") as file:
            file.write("# A comment\nfirst\n\nsecond\nthird\n")
        self.put("dpkg-query", "echo 'second installed'; echo 'third config-files'")
        for name in ("apt-get", "cmake", "sudo"):
            self.put(name, f'echo "({name} $*)" >&2')
        self.put("nproc", "echo 3")

    def put(self, name, script):
        path = os.path.join(self.tools, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/bash\n{script}\n")
        os.chmod(path, 0o755)

    def says(self, *words, user=None):
        done = subprocess.run([os.path.join(self.folder.name, "peal"), *words], cwd=self.folder.name,
                              env={"PATH": f"{self.tools}:/usr/bin:/bin"}, user=user, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "")
        return done.stderr

    def unprivileged(self):
        return NOBODY if os.geteuid() == 0 else None

    def test_sudo_is_announced(self):
        self.assertEqual(self.says("setup", user=self.unprivileged()),
                         "peal: installing 2 of the 3 packages of cmake/debian-packages: first third\n"
                         "peal: calling sudo for apt-get, which may ask for your password; nothing else is done as root\n"
                         f"(sudo {APT} update)\n"
                         f"(sudo env DEBIAN_FRONTEND=noninteractive {APT} --no-install-recommends install first third)\n")

    def test_nothing_missing(self):
        self.put("dpkg-query", "printf '%s installed\\n' first second third")
        self.assertEqual(self.says("setup", user=self.unprivileged()), "")

    def test_build_says_what_it_does(self):
        self.put("dpkg-query", "printf '%s installed\\n' first second third")
        build = os.path.join(self.folder.name, "build/dev")
        self.assertEqual(self.says("build", "--preset", "dev", "--target", "one", "--target", "two"),
                         "peal: configuring build/dev\n"
                         "(cmake --preset dev)\n"
                         "peal: building one two in build/dev, 3 at a time\n"
                         f"(cmake --build {build} -j 3 --target one two)\n")
        self.assertEqual(self.says("build"),
                         "peal: configuring build/release\n"
                         "(cmake --preset release)\n"
                         "peal: building everything in build/release, 3 at a time\n"
                         f"(cmake --build {self.folder.name}/build/release -j 3)\n")

    def test_what_is_installed_is_said_also_where_the_build_is_silent(self):
        """exec keeps its build to itself, but not that it calls sudo."""
        said = self.says("exec", "peal-sim", user=self.unprivileged())
        self.assertTrue(said.startswith("peal: installing 2 of the 3 packages of cmake/debian-packages: first third\n"
                                        "peal: calling sudo for apt-get"), said)

    def test_git_that_refuses_the_clone_is_heard_before_anything_is_tested(self):
        self.put("dpkg-query", "printf '%s installed\\n' first second third")
        self.put("git", "echo \"fatal: detected dubious ownership in repository at 'here'\" >&2; exit 128")
        for words in ((), ("lint",), ("unit", "lint"), ("mutants",)):
            self.assertEqual(self.says("test", *words), "peal: test: git does not say which files this clone has: "
                             "fatal: detected dubious ownership in repository at 'here'\n")

    def test_every_command_says_what_it_does_wherever_help_is_asked_for(self):
        """A tool, and the mutants, are asked themselves."""
        def usage(*words):
            done = subprocess.run([os.path.join(self.folder.name, "peal"), *words], cwd=self.folder.name, stdin=subprocess.DEVNULL,
                                  env={"PATH": f"{self.tools}:/usr/bin:/bin"}, capture_output=True, text=True, check=True)
            self.assertEqual(done.stderr, "")
            return done.stdout.split("\n", 1)[0]
        for command in ("setup", "build", "demo", "test", "soak", "menuconfig", "format", "exec", "clean"):
            for words in ((command, "--help"), (command, "-h")):
                self.assertTrue(usage(*words).startswith(f"usage: ./peal {command}"), words)
        self.assertEqual(usage("build", "--preset", "dev", "--help"), usage("build", "--help"))
        self.assertEqual(usage("soak", "--minutes", "3", "-h"), usage("soak", "--help"))
        self.assertEqual(usage("test", "unit", "--help"), usage("test", "--help"))
        self.put("cmake", "true")
        os.makedirs(os.path.join(self.folder.name, "build/release/bin"))
        tool = os.path.join(self.folder.name, "build/release/bin/peal-sim")
        with open(tool, "w", encoding="utf-8") as file:
            file.write('#!/bin/bash\necho "the tool: $*"\n')
        os.chmod(tool, 0o755)
        self.put("dpkg-query", "printf '%s installed\\n' first second third")
        self.assertEqual(usage("exec", "peal-sim", "run", "--help"), "the tool: run --help")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
