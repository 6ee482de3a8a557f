#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Turns Kconfig and one profile into peal_config.h. A profile with an unknown name, a value out of range
or a value that Kconfig would silently change is refused, because a card sized by a typing error is worse
than none. The header is rewritten only when it changes, so a new configure does not rebuild everything."""

import argparse
import os
import sys

try:
    import kconfiglib
except ImportError:
    sys.exit("kconfig.py: kconfiglib is missing: install python3-kconfiglib (./peal setup does)")


def write_if_changed(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path, encoding="utf-8") as old:
            if old.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as new:
        new.write(text)


def header_text(kconf, profile):
    lines = [
        "/* SPDX-License-Identifier: BSD-2-Clause */",
        f"/* Generated from Kconfig and {profile}; do not edit. */",
        "#ifndef PEAL_CONFIG_H_",
        "#define PEAL_CONFIG_H_",
        "",
    ]
    for sym in kconf.unique_defined_syms:
        if sym.type == kconfiglib.INT and sym.str_value:
            lines.append(f"#define CONFIG_{sym.name} {sym.str_value}")
        elif sym.type == kconfiglib.BOOL and sym.str_value == "y":
            lines.append(f"#define CONFIG_{sym.name} 1")
    lines += ["", "#endif  /* PEAL_CONFIG_H_ */", ""]
    return "\n".join(lines)


def ignored_values(kconf):
    """Assignments that Kconfig accepted and then did not use: derived symbols, or two of one choice."""
    for sym in kconf.unique_defined_syms:
        if sym.user_value is None:
            continue
        asked = kconfiglib.TRI_TO_STR[sym.user_value] if sym.type == kconfiglib.BOOL else sym.user_value
        if asked != sym.str_value:
            yield f"{sym.name}={asked} is not possible here, it would become {sym.str_value}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kconfig", required=True)
    parser.add_argument("--config", required=True)
    parser.add_argument("--header", required=True)
    parser.add_argument("--resolved", help="also write the complete configuration here")
    args = parser.parse_args()

    if not os.path.isfile(args.config):
        sys.exit(f"kconfig.py: no configuration at {args.config}; "
                 "PEAL_CONFIG is emulator, lanai, bluefield, unit or a path")
    kconf = kconfiglib.Kconfig(args.kconfig, warn_to_stderr=False)
    kconf.warn_assign_undef = True
    kconf.load_config(args.config)
    text = header_text(kconf, os.path.basename(args.config))
    complaints = list(kconf.warnings) + list(ignored_values(kconf))
    if complaints:
        for complaint in complaints:
            print(f"kconfig.py: {complaint}", file=sys.stderr)
        sys.exit(1)
    write_if_changed(args.header, text)
    if args.resolved:
        kconf.write_config(args.resolved)


if __name__ == "__main__":
    main()
