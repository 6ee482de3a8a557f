#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# The driver follows the kernel's style, as the kernel's own checkpatch.pl sees it. abi/ is included by the
# driver too, but its comments are as wide as the rest of the tree.
#
# usage: checkpatch.sh ROOT CHECKPATCH_FOLDER
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lint/files.sh
source "$here/files.sh"
root=$1
checkpatch=$("$here/../../cmake/checkpatch.sh" "$2")

mapfile -t files < <(lint_files "$root" 'driver/*.c' 'driver/*.h')
((${#files[@]})) || { echo "checkpatch: no C file in driver/" && exit 1; }
# Ignored: a tree that is not the kernel's has no MAINTAINERS and no MODULE_LICENSE list to look in, and the
# shared abi/ headers use the integer names of the C standard.
cd "$root"
perl "$checkpatch" --no-tree --no-summary --terse --show-types --max-line-length=100 \
  --ignore FILE_PATH_CHANGES,PREFER_KERNEL_TYPES,SPDX_LICENSE_TAG,NEW_TYPEDEFS,LINUX_VERSION_CODE,CONST_STRUCT \
  --file "${files[@]}"
echo "checkpatch: ${#files[@]} files"
