#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every shell script passes shellcheck.
#
# usage: shell.sh ROOT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lint/files.sh
source "$here/files.sh"
root=$1

mapfile -t scripts < <(lint_scripts "$root")
((${#scripts[@]})) || { echo "shell: no script in $root" && exit 1; }
cd "$root"
shellcheck --external-sources --source-path=SCRIPTDIR --source-path="$root" "${scripts[@]}"
echo "shell: ${#scripts[@]} scripts"
