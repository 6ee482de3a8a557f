#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The kernel of the guest-debug label: Debian's kernel source of this release with debug_kernel.config, built once into
FOLDER (about a quarter of an hour on one core, 2 GB). The module is then built against FOLDER/linux, and the guests boot
FOLDER/linux/arch/x86/boot/bzImage. What was interrupted goes on where it was.

usage: debug_kernel.py FOLDER [JOBS]         for example: debug_kernel.py build/download/debug-kernel 2
"""

import hashlib
import pathlib
import shutil
import subprocess
import sys

SOURCE = "linux-source-6.1"
FRAGMENT = pathlib.Path(__file__).with_name("debug_kernel.config")


def run(*command, **options):
    words = [str(word) for word in command]
    if subprocess.run(words, check=False, stdout=sys.stderr, **options).returncode != 0:
        sys.exit(f"debug_kernel: '{' '.join(words)}' failed")


def unpack(folder):
    linux = folder / "linux"
    if (linux / "Makefile").is_file():
        return linux
    for package in folder.glob("*.deb"):
        package.unlink()
    run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download", SOURCE, cwd=folder)
    package, = folder.glob("*.deb")
    run("dpkg-deb", "-x", package, folder / "package")
    fresh = folder / "fresh"
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    run("tar", "-xf", folder / "package" / "usr" / "src" / f"{SOURCE}.tar.xz", "-C", fresh, "--strip-components=1")
    fresh.rename(linux)
    package.unlink()
    shutil.rmtree(folder / "package")
    return linux


def configure(linux):
    """Nothing but the fragment; what the kernel's Kconfig would not accept is named."""
    run("make", "-s", "allnoconfig", f"KCONFIG_ALLCONFIG={FRAGMENT}", cwd=linux)
    have = set((linux / ".config").read_text().splitlines())
    refused = []
    for line in FRAGMENT.read_text().splitlines():
        if line.endswith("=n"):
            line = f"# {line[:-2]} is not set"
        elif not line.startswith("CONFIG_"):
            continue
        if line not in have and not line.endswith(" is not set"):
            refused.append(line)
    if refused:
        sys.exit(f"debug_kernel: this kernel does not take {', '.join(refused)}")


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = pathlib.Path(sys.argv[1]).resolve()
    jobs = int(sys.argv[2]) if len(sys.argv) == 3 else 1
    stamp = folder / ".complete"
    wanted = f"1 {SOURCE} {hashlib.sha256(FRAGMENT.read_bytes()).hexdigest()}\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    folder.mkdir(parents=True, exist_ok=True)
    linux = unpack(folder)
    configure(linux)
    run("nice", "-n", "10", "make", "-s", f"-j{jobs}", "bzImage", "modules", cwd=linux)
    stamp.write_text(wanted)
    print(f"debug_kernel: {linux}/arch/x86/boot/bzImage", file=sys.stderr)


if __name__ == "__main__":
    main()
