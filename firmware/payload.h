// SPDX-License-Identifier: BSD-2-Clause
// How long a packet's payload may be: an MTU, and before it the body of a packet of point-to-point,
// so that what is an MTU long is one packet by either engine. docs/decisions/0046
#pragma once

#include "abi/wire.h"
#include "peal_config.h"

namespace peal {

inline constexpr uint32_t kPayloadBytes = PEAL_P2P_BODY_BYTES + CONFIG_MTU_BYTES;

}  // namespace peal
