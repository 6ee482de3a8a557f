#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Prints the path of the kernel's checkpatch.pl. Debian ships it only inside linux-source, so that package is
# downloaded (not installed), three files are taken out of it, and these are kept in FOLDER.
#
# usage: cmake/checkpatch.sh FOLDER
set -euo pipefail
# Output of other programs is read here, which they would translate; LANGUAGE goes before LC_ALL.
export LC_ALL=C.UTF-8 LANGUAGE=

folder=$(realpath -m "$1")
script=$folder/scripts/checkpatch.pl
if [[ ! -f $folder/.complete ]]; then
  rm -rf "$folder" && mkdir -p "$folder/download"
  # The version does not matter for the style; linux-source depends on the current one.
  package=$(apt-cache depends --important linux-source | sed -n 's/^ *Depends: *//p' | head -n 1)
  [[ -n $package ]] || { echo "checkpatch: apt knows no linux-source" >&2 && exit 1; }
  echo "checkpatch: taking scripts/checkpatch.pl out of $package (about 140 MB, once)" >&2
  (cd "$folder/download" && apt-get -q -o APT::Sandbox::User=root -o Acquire::Retries=3 download "$package" >&2)
  # tar stops at the last of the three files; what feeds it then ends by SIGPIPE, which is no failure.
  set +o pipefail
  dpkg-deb --fsys-tarfile "$folder"/download/*.deb 2>/dev/null |
    tar -xO "./usr/src/$package.tar.xz" 2>/dev/null |
    tar -xJ -C "$folder" --strip-components=1 --occurrence=1 "$package"/scripts/checkpatch.pl \
      "$package"/scripts/spelling.txt "$package"/scripts/const_structs.checkpatch
  set -o pipefail
  rm -rf "$folder/download"
  [[ -s $script && -s $folder/scripts/spelling.txt ]] || { echo "checkpatch: not found in $package" >&2 && exit 1; }
  touch "$folder/.complete"
fi
printf '%s\n' "$script"
