#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every C and C++ file is formatted as .clang-format says (driver/ follows the kernel's style, which
# checkpatch.sh looks after).
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
echo "format: ${#files[@]} files"
