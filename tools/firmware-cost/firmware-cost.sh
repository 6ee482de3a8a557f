#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Instructions that the firmware itself executes, per packet and per operation and rank: peal-sim under callgrind, counting
# only the functions of firmware/ (not the simulator's port, costs or checkers). The same number on any
# machine, whatever else it does.
set -euo pipefail

if [[ ${1:-} == --help || ${1:-} == -h ]]; then
  cat <<'HELP'
usage: firmware-cost [--check]

Runs peal-sim under valgrind's callgrind for a few operations, with and without software checksums, and prints
the instructions executed in functions of firmware/ per packet received, and per operation and rank (what is
inlined into them included, memcpy and memset not).

  --check   measures only what has a bound, and ends with status 1 if a packet costs more instructions than that
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

printf '%-44s %-9s %16s %20s\n' operation checksums 'instr./packet' 'instr./operation'
status=0
measure() { # measure NAME BOUND RANKS OPERATIONS ARGUMENTS...   BOUND: instructions a packet with checksums skipped, or -
  local name=$1 bound=$2 ranks=$3 operations=$4
  shift 4
  local checksums wanted=(skipped software)
  if $check; then
    [[ $bound == - ]] && return
    wanted=(skipped)
  fi
  for checksums in "${wanted[@]}"; do
    local corrupt=()
    # A corruption that is possible but never happens turns the checksums on.
    [[ $checksums == software ]] && corrupt=(--corrupt 1e-12)
    valgrind --tool=callgrind --callgrind-out-file="$work/out" --collect-atstart=no \
      --toggle-collect='peal::card_on_packet*' --toggle-collect='peal::card_on_dma_done*' \
      --toggle-collect='peal::card_on_submission*' --toggle-collect='peal::card_on_timer*' \
      "$bin/peal-sim" --cards "$ranks" --operations "$operations" --json "$work/json" \
      "${corrupt[@]}" "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
    local packets instructions
    packets=$(sed -n 's/.*"packets_received": \([0-9]*\).*/\1/p' "$work/json")
    # Functions of namespace peal that are not the simulator's (templates have their result before the name); code
    # inlined into them counts as theirs.
    instructions=$(callgrind_annotate --auto=no --threshold=100 "$work/out" |
      awk '/:([a-z0-9_]+ )?peal::/ && !/:([a-z0-9_]+ )?peal::(sim|emulator)::/ { gsub(",", "", $1); sum += $1 } END { printf "%d", sum }')
    awk -v name="$name" -v sums="$checksums" -v i="$instructions" -v p="$packets" \
      -v o="$operations" -v n="$ranks" \
      'BEGIN { printf "%-44s %-9s %16.0f %20.0f\n", name, sums, i / p, i / o / n }'
    if $check && ((instructions > bound * packets)); then
      echo "firmware-cost: $name: more than $bound instructions a packet" >&2
      status=1
    fi
  done
}

# Bounds are what was measured with the compiler of Debian 12, and 2 %.
measure 'barrier, N = 8' 507 8 400 --operation barrier --algorithm dissemination
measure 'allgather 64 B, recursive doubling, N = 8' 1276 8 200 --operation allgather \
  --algorithm recursive-doubling --bytes 64
measure 'allgather 1 KiB, all-to-all broadcast, N = 8' - 8 200 --operation allgather \
  --algorithm all-to-all-broadcast --bytes 1024
measure 'allgather 1 KiB, all-to-all broadcast, N = 16' 587 16 100 --operation allgather \
  --algorithm all-to-all-broadcast --bytes 1024
measure 'allgather 64 KiB, all-to-all broadcast, N = 8' - 8 20 --operation allgather \
  --algorithm all-to-all-broadcast --bytes 65536
exit $status
