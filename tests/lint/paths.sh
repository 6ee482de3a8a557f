#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Nothing in the tree names a path or a package server of one machine: a clone must work anywhere.
#
# usage: paths.sh ROOT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lint/files.sh
source "$here/files.sh"
root=$1

# Written with brackets so that this file does not match itself.
machine_path='(^|[^A-Za-z0-9_.$}*-])/(w[o]rk|r[o]ot|h[o]me|U[s]ers)/[A-Za-z0-9_.]'
package_host='://(deb|registry|proxy|mirror|index)[.-][a-z0-9.-]+'

mapfile -t files < <(lint_files "$root" ':!LICENSES/*')
((${#files[@]})) || { echo "paths: no file in $root" && exit 1; }
cd "$root"
# (./, or a file whose name is - would be standard input.)
if grep -InE -- "$machine_path|$package_host" "${files[@]/#/./}"; then
  echo "paths: the lines above name one machine's paths or servers"
  exit 1
fi
echo "paths: ${#files[@]} files"
