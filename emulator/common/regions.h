// SPDX-License-Identifier: BSD-2-Clause
// Host memory by region, as administration sees it: whose it is, and that it goes. What kind of
// memory there is, and how it is put in, is between the table and those who bring memory; the bytes
// themselves move by the port's DMA (firmware/port.h), which is posted and completes later.
#pragma once

#include <cstdint>

#include "firmware/port.h"

namespace peal::emulator {

inline constexpr RegionId kNoRegion = ~0u;

enum class RegionUse : uint8_t {
  kMemory,    // registered by a context, freed with it
  kChannels,  // a group's channels, freed when the card releases them
};

class Regions {
 public:
  virtual void set_owner(RegionId region, ContextId owner, RegionUse use) = 0;
  // Frees the region; false when the id is stale or was never given out.
  virtual bool free(RegionId region) = 0;
  // Frees every region of this owner and use.
  virtual void free_owned(ContextId owner, RegionUse use) = 0;

 protected:
  ~Regions() = default;
};

}  // namespace peal::emulator
