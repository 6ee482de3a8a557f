// SPDX-License-Identifier: BSD-2-Clause
// Waiting: asleep or spinning, alone or with other threads of the context; the test's own thread
// plays the card.
#include "hostlib/wait.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <functional>
#include <thread>

#include "hostlib/rings.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

// Completes whatever comes, until it is stopped.
class CardThread {
 public:
  explicit CardThread(FakeCard* card) : card_(card), thread_([this] { run(); }) {}
  ~CardThread() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run() {
    peal_submission entry = {};
    while (!stop_) {
      if (card_->take(&entry)) {
        card_->complete(entry);
      } else {
        std::this_thread::yield();
      }
    }
  }

  FakeCard* card_;
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

using Operation = std::function<void(peal_group*, peal_request**)>;

// Several threads, each with a group and many operations; completions of all come out of one ring.
void run_threads(FakeCard& card, peal_context* context, const Operation& begin) {
  constexpr int kThreads = 4;
  peal_group* groups[kThreads];
  for (peal_group*& group : groups) group = make_fake_group(context);
  const CardThread playing(&card);
  std::vector<std::thread> threads;
  for (peal_group* group : groups) {
    threads.emplace_back([group, &begin] {
      for (int i = 0; i < 200; i++) {
        peal_request* request = nullptr;
        ASSERT_NO_FATAL_FAILURE(begin(group, &request));
        int done = 0;
        while (done == 0) {
          ASSERT_EQ(peal_test(request, &done), PEAL_OK);
        }
        ASSERT_EQ(peal_request_free(request), PEAL_OK);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void run_barriers(uint64_t spin_ns) {
  FakeCard card;
  peal_context* context = open_fake(&card, spin_ns);
  run_threads(card, context, [](peal_group* group, peal_request** request) {
    ASSERT_EQ(peal_barrier(group), PEAL_OK) << peal_last_error_text();
    ASSERT_EQ(peal_ibarrier(group, request), PEAL_OK);
  });
  peal_close(context);
}

TEST(Wait, ThreadsThatSpin) { run_barriers(1'000'000'000); }

TEST(Wait, ThreadsThatSleep) { run_barriers(0); }

// The same call again gives back the lock by itself, to whoever sleeps for it meanwhile.
TEST(Wait, ThreadsThatRepeatACallWithATable) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  void* memory = nullptr;
  ASSERT_EQ(peal_alloc(context, 4096, &memory), PEAL_OK);
  run_threads(card, context, [memory](peal_group* group, peal_request** request) {
    const size_t bytes = 10;
    const size_t offset = 20;
    ASSERT_EQ(peal_iallgatherv(group, PEAL_IN_PLACE, memory, &bytes, &offset, request), PEAL_OK)
        << peal_last_error_text();
  });
  peal_close(context);
}

// What a wait learns of looking on is told to the kind of what it waits for.
TEST(Wait, LookingOnTeachesTheKindOfOperation) {
  FakeCard card;
  peal_context* context = open_fake(&card, 1'000'000);
  peal_group* group = make_fake_group(context);
  context->habit.others_ns = 1'000'000'000;  // as a yield has found
  const CardThread playing(&card);
  for (int i = 0; i < 200; i++) ASSERT_EQ(peal_barrier(group), PEAL_OK);
  const LookOnHabit& taught = context->habit.look_on;
  for (size_t i = 0; i < taught.kinds.size(); i++) {
    const bool untaught = taught.kinds[i].took_ns == 0 && taught.kinds[i].hopes == 0;
    EXPECT_EQ(untaught, i != PEAL_OPERATION_BARRIER) << i;
  }
  peal_close(context);
}

// Whoever polls has no time to look on, and that says nothing about it.
TEST(Wait, PollsTeachNothingOfLookingOn) {
  FakeCard card;
  peal_context* context = open_fake(&card, 1'000'000);
  peal_group* group = make_fake_group(context);
  peal_request* request = nullptr;
  ASSERT_EQ(peal_ibarrier(group, &request), PEAL_OK);
  context->habit.others_ns = 1'000'000'000;  // as a yield has found
  for (int i = 0; i < 100; i++) EXPECT_EQ(peal_wait_for(request, 0), PEAL_ERR_TIMED_OUT);
  EXPECT_EQ(context->habit.look_on.helped_after, LookOnHabit{}.helped_after);
  peal_close(context);
}

// A thread that finds the card gone tells the one that sleeps.
TEST(Wait, SleeperHearsThatTheContextIsBroken) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = make_fake_group(context);
  std::thread rank([&] { EXPECT_EQ(peal_barrier(group), PEAL_ERR_CARD_GONE); });
  card.await_sleeper();
  uint32_t before = 0;
  {
    const std::lock_guard lock(context->mutex);
    EXPECT_TRUE(context->sleeper);
    before = context->transport->sleep_token();
    break_context(*context, PEAL_ERR_CARD_GONE);
  }
  EXPECT_NE(context->transport->sleep_token(), before);
  rank.join();
  peal_close(context);
}

TEST(Wait, SleeperIsAnnouncedAndWoken) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = make_fake_group(context);
  std::thread rank([&] { EXPECT_EQ(peal_barrier(group), PEAL_OK); });
  card.await_sleeper();
  EXPECT_NE(peal_card_ring_host_sleeps(&card.ring), 0);
  peal_submission entry = {};
  ASSERT_TRUE(card.take(&entry));
  card.complete(entry);
  rank.join();
  EXPECT_EQ(peal_card_ring_host_sleeps(&card.ring), 0);
  peal_close(context);
}

// What the statistics count as sleeps: of calls that wait, whoever else sleeps.
TEST(Wait, SleepsAreCountedOfCallsThatWait) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = make_fake_group(context);
  int fd = -1;
  int ready = 0;
  peal_request* request = nullptr;
  ASSERT_EQ(peal_completion_fd(context, &fd), PEAL_OK);
  ASSERT_EQ(peal_ibarrier(group, &request), PEAL_OK);
  ASSERT_EQ(peal_arm(context, &ready), PEAL_OK);
  card.await_sleeper();
  const auto sleeps = [&] {
    peal_statistics read = {};
    read.struct_bytes = sizeof(read);
    EXPECT_EQ(peal_read_statistics(context, &read), PEAL_OK);
    return read.sleeps;
  };
  EXPECT_EQ(sleeps(), 0u) << "the thread behind the descriptor is no call";
  EXPECT_EQ(peal_wait_for(request, 2'000'000), PEAL_ERR_TIMED_OUT);
  EXPECT_GT(sleeps(), 0u) << "behind another sleeper it slept all the same";
  card.complete(card.await_entry());
  EXPECT_EQ(peal_wait(request), PEAL_OK);
  peal_close(context);
}

TEST(Wait, TimeOutLeavesTheRequest) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = make_fake_group(context);
  peal_request* request = nullptr;
  ASSERT_EQ(peal_ibarrier(group, &request), PEAL_OK);
  EXPECT_EQ(peal_wait_for(request, 0), PEAL_ERR_TIMED_OUT);
  EXPECT_EQ(peal_wait_for(request, 2'000'000), PEAL_ERR_TIMED_OUT);
  peal_submission entry = {};
  ASSERT_TRUE(card.take(&entry));
  card.complete(entry);
  EXPECT_EQ(peal_wait_for(request, UINT64_MAX), PEAL_OK);
  peal_close(context);
}

TEST(Wait, DescriptorIsReadableWhenAnArmedContextCompletes) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = make_fake_group(context);
  int fd = -1;
  ASSERT_EQ(peal_completion_fd(context, &fd), PEAL_OK);
  pollfd now = {fd, POLLIN, 0};
  for (int i = 0; i < 20; i++) {
    peal_request* request = nullptr;
    ASSERT_EQ(peal_ibarrier(group, &request), PEAL_OK);
    int ready = 1;
    // What the last round completed may still be news; then there is none.
    while (ready != 0) ASSERT_EQ(peal_arm(context, &ready), PEAL_OK);
    EXPECT_EQ(poll(&now, 1, 0), 0);
    peal_submission entry = {};
    ASSERT_TRUE(card.take(&entry));
    card.complete(entry);
    EXPECT_EQ(poll(&now, 1, 60'000), 1);
    int done = 0;
    EXPECT_EQ(peal_test(request, &done), PEAL_OK);
    EXPECT_EQ(done, 1);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }
  peal_close(context);
}

TEST(Wait, DescriptorIsReadableWhenTheCardIsGone) {
  FakeCard card;
  peal_context* context = open_fake(&card);
  peal_group* group = make_fake_group(context);
  int fd = -1;
  int ready = 0;
  peal_request* request = nullptr;
  ASSERT_EQ(peal_completion_fd(context, &fd), PEAL_OK);
  ASSERT_EQ(peal_ibarrier(group, &request), PEAL_OK);
  ASSERT_EQ(peal_arm(context, &ready), PEAL_OK);
  {
    const std::lock_guard<std::mutex> guard(card.mutex);
    card.connected = false;
  }
  pollfd wait = {fd, POLLIN, 0};
  EXPECT_EQ(poll(&wait, 1, 60'000), 1);
  int done = 0;
  EXPECT_EQ(peal_test(request, &done), PEAL_ERR_CARD_GONE);
  EXPECT_EQ(done, 1);
  peal_close(context);
}

}  // namespace
}  // namespace peal::host
