#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Extracts an arm64 Debian sysroot without touching the machine's own package state: a private apt
# configuration with empty status downloads the packages from the sources this machine already uses,
# dpkg-deb unpacks them, absolute symlinks are made relative. (Installing :arm64 DPDK packages on an amd64
# machine would remove the amd64 ones.)
#
# usage: cmake/sysroot.sh FOLDER        does nothing when FOLDER is complete and for the same packages
set -euo pipefail

if [[ $# -ne 1 || $1 == --help ]]; then
  sed -n '3,9s/^# \{0,1\}//p' "$0"
  exit $(($# == 1 ? 0 : 2))
fi

packages=(
  libc6-dev libstdc++-12-dev libgcc-12-dev linux-libc-dev
  libdpdk-dev
  libgtest-dev libgmock-dev
  libcli11-dev nlohmann-json3-dev
)

sysroot=$(realpath -m "$1")
stamp=$sysroot/.peal-sysroot
wanted="2 ${packages[*]}"
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]]; then
  exit 0
fi

work=$sysroot.work
rm -rf "$sysroot" "$work"
mkdir -p "$sysroot" "$work"/{state/lists/partial,cache/archives/partial,log}
trap 'rm -rf "$work"' EXIT
: >"$work/status"
cat >"$work/apt.conf" <<CONF
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
APT::Install-Recommends "false";
APT::Sandbox::User "";
Acquire::Languages "none";
Acquire::Retries "3";
Dir::State "$work/state";
Dir::State::status "$work/status";
Dir::Cache "$work/cache";
Dir::Log "$work/log";
CONF
export APT_CONFIG=$work/apt.conf

echo "sysroot: reading the arm64 package lists" >&2
apt-get -qq update || echo "sysroot: some package source has no arm64 lists; going on with the others" >&2
echo "sysroot: downloading ${packages[*]} and what they need" >&2
apt-get -qq -y --download-only install "${packages[@]}" >"$work/download.log" 2>&1 || {
  cat "$work/download.log" >&2
  echo "sysroot: download failed" >&2
  exit 1
}

# Merged /usr, as on an installed system.
mkdir -p "$sysroot"/usr/{bin,sbin,lib}
for folder in bin sbin lib; do ln -s "usr/$folder" "$sysroot/$folder"; done

count=0
for package in "$work"/cache/archives/*.deb; do
  dpkg-deb --fsys-tarfile "$package" |
    tar -x --keep-directory-symlink --no-same-owner -C "$sysroot" \
      --exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' \
      --exclude='./dev'
  count=$((count + 1))
done

# /lib/x -> ../../lib/x, seen from where the link is.
find "$sysroot" -type l -lname '/*' -print0 | while IFS= read -r -d '' link; do
  ln -snf --relative "$sysroot$(readlink "$link")" "$link"
done

# Alternatives are made by installation scripts, which did not run: DPDK's PMDs and most of Debian need
# only BLAS-like ones, and of these nothing we link. Check what we do need.
for file in usr/lib/aarch64-linux-gnu/libc.so usr/lib/aarch64-linux-gnu/librte_eal.so \
  usr/lib/aarch64-linux-gnu/pkgconfig/libdpdk.pc; do
  [[ -e $sysroot/$file ]] || { echo "sysroot: $file is missing" >&2; exit 1; }
done

printf '%s' "$wanted" >"$stamp"
echo "sysroot: $count packages in $sysroot" >&2
