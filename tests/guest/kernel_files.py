#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The guest's kernel, without installing it: Debian's linux-image package of the version of the installed headers is
downloaded, vmlinux and the few modules a guest needs are taken out of it, and these are kept in FOLDER.

usage: kernel_files.py VERSION FOLDER          for example: kernel_files.py 6.1.0-56-amd64 build/download/guest-kernel
"""

import fcntl
import lzma
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tarfile
import zlib

# In the order in which they are loaded.
MODULES = ["virtio_ring", "virtio", "virtio_pci_legacy_dev", "virtio_pci_modern_dev", "virtio_pci", "failover",
           "net_failover", "virtio_net", "virtio_console", "fuse"]


def download(version, folder):
    result = subprocess.run(["apt-get", "-q", "-o", "APT::Sandbox::User=root", "-o", "Acquire::Retries=3", "download",
                             f"linux-image-{version}"], cwd=folder, check=False, stdout=sys.stderr)
    if result.returncode != 0:
        sys.exit(f"kernel_files: linux-image-{version} cannot be downloaded: apt-get update, and see that the package "
                 "linux-headers-amd64 is current")
    packages = list(folder.glob("*.deb"))
    if len(packages) != 1:
        sys.exit(f"kernel_files: apt-get download left {len(packages)} packages")
    return packages[0]


def unpack(package, version, folder):
    """vmlinuz and the modules; the rest of the package is 400 MB."""
    wanted = {f"{name.replace('_', '-')}.ko" for name in MODULES} | {f"{name}.ko" for name in MODULES}
    found = set()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", str(package)], stdout=subprocess.PIPE) as process:
        with tarfile.open(fileobj=process.stdout, mode="r|") as tar:
            for member in tar:
                name = pathlib.PurePosixPath(member.name).name
                if not member.isfile() or (name not in wanted and name != f"vmlinuz-{version}"):
                    continue
                target = "vmlinuz" if name.startswith("vmlinuz") else name.replace("-", "_")
                with open(folder / target, "wb") as out:
                    shutil.copyfileobj(tar.extractfile(member), out)
                found.add(target)
    missing = ({f"{name}.ko" for name in MODULES} | {"vmlinuz"}) - found
    if process.returncode != 0 or missing:
        sys.exit(f"kernel_files: {package.name} has no {', '.join(sorted(missing)) or 'contents'}")


def extract_vmlinux(image):
    """The ELF file inside a bzImage: where the boot protocol's header (version 2.08 and later) says it is."""
    if image[0x202:0x206] != b"HdrS":
        sys.exit("kernel_files: vmlinuz is no bzImage")
    setup_sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (setup_sectors + 1) * 512 + offset
    payload = image[start:start + length]
    if payload.startswith(b"\xfd7zXZ\x00"):
        vmlinux = lzma.LZMADecompressor().decompress(payload)
    elif payload.startswith(b"\x1f\x8b"):
        vmlinux = zlib.decompressobj(wbits=31).decompress(payload)
    else:
        sys.exit(f"kernel_files: the kernel is compressed in a way not known here ({payload[:6].hex()})")
    if not vmlinux.startswith(b"\x7fELF"):
        sys.exit("kernel_files: what vmlinuz holds is no ELF file")
    return vmlinux


def fetch(version, folder):
    stamp = folder / ".complete"
    wanted = f"2 {version} {' '.join(MODULES)}\n"
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    work = folder.with_name(f"{folder.name}.{os.getpid()}")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        package = download(version, work)
        unpack(package, version, work)
        package.unlink()
        (work / "vmlinux").write_bytes(extract_vmlinux((work / "vmlinuz").read_bytes()))
        (work / "vmlinuz").unlink()
        (work / ".complete").write_text(wanted)
        shutil.rmtree(folder, ignore_errors=True)
        work.rename(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    print(f"kernel_files: {version} in {folder}", file=sys.stderr)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    version, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Several tests begin at once: whoever waited finds it all there.
    with open(folder.with_name(f"{folder.name}.lock"), "w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        fetch(version, folder)


if __name__ == "__main__":
    main()
