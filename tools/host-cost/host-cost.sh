#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Instructions that libpeal executes in the caller, for each call: everything from the call to its return, the C library's
# locks included. The same number on any machine, whatever else it does.
set -euo pipefail

usage() {
  cat <<'HELP'
usage: host-cost [--check] [--functions OPERATION]

Runs operations of a group of 8 ranks, blocks of 1 KiB, under valgrind's callgrind, on a card that answers each at once,
and prints the instructions for each call: to begin an operation, to test it where nothing has come, to wait for it
where its result is there, and to free its request. "changing" goes to and fro between two buffers and two lengths,
with counts it has others in each call; of "offsets" the blocks lie from last to first; "persistent" is an allgather
that was made once, and starts again; "program" is one that is a program of the card.

  --check                 ends with status 1 if a call costs more instructions than its bound
  --functions OPERATION   of one operation, the functions in which they are executed, per operation
HELP
}

bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
check=false
only=
while (($# > 0)); do
  case $1 in
    --help | -h) usage && exit 0 ;;
    --check) check=true && shift ;;
    --functions) only=${2:?--functions needs an operation} && shift 2 ;;
    *) echo "host-cost: unknown argument '$1'; see host-cost --help" >&2 && exit 2 ;;
  esac
done
command -v valgrind >/dev/null || { echo "host-cost: valgrind is missing; run ./peal setup" >&2; exit 2; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly operations=1000

run() { # run OPERATION: what callgrind has seen, in $work/out
  valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no --toggle-collect='*counted*' \
    "$bin/host-cost-calls" "$1" "$operations" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
}

if [[ -n $only ]]; then
  run "$only"
  callgrind_annotate --auto=no --threshold=100 "$work/out" |
    awk -v n="$operations" '$1 ~ /^[0-9,]+$/ { gsub(",", "", $1); if ($1 >= n) { printf "%6.0f", $1 / n; $1 = $2 = ""; print } }'
  exit 0
fi

printf '%-28s %8s %8s %8s %8s\n' operation begin test wait free
status=0
measure() { # measure OPERATION BEGIN TEST WAIT FREE: bounds, instructions a call; -: it is not called
  local name=$1
  shift
  run "$name"
  # A function has a line for each file that code in it is from; inclusive, the largest is the whole. A test that finds
  # nothing calls nothing; now and then one takes the lock to look after the card, as the processor's clock says: only
  # what is executed in peal_test itself counts.
  {
    callgrind_annotate --auto=no --inclusive=yes --threshold=100 "$work/out" | sed -n '/:peal_test\>/d; s/^/all /p'
    callgrind_annotate --auto=no --threshold=100 "$work/out" | sed -n '/:peal_test\>/s/^/own /p'
  } |
    awk -v name="$name" -v n="$operations" -v bounds="$*" '
      function largest(i) { if ($2 / n > cost[i]) cost[i] = $2 / n }
      { gsub(",", "", $2) }
      /:peal_(i[a-z]+|start)( |$)/ { largest(1) }
      /:peal_test( |$)/ { cost[2] += $2 / n }
      /:peal_wait( |$)/ { largest(3) }
      /:peal_request_free( |$)/ { largest(4) }
      END {
        printf "%-28s %8.0f %8.0f %8.0f %8.0f\n", name, cost[1], cost[2], cost[3], cost[4]
        split(bounds, bound, " ")
        split("begin test wait free", call, " ")
        for (i = 1; i <= 4; i++) {
          if (bound[i] == "-") continue
          if (cost[i] < 1) { print "host-cost: " name ": " call[i] ": nothing was counted" >"/dev/stderr"; bad = 1 }
          if (cost[i] > bound[i]) { print "host-cost: " name ": " call[i] ": more than " bound[i] >"/dev/stderr"; bad = 1 }
        }
        exit bad
      }' || { ! $check || status=1; }
}

# Bounds are what was measured with the compiler of Debian 12, and 2 %; or the target, where that is less.
measure barrier 108 45 165 57
measure broadcast 172 45 165 57
measure allgather 193 45 165 57
measure allgather-changing 193 45 165 57
measure alltoall 189 45 165 57
measure allgatherv 156 45 165 57
measure alltoallv 179 45 165 57
measure allgatherv-offsets 168 45 165 57
measure alltoallv-offsets 200 45 165 57
measure allgatherv-changing 450 45 165 57
measure alltoallv-changing 562 45 165 57
measure allgatherv-changing-offsets 558 45 165 57
measure alltoallv-changing-offsets 787 45 165 57
measure persistent 124 45 166 -
measure program 128 45 181 -

# What ends an operation is on one page of code (hostlib/requests.cpp).
if $check; then
  places=$(nm -D --defined-only "$bin/../lib/libpeal.so.0" | awk '$3 ~ /^peal_(test|wait|request_free)(@|$)/ { print $1 }' |
    while read -r address; do echo $((16#$address >> 11)); done | sort -u)
  if [[ ! $places =~ ^[0-9]+$ ]]; then
    echo "host-cost: peal_test, peal_wait and peal_request_free are not within 2 KiB" >&2
    status=1
  fi
fi
exit $status
