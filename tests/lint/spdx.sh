#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every source file says under which licence it is, in its first lines: BSD-2-Clause, and for what the kernel
# compiles (abi/, driver/, tests/guest/lost/) BSD-2-Clause or GPL-2.0, as MODULE_LICENSE("Dual BSD/GPL") promises.
#
# usage: spdx.sh ROOT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lint/files.sh
source "$here/files.sh"
root=$1

mapfile -t files < <({
  lint_files "$root" '*.c' '*.h' '*.cpp' '*.hpp' '*.S' '*.py' '*.cmake' '*.lua' '*CMakeLists.txt' \
    '*Kbuild' '*Makefile' '*Kconfig' 'configs/*' 'cmake/debian-packages' '*.clang-format' '.clang-tidy'
  lint_scripts "$root"
} | sort -u)
((${#files[@]})) || { echo "spdx: no source file in $root" && exit 1; }

bad=0
for file in "${files[@]}"; do
  case $file in
    abi/*.[ch] | driver/*.[ch] | driver/*Kbuild | driver/*Makefile | tests/guest/lost/*)
      wanted='SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)' ;;
    *) wanted='SPDX-License-Identifier: BSD-2-Clause' ;;
  esac
  mapfile -n 3 first <"$root/$file"
  if [[ ${first[*]} != *"$wanted"* ]]; then
    echo "spdx: $file: its first lines lack '$wanted'"
    bad=1
  fi
done
for licence in BSD-2-Clause GPL-2.0; do
  [[ -s $root/LICENSES/$licence.txt ]] || { echo "spdx: LICENSES/$licence.txt is missing" && bad=1; }
done
echo "spdx: ${#files[@]} files"
exit "$bad"
