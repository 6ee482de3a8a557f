// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/direct.h"

#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/direct.h"

namespace peal::direct_allgather {

constinit const AlgorithmFunctions kFunctions =
    direct::functions<direct::Own::kOneForAll>(allgather::check);

}  // namespace peal::direct_allgather
