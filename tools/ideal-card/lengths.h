// SPDX-License-Identifier: BSD-2-Clause
// How long the blocks of an operation are and where they lie, for peal-perf and the ideal card
// alike: all as long as each other, or, of allgatherv and alltoallv, shares of the same whole. All
// that a rank receives is as many bytes either way, and blocks lie one behind the other.
//
// In an alltoallv what rank i sends to rank j is share (i + j) mod N: every rank sends and receives
// each share once, and two ranks exchange as much as they get, so that it also goes in place.
#pragma once

#include <algorithm>
#include <cstdint>

#include "abi/wire.h"

namespace peal::ideal {

enum class Spread : uint32_t {
  kEven,    // all are the mean
  kRising,  // share k is (k + 1) * 2 / (N + 1) of the mean
  kOne,     // the first is everything
};

struct Lengths {
  uint32_t operation = PEAL_OPERATION_NONE;  // enum peal_operation
  Spread spread = Spread::kEven;
  uint32_t ranks = 0;
  uint64_t mean_bytes = 0;

  // Bytes of the shares before that one; of all of them where it is `ranks`.
  [[nodiscard]] uint64_t before(uint32_t share) const {
    const uint64_t first = share;
    switch (spread) {
      case Spread::kRising:
        return mean_bytes * (first * (first + 1)) / (ranks + 1);
      case Spread::kOne:
        return share == 0 ? 0 : mean_bytes * ranks;
      default:
        return mean_bytes * first;
    }
  }
  [[nodiscard]] uint64_t share_bytes(uint32_t share) const {
    return before(share + 1) - before(share);
  }

  // Of the block that one rank has for another.
  [[nodiscard]] uint64_t bytes(uint32_t from, uint32_t to) const {
    if (operation == PEAL_OPERATION_ALLGATHERV) return share_bytes(from);
    if (operation == PEAL_OPERATION_ALLTOALLV) return share_bytes((from + to) % ranks);
    return mean_bytes;
  }
  // Where it lies in what the one sends, and in what the other receives.
  [[nodiscard]] uint64_t offset_in_send(uint32_t from, uint32_t to) const {
    if (operation == PEAL_OPERATION_ALLTOALLV) return between(from, to);
    return operation == PEAL_OPERATION_ALLTOALL ? to * mean_bytes : 0;
  }
  [[nodiscard]] uint64_t offset_in_receive(uint32_t from, uint32_t to) const {
    if (operation == PEAL_OPERATION_ALLTOALLV) return between(to, from);
    if (operation == PEAL_OPERATION_ALLGATHERV) return before(from);
    return operation == PEAL_OPERATION_BROADCAST ? 0 : from * mean_bytes;
  }
  // All that a rank sends, and receives.
  [[nodiscard]] uint64_t sent_by(uint32_t rank) const {
    if (operation == PEAL_OPERATION_ALLGATHERV) return share_bytes(rank);
    const bool to_each =
        operation == PEAL_OPERATION_ALLTOALL || operation == PEAL_OPERATION_ALLTOALLV;
    return mean_bytes * (to_each ? ranks : 1);
  }
  [[nodiscard]] uint64_t received() const {
    return mean_bytes * (operation == PEAL_OPERATION_BROADCAST ? 1 : ranks);
  }
  // The most that any rank sends.
  [[nodiscard]] uint64_t sent_by_any() const { return std::max(sent_by(0), sent_by(ranks - 1)); }

 private:
  // Of so many shares from the first on, in a ring.
  [[nodiscard]] uint64_t between(uint32_t first, uint32_t count) const {
    const uint32_t end = first + count;
    if (end <= ranks) return before(end) - before(first);
    return before(ranks) - before(first) + before(end - ranks);
  }
};

}  // namespace peal::ideal
