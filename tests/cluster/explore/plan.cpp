// SPDX-License-Identifier: BSD-2-Clause
#include "tests/cluster/explore/plan.h"

#include <algorithm>

#include "abi/wire.h"
#include "peal_config.h"

namespace peal::explore {
namespace {

peal_submission operation(uint8_t what, uint8_t algorithm, uint32_t bytes) {
  peal_submission entry{};
  entry.operation = what;
  entry.algorithm = algorithm;
  entry.block_bytes = bytes;
  return entry;
}

// What is tried with blocks of one packet and of three, by its name with either.
struct OfTwoLengths {
  uint8_t operation;
  uint8_t algorithm;
  const char* one;
  const char* three;
};
constexpr OfTwoLengths kOfTwoLengths[] = {
    {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, "broadcast from rank 1, one packet",
     "broadcast from rank 1, three"},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, "all-to-all, staged",
     "all-to-all, three pieces"},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, "direct all-to-all, one piece",
     "direct all-to-all, three pieces"},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, "direct allgather, one piece",
     "direct allgather, three pieces"},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING, "ring, one piece", "ring, three pieces"},
    {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, "allgatherv, one piece",
     "allgatherv, up to three pieces"},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, "alltoallv, one piece",
     "alltoallv, up to three pieces"},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, "alltoallv in steps, short blocks",
     "alltoallv in steps, short and long blocks"}};

// A card lets an eighth of its packets wait for a host.
constexpr uint32_t kBuffersOfOneEarly = 8;

}  // namespace

std::vector<Plan> plans(bool deep) {
  const peal_submission barrier =
      operation(PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, 0);
  const peal_submission destroy =
      operation(PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION, 0);
  const auto gather = [](uint8_t algorithm, uint32_t bytes) {
    return operation(PEAL_OPERATION_ALLGATHER, algorithm, bytes);
  };
  constexpr uint8_t kBroadcast = PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST;
  constexpr uint8_t kDoubling = PEAL_ALGORITHM_RECURSIVE_DOUBLING;
  constexpr uint32_t kSmall = CONFIG_STAGING_BLOCK_BYTES / 2;  // staged
  constexpr uint32_t kPiece = 500;                             // straight to the host
  constexpr uint32_t kPieces = 2 * CONFIG_MTU_BYTES + 100;
  std::vector<Plan> list;
  for (uint32_t cards = 2; cards <= kCardsMax; cards++) {
    // Eight packets of every operation, as two, three and four cards do it.
    const auto add = [&](const char* name, std::vector<peal_submission> operations, uint8_t from,
                         bool whole = false) {
      const uint32_t last = cards == 3 ? 2 : ~0u;  // eight packets
      for (const bool late : {false, true}) {
        if (late && from != operations[0].operation) continue;
        for (const uint32_t timers : {0u, 1u})
          list.push_back({std::string(name) + (late ? ", a rank is late" : ""), cards, operations,
                          from, late, 0, last, timers, whole && !late && timers == 0});
      }
    };
    add("barrier", {barrier}, PEAL_OPERATION_BARRIER, true);
    add("two barriers", {barrier, barrier}, PEAL_OPERATION_BARRIER);
    add("broadcast, staged", {gather(kBroadcast, kSmall)}, PEAL_OPERATION_ALLGATHER);
    // Two of these take one and a half and two million runs.
    add("broadcast, one piece", {gather(kBroadcast, kPiece)}, PEAL_OPERATION_ALLGATHER,
        deep || cards != 4);
    add("broadcast, three pieces", {gather(kBroadcast, kPieces)}, PEAL_OPERATION_ALLGATHER);
    add("doubling, staged", {gather(kDoubling, kSmall)}, PEAL_OPERATION_ALLGATHER);
    add("doubling, one piece", {gather(kDoubling, kPiece)}, PEAL_OPERATION_ALLGATHER, true);
    add("doubling, three pieces", {gather(kDoubling, kPieces)}, PEAL_OPERATION_ALLGATHER);
    for (const auto& [operation_of, algorithm, one, three] : kOfTwoLengths) {
      for (const uint32_t bytes : {kSmall, kPieces}) {
        peal_submission entry = operation(operation_of, algorithm, bytes);
        if (operation_of == PEAL_OPERATION_BROADCAST) entry.root = 1;
        add(bytes == kSmall ? one : three, {entry}, operation_of);
      }
    }
    // What is received takes the place of what is sent, or lies beside it.
    const auto add_in_place = [&](const char* name, peal_submission entry) {
      entry.flags = PEAL_SUBMIT_IN_PLACE;
      add(name, {entry}, entry.operation);
    };
    add_in_place("broadcast in place, one piece", gather(kBroadcast, kPiece));
    add_in_place("broadcast in place, three pieces", gather(kBroadcast, kPieces));
    add_in_place("direct all-to-all in place, three pieces",
                 operation(PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, kPieces));
    add_in_place("alltoallv in place, up to two pieces",
                 operation(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, kPieces));
    add_in_place("alltoallv in steps in place, short and long blocks",
                 operation(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, kPieces));
    // Of four cards each relays a block when it has sent its own, and may have ended when that is
    // asked for again.
    const size_t relays = list.size();
    if (cards == 4) {
      add("broadcast, one piece relayed", {gather(kBroadcast, kPiece)}, PEAL_OPERATION_ALLGATHER);
      add_in_place("broadcast in place, three pieces relayed", gather(kBroadcast, kPieces));
    }
    for (size_t i = relays; i < list.size(); i++) list[i].before = 2;
    // A card keeps one of the blocks that it has sent in its packet, others in the channel.
    const size_t before = list.size();
    for (const uint32_t bytes : {kSmall, kPieces}) {
      add(bytes == kSmall ? "direct all-to-all, one piece, in a packet"
                          : "direct all-to-all, three pieces, in packets",
          {operation(PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, bytes)},
          PEAL_OPERATION_ALLTOALL);
    }
    add("alltoallv, one piece, in a packet",
        {operation(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, kSmall)},
        PEAL_OPERATION_ALLTOALLV);
    add("alltoallv in steps, a step in a packet",
        {operation(PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, kSmall)},
        PEAL_OPERATION_ALLTOALLV);
    // One of those of a broadcast waits for a late host, too. The last rank, which may be late, is
    // the root's first child, and of four cards another's parent.
    const size_t broadcasts = list.size();
    for (const uint32_t bytes : {kSmall, kPieces}) {
      peal_submission entry = operation(PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, bytes);
      entry.root = cards - 2;
      add(bytes == kSmall ? "broadcast by way of the last rank, one kept"
                          : "broadcast by way of the last rank, one of three",
          {entry}, PEAL_OPERATION_BROADCAST);
    }
    for (size_t i = before; i < list.size(); i++) {
      list[i].sent_packets = 1;
      if (i >= broadcasts) list[i].packet_buffers = kBuffersOfOneEarly;
    }
    add("destroy", {destroy}, PEAL_OPERATION_DESTROY, deep || cards != 3);
    add("broadcast, then destroy", {gather(kBroadcast, kPiece), destroy}, PEAL_OPERATION_DESTROY);
    peal_submission from_root =
        operation(PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, kSmall);
    from_root.root = 1;
    std::vector<peal_submission> many(CONFIG_CHANNELS + 2, from_root);
    add("recycling of broadcasts", many, PEAL_OPERATION_RECYCLE, true);
    // The first epoch proves nothing, and has signals; those that follow have none.
    constexpr size_t kEpoch = CONFIG_CHANNELS / 2;
    for (size_t i = kEpoch; i < many.size(); i++)
      many[i] = gather(i % 2 == 0 ? kBroadcast : kDoubling, kPiece);
    many.push_back(destroy);
    add("recycling of allgathers, then destroy", many, PEAL_OPERATION_RECYCLE);
    // From the first on that proves that the epoch before is over.
    many.assign(CONFIG_CHANNELS + 2, barrier);
    std::fill_n(many.begin(), kEpoch + kEpoch / 2, gather(kDoubling, kPiece));
    add("barriers that prove an epoch", many, PEAL_OPERATION_BARRIER, true);
  }
  return list;
}

}  // namespace peal::explore
