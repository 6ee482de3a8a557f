// SPDX-License-Identifier: BSD-2-Clause
// What a direct exchange asks for: one question for each rank that owes something, with a bit for
// each piece of the pair's window. docs/decisions/0017, 0026
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::direct {

void chase(const Scope& scope);

}  // namespace peal::direct
