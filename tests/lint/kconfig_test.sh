#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every profile in configs/ is accepted, as written and as menuconfig would save it, every symbol has a help
# text, and a profile with a mistake is refused by the symbol's name.
#
# usage: kconfig_test.sh ROOT
set -euo pipefail
root=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$root"

generate() { /usr/bin/python3 cmake/kconfig.py --kconfig Kconfig --config "$1" --header "$work/peal_config.h" "${@:2}"; }

for profile in emulator lanai bluefield unit minimal wide many papers; do
  generate "configs/$profile" --resolved "$work/$profile"
  cp "$work/peal_config.h" "$work/first.h"
  generate "$work/$profile"
  # The resolved file means the same; only the name of the profile in the comment differs.
  diff <(grep '^#define' "$work/first.h") <(grep '^#define' "$work/peal_config.h")
done
grep -q '^#define CONFIG_CARD_MEMORY_BYTES 2097152$' <(generate configs/lanai && cat "$work/peal_config.h")

/usr/bin/python3 - <<'PYTHON'
import kconfiglib, sys
kconf = kconfiglib.Kconfig("Kconfig")
mute = [sym.name for sym in kconf.unique_defined_syms
        if not any(node.help for node in sym.nodes) and sym.choice is None]
mute += [str(choice) for choice in kconf.unique_choices if not any(node.help for node in choice.nodes)]
sys.exit(f"no help text: {mute}" if mute else 0)
PYTHON

refused() { # refused SYMBOL LINE...
  printf '%s\n' "${@:2}" >"$work/wrong"
  if generate "$work/wrong" 2>"$work/error"; then
    echo "kconfig: accepted: ${*:2}" && exit 1
  fi
  grep -q "$1" "$work/error" || { echo "kconfig: refused without naming $1:" && cat "$work/error" && exit 1; }
}
refused CARD_MEMRY 'CONFIG_CARD_MEMRY_BYTES=5'
refused GROUP_RANKS_MAX 'CONFIG_GROUP_RANKS_MAX=65537'
refused PIECE_WINDOW 'CONFIG_PIECE_WINDOW=0'
refused MTU_BYTES 'CONFIG_MTU_BYTES=large'
refused CHANNELS 'CONFIG_CHANNELS=6'
refused CHANNELS_4 'CONFIG_CHANNELS_4=y' 'CONFIG_CHANNELS_8=y'
if generate "$work/absent" 2>/dev/null; then echo "kconfig: accepted a file that is not there" && exit 1; fi
echo "kconfig: 7 profiles accepted, 7 mistakes refused"
