// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/allgather/direct.h"

#include "firmware/collective/allgather/allgather.h"
#include "firmware/collective/direct.h"

namespace peal::direct_allgather {
namespace {

void open(const Scope& scope) { direct::open(scope, direct::Own::kOneForAll); }

}  // namespace

constinit const AlgorithmFunctions kFunctions = {
    allgather::check, open,           direct::post,    direct::on_data, nullptr,
    direct::on_nack,  direct::on_dma, direct::advance, direct::chase};

}  // namespace peal::direct_allgather
