// SPDX-License-Identifier: BSD-2-Clause
// Written against docs/decisions/0067, not against the firmware: how a broadcast is cut into
// pieces, where packets are as long as CONFIG_MTU_BYTES.
#pragma once

#include <algorithm>
#include <cstddef>

#include "peal_config.h"

namespace peal::test {

// Packets of a full piece: what an image holds, at most 128 KiB and at most 32.
inline constexpr size_t kBroadcastFragments =
    std::min<size_t>({CONFIG_CHANNEL_BYTES / (2 * CONFIG_PIECE_WINDOW) / CONFIG_MTU_BYTES,
                      131072 / CONFIG_MTU_BYTES, 32});
inline constexpr size_t kBroadcastPiece = kBroadcastFragments * CONFIG_MTU_BYTES;

}  // namespace peal::test
