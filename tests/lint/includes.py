#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Arrows point one way. Each folder may include only what the design says, also by way of other headers: a
file of hostlib/ that includes a header that includes firmware/ is found, with the way it took.

usage: includes.py ROOT"""

import pathlib
import re
import subprocess
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
SUFFIXES = (".c", ".h", ".cpp", ".hpp")

# What a freestanding C++ library has, and headers that are templates or intrinsics only.
FREESTANDING = {
    "algorithm", "array", "atomic", "bit", "climits", "compare", "concepts", "cstddef", "cstdint", "cstring",
    "initializer_list", "limits", "new", "numeric", "optional", "span", "tuple", "type_traits", "utility",
    "stdint.h", "stddef.h", "string.h", "nmmintrin.h", "smmintrin.h", "wmmintrin.h", "arm_acle.h",
}
# The same headers in user space and, under __KERNEL__, in the kernel.
ABI_SYSTEM = {"stdint.h", "stddef.h", "sys/ioctl.h",
              "linux/types.h", "linux/stddef.h", "linux/ioctl.h", "linux/build_bug.h"}


class Rule:
    """Files that match `where` may reach only what `quoted` and `system` accept."""

    def __init__(self, name, where, quoted, system, transitive=True):
        self.name, self.where, self.quoted, self.system = name, where, quoted, system
        self.transitive = transitive


def starts(*prefixes):
    return lambda path: path.startswith(prefixes)


def never(*prefixes):
    return lambda path: not path.startswith(prefixes)


def anything(_):
    return True


RULES = [
    Rule("abi/ includes only itself and plain integer types", starts("abi/"),
         starts("abi/"), lambda name: name in ABI_SYSTEM),
    Rule("firmware/ includes only abi/, itself and freestanding headers",
         lambda path: path.startswith("firmware/") and not path.endswith("_main.cpp"),
         lambda path: path.startswith(("abi/", "firmware/")) or path == "peal_config.h",
         lambda name: name in FREESTANDING),
    Rule("driver/ includes only abi/, itself and the kernel", starts("driver/"),
         starts("abi/", "driver/"),
         starts("linux/", "asm/", "uapi/", "generated/"), transitive=False),
    Rule("base/ includes only abi/, itself and the system", starts("base/"),
         starts("abi/", "base/"), anything),
    Rule("hostlib/ knows the card only through abi/", starts("hostlib/"),
         never("firmware/", "emulator/", "driver/"), anything),
    Rule("tools of the host know the card only through abi/",
         starts("tools/pealrun/", "tools/peal-perf/", "tools/examples/"),
         never("firmware/", "emulator/cluster/"), anything),
    Rule("the emulator does not know the host library", starts("emulator/"), never("hostlib/"), anything),
    Rule("checkers include no firmware header",
         lambda path: path.startswith("emulator/cluster/checkers"),
         never("firmware/"), anything),
]


def tree_files(root):
    names = subprocess.run(["git", "-C", root, "ls-files", "-co", "--exclude-standard"],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    return {name for name in names if name.endswith(SUFFIXES) and (root / name).is_file()}


def includes_of(root, name, cache):
    if name not in cache:
        cache[name] = INCLUDE.findall((root / name).read_text(errors="replace"))
    return cache[name]


def resolve(including, included, files):
    """The file of the tree that a quoted or angled include means, or None."""
    beside = (pathlib.PurePosixPath(including).parent / included).as_posix()
    for candidate in (beside, included, "hostlib/include/" + included):
        if candidate in files:
            return candidate
    return None


def check(root, rule, start, files, cache):
    """Follows the includes of `start`; yields the ways that break the rule."""
    seen, queue = {start}, [(start, [start])]
    while queue:
        name, way = queue.pop(0)
        for bracket, included in includes_of(root, name, cache):
            target = resolve(name, included, files)
            if target is None and not rule.where(name):
                continue  # another folder's own affair, judged by that folder's rule
            if target is None:
                accepted = rule.system(included) if bracket == "<" else rule.quoted(included)
            else:
                accepted = rule.quoted(target)
            if not accepted:
                yield " -> ".join(way + [target or included])
            elif target is not None and rule.transitive and target not in seen:
                seen.add(target)
                queue.append((target, way + [target]))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(sys.argv[1])
    files, cache, checked, bad = tree_files(root), {}, 0, 0
    for rule in RULES:
        judged = sorted(filter(rule.where, files))
        if not judged:  # the folder was renamed, and the rule would watch nobody
            print(f"includes: {rule.name}: there is no such file")
            bad += 1
        for name in judged:
            checked += 1
            for way in check(root, rule, name, files, cache):
                print(f"includes: {rule.name}: {way}")
                bad += 1
    print(f"includes: {checked} checks of {len(files)} files")
    sys.exit(bad != 0 or not files)


if __name__ == "__main__":
    main()
