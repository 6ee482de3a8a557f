// SPDX-License-Identifier: BSD-2-Clause
// What the ideal card and its ranks share: one line of flags per rank and direction, then the
// ranks' memory. One writer per cache line, as in the real windows.
#pragma once

#include <cstddef>
#include <cstdint>

namespace peal::ideal {

inline constexpr uint32_t kMagic = 0x6c616569;  // "ieal" in memory order
inline constexpr uint32_t kRanksMax = 64;

enum class Control : uint32_t { kIdle = 0, kRun = 1, kStop = 2 };  // a futex word

struct Header {
  uint32_t magic;
  uint32_t ranks;
  uint32_t control;         // Control
  uint32_t card;            // the ideal card's process
  uint64_t send_stride;     // bytes between ranks' send buffers
  uint64_t receive_stride;  // bytes between ranks' receive buffers
  uint64_t send_offset;     // bytes from the header to rank 0's
  uint64_t receive_offset;
  uint8_t padding[16];
};
static_assert(sizeof(Header) == 64);

// Written by a rank. Memory of its own process (pid not zero) is reached by process_vm_*, else the
// shared areas are used.
struct alignas(64) Posted {
  uint64_t sequence;     // written last
  uint64_t block_bytes;  // of allgatherv and alltoallv the mean
  uint64_t send_address;
  uint64_t receive_address;
  uint32_t pid;
  uint32_t operation;  // enum peal_operation: barrier, broadcast, allgather or alltoall, with v too
  uint32_t root;       // of a broadcast
  uint32_t sleeping;   // wants to be woken
  uint32_t spread;     // enum class Spread
};

// Written by the card.
struct alignas(64) Done {
  uint64_t sequence;
  uint32_t wake_word;  // a futex word, that changes before who sleeps is woken
};

struct Shared {
  Header header;
  Posted posted[kRanksMax];
  Done done[kRanksMax];
};

}  // namespace peal::ideal
