// SPDX-License-Identifier: BSD-2-Clause
// The agenda gives out events by time, then messages before timers, then in the order in which they
// came, wherever it keeps them: compared with a sorted list of everything that was put in.
#include "emulator/cluster/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>
#include <tuple>
#include <vector>

#include "emulator/common/random.h"

namespace peal::sim {
namespace {

// What the agenda must do, as simply as can be.
class Agenda {
 public:
  void push(TimeNs at_ns, EventKind kind, uint32_t item) {
    events_.push_back({at_ns, kind == EventKind::kTimer, inserted_++, item});
  }
  [[nodiscard]] bool empty() const { return events_.empty(); }
  uint32_t pop() {
    const auto first = std::min_element(events_.begin(), events_.end());
    const uint32_t item = std::get<3>(*first);
    events_.erase(first);
    return item;
  }

 private:
  std::vector<std::tuple<TimeNs, bool, uint64_t, uint32_t>> events_;
  uint64_t inserted_ = 0;
};

TEST(EventQueue, OrdersByTimeThenByInsertion) {
  EventQueue queue;
  for (uint32_t i = 0; i < 1000; i++) queue.push((i * 7919) % 50, EventKind::kHost, i % 50, i);
  TimeNs last_ns = 0;
  uint32_t last_item = 0;
  size_t count = 0;
  while (!queue.empty()) {
    const Event event = queue.pop();
    ASSERT_GE(event.at_ns, last_ns);
    if (event.at_ns == last_ns && count > 0) {
      ASSERT_GT(event.item, last_item);
    }
    last_ns = event.at_ns;
    last_item = event.item;
    count++;
  }
  EXPECT_EQ(count, 1000u);
}

TEST(EventQueue, GivesBackWhatWasPutIn) {
  EventQueue queue;
  queue.push(5, EventKind::kDmaDone, 7, 9);
  EXPECT_EQ(queue.next_ns(), 5u);
  const Event event = queue.pop();
  EXPECT_EQ(event.at_ns, 5u);
  EXPECT_EQ(event.kind(), EventKind::kDmaDone);
  EXPECT_EQ(event.card, 7u);
  EXPECT_EQ(event.item, 9u);
  EXPECT_EQ(queue.next_ns(), kNever);
}

TEST(EventQueue, ATimerWaitsForWhatArrivesInItsInstant) {
  EventQueue queue;
  queue.push(100, EventKind::kTimer, 0, 1);
  queue.push(100, EventKind::kArrival, 0, 2);
  EXPECT_EQ(queue.pop().item, 2u);
  queue.push(100, EventKind::kDmaDone, 0, 3);
  EXPECT_EQ(queue.pop().item, 3u);
  EXPECT_EQ(queue.pop().item, 1u);
}

// Whoever asks when the next event is due may still put an earlier one in.
TEST(EventQueue, WhatIsPutInBeforeTheNextOneComesFirst) {
  EventQueue queue;
  queue.push(3 * kSecond, EventKind::kTimer, 0, 1);
  EXPECT_EQ(queue.next_ns(), 3 * kSecond);
  queue.push(50, EventKind::kTimer, 0, 2);
  queue.push(50, EventKind::kHost, 0, 3);
  queue.push(2 * kSecond, EventKind::kHost, 0, 4);
  EXPECT_EQ(queue.next_ns(), 50u);
  for (const uint32_t item : {3u, 2u, 4u, 1u}) EXPECT_EQ(queue.pop().item, item);
}

TEST(EventQueue, OrdersWhatIsNearAndWhatIsFar) {
  constexpr TimeNs kSpans[] = {1, 4, 3'000, 9'000, 500'000, 40 * kMillisecond, 5 * kSecond};
  emulator::Random random(42);
  EventQueue queue;
  Agenda agenda;
  TimeNs now_ns = 0;
  uint32_t items = 0;
  for (uint32_t step = 0; step < 30'000; step++) {
    const bool grow = items < 20'000 && random.below(100) < 51;
    if (grow || agenda.empty()) {
      const TimeNs at_ns = now_ns + random.below(kSpans[random.below(std::size(kSpans))]);
      const auto kind = static_cast<EventKind>(random.below(6));
      queue.push(at_ns, kind, 0, items);
      agenda.push(at_ns, kind, items++);
    } else {
      const TimeNs next_ns = random.below(4) == 0 ? queue.next_ns() : kNever;
      const Event event = queue.pop();
      if (next_ns != kNever) {
        ASSERT_EQ(event.at_ns, next_ns);
      }
      ASSERT_EQ(event.item, agenda.pop()) << step;
      now_ns = event.at_ns;
    }
  }
  while (!agenda.empty()) ASSERT_EQ(queue.pop().item, agenda.pop());
  EXPECT_TRUE(queue.empty());
}

// What is foreseen comes in that order, at most once, and is not moved by a look at it.
TEST(EventQueue, ForeseesWhatComesNext) {
  EventQueue queue;
  EXPECT_EQ(queue.foresee(), nullptr);
  for (uint32_t i = 0; i < 1000; i++) {
    const TimeNs at_ns = uint64_t{i / 3} * i / 3 % 8000;  // several lists, some with many
    queue.push(at_ns, i % 7 == 0 ? EventKind::kTimer : EventKind::kHost, 0, i);
  }
  std::vector<uint32_t> foreseen;
  std::vector<uint32_t> came;
  while (!queue.empty()) {
    size_t at_once = 0;
    for (const Event* event = queue.foresee(); event != nullptr; event = queue.foresee()) {
      foreseen.push_back(event->item);
      at_once++;
    }
    EXPECT_LE(at_once, came.empty() ? 3u : 1u);
    EXPECT_EQ(foreseen.size(), std::min(came.size() + 3, size_t{1000}));
    came.push_back(queue.pop().item);
  }
  EXPECT_EQ(foreseen, came);
}

// Whatever is put in between: each at most once, before it comes, and the order stays.
TEST(EventQueue, ForeseesAmongWhatIsPutIn) {
  constexpr TimeNs kSpans[] = {1, 4, 300, 9'000, 500'000, 40 * kMillisecond};
  emulator::Random random(43);
  EventQueue queue;
  Agenda agenda;
  TimeNs now_ns = 0;
  constexpr uint32_t kItems = 20'000;
  std::vector<uint8_t> seen(kItems);
  uint32_t items = 0;
  uint32_t came_foreseen = 0;
  while (items < kItems || !agenda.empty()) {
    if (random.below(3) == 0) {
      const Event* const event = queue.foresee();
      if (event != nullptr) {
        ASSERT_EQ(seen[event->item], 0) << event->item;
        seen[event->item] = 1;
      }
    }
    if (items < kItems && (agenda.empty() || random.below(100) < 51)) {
      const TimeNs at_ns = now_ns + random.below(kSpans[random.below(std::size(kSpans))]);
      const auto kind = static_cast<EventKind>(random.below(6));
      queue.push(at_ns, kind, 0, items);
      agenda.push(at_ns, kind, items++);
    } else {
      const Event event = queue.pop();
      ASSERT_EQ(event.item, agenda.pop());
      came_foreseen += seen[event.item];
      seen[event.item] = 2;
      now_ns = event.at_ns;
    }
  }
  EXPECT_GT(came_foreseen, kItems / 5);
}

TEST(OccupiedLists, TheNextOneIsFound) {
  constexpr size_t kLists = 3 * 4096;
  emulator::Random random(44);
  for (const uint64_t spread : {2, 70, 5000, 12000}) {
    OccupiedLists<kLists> lists;
    std::vector<size_t> set;
    for (size_t list = random.below(spread); list < kLists; list += 1 + random.below(spread)) {
      lists.set(list);
      set.push_back(list);
    }
    if (set.empty()) continue;
    std::vector<size_t> found = {lists.first()};
    for (size_t list = lists.next(found[0]); list != OccupiedLists<kLists>::kNoList;
         list = lists.next(list))
      found.push_back(list);
    EXPECT_EQ(found, set);
  }
}

}  // namespace
}  // namespace peal::sim
