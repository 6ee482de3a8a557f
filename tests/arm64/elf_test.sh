#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every program and shared library of the aarch64 build is an AArch64 ELF file.
#
# usage: elf_test.sh BUILD
set -euo pipefail
# Output of other programs is read here, which they would translate; LANGUAGE goes before LC_ALL.
export LC_ALL=C.UTF-8 LANGUAGE=
build=$1
count=0
while IFS= read -r -d '' file; do
  header=$(readelf --file-header "$file" 2>/dev/null) || continue # scripts
  grep -q 'Machine: *AArch64' <<<"$header" || { echo "elf: $file is not AArch64:" && echo "$header" && exit 1; }
  count=$((count + 1))
done < <(find "$build/bin" "$build/lib" -type f \( -perm -u+x -o -name '*.so*' \) -print0)
((count > 0)) || { echo "elf: no program in $build" && exit 1; }
echo "elf: $count AArch64 files"
