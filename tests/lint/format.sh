#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every C and C++ file is formatted as .clang-format says (driver/ follows the kernel's style, which
# checkpatch.sh looks after). Comments are left as they are: where one is too long for a line, only its writer knows
# where to break it.
#
# usage: format.sh ROOT [--fix]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lint/files.sh
source "$here/files.sh"
root=$1

mapfile -t files < <(lint_files "$root" '*.c' '*.h' '*.cpp' '*.hpp' ':!driver/*')
((${#files[@]})) || { echo "format: no C or C++ file in $root" && exit 1; }
cd "$root"
if [[ ${2:-} == --fix ]]; then
  clang-format-14 -i "${files[@]}"
else
  clang-format-14 --dry-run --Werror "${files[@]}"
fi
mapfile -t files < <(lint_files "$root" '*.c' '*.h' '*.cpp' '*.hpp' ':!driver/*' ':!abi/*' ':!tests/e2e/api-*/*')
if LC_ALL=C.UTF-8 grep -nE '^.{101,}$' -- "${files[@]}" | grep -E '^[^:]*:[0-9]*:.*//'; then
  echo "format: these comments are longer than 100 columns" && exit 1
fi
echo "format: ${#files[@]} files"
