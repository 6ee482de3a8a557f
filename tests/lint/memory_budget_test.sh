#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The memory budget of the 2 MiB card fits, term by term; a card one byte too small for the same profile does
# not build, and says by how much.
#
# usage: memory_budget_test.sh ROOT BUILD
set -euo pipefail
root=$1 build=$2
mkdir -p "$build"

build_with() { # build_with PROFILE   (what it prints are sizes: nothing to optimise)
  cmake -S "$root" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O0 \
    -DCMAKE_UNITY_BUILD=ON -DPEAL_CONFIG="$1" -DPEAL_TESTS=OFF -DPEAL_DPDK=OFF -DPEAL_DRIVER=OFF -DPEAL_GUEST=OFF >/dev/null
  cmake --build "$build" --target memory_budget
}

rm -f "$build/generated/memory_budget.stamp"
output=$(build_with configs/lanai)
grep -q 'card memory budget' <<<"$output"
total=$(sed -n 's/^ *total, bytes *\([0-9]*\)$/\1/p' <<<"$output")
# The terms that are printed are the total that is printed.
sum=$(awk '/ x .* = / {sum += $NF} END {printf "%d", sum}' <<<"$output")
[[ -n $total && $sum == "$total" && $total -le 2097152 && $total -gt 0 ]] || {
  printf 'budget: sum of terms %s, total %s:\n%s\n' "$sum" "$total" "$output" && exit 1
}

sed "s/^CONFIG_CARD_MEMORY_BYTES=.*/CONFIG_CARD_MEMORY_BYTES=$((total - 1))/" "$root/configs/lanai" >"$build/too_small"
if output=$(build_with "$build/too_small" 2>&1); then
  printf 'budget: a card one byte too small was accepted:\n%s\n' "$output" && exit 1
fi
grep -qE "$((total - 1))|too small|does not (fit|hold)|1 bytes? too many" <<<"$output" || {
  printf 'budget: refused for another reason:\n%s\n' "$output" && exit 1
}
echo "budget: lanai uses $total of 2097152 bytes; a card of $((total - 1)) is refused"
