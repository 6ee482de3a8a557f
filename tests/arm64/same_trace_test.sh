#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Runs one scenario with the build machine's peal-sim and with the arm64 one: both must succeed and print the
# same line, trace hash included.
#
# usage: same_trace_test.sh NATIVE_PEAL_SIM ARM64_COMMAND... -- SCENARIO...
set -euo pipefail
native=$1
shift
emulated=()
while [[ $1 != -- ]]; do
  emulated+=("$1")
  shift
done
shift
[[ -x $native ]] || { echo "same-trace: $native is missing: build the release preset first" && exit 1; }

here=$("$native" "$@")
there=$("${emulated[@]}" "$@")
grep -qE 'trace [0-9a-f]{16}' <<<"$here" || { printf 'same-trace: no trace hash in:\n%s\n' "$here" && exit 1; }
diff <(echo "$here") <(echo "$there") || { echo "same-trace: the two machines disagree" && exit 1; }
echo "$here"
