# SPDX-License-Identifier: BSD-2-Clause
"""./peal demo: peal-matmul on eight ranks and eight cards that lose 1% of the packets, and beside it the same program
over Open MPI's collectives (tools/openmpi-twin), where Open MPI is installed.

usage: demo.py FOLDER_OF_THE_PROGRAMS [FOLDER_OF_THE_TWIN]"""

import os
import re
import shutil
import subprocess
import sys

RANKS = 8
PEAL = ["-n", str(RANKS), "--loss", "0.01"]
# What suits ranks that share processors best; all processors are Open MPI's, since it needs none for cards.
OPENMPI = ["-n", str(RANKS), "--oversubscribe", "--map-by", "core", "--bind-to", "core:overload-allowed",
           "--mca", "mpi_yield_when_idle", "1", "--mca", "btl", "self,vader", "--mca", "pml", "ob1"]
# A row of the table of collectives: name, count, bytes per rank, median, on the card.
ROW = re.compile(r"^(.{28}) +(\d+) +(\d+) +([\d.]+) +(-|[\d.]+)$")
TITLE = re.compile(r"^collective \(on rank 0\) +count ")
SECONDS = re.compile(r"^(.* matrices in ([\d.]+) s)$")


def say(text):
    print(f"peal: {text}", file=sys.stderr, flush=True)


def find_openmpi(twin):
    """Its mpirun, or None with the reason said."""
    mpirun = shutil.which("mpirun.openmpi") or shutil.which("mpirun")
    if mpirun is None or not os.path.exists(os.path.join(twin, "libpeal.so.0")):
        say("Open MPI is not installed (./peal setup --open-mpi installs it), so the table shows Peal alone")
        return None
    return mpirun


def run_openmpi(mpirun, matmul, twin):
    """What the program printed, or None with the reason said."""
    libraries = ":".join(filter(None, [twin, os.environ.get("LD_LIBRARY_PATH")]))
    environment = dict(os.environ)
    if os.geteuid() == 0:
        environment.update(OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    say(f"running the product over Open MPI: {os.path.basename(mpirun)} {' '.join(OPENMPI)} peal-matmul")
    done = subprocess.run([mpirun, *OPENMPI, "-x", f"LD_LIBRARY_PATH={libraries}", matmul], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return done.stdout
    sys.stderr.write(done.stdout + done.stderr)
    say(f"Open MPI's run failed with status {done.returncode} (above), so the table shows Peal alone")
    return None


def beside(peal, openmpi):
    """The output of Peal's run, with Open MPI's medians as one more column."""
    medians = {match.group(1, 2, 3): match.group(4) for line in openmpi.splitlines() if (match := ROW.match(line))}
    lines = []
    for line in peal.splitlines():
        if TITLE.match(line):
            line += f"{'Open MPI us':>15}"
        elif match := ROW.match(line):
            line += f"{medians.get(match.group(1, 2, 3), '?'):>15}"
        elif match := SECONDS.match(line):
            theirs = SECONDS.search(next((each for each in openmpi.splitlines() if SECONDS.match(each)), ""))
            line += f" (over Open MPI {theirs.group(2) if theirs else '?'} s)"
        lines.append(line)
    lines.append("Peal: through packets, 1% of them lost, of cards that share one processor. Open MPI: through shared memory that loses\n"
                 "nothing, on all processors. The same program, data and checks.")
    return "\n".join(lines) + "\n"


def main():
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    folder = os.path.abspath(sys.argv[1])
    twin = os.path.abspath(sys.argv[2] if len(sys.argv) == 3 else os.path.join(folder, "../openmpi"))
    matmul = os.path.join(folder, "peal-matmul")
    mpirun = find_openmpi(twin)
    openmpi = run_openmpi(mpirun, matmul, twin) if mpirun else None
    say(f"running the product over Peal: pealrun {' '.join(PEAL)} peal-matmul")
    done = subprocess.run([os.path.join(folder, "pealrun"), *PEAL, matmul], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True, check=False)
    sys.stdout.write(beside(done.stdout, openmpi) if openmpi else done.stdout)
    sys.stdout.flush()
    sys.exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)


if __name__ == "__main__":
    main()
