// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoall/direct.h"

#include "firmware/collective/alltoall/alltoall.h"
#include "firmware/collective/direct.h"

namespace peal::direct_alltoall {

constinit const AlgorithmFunctions kFunctions =
    direct::functions<direct::Own::kOneForEach>(alltoall::check);

}  // namespace peal::direct_alltoall
