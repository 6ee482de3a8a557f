// SPDX-License-Identifier: BSD-2-Clause
// A context window in plain memory, as both sides see it, and entries whose every field follows
// from their number.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>

#include "abi/ring.h"

namespace peal::test {

class WindowMemory {
 public:
  explicit WindowMemory(uint32_t entries)
      : bytes_(PEAL_WINDOW_BYTES(entries)),
        memory_(static_cast<uint8_t*>(std::aligned_alloc(PEAL_PAGE_BYTES, bytes_))) {
    std::memset(memory_.get(), 0, bytes_);
    peal_host_ring_init(&host, memory_.get(), entries);
    peal_card_ring_init(&card, memory_.get(), entries);
  }

  peal_host_ring host{};
  peal_card_ring card{};

  // Where a host that breaks the rules may write: its own page and the submission ring.
  [[nodiscard]] peal_host_page* host_page() const { return host.host; }
  [[nodiscard]] peal_submission* submission_slot(uint64_t index) const {
    return &host.submissions[index & (host.entries - 1)];
  }
  [[nodiscard]] uint64_t card_head() const {
    return __atomic_load_n(&card.card->indices.submission_head, __ATOMIC_ACQUIRE);
  }

 private:
  struct Free {
    void operator()(uint8_t* memory) const { std::free(memory); }
  };
  size_t bytes_;
  std::unique_ptr<uint8_t, Free> memory_;
};

inline peal_submission numbered_submission(uint64_t number) {
  peal_submission entry{};
  entry.operation = static_cast<uint8_t>(number);
  entry.member = static_cast<uint32_t>(number * 3);
  entry.sequence = number;
  entry.cookie = ~number;
  entry.send_offset = number * 5;
  entry.receive_offset = number * 7;
  entry.block_bytes = number * 11;
  entry.send_key = static_cast<uint32_t>(number * 13);
  entry.receive_key = static_cast<uint32_t>(number * 17);
  entry.root = static_cast<uint32_t>(number * 19);
  return entry;
}

inline peal_completion numbered_completion(uint64_t number) {
  peal_completion entry{};
  entry.cookie = ~number;
  entry.sequence = number;
  entry.card_ns = number * 23;
  entry.member = static_cast<uint32_t>(number * 3);
  entry.failed_rank = static_cast<uint32_t>(number * 29);
  entry.status = static_cast<uint16_t>(number);
  entry.operation = static_cast<uint8_t>(number * 31);
  return entry;
}

// All bytes but the phase, which belongs to the ring.
template <typename Entry>
bool same_entry(const Entry& left, const Entry& right) {
  return std::memcmp(&left, &right, offsetof(Entry, phase)) == 0;
}

}  // namespace peal::test
