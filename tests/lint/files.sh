# shellcheck shell=bash
# SPDX-License-Identifier: BSD-2-Clause
# The files that the lint checks look at: what git knows or would add, so that a new file is checked before
# its first commit and nothing generated ever is.

# lint_files ROOT PATTERN...: one path a line, relative to ROOT. Patterns are git pathspecs, such as '*.cpp'.
lint_files() {
  local root=$1 path
  shift
  git -C "$root" ls-files --cached --others --exclude-standard -- "$@" | sort -u |
    while IFS= read -r path; do
      [[ -f $root/$path && ! -L $root/$path ]] && printf '%s\n' "$path"
    done
}

# lint_scripts ROOT: every shell script, by name or by its first line.
lint_scripts() {
  local root=$1 path first
  lint_files "$root" | while IFS= read -r path; do
    case $path in
      *.sh) printf '%s\n' "$path" ;;
      *.*) ;;
      *)
        first=""
        IFS= read -r first <"$root/$path" 2>/dev/null || true
        if [[ $first =~ ^#!.*[/\ ](ba)?sh( |$) ]]; then printf '%s\n' "$path"; fi
        ;;
    esac
  done
}
