#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Ranks and cards of the emulated machine run every operation by each of its algorithms: real processes, over the
# socket and shared memory. peal-perf looks at every result. Memory is the card's own: user-mode emulation has no
# process_vm_readv(2).
#
# usage: nic_play_test.sh RANKS PEAL_NIC_COMMAND... -- PEAL_PERF_COMMAND...
set -euo pipefail
ranks=$1
shift
nic=()
while [[ $1 != -- ]]; do
  nic+=("$1")
  shift
done
shift
work=$(mktemp -d)
pids=()
trap '((${#pids[@]} == 0)) || kill -9 "${pids[@]}" 2>/dev/null || true; rm -rf "$work"' EXIT
fail() {
  echo "nic-play: $*"
  cat "$work"/output*
  exit 1
}

mkfifo "$work/ready"
"${nic[@]}" --cards "$ranks" --socket "$work/socket" --no-telemetry --loss 0.01 --seed 3 --ready-fd 3 \
  3>"$work/ready" >"$work/output" 2>&1 &
pids=("$!")
exec 4<"$work/ready"
IFS= read -r -t 120 word <&4 || fail "peal-nic ended or said nothing in 120 s"
[[ $word == ready ]] || fail "peal-nic said '$word'"

export PEAL_SIZE=$ranks PEAL_OOB_TOKEN=0123456789abcdef0123456789abcdef
# play OPERATION OPTIONS...
play() {
  local rank
  rm -f "$work/oob"
  pids=("${pids[0]}")
  for ((rank = 0; rank < ranks; rank++)); do
    PEAL_RANK=$rank PEAL_CARD="emu:$work/socket,card=$rank" PEAL_OOB="unix:$work/oob,serve" "${perf[@]}" "$@" --iterations 20 \
      --warmup 2 --json "$work/records.json" >"$work/output.$rank" 2>&1 &
    pids+=("$!")
  done
  for ((rank = 0; rank < ranks; rank++)); do
    wait "${pids[$((rank + 1))]}" || fail "rank $rank of $1 ended with status $?"
  done
  pids=("${pids[0]}")
  /usr/bin/python3 - "$work/records.json" "$1" <<'PYTHON' || fail "a result of $1 was not looked at"
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    records = json.load(file)
for record in records:
    print(sys.argv[2], record["algorithm"], record["bytes"], "verified" if record["verified"] else "wrong")
sys.exit(not records or not all(record["verified"] is True for record in records))
PYTHON
}

perf=("$@")
play barrier
for operation in allgather broadcast alltoall allgatherv alltoallv; do
  play "$operation" --algorithm all --sizes 8,5000,40000
done
for operation in allgather alltoall; do
  play "$operation" --algorithm all --sizes 5000 --in-place
done
kill -TERM "${pids[0]}"
status=0
wait "${pids[0]}" || status=$?
pids=()
((status == 0)) || fail "peal-nic ended with status $status"
