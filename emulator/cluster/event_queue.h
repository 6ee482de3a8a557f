// SPDX-License-Identifier: BSD-2-Clause
// The cluster's agenda. Events of the same instant come out in the order in which they were put in,
// timers last, so that a run is deterministic to the last packet and no timer runs before what has
// arrived.
//
// Nearly all events are due within microseconds, and tens of thousands of cards in step make many
// of the same nanosecond. So what is near lies in a list for each nanosecond, what is due somewhat
// later in a list for each of such spans, and only what is far in a heap: an event is put in and
// taken out in a few steps, however many there are. (Hierarchical timing wheels: Varghese and
// Lauck, SOSP 1987.)
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "emulator/cluster/event_heap.h"
#include "emulator/cluster/sim_time.h"

namespace peal::sim {

// Which of kBits lists have something in them.
template <size_t kBits>
class OccupiedLists {
 public:
  static constexpr size_t kNoList = kBits;

  [[nodiscard]] bool none() const { return first_word() == kWords; }
  // The first of them; there must be one.
  [[nodiscard]] size_t first() const {
    const size_t word = first_word();
    return word * 64 + static_cast<size_t>(std::countr_zero(bits_[word]));
  }
  // The first of them behind `list`, or kNoList.
  [[nodiscard]] size_t next(size_t list) const {
    size_t word = list / 64;
    // (Twice, because 64 is too far for one shift.)
    uint64_t behind = bits_[word] & ~uint64_t{0} << list % 64 << 1;
    if (behind == 0) {
      size_t group = word / 64;
      uint64_t words = words_[group] & ~uint64_t{0} << word % 64 << 1;
      while (words == 0) {
        if (++group == words_.size()) return kNoList;
        words = words_[group];
      }
      word = group * 64 + static_cast<size_t>(std::countr_zero(words));
      behind = bits_[word];
    }
    return word * 64 + static_cast<size_t>(std::countr_zero(behind));
  }
  void set(size_t list) {
    bits_[list / 64] |= uint64_t{1} << list % 64;
    words_[list / 4096] |= uint64_t{1} << list / 64 % 64;
  }
  void clear(size_t list) {
    bits_[list / 64] &= ~(uint64_t{1} << list % 64);
    if (bits_[list / 64] == 0) words_[list / 4096] &= ~(uint64_t{1} << list / 64 % 64);
  }

 private:
  static constexpr size_t kWords = kBits / 64;
  static_assert(kBits % 4096 == 0);

  [[nodiscard]] size_t first_word() const {
    for (size_t i = 0; i < words_.size(); i++)
      if (words_[i] != 0) return i * 64 + static_cast<size_t>(std::countr_zero(words_[i]));
    return kWords;
  }

  std::array<uint64_t, kWords> bits_{};
  std::array<uint64_t, kBits / 4096> words_{};  // a bit for each word of bits_ that is not zero
};

class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }

  void push(TimeNs at_ns, EventKind kind, uint32_t card, uint32_t item) {
    count_++;
    place({at_ns, order_and_kind(inserted_++, kind), card, item});
  }

  // When the earliest event is due; kNever when there is none.
  [[nodiscard]] TimeNs next_ns() {
    if (empty()) return kNever;
    if (!overtaken_.empty()) return overtaken_.top().at_ns;
    bring_near();
    return near_ns_ + near_occupied_.first();
  }

  // One of the next events, each at most once and kForeseen at most before they come: so that what
  // they need can be fetched meanwhile. Null when there is nothing to look at now. What is put in
  // between may come unforeseen. The event stays where it is until the next call of any kind.
  const Event* foresee() {
    if (foreseen_ == kForeseen || near_occupied_.none()) return nullptr;
    uint32_t node = kNone;
    if (horizon_ != kNone) {
      node = nodes_[horizon_].next;
      if (node == kNone && !nodes_[horizon_].event.is_timer())
        node = near_[horizon_slot_].timers.first;
    }
    if (node == kNone) {
      const size_t slot =
          horizon_ == kNone ? near_occupied_.first() : near_occupied_.next(horizon_slot_);
      if (slot == OccupiedLists<kNear>::kNoList) return nullptr;
      horizon_slot_ = slot;
      node = near_[slot].first == kNone ? near_[slot].timers.first : near_[slot].first;
    }
    horizon_ = node;
    foreseen_++;
    nodes_[node].foreseen = true;
    return &nodes_[node].event;
  }

  // The earliest event; there must be one.
  Event pop() {
    count_--;
    if (!overtaken_.empty()) return overtaken_.pop();
    bring_near();
    const size_t slot = near_occupied_.first();
    Slot& due = near_[slot];
    const Event event = take(due.first == kNone ? due.timers : due);
    if (due.first == kNone && due.timers.first == kNone) near_occupied_.clear(slot);
    return event;
  }

 private:
  static constexpr uint32_t kNone = ~0u;
  static constexpr uint32_t kForeseen = 3;
  static constexpr size_t kNear = 8192;    // lists of a nanosecond each
  static constexpr size_t kMiddle = 4096;  // lists of so many nanoseconds each
  static constexpr TimeNs kMiddleNs = kNear * kMiddle;

  struct Node {
    Event event;
    uint32_t next;
    bool foreseen;
  };
  struct List {
    uint32_t first = kNone;
    uint32_t last = kNone;
  };
  struct Slot : List {
    List timers;
  };

  void place(const Event& event) {
    if (event.at_ns < near_ns_) {
      overtaken_.push(event);
    } else if (event.at_ns - near_ns_ < kNear) {
      append_near(make(event));
    } else if (event.at_ns - middle_ns_ < kMiddleNs) {
      const size_t slot = (event.at_ns - middle_ns_) / kNear;
      append(middle_[slot], make(event));
      middle_occupied_.set(slot);
    } else {
      far_.push(event);
    }
  }

  uint32_t make(const Event& event) {
    if (free_ == kNone) {
      nodes_.push_back({event, kNone, false});
      return static_cast<uint32_t>(nodes_.size() - 1);
    }
    const uint32_t node = free_;
    free_ = nodes_[node].next;
    nodes_[node] = {event, kNone, false};
    return node;
  }

  void append(List& list, uint32_t node) {
    if (list.first == kNone) {
      list.first = node;
    } else {
      nodes_[list.last].next = node;
    }
    list.last = node;
  }

  void append_near(uint32_t node) {
    const Event& event = nodes_[node].event;
    const size_t slot = event.at_ns - near_ns_;
    Slot& due = near_[slot];
    append(event.is_timer() ? due.timers : due, node);
    near_occupied_.set(slot);
  }

  Event take(List& list) {
    const uint32_t node = list.first;
    list.first = nodes_[node].next;
    nodes_[node].next = free_;
    free_ = node;
    if (nodes_[node].foreseen) foreseen_--;
    if (node == horizon_) horizon_ = kNone;
    return nodes_[node].event;
  }

  // The earliest events, but for those that were overtaken, lie in the near lists afterwards. A
  // span's events come before any that are put into its near lists later: so the order is kept.
  void bring_near() {
    if (!near_occupied_.none()) return;
    if (middle_occupied_.none()) bring_to_middle();
    if (!near_occupied_.none()) return;
    const size_t slot = middle_occupied_.first();
    near_ns_ = middle_ns_ + slot * kNear;
    for (uint32_t node = middle_[slot].first; node != kNone;) {
      const uint32_t next = nodes_[node].next;
      nodes_[node].next = kNone;
      append_near(node);
      node = next;
    }
    middle_[slot] = {};
    middle_occupied_.clear(slot);
  }

  void bring_to_middle() {
    const TimeNs at_ns = far_.top().at_ns;
    middle_ns_ = at_ns / kMiddleNs * kMiddleNs;
    near_ns_ = at_ns / kNear * kNear;
    while (!far_.empty() && far_.top().at_ns - middle_ns_ < kMiddleNs) place(far_.pop());
  }

  std::vector<Node> nodes_;
  uint32_t free_ = kNone;
  size_t count_ = 0;
  uint64_t inserted_ = 0;
  // Of the near lists: the last event that foresee() gave out and that is still there, its list,
  // and how many are.
  uint32_t horizon_ = kNone;
  uint32_t foreseen_ = 0;
  size_t horizon_slot_ = 0;
  TimeNs near_ns_ = 0;  // of the first near list
  TimeNs middle_ns_ = 0;
  std::vector<Slot> near_ = std::vector<Slot>(kNear);
  std::vector<List> middle_ = std::vector<List>(kMiddle);
  OccupiedLists<kNear> near_occupied_;
  OccupiedLists<kMiddle> middle_occupied_;
  EventHeap far_;
  // What was put in before the near lists, which had moved on when somebody asked for next_ns().
  EventHeap overtaken_;
};

}  // namespace peal::sim
