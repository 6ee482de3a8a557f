// SPDX-License-Identifier: BSD-2-Clause
// Host and card on two threads over one window. Under the thread sanitizer this proves that the
// rings need no lock; the sleeping handshake may never lose a wake-up; a host that scribbles over
// everything it may write confuses nobody but itself.
#include <gtest/gtest.h>
#include <semaphore.h>

#include <atomic>
#include <cerrno>
#include <ctime>
#include <thread>

#include "abi/ring.h"
#include "tests/unit/ring/window_memory.h"

namespace peal::test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kRounds = 20'000;
#else
constexpr uint64_t kRounds = 100'000;
#endif

// An eventfd or futex in small. wait() gives up after a minute:
// that is a wake-up lost, not a slow machine.
class Bell {
 public:
  Bell() { sem_init(&semaphore_, 0, 0); }
  ~Bell() { sem_destroy(&semaphore_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  void ring() { sem_post(&semaphore_); }
  [[nodiscard]] bool wait() {
    timespec until{};
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    int result = 0;
    do {
      result = sem_timedwait(&semaphore_, &until);
    } while (result != 0 && errno == EINTR);
    return result == 0;
  }

 private:
  sem_t semaphore_;
};

class RingThreads : public ::testing::TestWithParam<uint32_t> {
 protected:
  WindowMemory window{GetParam()};
  Bell card_bell;
  Bell host_bell;
  std::atomic<bool> lost{false};
};

INSTANTIATE_TEST_SUITE_P(Entries, RingThreads, ::testing::Values(16, 64, 256));

// The card turns every submission into one completion; the host keeps both rings as full as it can.
TEST_P(RingThreads, EveryEntryArrivesOnceAndInOrder) {
  std::thread card([&] {
    for (uint64_t number = 0; number < kRounds;) {
      if (peal_card_ring_space(&window.card) <= 0) {
        std::this_thread::yield();
        continue;
      }
      peal_submission entry{};
      const peal_ring_poll got = peal_card_ring_poll(&window.card, &entry);
      if (got == PEAL_RING_EMPTY) {
        std::this_thread::yield();
        continue;
      }
      if (got != PEAL_RING_ENTRY || !same_entry(entry, numbered_submission(number))) {
        ADD_FAILURE() << "submission " << number << " came as " << entry.sequence;
        lost = true;
        return;
      }
      const peal_completion done = numbered_completion(number++);
      peal_card_ring_complete(&window.card, &done);
    }
  });
  uint64_t submitted = 0;
  uint64_t completed = 0;
  while (completed < kRounds && !lost) {
    bool moved = false;
    const peal_submission entry = numbered_submission(submitted);
    if (submitted < kRounds && peal_host_ring_submit(&window.host, &entry)) {
      submitted++;
      moved = true;
    }
    peal_completion done{};
    if (peal_host_ring_poll(&window.host, &done)) {
      EXPECT_TRUE(same_entry(done, numbered_completion(completed))) << completed;
      completed++;
      moved = true;
    }
    if (!moved) std::this_thread::yield();
  }
  card.join();
  EXPECT_EQ(submitted, completed);
}

// Both sides sleep whenever they find nothing, which is every time:
// each round crosses both handshakes.
TEST_P(RingThreads, SleepersAreNeverForgotten) {
  std::atomic<uint64_t> card_sleeps{0};
  std::atomic<uint64_t> host_sleeps{0};

  std::thread card([&] {
    for (uint64_t number = 0; number < kRounds && !lost;) {
      peal_submission entry{};
      if (peal_card_ring_poll(&window.card, &entry) == PEAL_RING_EMPTY) {
        peal_card_ring_set_sleeping(&window.card, 1);
        const bool found = peal_card_ring_poll(&window.card, &entry) == PEAL_RING_ENTRY;
        if (!found) {
          card_sleeps++;
          if (!card_bell.wait()) lost = true;
        }
        peal_card_ring_set_sleeping(&window.card, 0);
        if (!found) continue;
      }
      const peal_completion done = numbered_completion(number++);
      peal_card_ring_complete(&window.card, &done);
      if (peal_card_ring_host_sleeps(&window.card)) host_bell.ring();
    }
  });
  for (uint64_t number = 0; number < kRounds && !lost;) {
    const peal_submission entry = numbered_submission(number);
    if (!peal_host_ring_submit(&window.host, &entry)) {
      ADD_FAILURE() << "no room for submission " << number;
      lost = true;
    }
    if (peal_host_ring_card_sleeps(&window.host)) card_bell.ring();
    peal_completion done{};
    while (!peal_host_ring_poll(&window.host, &done) && !lost) {
      peal_host_ring_set_sleeping(&window.host, 1);
      const bool found = peal_host_ring_poll(&window.host, &done) != 0;
      if (!found) {
        host_sleeps++;
        if (!host_bell.wait()) lost = true;
      }
      peal_host_ring_set_sleeping(&window.host, 0);
      if (found) break;
    }
    if (!lost && !same_entry(done, numbered_completion(number))) {
      ADD_FAILURE() << "completion " << number << " came as " << done.sequence;
      lost = true;
      card_bell.ring();
    }
    number++;
  }
  card.join();
  EXPECT_FALSE(lost) << "a wake-up was lost";
  EXPECT_GT(card_sleeps + host_sleeps, 0u) << "nobody ever slept, so nothing was tested";
}

// Lets two threads go at the same moment, again and again.
class Starter {
 public:
  void meet() {
    const uint64_t ticket = arrived_.fetch_add(1, std::memory_order_acq_rel);
    const uint64_t both = (ticket / 2 + 1) * 2;
    for (uint32_t spins = 0; arrived_.load(std::memory_order_acquire) < both; spins++) {
      if (spins % 1024 == 1023) std::this_thread::yield();
    }
  }

 private:
  std::atomic<uint64_t> arrived_{0};
};

// The heart of the handshake, without the sleep: one publishes and looks at the flag, the other
// sets its flag and looks for news. Never may both miss each other. (Without the fences this fails
// within a second on two cores.)
TEST_P(RingThreads, PublisherOrSleeperSeesTheOther) {
  Starter start;
  Starter finish;
  std::atomic<bool> host_saw_sleeper{false};
  std::atomic<bool> card_saw_sleeper{false};
  std::atomic<bool> card_found{false};
  std::atomic<bool> host_found{false};
  uint64_t missed = 0;

  std::thread card([&] {
    for (uint64_t number = 0; number < kRounds; number++) {
      peal_submission entry{};
      start.meet();
      peal_card_ring_set_sleeping(&window.card, 1);
      card_found = peal_card_ring_poll(&window.card, &entry) == PEAL_RING_ENTRY;
      finish.meet();
      if (!card_found) peal_card_ring_poll(&window.card, &entry);
      peal_card_ring_set_sleeping(&window.card, 0);

      const peal_completion done = numbered_completion(number);
      start.meet();
      peal_card_ring_complete(&window.card, &done);
      card_saw_sleeper = peal_card_ring_host_sleeps(&window.card) != 0;
      finish.meet();
    }
  });
  for (uint64_t number = 0; number < kRounds; number++) {
    const peal_submission entry = numbered_submission(number);
    start.meet();
    peal_host_ring_submit(&window.host, &entry);
    host_saw_sleeper = peal_host_ring_card_sleeps(&window.host) != 0;
    finish.meet();
    if (!card_found && !host_saw_sleeper) missed++;

    peal_completion done{};
    start.meet();
    peal_host_ring_set_sleeping(&window.host, 1);
    host_found = peal_host_ring_poll(&window.host, &done) != 0;
    finish.meet();
    if (!host_found && !card_saw_sleeper) missed++;
    if (!host_found) peal_host_ring_poll(&window.host, &done);
    peal_host_ring_set_sleeping(&window.host, 0);
  }
  card.join();
  EXPECT_EQ(missed, 0u) << "of " << 2 * kRounds;
}

// A host gone mad: any value in its own page and in the submission ring, at any time. The card may
// take nonsense (the firmware checks every field), but only whole copies with the right phase, one
// index at a time.
TEST_P(RingThreads, ScribblingHostOnlyProducesEntriesOrWild) {
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> scribbles{0};
  std::thread host([&] {
    uint64_t random = 0x9e3779b97f4a7c15u;
    while (!stop.load(std::memory_order_relaxed)) {
      random ^= random << 13;
      random ^= random >> 7;
      random ^= random << 17;
      uint64_t* tail = &window.host_page()->indices.submission_tail;
      switch (random % 4) {
        case 0:
          __atomic_store_n(tail, random, __ATOMIC_RELAXED);
          break;
        case 1:
          __atomic_store_n(tail, window.card_head() + (random >> 8) % (2 * GetParam()),
                           __ATOMIC_RELAXED);
          break;
        case 2:
          __atomic_store_n(&window.host_page()->indices.completion_head, random, __ATOMIC_RELAXED);
          break;
        default: {
          const peal_submission entry = numbered_submission(random);
          const uint64_t phase = (random >> 40) % 4;  // two of four are right at some time
          peal_ring_store_entry(window.submission_slot(window.card_head() + (random >> 16) % 2),
                                &entry, static_cast<uint8_t>(phase));
        }
      }
      scribbles.fetch_add(1, std::memory_order_relaxed);
    }
  });
  uint64_t seen[3] = {};
  uint64_t head = 0;
  const auto enough = [&] {
    const uint64_t so_far = scribbles.load(std::memory_order_relaxed);
    const bool saw_all = seen[PEAL_RING_ENTRY] > 0 && seen[PEAL_RING_WILD] > 0;
    return so_far > 1000 * kRounds || (so_far > kRounds && saw_all);
  };
  while (!HasFailure() && !enough()) {
    peal_submission entry{};
    const peal_ring_poll got = peal_card_ring_poll(&window.card, &entry);
    EXPECT_TRUE(got == PEAL_RING_EMPTY || got == PEAL_RING_ENTRY || got == PEAL_RING_WILD);
    seen[got]++;
    if (got == PEAL_RING_ENTRY) {
      EXPECT_EQ(entry.phase, peal_ring_phase(head, GetParam()));
      head++;
    }
    if (got == PEAL_RING_EMPTY) std::this_thread::yield();
    EXPECT_EQ(window.card.submission_head, head);
    const int64_t space = peal_card_ring_space(&window.card);
    EXPECT_GE(space, -1);
    EXPECT_LE(space, static_cast<int64_t>(GetParam()));
  }
  stop = true;
  host.join();
  EXPECT_GT(seen[PEAL_RING_ENTRY], 0u);
  EXPECT_GT(seen[PEAL_RING_WILD], 0u);
}

}  // namespace
}  // namespace peal::test
