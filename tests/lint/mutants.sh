#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# Every file of tests/mutants still is a mutant: a sentence that says what is wrong, an empty line, and a patch
# that applies to the tree, and has its row in docs/mutants.md. What catches it, `./peal test mutants` says.
#
# usage: mutants.sh ROOT
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tests/lint/files.sh
source "$here/files.sh"
root=$1

mapfile -t patches < <(lint_files "$root" 'tests/mutants/*.patch')
((${#patches[@]})) || { echo "mutants: no patch in $root/tests/mutants" && exit 1; }

bad=0
offence() {
  printf 'mutants: %s: %s\n' "$1" "$2"
  bad=1
}
# Each by itself, though git looks at all of them at once, which takes a hundredth of the time.
applies() { git -C "$root" apply --check --whitespace=nowarn -C1 "$@" 2>&1; }
all_apply=1
applies "${patches[@]}" >/dev/null || all_apply=0

declare -A taken=() rows=()
while IFS= read -r name; do rows[$name]=1; done < <(sed -nE 's/^\| ([0-9]{3,4}-[a-z0-9-]+) \|.*/\1/p' "$root/docs/mutants.md")
for patch in "${patches[@]}"; do
  name=${patch##*/}
  name=${name%.patch}
  if [[ ! $name =~ ^[0-9]{3,4}-[a-z0-9-]+$ ]]; then offence "$patch" "expected a name such as 123-what-is-wrong.patch"; fi
  if [[ -n ${taken[${name%%-*}]:-} ]]; then offence "$patch" "${taken[${name%%-*}]} has the same number"; fi
  taken[${name%%-*}]=$patch
  if [[ -z ${rows[$name]:-} ]]; then offence "$patch" "has no row in docs/mutants.md"; fi
  unset "rows[$name]"
  sentence=
  while IFS= read -r line && [[ -n $line ]]; do sentence+="$line "; done <"$root/$patch"
  if [[ $sentence != [[:upper:]\"]*". " ]]; then offence "$patch" "expected a sentence, then an empty line"; fi
  if ((!all_apply)) && ! error=$(applies "$patch"); then
    offence "$patch" "does not apply: $error"
  fi
done
for name in "${!rows[@]}"; do offence "docs/mutants.md" "has a row of $name, which is not in tests/mutants"; done
echo "mutants: ${#patches[@]} patches"
exit "$bad"
