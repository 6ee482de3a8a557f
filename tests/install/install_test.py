# SPDX-License-Identifier: BSD-2-Clause
"""`cmake --install` as a user meets it: into a folder, staged for a package, moved, compiled against, run, and taken away.

usage: install_test.py BUILD_FOLDER README CMAKE C_COMPILER PKG_CONFIG
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, README, CMAKE, CC, PKG_CONFIG = sys.argv[1:6]
PATIENCE_S = 200

PROGRAMS = ["ideal-card", "peal-matmul", "peal-nic", "peal-perf", "peal-sim", "pealctl", "pealrun"]
# Below the prefix, without the programs; LIB is the platform's folder of libraries.
FILES = """
include/peal/oob.h
include/peal/peal.h
LIB/cmake/peal/pealConfig.cmake
LIB/cmake/peal/pealConfigVersion.cmake
LIB/cmake/peal/pealTargets-relwithdebinfo.cmake
LIB/cmake/peal/pealTargets.cmake
LIB/libpeal.a
LIB/libpeal.so
LIB/libpeal.so.0
LIB/libpeal.so.0.1.0
LIB/pkgconfig/peal.pc
share/doc/peal/BSD-2-Clause.txt
share/doc/peal/environment.md
share/doc/peal/examples/hello/CMakeLists.txt
share/doc/peal/examples/hello/hello.c
share/man/man1/ideal-card.1
share/man/man1/peal-matmul.1
share/man/man1/peal-nic.1
share/man/man1/peal-perf.1
share/man/man1/peal-sim.1
share/man/man1/pealctl.1
share/man/man1/pealrun.1
share/man/man3/peal_collectives.3
share/man/man3/peal_context.3
share/man/man3/peal_errors.3
share/man/man3/peal_events.3
share/man/man3/peal_group.3
share/man/man3/peal_memory.3
share/man/man3/peal_oob.3
share/man/man3/peal_p2p.3
share/man/man3/peal_persistent.3
share/man/man3/peal_program.3
share/man/man3/peal_request.3
share/man/man4/peal-driver.4
""".split()

RANKS = 4
# All ranks' lines, sorted: each has everybody's four bytes.
HELLO = "".join(f"rank {rank} has {other * other}\n" for rank in range(RANKS) for other in range(RANKS))


def run(*command, cwd=None, **settings):
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PEAL_", "PKG_CONFIG", "CMAKE_"))}
    environment.pop("DESTDIR", None)
    environment.pop("LD_LIBRARY_PATH", None)
    environment.update(settings)
    done = subprocess.run(command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=PATIENCE_S + 60, check=False)
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def tree(folder):
    return sorted(os.path.relpath(os.path.join(where, name), folder) for where, _, names in os.walk(folder) for name in names)


def content(path):
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        return file.read()


def restore(path, before):
    if before is not None:
        with open(path, "wb") as file:
            file.write(before)
    elif os.path.exists(path):
        os.unlink(path)


def readme_line(start):
    """The one line of the README that begins so, as a person would copy it."""
    with open(README, encoding="utf-8") as readme:
        line, = re.findall(rf"^({start}.*)$", readme.read(), re.M)
    return line


def setting(name):
    with open(os.path.join(BUILD, "CMakeCache.txt"), encoding="utf-8") as cache:
        return re.search(rf"^{name}:[A-Z]*=(.*)$", cache.read(), re.M).group(1)


class InstallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="peal-install-")
        cls.addClassCleanup(cls.folder.cleanup)
        # By these a person uninstalls what that person installed.
        for name in ("install_manifest.txt", "install_manifest_runtime.txt", "install_manifest_development.txt"):
            cls.addClassCleanup(restore, os.path.join(BUILD, name), content(os.path.join(BUILD, name)))
        first = cls.path("first")
        # Debug information names the sources, which is what it is for.
        run(CMAKE, "--install", BUILD, "--prefix", first, "--strip")
        cls.installed = tree(first)
        # Everything below works from a place that nobody named when it was installed.
        cls.prefix = cls.path("moved")
        os.rename(first, cls.prefix)
        cls.lib = os.path.join(cls.prefix, setting("CMAKE_INSTALL_LIBDIR"))
        cls.pkg_config_path = os.path.join(cls.lib, "pkgconfig")
        cls.hello = os.path.join(cls.prefix, "share/doc/peal/examples/hello")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder.name, name)

    def wanted_files(self):
        lib = setting("CMAKE_INSTALL_LIBDIR")
        return sorted([f"bin/{name}" for name in PROGRAMS] + [name.replace("LIB", lib, 1) if name.startswith("LIB/") else name
                                                              for name in FILES])

    def run_hello(self, program, **settings):
        """With the installed programs; nothing of the build folder is in the way."""
        temporary = tempfile.mkdtemp(dir=self.folder.name)
        out = run(os.path.join(self.prefix, "bin/pealrun"), "-n", str(RANKS), "--timeout", str(PATIENCE_S), program,
                  TMPDIR=temporary, PATH="/usr/bin:/bin", **settings)
        self.assertEqual("".join(sorted(out.splitlines(keepends=True))), HELLO)
        self.assertEqual(os.listdir(temporary), [])

    def test_everything_is_there_and_nothing_else(self):
        self.assertEqual(self.installed, self.wanted_files())

    def test_nothing_knows_where_it_was_built(self):
        places = [os.fsencode(os.path.realpath(BUILD)), os.fsencode(self.path("first"))]
        for name in self.installed:
            # libpeal.a keeps the debug information that --strip takes out of the others.
            for place in places if not name.endswith(".a") else places[1:]:
                self.assertNotIn(place, content(os.path.join(self.prefix, name)), name)

    def test_staging_for_a_package(self):
        run(CMAKE, "--install", BUILD, "--prefix", "/opt/some where", "--strip", DESTDIR=self.path("stage"))
        stage = self.path("stage/opt/some where")
        self.assertEqual(tree(self.path("stage")), sorted(f"opt/some where/{name}" for name in self.wanted_files()))
        for name in self.wanted_files():
            self.assertEqual(content(os.path.join(stage, name)), content(os.path.join(self.prefix, name)),
                             f"{name} depends on the folder it is installed into")

    def test_components(self):
        run(CMAKE, "--install", BUILD, "--prefix", self.path("runtime"), "--component", "runtime")
        run(CMAKE, "--install", BUILD, "--prefix", self.path("development"), "--component", "development")
        runtime, development = tree(self.path("runtime")), tree(self.path("development"))
        self.assertEqual(sorted(runtime + development), self.wanted_files())
        self.assertEqual([name for name in runtime if name.endswith((".h", ".a", ".so", ".pc", ".cmake", ".c"))], [])

    def test_uninstall(self):
        """As the README says it."""
        prefix = self.path("short lived")
        run(CMAKE, "--install", BUILD, "--prefix", prefix)
        self.assertEqual(tree(prefix), self.wanted_files())
        run("sh", "-ec", readme_line("xargs ").replace("build/release", shlex.quote(BUILD)))
        self.assertEqual(tree(prefix), [])

    def test_programs_find_the_library(self):
        for name in PROGRAMS:
            run(os.path.join(self.prefix, "bin", name), "--help")

    def copy_of_hello(self, name):
        return shutil.copytree(self.hello, self.path(name))

    def test_hello_with_the_line_of_the_readme(self):
        folder = self.copy_of_hello("hello-readme")
        run("sh", "-ec", readme_line("cc hello"), cwd=folder, PKG_CONFIG_PATH=self.pkg_config_path)
        self.run_hello(os.path.join(folder, "hello"))

    def test_hello_is_strict_c11(self):
        folder = self.copy_of_hello("hello-strict")
        flags = run(PKG_CONFIG, "--cflags", "--libs", "peal", PKG_CONFIG_PATH=self.pkg_config_path).split()
        run(CC, "-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror", "hello.c", "-o", "hello", *flags, cwd=folder)
        self.run_hello(os.path.join(folder, "hello"), LD_LIBRARY_PATH=self.lib)

    def test_hello_with_the_static_library(self):
        folder = self.copy_of_hello("hello-static")
        flags = run(PKG_CONFIG, "--static", "--cflags", "--libs", "peal", PKG_CONFIG_PATH=self.pkg_config_path)
        run(CC, "hello.c", "-o", "hello", *flags.replace("-lpeal", "-l:libpeal.a").split(), cwd=folder)
        self.run_hello(os.path.join(folder, "hello"))

    def test_hello_with_cmake(self):
        folder = self.copy_of_hello("hello-cmake")
        run(CMAKE, "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={CC}", cwd=folder)
        run(CMAKE, "--build", "build", cwd=folder)
        self.run_hello(os.path.join(folder, "build/hello"))

    def test_cmake_finds_no_other_minor_version(self):
        folder = self.copy_of_hello("hello-later")
        path = os.path.join(folder, "CMakeLists.txt")
        with open(path, encoding="utf-8") as file:
            text = file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text.replace("find_package(peal 0.1 REQUIRED)", "find_package(peal 0.2 QUIET)\nmessage(STATUS found=${peal_FOUND})"
                                    "\nreturn()"))
        out = run(CMAKE, "-B", "build", f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_C_COMPILER={CC}", cwd=folder)
        self.assertIn("-- found=0\n", out)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
