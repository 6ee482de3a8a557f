// SPDX-License-Identifier: BSD-2-Clause
// Host memory of a member's K channels: the images of each, and behind those of all a page for
// images that are short (operation/layout.h), so that a few small operations touch no more than it.
#pragma once

#include <cstdint>

#include "peal_config.h"

namespace peal {

inline constexpr uint64_t kShortImages = uint64_t{CONFIG_CHANNELS} * CONFIG_CHANNEL_BYTES;
inline constexpr uint32_t kShortImageBytes = 4096 / CONFIG_CHANNELS;
inline constexpr uint64_t kChannelsBytes = kShortImages + CONFIG_CHANNELS * kShortImageBytes;

}  // namespace peal
