# SPDX-License-Identifier: BSD-2-Clause
"""The command line that the guest tests share, and the initramfs that follows from it."""

import argparse
import pathlib
import subprocess
import sys

import guest_vm
import initramfs
import kernel_files

HERE = pathlib.Path(__file__).parent


def parse(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--bin", required=True, help="folder with peal-nic and the tools")
    parser.add_argument("--module", required=True, help="peal.ko")
    parser.add_argument("--kernel-version", required=True)
    parser.add_argument("--kernel", required=True, help="folder for the downloaded kernel")
    parser.add_argument("--selftest", required=True)
    parser.add_argument("--debug", metavar="LOST", help="the kernel is debug_kernel.py's: everything is looked over, "
                        "and LOST is lost.ko")
    parser.add_argument("--busybox", default="/bin/busybox")
    parser.add_argument("--qemu", default="qemu-system-x86_64")
    return parser.parse_args()


def make_initramfs(lab, arguments, programs):
    if not pathlib.Path(arguments.busybox).is_file():
        sys.exit(f"{arguments.busybox} is missing: install busybox-static (./peal setup does)")
    if arguments.debug:
        # All that a guest needs is in the kernel itself.
        initramfs.build(lab.folder / "initramfs", arguments.busybox, [arguments.module, arguments.debug], HERE / "init.sh", programs)
        return
    made = subprocess.run([sys.executable, HERE / "kernel_files.py", arguments.kernel_version, arguments.kernel],
                          check=False)
    if made.returncode != 0:
        raise guest_vm.TestFailure("there is no kernel for the guest (see above)")
    modules = [pathlib.Path(arguments.kernel) / f"{name}.ko" for name in kernel_files.MODULES] + [arguments.module]
    initramfs.build(lab.folder / "initramfs", arguments.busybox, modules, HERE / "init.sh", programs)


def run_in_guests(description, body):
    """What a test is that runs in guests: `body` of the lab, with peal-guest-selftest on their disk. The exit status."""
    arguments = parse(description)

    def test(lab):
        make_initramfs(lab, arguments, [arguments.selftest])
        body(lab)

    return guest_vm.run_test(test, arguments)
