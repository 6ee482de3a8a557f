// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/host/keys.h"

#include "abi/admin.h"
#include "firmware/base/mutation.h"

namespace peal {
namespace {

// Send, receive and table of every accepted command, and a table of addresses a member; the memory
// of every point-to-point request, of every put under way, and of every program.
static_assert(uint64_t{CONFIG_CARD_MEMBERS} * (3 * (kChannels + CONFIG_PARKED_OPERATIONS) + 1) +
                      CONFIG_P2P_REQUESTS + CONFIG_DMA_RECORDS + CONFIG_QUEUES <=
                  UINT16_MAX,
              "uses of a key are counted in 16 bits");

}  // namespace

MemoryKey* find_key(Card& card, ContextId context, uint32_t key) {
  const uint32_t index = key & 0xffff;
  if (index >= CONFIG_MEMORY_KEYS) return nullptr;
  MemoryKey& entry = card.keys[index];
  const bool good = entry.in_use && entry.generation == key >> 16 && entry.context == context;
  return good ? &entry : nullptr;
}

peal_status check_range(Card& card, ContextId context, uint32_t key, uint64_t offset,
                        uint64_t bytes, uint32_t access, HostAddress* address) {
  const MemoryKey* entry = find_key(card, context, key);
  if (entry == nullptr) return PEAL_STATUS_BAD_KEY;
  if ((entry->access & access) != access) return PEAL_STATUS_BAD_ACCESS;
  if (!mutated(Mutation::kNoBoundsCheck) &&
      (offset > entry->bytes || bytes > entry->bytes - offset)) {
    return PEAL_STATUS_BAD_BOUNDS;
  }
  *address = {entry->region, offset};
  return PEAL_STATUS_OK;
}

peal_status register_key(Card& card, ContextId context, RegionId region, uint64_t bytes,
                         uint32_t access, uint32_t* key) {
  if (access == 0 || (access & ~PEAL_ACCESS_FLAGS) != 0) return PEAL_STATUS_BAD_ACCESS;
  if (bytes == 0) return PEAL_STATUS_BAD_LENGTH;
  for (uint32_t index = 0; index < CONFIG_MEMORY_KEYS; ++index) {
    MemoryKey& entry = card.keys[index];
    if (entry.in_use) continue;
    const auto generation =
        static_cast<uint16_t>(entry.generation == 0xffff ? 1 : entry.generation + 1);
    entry = {.in_use = true,
             .generation = generation,
             .access = static_cast<uint16_t>(access),
             .uses = 0,
             .context = context,
             .region = region,
             .bytes = bytes};
    *key = static_cast<uint32_t>(generation) << 16 | index;
    return PEAL_STATUS_OK;
  }
  return PEAL_STATUS_NO_RESOURCES;
}

peal_status unregister_key(Card& card, ContextId context, uint32_t key, RegionId* region) {
  MemoryKey* entry = find_key(card, context, key);
  if (entry == nullptr) return PEAL_STATUS_BAD_KEY;
  if (entry->uses > 0) return PEAL_STATUS_BUSY;
  entry->in_use = false;
  card.queues.gone = true;
  *region = entry->region;
  return PEAL_STATUS_OK;
}

void forget_keys(Card& card, ContextId context) {
  card.queues.gone = true;
  for (MemoryKey& key : card.keys) {
    // It was never used, nor was any behind it: these are not touched.
    if (key.generation == 0) break;
    if (key.in_use && key.context == context) {
      key.in_use = false;
      key.uses = 0;
    }
  }
}

}  // namespace peal
