// SPDX-License-Identifier: BSD-2-Clause
// What a rank of a broadcast asks its parent for, and its children. docs/decisions/0026
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::binomial {

// Of AlgorithmFunctions.
void chase(const Scope& scope);

}  // namespace peal::binomial
