// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoallv/direct.h"

#include "firmware/collective/alltoallv/alltoallv.h"
#include "firmware/collective/direct.h"

namespace peal::direct_alltoallv {

constinit const AlgorithmFunctions kFunctions =
    direct::functions<direct::Own::kOneForEach>(alltoallv::check);

}  // namespace peal::direct_alltoallv
