// SPDX-License-Identifier: BSD-2-Clause
// A program for people: as text, a descriptor a line, and as a picture for Graphviz.
#pragma once

#include <string>

#include "hostlib/program.h"

namespace peal::host {

std::string text_of(const Program& program);
// `dot` draws it: descriptors from top to bottom, counters beside them, and who tells and waits.
std::string graph_of(const Program& program);

}  // namespace peal::host
