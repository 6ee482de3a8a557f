# SPDX-License-Identifier: BSD-2-Clause
"""A guest's whole file system: busybox, the kernel modules, some programs with the libraries they need, and /init.
Written as a cpio archive by hand, so that neither root nor cpio is needed."""

import pathlib
import re
import stat
import subprocess


class Archive:
    """The "newc" format: a header of hexadecimal numbers, the name, the contents."""

    def __init__(self):
        self.parts = []
        self.names = set()
        self.inode = 0

    def add(self, name, mode, data=b"", major=0, minor=0):
        for parent in reversed(pathlib.PurePosixPath(name).parents):
            if str(parent) not in (".", "/") and str(parent) not in self.names:
                self.add(str(parent), stat.S_IFDIR | 0o755)
        self.names.add(name)
        self.inode += 1
        encoded = name.encode() + b"\0"
        numbers = [self.inode, mode, 0, 0, 1, 0, len(data), 0, 0, major, minor, len(encoded), 0]
        self.parts += [b"070701" + b"".join(b"%08X" % number for number in numbers), encoded,
                       b"\0" * (-(110 + len(encoded)) % 4), data, b"\0" * (-len(data) % 4)]

    def add_file(self, name, source, mode=0o755):
        self.add(name, stat.S_IFREG | mode, pathlib.Path(source).read_bytes())

    def finish(self):
        self.add("TRAILER!!!", 0)
        return b"".join(self.parts)


def libraries(program):
    """What the program is linked with, and what only shows when a thread ends (pthread needs libgcc_s for that)."""
    shown = subprocess.run(["ldd", str(program)], capture_output=True, text=True, check=False)
    if shown.returncode != 0:
        return set()  # static
    if "not found" in shown.stdout:
        raise SystemExit(f"{program} lacks libraries:\n{shown.stdout}")
    found = set(re.findall(r"(/\S+) \(0x", shown.stdout))
    for path in list(found):
        beside = pathlib.Path(path).with_name("libgcc_s.so.1")
        if beside.exists():
            found.add(str(beside))
    return found


def build(target, busybox, modules, init, programs):
    """modules: in the order of loading; programs: they land in /bin."""
    archive = Archive()
    archive.add("dev/console", stat.S_IFCHR | 0o600, major=5, minor=1)
    archive.add_file("bin/busybox", busybox)
    archive.add("bin/sh", stat.S_IFLNK | 0o777, b"busybox")
    for folder in ("proc", "sys", "tmp", "run"):
        archive.add(folder, stat.S_IFDIR | 0o755)
    for number, module in enumerate(modules):
        archive.add_file(f"modules/{number:02}-{pathlib.Path(module).name}", module, 0o644)
    needed = set()
    for program in programs:
        archive.add_file(f"bin/{pathlib.Path(program).name}", program)
        needed |= libraries(program)
    for library in sorted(needed):
        # The loader is found by its full name, the rest in /lib.
        name = library.lstrip("/") if "ld-linux" in library else "lib/" + pathlib.Path(library).name
        archive.add_file(name, library)
    archive.add_file("init", init)
    pathlib.Path(target).write_bytes(archive.finish())
