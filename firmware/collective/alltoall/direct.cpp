// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/collective/alltoall/direct.h"

#include "firmware/collective/alltoall/alltoall.h"
#include "firmware/collective/direct.h"

namespace peal::direct_alltoall {
namespace {

void open(const Scope& scope) { direct::open(scope, direct::Own::kOneForEach); }

}  // namespace

constinit const AlgorithmFunctions kFunctions = {
    alltoall::check, open,           direct::post,    direct::on_data, nullptr,
    direct::on_nack, direct::on_dma, direct::advance, direct::chase};

}  // namespace peal::direct_alltoall
