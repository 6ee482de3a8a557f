#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Proof from the object files that the firmware needs no operating system and no C++ run time: built as the
# preset firmware-freestanding says, its objects together may want from outside only the four memory functions
# that a compiler may call at any time. Type information (RTTI) must not be in them either.
#
# usage: freestanding_symbols.sh ROOT BUILD
#        freestanding_symbols.sh --self-test FOLDER    each source of FOLDER must be refused, for its reason
set -euo pipefail

readonly allowed='memcpy memmove memset memcmp'

# forbidden OBJECT...: prints one line per forbidden symbol; returns 1 if there is one.
forbidden() {
  local symbols bad=0 name object
  symbols=$(nm --format=posix --no-sort -A "$@" 2>&1) || { echo "freestanding: nm cannot read all of it: $symbols" && return 1; }
  for object in "$@"; do
    grep -qF -- "$object: " <<<"$symbols" && continue
    echo "freestanding: nm shows no symbol of $object"
    bad=1
  done
  # Defined anywhere in the objects, and wanted anywhere in them.
  local defined wanted
  defined=$(awk '$3 != "U" && $3 != "w" && $3 != "v" {print $2}' <<<"$symbols" | sort -u)
  wanted=$(awk '$3 == "U" || $3 == "w" || $3 == "v" {print $2}' <<<"$symbols" | sort -u)
  while IFS= read -r name; do
    [[ -n $name && " $allowed " != *" $name "* ]] || continue
    echo "freestanding: wanted from outside: $name ($(c++filt "$name"))"
    grep -F " $name U" <<<"$symbols" | sed 's/: .*//; s/^/freestanding:   by /' | sort -u | head -n 3
    bad=1
  done < <(comm -13 <(echo "$defined") <(echo "$wanted"))
  while IFS= read -r name; do
    echo "freestanding: type information: $(c++filt "$name")"
    bad=1
  done < <(grep -E '^_ZT[IS]' <<<"$defined" || true)
  return "$bad"
}

check_firmware() {
  local root=$1 build=$2 objects
  cmake -S "$root" --preset firmware-freestanding -B "$build" >/dev/null
  cmake --build "$build" --target peal_firmware
  mapfile -t objects < <(find "$build/firmware" -path '*peal_firmware.dir*' -name '*.o' | sort)
  ((${#objects[@]})) || { echo "freestanding: no object of peal_firmware in $build" && exit 1; }
  forbidden "${objects[@]}" || exit 1
  echo "freestanding: ${#objects[@]} objects want only: $allowed"
}

# The first line of each offender names a symbol that must be among the complaints.
self_test() {
  local folder=$1 source expected complaints count=0
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for source in "$folder"/*.cpp; do
    expected=$(sed -n '2s/^.* refused for: //p' "$source")
    [[ -n $expected ]] || { echo "self-test: $source does not say what it is refused for" && exit 1; }
    # Hosted flags: an offender shows what slips in when somebody drops one of the preset's flags.
    g++ -std=c++20 -O1 -fPIC -c "$source" -o "$work/offender.o"
    if complaints=$(forbidden "$work/offender.o"); then
      echo "self-test: $source was accepted" && exit 1
    fi
    grep -qF -- "$expected" <<<"$complaints" || {
      printf 'self-test: %s: no complaint about %s in:\n%s\n' "$source" "$expected" "$complaints"
      exit 1
    }
    count=$((count + 1))
  done
  printf '#include <cstring>\nvoid f(char* a, const char* b, unsigned long n) { std::memcpy(a, b, n); }\n' \
    >"$work/good.cpp"
  g++ -std=c++20 -O1 -c "$work/good.cpp" -o "$work/good.o"
  forbidden "$work/good.o" || { echo "self-test: a good object was refused" && exit 1; }
  # Nothing is no proof: an object without symbols, and what is none at all.
  echo >"$work/nothing.cpp"
  g++ -std=c++20 -O1 -c "$work/nothing.cpp" -o "$work/nothing.o"
  echo none >"$work/text.o"
  for source in nothing text missing; do
    if complaints=$(forbidden "$work/good.o" "$work/$source.o"); then
      echo "self-test: $source.o was accepted" && exit 1
    fi
    grep -qF -- "$source.o" <<<"$complaints" || { echo "self-test: no complaint about $source.o in: $complaints" && exit 1; }
  done
  ((count >= 5)) || { echo "self-test: only $count offenders" && exit 1; }
  echo "self-test: $count offenders refused, one good object accepted"
}

case ${1:-} in
  --self-test) self_test "$2" ;;
  *) check_firmware "$1" "$2" ;;
esac
