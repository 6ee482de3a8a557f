#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# A check that cannot fail checks nothing: each is run on a small tree that is clean, and must accept it, and
# then on that tree with one offence, and must name the offender.
#
# usage: self_test.sh CHECKPATCH_FOLDER
#
# shellcheck disable=SC2016  # the scripts in here are text, not to be expanded
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
checkpatch_folder=$1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
tree=$work/tree
clean=$work/clean # as it was before the offence
mkdir "$tree"
count=0
declare -A accepts_clean=()

put() { # put FILE LINE...
  [[ $1 != */* ]] || mkdir -p "$tree/${1%/*}"
  printf '%s\n' "${@:2}" >"$tree/$1"
}
bsd='// SPDX-License-Identifier: BSD-2-Clause'
dual='/* SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0) */'
kernel='// SPDX-License-Identifier: (BSD-2-Clause OR GPL-2.0)'

make_clean_tree() {
  git -C "$tree" init -q
  cp "$here/../../.clang-format" "$here/../../.clang-tidy" "$tree/"
  cp -r "$here/../../LICENSES" "$tree/"
  put abi/wire.h "$dual" '#include <stdint.h>' 'struct peal_thing {' '  uint32_t value;' '};' \
    '#define PEAL_PACKET_TYPES(X) X(1, DATA, "DATA", "a block")' '#define PEAL_OPERATIONS(X) X(1, BARRIER, "barrier", "all enter")' \
    '#define PEAL_ALGORITHMS(X) X(1, RING, "ring", "round and round")'
  put abi/status.h "$dual" '#define PEAL_STATUSES(X) X(0, OK, "OK", "success") X(1, BUSY, "BUSY", "in use")'
  put abi/counters.h "$dual" '#define PEAL_COUNTERS(X) X(SENT, "sent", "packets sent")'
  put abi/admin.h "$dual" '#define PEAL_ADMIN_OPCODES(X) X(1, OPEN, "open", "the first")'
  put abi/program.h "$dual" '#define PEAL_PROGRAM_OPCODES(X) X(1, PUT, "put", "there")' \
    '#define PEAL_PROGRAM_MODES(X) X(1, TASKS, "tasks", "by counters")' '#define PEAL_PROGRAM_REASONS(X) X(0, NONE, "none", "nothing")'
  put base/names.h "$bsd" '#pragma once' '#include "abi/wire.h"'
  put docs/names.md '## Statuses' '| 0 | OK | success |' '| 1 | BUSY | in use |' '## Packet types' '| 1 | DATA | a block |' \
    '## Operations' '| 1 | barrier | all enter |' '## Algorithms' '| 1 | ring | round and round |' \
    '## Administrative commands' '| 1 | open | the first |' '## Descriptors of programs' '| 1 | put | there |' \
    '## Modes of programs' '| 1 | tasks | by counters |' '## Reasons why a program is bad' '| 0 | none | nothing |' '## Counters' '| 0 | sent | packets sent |'
  put docs/wire-format.md '| 1 DATA | a block |'
  put firmware/card.h "$bsd" '#pragma once' '#include "abi/wire.h"' '#include "firmware/base/pace.h"' 'int count_things(int n);'
  put firmware/card.cpp "$bsd" '#include "firmware/card.h"' 'int count_things(int n) { return n; }'
  put firmware/base/pace.h "$bsd" '#pragma once' 'int price_of_question();'
  put firmware/base/pace.cpp "$bsd" '#include "firmware/base/pace.h"' 'int price_of_question() { return 1; }'
  put firmware/base/patience.cpp "$bsd" 'namespace {' 'int least() { return 1; }' '}  // namespace' 'int patience() { return least(); }'
  put firmware/base/ranks.cpp "$bsd" 'namespace {' 'int least() { return 2; }' '}  // namespace' 'int ranks() { return least(); }'
  put firmware/collective/allgather/ring.cpp "$bsd" 'int blocks_of_ring() { return 1; }'
  put hostlib/src/group.h "$bsd" '#pragma once' 'int ranks_of_group();'
  put hostlib/src/memory.h "$bsd" '#pragma once' 'int bytes_of_memory();'
  put hostlib/src/group.cpp "$bsd" '#include "hostlib/src/group.h"' '' '#include "abi/wire.h"' '#include "hostlib/include/peal/peal.h"' \
    '#include "hostlib/src/memory.h"' 'int ranks_of_group() { return 1; }'
  put hostlib/include/peal/peal.h "$bsd" '#pragma once' '#define PEAL_API' 'PEAL_API int peal_open(int card);'
  put docs/man/peal_open.3 ".\\\" ${bsd#// }" '.SH NAME' 'peal_open \- opens a card' '.SH SYNOPSIS' '.BI "int peal_open(int " card );' '.SH SEE ALSO' \
    '.BR peal_open (3)'
  put emulator/cluster/checkers.cpp "$bsd" '#include <vector>'
  put emulator/cluster/node.h "$bsd" '#pragma once' 'int cards_of_node();'
  put emulator/cluster/cluster.h "$bsd" '#pragma once' '#include "emulator/cluster/node.h"'
  put emulator/common/admin.cpp "$bsd" '#include <vector>'
  put tools/pealrun/main.cpp "$bsd" '#include <vector>'
  put driver/peal.c "$kernel" '' '#include <linux/module.h>' '' 'int peal_start(void)' '{' $'\treturn peal_more();' '}'
  put driver/more.c "$kernel" '' '#include <linux/module.h>' '' 'int peal_more(void)' '{' $'\treturn 0;' '}'
  put run.sh '#!/bin/bash' "# ${bsd#// }" 'echo "$1"'
  put build/compile_commands.json '[' \
    "{\"directory\": \"$tree\", \"file\": \"firmware/card.cpp\", \"command\": \"g++ -I$tree -c firmware/card.cpp\"}," \
    "{\"directory\": \"$tree\", \"file\": \"firmware/base/pace.cpp\", \"command\": \"g++ -I$tree -c firmware/base/pace.cpp\"}," \
    "{\"directory\": \"$tree\", \"file\": \"firmware/base/patience.cpp\", \"command\": \"g++ -I$tree -c firmware/base/patience.cpp\"}," \
    "{\"directory\": \"$tree\", \"file\": \"firmware/base/ranks.cpp\", \"command\": \"g++ -I$tree -c firmware/base/ranks.cpp\"}," \
    "{\"directory\": \"$tree\", \"file\": \"hostlib/src/group.cpp\", \"command\": \"g++ -I$tree -c hostlib/src/group.cpp\"}" ']'
  put emulator/nic/main.cpp "$bsd" '#include <cstdlib>' 'const char* runtime_folder() { return getenv("XDG_RUNTIME_DIR"); }'
  put docs/environment.md '| name | read by |' '| --- | --- |' '| `XDG_RUNTIME_DIR`, `TMPDIR` | the card |'
  put .gitignore '/build/'
  put tests/mutants/001-one-less.patch 'One thing less is counted.' '' '--- a/firmware/card.cpp' '+++ b/firmware/card.cpp' \
    '@@ -1,3 +1,3 @@' " $bsd" ' #include "firmware/card.h"' '-int count_things(int n) { return n; }' \
    '+int count_things(int n) { return n - 1; }'
  put docs/mutants.md '| 001-one-less | One thing less is counted. | unit | |'
}

clean_tree() {
  rm -rf "$tree"
  cp -r "$clean" "$tree"
}

check() { # check NAME: runs the check of that name on the tree
  case $1 in
    tidy) /usr/bin/python3 "$here/tidy.py" "$tree" "$tree/build" firmware hostlib ;;
    circles | environment | includes | manuals | names | pages | rooms) /usr/bin/python3 -B "$here/$1.py" "$tree" ;;
    checkpatch) "$here/checkpatch.sh" "$tree" "$checkpatch_folder" ;;
    *) "$here/$1.sh" "$tree" ;;
  esac
}

offends() { # offends CHECK TEXT FILE LINE...: with FILE so, CHECK must fail and say TEXT
  local name=$1 text=$2 output
  clean_tree
  if [[ -z ${accepts_clean[$name]:-} ]]; then
    output=$(check "$name" 2>&1) || { printf 'self-test: %s refuses the clean tree:\n%s\n' "$name" "$output" && exit 1; }
    accepts_clean[$name]=yes
    clean_tree
  fi
  put "${@:3}"
  if output=$(check "$name" 2>&1); then
    printf 'self-test: %s accepts:\n%s\n' "$name" "${*:4}" && exit 1
  fi
  grep -qF -- "$text" <<<"$output" || {
    printf 'self-test: %s does not say "%s" but:\n%s\n' "$name" "$text" "$output" && exit 1
  }
  count=$((count + 1))
}

make_clean_tree
cp -r "$tree" "$clean"

offends format firmware/card.cpp firmware/card.cpp "$bsd" '#include "firmware/card.h"' 'int  count_things( int n ){return n;}'
offends format firmware/card.cpp:3 firmware/card.cpp "$bsd" '#include "firmware/card.h"' "// $(printf 'word%.0s' {1..25})" \
  'int count_things(int n) { return n; }'
offends shell SC2086 run.sh '#!/bin/bash' "# ${bsd#// }" 'echo $1'
offends shell SC2086 tool '#!/bin/bash' "# ${bsd#// }" 'echo $1'
offends spdx hostlib/src/new.cpp hostlib/src/new.cpp 'int x;'
offends spdx abi/wire.h abi/wire.h "$bsd" 'struct peal_thing;'
offends paths docs/page.md docs/page.md "see /ho""me/somebody/file"
offends paths ./-:1: - "see /ho""me/somebody/file"
offends paths docs/page.md docs/page.md "from http:/""/deb.example.org/debian"
offends includes 'hostlib/src/group.cpp -> firmware/card.h' hostlib/src/group.cpp "$bsd" '#include "firmware/card.h"'
offends includes 'firmware/card.cpp -> vector' firmware/card.cpp "$bsd" '#include <vector>'
offends includes 'firmware/card.cpp -> hostlib' firmware/card.cpp "$bsd" '#include "hostlib/src/group.h"'
offends includes 'abi/wire.h -> stdlib.h' abi/wire.h "$dual" '#include <stdlib.h>'
offends includes 'driver/peal.c -> stdio.h' driver/peal.c "$dual" '#include <stdio.h>'
offends includes 'emulator/cluster/checkers.cpp -> firmware/card.h' emulator/cluster/checkers.cpp "$bsd" '#include "firmware/card.h"'
offends circles 'hostlib/src/group -> hostlib/src/memory' hostlib/src/memory.h "$bsd" '#pragma once' '#include "hostlib/src/group.h"'
offends circles 'emulator/cluster/node -> emulator/cluster/cluster' emulator/cluster/node.h "$bsd" '#pragma once' '#include "emulator/cluster/cluster.h"'
offends circles 'driver/more -> driver/peal' driver/more.c "$kernel" '' 'int peal_more(void)' '{' $'\treturn peal_start();' '}'
offends circles 'firmware/base/pace -> firmware/card' firmware/base/pace.h "$bsd" '#include "firmware/card.h"'
offends rooms 'firmware/base/pace.h -> firmware/card.h: that room' firmware/base/pace.h "$bsd" '#include "firmware/card.h"'
offends rooms 'firmware/collective/barrier/more.h -> firmware/collective/allgather/ring.h: another' firmware/collective/barrier/more.h "$bsd" \
  '#include "firmware/collective/allgather/ring.h"'
offends rooms 'firmware/extra.h: in no room' firmware/extra.h "$bsd" '#pragma once'
offends rooms 'firmware/card.cpp names PEAL_ALGORITHM_RING' firmware/card.cpp "$bsd" 'int count_things(int n) { return n + PEAL_ALGORITHM_RING; }'
offends rooms 'firmware/card.cpp names ring::' firmware/card.cpp "$bsd" 'int count_things(int n) { return ring::count(n); }'
offends tidy readability-identifier-naming firmware/card.cpp "$bsd" 'int CountThings(int n) { return n; }'
offends tidy bugprone-sizeof-expression firmware/card.cpp "$bsd" 'struct T { int a; };' 'unsigned long f(T* p) { return sizeof(p) / sizeof(*p); }'
# Looked at together with others of its folder, which have a function of the same name; and with one of which it does not compile.
offends tidy 'firmware/base/ranks.cpp:5:5: error: invalid case style' firmware/base/ranks.cpp "$bsd" \
  'namespace {' 'int least() { return 2; }' '}  // namespace' 'int RanksOf() { return least(); }'
offends tidy 'firmware/base/pace.cpp:2:5: error: invalid case style' firmware/base/pace.cpp "$bsd" 'int PriceOf() { return 1; }'
offends tidy 'firmware/base/pace.cpp:2:25: error: ' firmware/base/pace.cpp "$bsd" 'int price_of() { return one; }'
offends tidy hostlib/src/group.h hostlib/src/group.h "$bsd" '#pragma once' 'int ranks_of_group();' 'int RanksOfGroup();'
offends tidy hostlib/src/nobody.h hostlib/src/nobody.h "$bsd" '#pragma once'
offends mutants '001-one-less.patch: does not apply' firmware/card.cpp "$bsd" '#include "firmware/card.h"' 'int count_things(int n) { return 2 * n; }'
offends mutants 'expected a sentence' tests/mutants/001-one-less.patch '--- a/firmware/card.cpp' '+++ b/firmware/card.cpp' \
  '@@ -1,2 +1,2 @@' "-$bsd" '+// Nothing' ' #include "firmware/card.h"'
offends mutants 'has the same number' tests/mutants/001-other.patch 'Nothing is counted.' '' '--- a/run.sh' '+++ b/run.sh' \
  '@@ -1,3 +1,2 @@' ' #!/bin/bash' " # ${bsd#// }" '-echo "$1"'
offends mutants '001-one-less.patch: has no row' docs/mutants.md '| name | what is wrong |'
offends mutants 'has a row of 002-two-less' docs/mutants.md '| 001-one-less | |' '| 002-two-less | |'
offends environment 'hostlib/src/group.cpp reads PEAL_SPIN_US, which is not in' hostlib/src/group.cpp "$bsd" 'auto* a = getenv("PEAL_SPIN_US");'
offends environment 'hostlib/src/group.cpp reads PEAL_TOKEN, which is not in' hostlib/src/group.cpp "$bsd" \
  'constexpr const char* kVariable = "PEAL_TOKEN";' 'auto* a = ::secure_getenv( host::kVariable );'
offends environment 'tools/pealrun/main.cpp reads PEAL_SIZE, which is not in' tools/pealrun/main.cpp "$bsd" \
  'const char* text(const char* name) { return getenv(name); }' 'auto* a = text("PEAL_SIZE");'
offends environment 'tools/pealrun/main.cpp reads getenv(name), which is not in' tools/pealrun/main.cpp "$bsd" \
  'const char* text(const char* name) { return getenv(name); }'
offends environment 'a row for PEAL_OLD, which nobody reads' docs/environment.md '| `XDG_RUNTIME_DIR` | the card |' '| `PEAL_OLD` | nobody |'
offends names 'docs/names.md, Statuses: missing: | 1 | BUSY | in use |' docs/names.md '## Statuses' '| 0 | OK | success |' \
  '## Packet types' '| 1 | DATA | a block |' '## Operations' '| 1 | barrier | all enter |' '## Algorithms' '| 1 | ring | round and round |' \
  '## Administrative commands' '| 1 | open | the first |'
offends names 'docs/names.md, Statuses: not in PEAL_STATUSES: | 1 | BUSY | in use |' abi/status.h "$dual" '#define PEAL_STATUSES(X) X(0, OK, "OK", "success")'
offends names 'docs/names.md, Counters: missing: | 0 | sent | frames sent |' abi/counters.h "$dual" '#define PEAL_COUNTERS(X) X(SENT, "sent", "frames sent")'
offends manuals 'no page has peal_close in SYNOPSIS' hostlib/include/peal/peal.h "$bsd" '#pragma once' '#define PEAL_API' \
  'PEAL_API int peal_open(int card);' 'PEAL_API int peal_close(int card);'
offends manuals 'another prototype of peal_open' hostlib/include/peal/peal.h "$bsd" '#pragma once' '#define PEAL_API' 'PEAL_API int peal_open(long card);'
offends manuals 'names peal_shut(3) in SEE ALSO' docs/man/peal_open.3 '.SH NAME' 'peal_open \- opens a card' '.SH SYNOPSIS' \
  '.BI "int peal_open(int " card );' '.SH SEE ALSO' '.BR peal_shut (3)'
offends pages 'docs/wire-format.md links to names.md#colours' docs/wire-format.md '| 1 DATA | a block |' '[all](names.md#colours)'
offends pages 'docs/wire-format.md links to nowhere.md' docs/wire-format.md '| 1 DATA | a block |' '[more](nowhere.md), [all](names.md#statuses)'
offends pages 'docs/wire-format.md names the file firmware/pace.h' docs/wire-format.md '| 1 DATA | a block |' '`firmware/pace.h`'
offends pages 'docs/wire-format.md names the test Cards.Count' docs/wire-format.md '| 1 DATA | a block |' '`Cards.Count`'
offends names 'docs/wire-format.md has the packet types 2 DATA instead of 1 DATA' docs/wire-format.md '| 2 DATA | a block |'
offends names 'tools/pealrun/main.cpp spells "ring", which is in PEAL_ALGORITHMS' tools/pealrun/main.cpp "$bsd" 'const char* algorithm() { return "ring"; }'
offends includes 'base/names.h -> hostlib/src/group.h' base/names.h "$bsd" '#pragma once' '#include "hostlib/src/group.h"'
offends checkpatch driver/peal.c driver/peal.c "$kernel" '' 'int peal_value(void){' '  return 1;' '}'

echo "self-test: $count offences found"
