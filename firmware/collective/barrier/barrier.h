// SPDX-License-Identifier: BSD-2-Clause
// Barrier by dissemination (Hensgen, Finkel, Manber; the paper's section 4.2): the operation around
// group/dissemination.h. The destroy of a group is one too.
#pragma once

#include "firmware/operation/algorithm.h"

namespace peal::barrier {

extern const AlgorithmFunctions kFunctions;

}  // namespace peal::barrier
