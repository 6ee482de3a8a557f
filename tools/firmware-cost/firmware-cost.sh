#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Instructions that the firmware itself executes, per packet and per operation and rank, and per descriptor of programs:
# peal-sim under callgrind, counting only the functions of firmware/ (not the simulator's port, costs or checkers). The same
# number on any machine, whatever else it does.
set -euo pipefail

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  cat <<'HELP'
usage: firmware-cost [--check]

Runs peal-sim under valgrind's callgrind for a few operations, with and without software checksums, and prints
the instructions executed in functions of firmware/ per packet received, and per operation and rank (what is
inlined into them included, memcpy and memset not). Then the same of programs: per descriptor what the queues
spend themselves (to fetch, check, gate, issue and retire it), per numbered packet of connections what
point-to-point spends, and the rest of the card: packets' headers, DMA records, keys, timers, and sums. And the
whole of a start of programs that persistent requests are, beside which stand the operations above.

  --check   measures only what has a bound, and ends with status 1 if an operation or a descriptor costs more
            instructions than that
HELP
  exit 0
fi
check=false
if [[ ${1:-} == --check ]]; then
  check=true
  shift
fi
if (($# > 0)); then
  echo "firmware-cost: unknown argument '$1'; see firmware-cost --help" >&2
  exit 2
fi

bin=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
command -v valgrind >/dev/null || { echo "firmware-cost: valgrind is missing; run ./peal setup" >&2; exit 2; }

run() { # run ARGUMENTS...
  valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
    --toggle-collect='peal::card_on_packet*' --toggle-collect='peal::card_on_dma_done*' \
    --toggle-collect='peal::card_on_submission*' --toggle-collect='peal::card_on_timer*' \
    --separate-callers1='peal::check_range*' \
    "$bin/peal-sim" "$@" --json "$work/json" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  callgrind_annotate --auto=no --threshold=100 "$work/out" >"$work/functions"
}
counted() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$work/json"; }
# Functions of namespace peal that are not the simulator's (templates have their result before the name); code inlined
# into them counts as theirs. executed ROOM: only that namespace's, and the looks at keys that it asks for.
executed() {
  awk -v room="$1" '/:([a-z0-9_]+ )?peal::/ && !/:([a-z0-9_]+ )?peal::(sim|emulator)::/ {
      gsub(",", "", $1)
      if ($0 ~ ":([a-z0-9_&*]+ )?peal::" room || $0 ~ "check_range.*\047peal::" room) sum += $1
    } END { printf "%d", sum }' "$work/functions"
}

# A filter that nothing passes would be within every bound.
something() { # something NAME COUNT...
  local name=$1 count
  shift
  for count; do
    [[ $count =~ ^[1-9][0-9]*$ ]] || { echo "firmware-cost: $name: nothing was counted" >&2; exit 1; }
  done
}

printf '%-44s %-9s %16s %20s\n' operation checksums 'instr./packet' 'instr./operation'
status=0
measure() { # measure NAME BOUND SUMS_MOST RANKS OPERATIONS ARGUMENTS...   bounds: an operation's and rank's; what sums add to a packet; or -
  local name=$1 bound=$2 sums_most=$3 ranks=$4 operations=$5
  shift 5
  if $check && [[ $bound == - && $sums_most == - ]]; then
    return
  fi
  local checksums without=0
  for checksums in skipped software; do
    if $check && [[ $checksums == software && $sums_most == - ]]; then
      continue
    fi
    local corrupt=()
    # A corruption that is possible but never happens turns the checksums on.
    [[ $checksums == software ]] && corrupt=(--corrupt 1e-12)
    run --cards "$ranks" --operations "$operations" "${corrupt[@]}" "$@"
    local packets instructions
    packets=$(counted packets_received)
    instructions=$(executed '')
    something "$name" "$instructions" "$packets"
    awk -v name="$name" -v sums="$checksums" -v i="$instructions" -v p="$packets" \
      -v o="$operations" -v n="$ranks" \
      'BEGIN { printf "%-44s %-9s %16.0f %20.0f\n", name, sums, i / p, i / o / n }'
    if [[ $checksums == skipped ]]; then
      without=$instructions
      if $check && [[ $bound != - ]] && ((instructions > bound * operations * ranks)); then
        echo "firmware-cost: $name: more than $bound instructions an operation" >&2
        status=1
      fi
    elif $check && ((instructions - without > sums_most * packets)); then
      echo "firmware-cost: $name: sums add more than $sums_most instructions to a packet" >&2
      status=1
    fi
  done
}

# Bounds are what was measured with the compiler of Debian 12, and at most 2 %; or what is wanted, where that is less: 1,200 of
# a barrier, 200 for the sums of a KiB.
measure 'barrier, N = 8' 1200 - 8 400 --operation barrier --algorithm dissemination
measure 'allgather 64 B, recursive doubling, N = 8' 2677 - 8 200 --operation allgather \
  --algorithm recursive-doubling --bytes 64
measure 'allgather 1 KiB, all-to-all broadcast, N = 8' - - 8 200 --operation allgather \
  --algorithm all-to-all-broadcast --bytes 1024
measure 'allgather 1 KiB, all-to-all broadcast, N = 16' 5998 200 16 100 --operation allgather \
  --algorithm all-to-all-broadcast --bytes 1024
measure 'allgather 64 KiB, all-to-all broadcast, N = 8' - 1600 8 20 --operation allgather \
  --algorithm all-to-all-broadcast --bytes 65536
measure 'all-to-all 8 KiB, direct, N = 8' 14826 - 8 40 --operation alltoall --algorithm direct --bytes 8192
measure 'the same, sent blocks in their packets' 13461 - 8 40 --operation alltoall --algorithm direct --bytes 8192 \
  --sent-packets 256
measure 'allgather 64 KiB, direct, N = 8' 80500 - 8 10 --operation allgather --algorithm direct --bytes 65536
measure 'broadcast 64 KiB, N = 8' 10045 - 8 40 --operation broadcast --bytes 65536
measure 'alltoallv 1 KiB, direct, N = 8' 15725 - 8 40 --operation alltoallv --algorithm direct --bytes 1024 \
  --sent-packets 256
measure 'alltoallv 1 KiB, in steps, N = 8' 14370 - 8 40 --operation alltoallv --algorithm bruck --bytes 1024 \
  --sent-packets 256

printf '\n%-44s %-9s %18s %20s %14s\n' program checksums 'queue/descriptor' 'connection/packet' 'rest/packet'
measure_program() { # measure_program NAME BOUND PACKET_BOUND PROGRAM STEPS STARTS   bounds: queue's; all the rest's, or -
  local name=$1 bound=$2 packet_bound=$3
  local sums wanted=('' --sums)
  if $check || [[ $4 == local ]]; then
    wanted=('')
  fi
  for sums in "${wanted[@]}"; do
    run program-cost --program "$4" --steps "$5" --starts "$6" ${sums:+"$sums"}
    local descriptors packets all queue connection
    descriptors=$(counted descriptors)
    packets=$(counted sent_p2p)
    all=$(executed '')
    queue=$(executed 'queue::')
    connection=$(executed 'p2p::')
    something "$name" "$descriptors" "$all" "$queue"
    # Without packets all of it is the descriptors'.
    if ((packets == 0)); then
      queue=$all
      connection=0
      all=$queue
    fi
    awk -v name="$name" -v sums="${sums:+software}" -v d="$descriptors" -v p="$packets" -v q="$queue" \
      -v c="$connection" -v r="$((all - queue - connection))" \
      'BEGIN { printf "%-44s %-9s %18.0f", name, sums ? sums : "skipped", q / d
               if (p) printf " %20.0f %14.0f", c / p, r / p
               print "" }'
    if $check && ((queue > bound * descriptors)); then
      echo "firmware-cost: $name: more than $bound instructions a descriptor" >&2
      status=1
    fi
    if $check && [[ $packet_bound != - ]] && ((all - queue > packet_bound * packets)); then
      echo "firmware-cost: $name: more than $packet_bound instructions a packet besides" >&2
      status=1
    fi
  done
}

measure_program 'wait, and signal to itself; resident' 120 - local 15 100
measure_program 'wait, and signal to itself; fetched' 204 - local 300 40
measure_program 'put of 64 B down a chain, N = 3; resident' 209 1729 chain 28 100
measure_program 'put of 64 B down a chain, N = 3; fetched' 246 1672 chain 1000 40

printf '\n%-44s %-9s %16s %20s\n' 'start of a program' checksums 'instr./packet' 'instr./operation'
measure_start() { # measure_start NAME BOUND PROGRAM   bound: instructions a start and rank
  local name=$1 bound=$2 ranks=8 starts=200
  run program-cost --program "$3" --cards "$ranks" --starts "$starts"
  local packets instructions
  packets=$(($(counted sent_p2p) + $(counted sent_p2p_control)))
  instructions=$(executed '')
  awk -v name="$name" -v i="$instructions" -v p="$packets" -v o="$starts" -v n="$ranks" \
    'BEGIN { printf "%-44s %-9s %16.0f %20.0f\n", name, "skipped", i / p, i / o / n }'
  if $check && ((instructions > bound * starts * ranks)); then
    echo "firmware-cost: $name: more than $bound instructions a start" >&2
    status=1
  fi
}

measure_start 'barrier, N = 8' 3314 barrier
measure_start 'allgather 64 B, collected, N = 8' 8634 allgather
measure_start 'all-to-all 64 B, by pairs, N = 8' 22720 alltoall
exit $status
