// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/staging.h"

namespace peal {
namespace {

// The one that was given back last is in the cache; one that nobody ever had is not touched before
// it is needed.
uint8_t* take_buffer(Card& card) {
  StagingPool& pool = card.staging;
  uint32_t index = pool.touched;
  if (pool.free != 0) {
    index = pool.free - 1u;
    pool.free = pool.next[index];
  } else if (index < CONFIG_STAGING_BUFFERS) {
    ++pool.touched;
  } else {
    count(card, PEAL_COUNTER_NO_STAGING);
    return nullptr;
  }
  return pool.buffers[index];
}

void give_buffer(Card& card, uint8_t* buffer) {
  StagingPool& pool = card.staging;
  const auto index = static_cast<uint32_t>(buffer - pool.buffers[0]) / CONFIG_STAGING_BYTES;
  pool.next[index] = pool.free;
  pool.free = static_cast<uint16_t>(index + 1);
}

}  // namespace

void take_staging(Card& card, Member& member, Operation& operation, uint32_t bytes) {
  const uint32_t units = (bytes + kStagingUnitBytes - 1) / kStagingUnitBytes;
  const uint32_t run = (1u << units) - 1;
  for (uint32_t first = 0; first + units <= kStagingUnits; ++first) {
    if ((member.staging_used & run << first) != 0) continue;
    if (member.staging == nullptr) member.staging = take_buffer(card);
    if (member.staging == nullptr) return;
    member.staging_used |= run << first;
    operation.staging_mask = static_cast<uint16_t>(run << first);
    operation.staging_unit = static_cast<uint8_t>(first);
    return;
  }
}

void release_staging(Card& card, Member& member, Operation& operation) {
  if (operation.staging_mask == 0) return;
  member.staging_used &= ~static_cast<uint32_t>(operation.staging_mask);
  operation.staging_mask = 0;
  if (member.staging_used == 0) release_all_staging(card, member);
}

void release_all_staging(Card& card, Member& member) {
  if (member.staging == nullptr) return;
  give_buffer(card, member.staging);
  member.staging = nullptr;
  member.staging_used = 0;
}

}  // namespace peal
