#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Starts the card, waits until it says that it is ready, ends it politely, and looks at what it leaves behind:
# a clean exit, its counters as JSON, no socket.
#
# usage: nic_start_test.sh PEAL_NIC_COMMAND...
set -euo pipefail
work=$(mktemp -d)
pid=""
trap '[[ -z $pid ]] || kill -9 "$pid" 2>/dev/null || true; rm -rf "$work"' EXIT

mkfifo "$work/ready"
"$@" --cards 2 --socket "$work/socket" --no-telemetry --counters-json "$work/counters.json" --ready-fd 3 \
  3>"$work/ready" >"$work/output" 2>&1 &
pid=$!
fail() {
  echo "nic-start: $*"
  cat "$work/output"
  exit 1
}

exec 4<"$work/ready"
IFS= read -r -t 120 word <&4 || fail "peal-nic ended or said nothing in 120 s"
[[ $word == ready ]] || fail "peal-nic said '$word'"
[[ -S $work/socket ]] || fail "there is no socket"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
pid=""
((status == 0)) || fail "peal-nic ended with status $status"
/usr/bin/python3 - "$work/counters.json" <<'PYTHON' || fail "the counters are not what two cards report"
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    cards = json.load(file)["cards"]
sys.exit(len(cards) != 2)
PYTHON
[[ ! -e $work/socket ]] || fail "the socket was left behind"
echo "nic-start: ready, ended in order, counters of 2 cards"
