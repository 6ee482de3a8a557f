# SPDX-License-Identifier: BSD-2-Clause
"""Cards and guests for the tests: starts peal-nic and QEMU, talks to a guest over a virtio port, and on failure
shows what both printed. Software emulation only; nothing here expects anything to be fast."""

import contextlib
import os
import pathlib
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
# For what takes a second on an idle machine; a loaded one may be a hundred times slower.
PATIENCE_S = 400
TROUBLE = re.compile(r"BUG:|WARNING:|Oops|general protection|Call Trace|stack segment|refcount_t|"
                     r"hung_task|blocked for more than|leaked|pages are lost|soft lockup|"
                     r"DMA-API: .*(err|warn|leak|pending|not)|kmemleak: [1-9]|ODEBUG|list_(add|del) corruption")


# The kernel's own: where /proc/irq/N could not be made for want of memory, nobody was told, and its removal wonders.
OWN_TROUBLE = re.compile(r"WARNING: [^\n]* at fs/proc/generic\.c:\d+ remove_proc_entry.*?---\[ end trace", re.DOTALL)


# check_leaks() judges them.
LEAKS_FOUND = re.compile(r"kmemleak: \d+ new suspected memory leaks")


# As kmemleak shows a record's first bytes (lost/lost.c): 16 to a line.
LOST_ON_PURPOSE = "lost on purpose."


class TestFailure(Exception):
    pass


class Channel:
    """Lines to and from a guest."""

    def __init__(self, path, process):
        self.buffer = b""
        self.process = process
        deadline = time.monotonic() + PATIENCE_S
        self.socket = socket.socket(socket.AF_UNIX)
        while True:
            try:
                self.socket.connect(str(path))
                return
            except (FileNotFoundError, ConnectionRefusedError):
                if process.poll() is not None:
                    raise TestFailure("QEMU ended before the guest could be reached") from None
                if time.monotonic() > deadline:
                    raise TestFailure("QEMU does not offer the guest's port") from None
                select.select([], [], [], 0.05)

    def send(self, line):
        self.socket.sendall(line.encode() + b"\n")

    def read_until(self, pattern, timeout_s):
        """Text up to and with the pattern; returns (text before it, match)."""
        deadline = time.monotonic() + timeout_s
        while True:
            match = re.search(pattern, self.buffer)
            if match:
                before, self.buffer = self.buffer[:match.start()], self.buffer[match.end():]
                return before.decode(errors="replace").replace("\r", ""), match
            left = deadline - time.monotonic()
            if left <= 0:
                raise TestFailure(f"no {pattern!r} within {timeout_s} s; the guest said:\n"
                                  + self.buffer.decode(errors="replace"))
            if select.select([self.socket], [], [], left)[0]:
                data = self.socket.recv(65536)
                if not data:
                    raise TestFailure("the guest is gone; it had said:\n" + self.buffer.decode(errors="replace"))
                self.buffer += data


class Card:
    """A peal-nic with one card for each of `guests` guests."""

    def __init__(self, lab, guests, options=()):
        self.lab = lab
        self.sockets = [lab.folder / f"card{i}.socket" for i in range(guests)]
        self.memories = [lab.folder / f"card{i}.memory" for i in range(guests)]
        self.counters = lab.folder / "counters.json"
        command = [lab.bin / "peal-nic", "--cards", str(guests), "--counters-json", self.counters]
        for path, memory in zip(self.sockets, self.memories):
            command += ["--pci", f"{path},{memory},{lab.guest_mib}"]
        ready, ready_end = os.pipe()
        with os.fdopen(ready, "rb") as reader:
            self.process = lab.start("peal-nic", command + ["--ready-fd", str(ready_end)] + list(options),
                                     pass_fds=[ready_end])
            os.close(ready_end)
            if not reader.read(1):
                raise TestFailure("peal-nic did not become ready")

    def silence(self):
        """Stops it; when this returns, it does not run any more."""
        self.process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)

    def speak(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        """Ends it and returns its counters."""
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(PATIENCE_S) != 0:
            raise TestFailure(f"peal-nic ended with {self.process.returncode}")
        for path in self.sockets + self.memories:
            if path.is_symlink() or path.exists():
                raise TestFailure(f"peal-nic left {path.name} behind")
        return self.counters.read_text()


class Guest:
    def __init__(self, lab, name, card_socket, memory, append="", network=(), processors=None):
        self.lab = lab
        self.name = name
        self.expected = []  # lines of its kernel that would else be trouble
        self.allocations_failed = False
        lab.guests.append(self)
        self.console = lab.folder / f"{name}.console"
        port = lab.folder / f"{name}.port"
        self.process = lab.start(name, [
            lab.qemu, "-name", name, "-accel",
            f"tcg,thread={'multi' if lab.debug else 'single'}", "-cpu", "max", "-smp", str(processors or lab.processors),
            "-m", str(lab.guest_mib),
            "-object", f"memory-backend-file,id=ram,size={lab.guest_mib}M,mem-path={memory},share=on",
            "-machine", "pc,memory-backend=ram", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
            "-kernel", lab.image, "-initrd", lab.folder / "initramfs",
            # On a busy machine the timer's first ticks may come too late for the kernel's check of them, and later a
            # processor stands still for longer than the kernel likes. Whoever hangs is found by our own patience.
            "-append", "console=ttyS0 panic=-1 quiet loglevel=7 random.trust_cpu=on no_timer_check nowatchdog "
            f"rcupdate.rcu_cpu_stall_suppress=1 {append}",
            "-serial", f"file:{self.console}",
            "-chardev", f"socket,path={port},server=on,wait=off,id=port", "-device", "virtio-serial-pci,addr=04.0",
            "-device", "virtserialport,chardev=port,name=peal",
            "-chardev", f"socket,path={card_socket},id=card",
            "-device", "ivshmem-doorbell,chardev=card,vectors=2,addr=08.0", *network])
        self.channel = Channel(port, self.process)
        self.channel.read_until(rb"@@ready\n", PATIENCE_S)

    def begin(self, line):
        self.channel.send(line)

    def finish(self, timeout_s=PATIENCE_S):
        """(exit status, what was printed) of the command that began."""
        text, match = self.channel.read_until(rb"\n@@status (\d+)\n", timeout_s)
        return int(match.group(1)), text.strip()

    def run(self, line, timeout_s=PATIENCE_S, background=False):
        """What a command printed; it must succeed. In the background: that it was started."""
        self.begin(f"({line}) &" if background else line)
        status, text = self.finish(timeout_s)
        if status != 0:
            raise TestFailure(f"{self.name}: '{line}' ended with {status}:\n{text}")
        return text

    def run_with_card(self, line, card):
        """A command that asks for its card to be stopped and continued (ask_outside() of the self-test)."""
        self.begin(line)
        while True:
            text, match = self.channel.read_until(rb"(stop|continue) the card\n|\n@@status (\d+)\n", PATIENCE_S)
            if match.group(1) is None:
                break
            if match.group(1) == b"stop":
                card.silence()
            else:
                card.speak()
            self.channel.send("done")
        if int(match.group(2)) != 0:
            raise TestFailure(f"{self.name}: '{line}' ended with {int(match.group(2))}:\n{text}")
        return text.strip()

    def check_kernel_log(self, allocations_failed=False):
        text = self.run("dmesg")
        if allocations_failed:
            self.allocations_failed = True
            text = OWN_TROUBLE.sub("", text)
        if TROUBLE.search(text):
            raise TestFailure(f"{self.name}: the kernel is in trouble:\n{text}")
        if self.lab.debug:
            self.check_leaks()

    def expect(self, text):
        """Once, on its console."""
        self.expected.append(text)

    def judge_console(self):
        """All that its kernel ever said, also while it was shut down or killed, and what a test took out of dmesg's log."""
        text = self.console.read_text(errors="replace").replace("\r", "")
        for line in self.expected:
            before, found, after = text.partition(line)
            if not found:
                raise TestFailure(f"{self.name}: the console does not say '{line}':\n{text}")
            text = before + after
        if self.allocations_failed:
            text = OWN_TROUBLE.sub("", text)
        if self.lab.debug:
            text = LEAKS_FOUND.sub("", text)
        found = TROUBLE.search(text)
        if found:
            raise TestFailure(f"{self.name}: the kernel was in trouble: '{found.group()}' in\n{text}")

    def scan_for_leaks(self):
        """What kmemleak finds: what the tests lost on purpose, and what else is lost."""
        self.run("echo scan >/sys/kernel/debug/kmemleak")
        records = re.split(r"^(?=unreferenced object)", self.run("cat /sys/kernel/debug/kmemleak"), flags=re.MULTILINE)
        records = [record for record in records if record.strip()]
        on_purpose = [record for record in records if LOST_ON_PURPOSE in record]
        return on_purpose, [record for record in records if record not in on_purpose]

    def check_leaks(self):
        """kmemleak speaks only of what is older than some seconds. Once it speaks of what is lost here, it has judged all that
        was made before. Now and then it errs about what is being moved: what is lost is found again."""
        # It refuses to stay.
        self.run("! insmod /modules/*lost.ko 2>/dev/null")
        deadline = time.monotonic() + PATIENCE_S
        on_purpose, leaks = self.scan_for_leaks()
        while not on_purpose:
            if time.monotonic() > deadline:
                raise TestFailure(f"{self.name}: kmemleak does not find what was lost on purpose")
            on_purpose, leaks = self.scan_for_leaks()
        if leaks:
            leaks = self.scan_for_leaks()[1]
        if leaks:
            raise TestFailure(f"{self.name}: memory has leaked:\n{''.join(leaks)}")
        # What was found is forgotten, and the log has been judged before.
        self.run("echo clear >/sys/kernel/debug/kmemleak; dmesg -c >/dev/null")

    def power_off(self):
        self.begin("poweroff -f")
        self.process.wait(PATIENCE_S)

    def kill(self):
        self.process.kill()
        self.process.wait()


class Lab:
    """A temporary folder and everything that runs in it."""

    def __init__(self, arguments):
        self.debug = bool(arguments.debug)
        # Two processors race where one only takes turns; the sanitizer's shadow takes memory. A card has far more
        # memberships than there is memory for (4 MiB of the kernel's for each).
        self.guest_mib, self.processors = (448, 2) if self.debug else (256, 1)
        self.bin = pathlib.Path(arguments.bin)
        self.qemu = shutil.which(arguments.qemu)
        if self.qemu is None:
            raise TestFailure(f"{arguments.qemu} is not installed: ./peal setup, or configure with -DPEAL_GUEST=OFF")
        kernel = pathlib.Path(arguments.kernel)
        # The debug kernel has to set up its sanitizer before anything else runs, which the short way into vmlinux does not do.
        self.image = kernel / ("linux/arch/x86/boot/bzImage" if self.debug else "vmlinux")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="peal-guest."))
        self.processes = []
        self.guests = []

    def start(self, name, command, pass_fds=()):
        with open(self.folder / f"{name}.log", "wb") as log:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=subprocess.STDOUT, pass_fds=pass_fds)
        self.processes.append(process)
        return process

    def show_logs(self):
        for path in sorted(self.folder.glob("*.log")) + sorted(self.folder.glob("*.console")):
            print(f"----- {path.name}\n{path.read_text(errors='replace')[-4000:]}", file=sys.stderr)

    def close(self):
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


@contextlib.contextmanager
def lab(arguments):
    made = Lab(arguments)
    try:
        yield made
        for guest in made.guests:
            guest.judge_console()
    except BaseException:
        made.show_logs()
        raise
    finally:
        made.close()


def run_test(body, arguments):
    """A test's main(): 0, or 1 with the reason."""
    try:
        with lab(arguments) as made:
            body(made)
    except (TestFailure, subprocess.TimeoutExpired) as failure:
        print(f"FAILED: {failure}", file=sys.stderr)
        return 1
    return 0
