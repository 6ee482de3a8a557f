// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/staging.h"

#include <bit>

#include "firmware/base/assert.h"

namespace peal {
namespace {

constexpr uint32_t run_of(uint32_t units) { return units < 32 ? (1u << units) - 1 : ~uint32_t{0}; }
constexpr uint32_t kAllUnits = run_of(kStagingUnits);
// What may be held: the first quarter of a member's buffer, so that what is large finds the rest in
// one piece, by one operation its share of that, and by all members half of the card's buffers.
constexpr uint32_t kHeldUnits = kStagingUnits / 4;
constexpr uint32_t kShare = kHeldUnits / kChannels > 0 ? kHeldUnits / kChannels : 1;
constexpr uint32_t kHoldersMost = CONFIG_STAGING_BUFFERS / 2;

// Units that are held become so few.
void note_held(Card& card, Member& member, uint32_t held) {
  const bool before = member.staging_held != 0;
  const bool now = held != 0;
  if (now != before)
    card.staging.holders = static_cast<uint16_t>(card.staging.holders + (now ? 1 : -1));
  member.staging_held = held;
}

void give_buffer(Card& card, uint8_t* buffer) {
  StagingPool& pool = card.staging;
  const auto index = static_cast<uint32_t>(buffer - pool.buffers[0]) / CONFIG_STAGING_BYTES;
  pool.next[index] = pool.free;
  pool.free = static_cast<uint16_t>(index + 1);
}

// Takes from operations that are over what they keep, the oldest first: all have started, and the
// record behind the last one's is the oldest. False: there is none.
bool drop_oldest(Card& card, Member& member) {
  if (member.staging_kept == 0) return false;
  uint64_t sequence = member.started;
  while ((member.operations[sequence % kChannels].staging_mask & member.staging_kept) == 0) {
    ++sequence;
    PEAL_ASSERT(sequence < member.started + kChannels);
  }
  release_staging(card, member, member.operations[sequence % kChannels]);
  return true;
}

// Makes one free that only answers late questions, by turns. False: all are needed.
bool free_one(Card& card) {
  StagingPool& pool = card.staging;
  for (uint32_t i = 0; i < CONFIG_STAGING_BUFFERS; ++i) {
    pool.turn = static_cast<uint16_t>((pool.turn + 1u) % CONFIG_STAGING_BUFFERS);
    Member& owner = card.members[pool.owner[pool.turn]];
    if (owner.staging_used != owner.staging_kept) continue;
    while (drop_oldest(card, owner)) {
    }
    return true;
  }
  return false;
}

// The one that was given back last is in the cache; one that nobody ever had is not touched before
// it is needed.
uint8_t* take_buffer(Card& card, const Member& member) {
  StagingPool& pool = card.staging;
  uint32_t index = pool.touched;
  if (pool.free != 0 || (index == CONFIG_STAGING_BUFFERS && free_one(card))) {
    index = pool.free - 1u;
    pool.free = pool.next[index];
  } else if (index < CONFIG_STAGING_BUFFERS) {
    ++pool.touched;
  } else {
    count(card, PEAL_COUNTER_NO_STAGING);
    return nullptr;
  }
  pool.owner[index] = member.index;
  return pool.buffers[index];
}

// False: no room for it as things are.
bool take_units(Card& card, Member& member, Operation& operation, uint32_t bytes) {
  const uint32_t units = (bytes + kStagingUnitBytes - 1) / kStagingUnitBytes;
  uint32_t fits = ~member.staging_used & kAllUnits;
  if (static_cast<uint32_t>(std::popcount(fits)) < units) return false;
  // Bits from which on that many units are free.
  for (uint32_t run = 1, more = 0; run < units; run += more) {
    more = run < units - run ? run : units - run;
    fits &= fits >> more;
  }
  if (fits == 0) return false;
  if (member.staging == nullptr) member.staging = take_buffer(card, member);
  if (member.staging == nullptr) return false;
  const auto first = static_cast<uint32_t>(std::countr_zero(fits));
  operation.staging_unit = static_cast<uint8_t>(first);
  operation.staging_mask = run_of(units) << first;
  member.staging_used |= operation.staging_mask;
  return true;
}

}  // namespace

void take_staging(Card& card, Member& member, Operation& operation, uint32_t bytes) {
  while (!take_units(card, member, operation, bytes) && drop_oldest(card, member)) {
  }
}

void keep_staging(Member& member, const Operation& operation) {
  member.staging_kept |= operation.staging_mask;
}

bool hold_staging(Card& card, Member& member, const Operation& operation) {
  const uint32_t mask = operation.staging_mask;
  if ((mask & ~run_of(kHeldUnits)) != 0) return false;
  if (static_cast<uint32_t>(std::popcount(mask)) > kShare) return false;
  if (member.staging_held == 0 && card.staging.holders >= kHoldersMost) return false;
  note_held(card, member, member.staging_held | mask);
  return true;
}

void release_staging(Card& card, Member& member, Operation& operation) {
  if (operation.staging_mask == 0) return;
  member.staging_used &= ~operation.staging_mask;
  member.staging_kept &= member.staging_used;
  if (member.staging_held != 0) note_held(card, member, member.staging_held & member.staging_used);
  operation.staging_mask = 0;
  if (member.staging_used == 0) release_all_staging(card, member);
}

void release_all_staging(Card& card, Member& member) {
  if (member.staging == nullptr) return;
  note_held(card, member, 0);
  give_buffer(card, member.staging);
  member.staging = nullptr;
  member.staging_used = member.staging_kept = 0;
}

}  // namespace peal
