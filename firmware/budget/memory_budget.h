// SPDX-License-Identifier: BSD-2-Clause
// The card's memory, term by term. Everything the firmware will ever use is one of these; the sum
// is a number that the build prints and that must fit the configured card.
#pragma once

#include "firmware/card_types.h"

namespace peal {

struct MemoryTerm {
  const char* name;
  uint64_t count;
  uint64_t bytes_each;
};

inline constexpr MemoryTerm kMemoryTerms[] = {
    {"members: membership, peers, recycling", CONFIG_CARD_MEMBERS,
     sizeof(Member) - sizeof(Member::operations) - sizeof(Member::parked) - sizeof(Member::remote) -
         sizeof(Member::by_rank) - sizeof(Member::steps)},
    {"remembered addresses, who waits for one", CONFIG_CARD_MEMBERS,
     sizeof(Member::remote) + address_bytes(CONFIG_GROUP_RANKS_MAX)},
    {"operation records (K per member)", CONFIG_CARD_MEMBERS* kChannels,
     sizeof(Operation) - kPieceSlots * sizeof(Piece)},
    {"piece records (2W per operation)", CONFIG_CARD_MEMBERS* kChannels* kPieceSlots,
     sizeof(Piece)},
    {"pairs of ranks", CONFIG_CARD_MEMBERS* kChannels, pairs_bytes(CONFIG_GROUP_RANKS_MAX)},
    {"exchanges in steps", CONFIG_CARD_MEMBERS* kChannels, sizeof(Steps)},
    {"parked commands", CONFIG_CARD_MEMBERS* CONFIG_PARKED_OPERATIONS, sizeof(Command)},
    {"tables of parts", CONFIG_CARD_MEMBERS* CONFIG_PART_TABLES,
     part_table_bytes(CONFIG_GROUP_RANKS_MAX)},
    {"staging buffers", CONFIG_STAGING_BUFFERS, sizeof(StagingPool) / CONFIG_STAGING_BUFFERS},
    {"tombstones", kTombstones, sizeof(Tombstone)},
    {"memory keys", CONFIG_MEMORY_KEYS, sizeof(MemoryKey)},
    {"contexts", CONFIG_CONTEXTS, sizeof(Context)},
    {"DMA records", CONFIG_DMA_RECORDS, sizeof(DmaRecord)},
    {"packets that came early", CONFIG_EARLY_PACKETS, sizeof(EarlyPacket)},
    {"blocks for all that stay at hand", kAtHandRecords, sizeof(AtHand)},
    {"sent blocks that stay", CONFIG_SENT_BLOCKS, sizeof(SentBlock)},
    {"point-to-point: connections", CONFIG_CONNECTIONS, sizeof(p2p::Connection)},
    {"point-to-point: requests", CONFIG_P2P_REQUESTS, sizeof(p2p::Request)},
    {"point-to-point: lists, notices, who waits", 1,
     sizeof(p2p::State) - sizeof(p2p::State::connections) - sizeof(p2p::State::requests)},
    {"timer heap", kTimers, sizeof(Card::timer_entries) / kTimers},
    {"queues: starts, tasks, counters", CONFIG_QUEUES,
     sizeof(queue::QueuePool) / CONFIG_QUEUES - sizeof(queue::Queue::cache)},
    {"descriptors of programs", CONFIG_QUEUES* queue::kDescriptors, sizeof(peal_descriptor)},
    {"card: identity, counters, lists", 1, offsetof(Card, contexts)},
    {"packet buffers (header, body and one MTU)", CONFIG_PACKET_BUFFERS,
     PEAL_HEADER_BYTES + kPayloadBytes},
    {"packet buffers for sent blocks", CONFIG_SENT_BLOCKS, PEAL_HEADER_BYTES + kPayloadBytes},
};

constexpr uint64_t memory_total() {
  uint64_t total = 0;
  for (const MemoryTerm& term : kMemoryTerms) total += term.count * term.bytes_each;
  return total;
}

constexpr bool memory_fits() {
  return CONFIG_CARD_MEMORY_BYTES == 0 || memory_total() <= CONFIG_CARD_MEMORY_BYTES;
}

// The terms leave nothing out but padding between the arrays.
static_assert(memory_total() + 4096 >=
              sizeof(Card) + uint64_t{CONFIG_PACKET_BUFFERS} * (PEAL_HEADER_BYTES + kPayloadBytes));

}  // namespace peal
