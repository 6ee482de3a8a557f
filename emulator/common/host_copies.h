// SPDX-License-Identifier: BSD-2-Clause
// Copies between cards and host memory that is mapped here, which know what the processor's caches
// can hold. A card's DMA of an operation that is larger than the caches writes where no cache holds
// the lines, and drives out what is still to be read: so it goes past them. Of a smaller one the
// host finds its result in the cache. docs/decisions/0065, 0069
//
// Which of both it is shows in how much was copied since the same place was written, or copied from
// for another host, before (its reuse distance). Kept by pages; pages that are far from each other
// may share a record, and where they do, may be taken for touched lately. For one thread.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "emulator/common/nontemporal.h"

namespace peal::emulator {

class HostCopies {
 public:
  // Shorter writes are never past the caches: lines that they share with others would suffer.
  static constexpr uint32_t kLeast = 4096;

  // `cache_bytes`: what the caches hold of what this thread copies; 0: all, so that nothing ever
  // goes past them (nor does it where the processor cannot).
  explicit HostCopies(uint64_t cache_bytes)
      : long_ago_(cache_bytes == 0 || !kHasNontemporal ? ~0u : units(cache_bytes / 8 * kShare)),
        copied_((uint64_t{long_ago_} + 1) << kUnitBits) {}

  void read(uint8_t* card, const uint8_t* memory, uint32_t bytes) {
    copied_ += bytes;
    std::memcpy(card, memory, bytes);
  }
  void write(uint8_t* memory, const uint8_t* card, uint32_t bytes) {
    copied_ += bytes;
    if (bytes < kLeast || touch(memory) <= long_ago_) {
      std::memcpy(memory, card, bytes);
      return;
    }
    bytes_past_ += bytes;
    copy_nontemporal(memory, card, bytes);
  }
  // Between hosts, through no card: read and written. Who is copied from by several, one after the
  // other, has its place in the caches once. (Half of the distance tells that from who is copied
  // from once an operation: of a shorter one both places fit. A host's two places may overlap,
  // which is its own affair.)
  void between(uint8_t* to, const uint8_t* from, uint32_t bytes) {
    if (bytes < kLeast || touch(from) > long_ago_ / 2) copied_ += bytes;
    bytes_once_ += bytes;
    if (to < from + bytes && from < to + bytes) {
      copied_ += bytes;
      std::memmove(to, from, bytes);
      return;
    }
    write(to, from, bytes);
  }

  // Written past the caches.
  [[nodiscard]] uint64_t bytes_past() const { return bytes_past_; }
  // Copied between hosts, once.
  [[nodiscard]] uint64_t bytes_once() const { return bytes_once_; }

 private:
  static constexpr uint32_t kShare = 5;      // eighths; the others are for what hosts touch besides
  static constexpr uint32_t kUnitBits = 10;  // "when" counts KiB that were copied
  static constexpr uint32_t kPageBits = 12;  // a record for each
  static constexpr uint32_t kBesideBits = 4;   // pages whose records are in one cache line
  static constexpr uint32_t kRecordBits = 16;  // of 256 MiB at a time
  static constexpr uint64_t kSpread = 0x9e3779b97f4a7c15;

  static constexpr uint32_t units(uint64_t bytes) {
    return static_cast<uint32_t>(std::min<uint64_t>(bytes >> kUnitBits, ~0u - 1));
  }
  static uint32_t record_of(const uint8_t* memory) {
    const uint64_t page = reinterpret_cast<uintptr_t>(memory) >> kPageBits;
    const uint64_t line = ((page >> kBesideBits) * kSpread) >> (64 - kRecordBits + kBesideBits);
    return static_cast<uint32_t>(line << kBesideBits | (page & ((1u << kBesideBits) - 1)));
  }
  // How many KiB ago it was touched; it is now. (When the count has gone round, after 4 TiB, some
  // seem to be touched lately for a while.)
  uint32_t touch(const uint8_t* memory) {
    const auto now = static_cast<uint32_t>(copied_ >> kUnitBits);
    uint32_t& before = touched_[record_of(memory)];
    const uint32_t ago = now - before;
    before = now;
    return ago;
  }

  uint32_t long_ago_;  // KiB; what was touched longer ago is in no cache
  uint64_t copied_;    // bytes, from where what was never touched was long ago
  uint64_t bytes_past_ = 0;
  uint64_t bytes_once_ = 0;
  std::array<uint32_t, 1u << kRecordBits> touched_{};
};

}  // namespace peal::emulator
