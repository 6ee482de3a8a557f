// SPDX-License-Identifier: BSD-2-Clause
// Children of fork(): guards, and that a child can do nothing with its parent's context.
#include "hostlib/fork_guard.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <string>
#include <thread>

#include "peal/oob.h"
#include "tests/unit/hostlib/fake_card.h"

namespace peal::host {
namespace {

int status_of(pid_t child) {
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// What `body` returns in a child, which ends without the parent's destructors.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  return status_of(child);
}

struct Thing {
  int left = 0;
  OwnerProcess owner;
  ForkGuard guard{[](void* thing) { static_cast<Thing*>(thing)->left++; }, this};
};

TEST(ForkGuard, ChildInherits) {
  const Thing thing;
  EXPECT_EQ(current_process(), getpid());
  EXPECT_EQ(thing.owner.id(), getpid());
  EXPECT_FALSE(thing.owner.inherited());
  EXPECT_EQ(in_child([&] { return thing.owner.seems_own() ? 1 : 0; }), 0);
  EXPECT_EQ(in_child([&] {
              const Thing own;
              const bool good = current_process() == getpid() && thing.owner.inherited() &&
                                !own.owner.inherited();
              // And so for its own child.
              return good && in_child([&] { return own.owner.inherited() ? 0 : 1; }) == 0 ? 0 : 1;
            }),
            0);
  EXPECT_FALSE(thing.owner.inherited());
}

TEST(ForkGuard, ForkedBehindTheLibrarysBack) {
  const Thing thing;
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, nullptr, nullptr, nullptr, 0));
  if (child == 0) {
    // No handler of fork() ran.
    _exit(thing.left == 0 && thing.owner.inherited() ? 0 : 1);
  }
  EXPECT_EQ(status_of(child), 0);
}

TEST(ForkGuard, EveryLivingThingIsLeftInTheChildOnly) {
  Thing first;
  Thing last;
  {
    const Thing gone;
    Thing another;
    EXPECT_EQ(another.left, 0);
  }
  EXPECT_EQ(in_child([&] { return first.left * 10 + last.left; }), 11);
  EXPECT_EQ(first.left + last.left, 0);
}

class Forked : public testing::Test {
 protected:
  void SetUp() override {
    context = open_fake(&card);
    group = make_fake_group(context);
    ASSERT_NE(group, nullptr);
    commit_one();
    ASSERT_EQ(peal_alloc(context, 4096, &memory), PEAL_OK);
    ASSERT_EQ(peal_register(context, loose, sizeof(loose), PEAL_READ, &registered), PEAL_OK);
    ASSERT_EQ(peal_ibarrier(group, &request), PEAL_OK);
    ASSERT_TRUE(card.take(&entry));
  }
  void TearDown() override {
    EXPECT_EQ(peal_program_free(program), PEAL_OK);
    EXPECT_EQ(peal_program_free(written), PEAL_OK);
    peal_close(context);
  }
  // Of two programs one.
  void commit_one() {
    uint32_t counter = 0;
    for (peal_program** each : {&program, &written}) {
      ASSERT_EQ(peal_program_create(0, 1, nullptr, each), PEAL_OK);
      ASSERT_EQ(peal_program_counter(*each, 0, &counter), PEAL_OK);
      ASSERT_EQ(peal_program_wait(*each, counter, 1), PEAL_OK);
    }
    std::thread player([&] { card.complete(card.await_entry()); });
    EXPECT_EQ(peal_program_commit(group, program), PEAL_OK);
    player.join();
  }

  static int alone(void*, const void* own, void* all, size_t bytes) {
    memcpy(all, own, bytes);
    return 0;
  }

  // The number of the first call that is not refused by name, or 0.
  int use_everything() {
    peal_memory* unused = nullptr;
    int number = 0;
    int fd = 0;
    int flag = 0;
    size_t count = 0;
    const size_t length = 64;
    uint32_t key = 0;
    uint64_t place = 0;
    void* more = nullptr;
    peal_request* another = nullptr;
    peal_group* other = nullptr;
    peal_card_info info = {};
    info.struct_bytes = sizeof(info);
    peal_statistics statistics = {};
    statistics.struct_bytes = sizeof(statistics);
    const std::function<peal_error()> calls[] = {
        [&] { return peal_card_query(context, &info); },
        [&] { return peal_counters(context, nullptr, 0, &count); },
        [&] { return peal_alloc(context, 4096, &more); },
        [&] { return peal_free(context, memory); },
        [&] { return peal_register(context, loose, sizeof(loose), PEAL_READ, &unused); },
        [&] { return peal_unregister(registered); },
        [&] { return peal_group_create(context, 0, 1, alone, nullptr, nullptr, &other); },
        [&] { return peal_barrier(group); },
        [&] { return peal_ibarrier(group, &another); },
        [&] { return peal_allgather(group, PEAL_IN_PLACE, memory, 64); },
        [&] { return peal_iallgather(group, PEAL_IN_PLACE, memory, 64, &another); },
        [&] { return peal_bcast(group, memory, 64, 0); },
        [&] { return peal_ibcast(group, memory, 64, 0, &another); },
        [&] { return peal_alltoall(group, PEAL_IN_PLACE, memory, 64); },
        [&] { return peal_ialltoall(group, PEAL_IN_PLACE, memory, 64, &another); },
        [&] { return peal_allgatherv(group, PEAL_IN_PLACE, memory, &length, nullptr); },
        [&] { return peal_iallgatherv(group, PEAL_IN_PLACE, memory, &length, nullptr, &another); },
        [&] {
          return peal_alltoallv(group, PEAL_IN_PLACE, nullptr, nullptr, memory, &length, nullptr);
        },
        [&] {
          return peal_ialltoallv(group, PEAL_IN_PLACE, nullptr, nullptr, memory, &length, nullptr,
                                 &another);
        },
        [&] { return peal_barrier_init(group, &another); },
        [&] { return peal_bcast_init(group, memory, 64, 0, &another); },
        [&] { return peal_allgather_init(group, PEAL_IN_PLACE, memory, 64, &another); },
        [&] { return peal_alltoall_init(group, PEAL_IN_PLACE, memory, 64, &another); },
        [&] {
          return peal_allgatherv_init(group, PEAL_IN_PLACE, memory, &length, nullptr, &another);
        },
        [&] {
          return peal_alltoallv_init(group, PEAL_IN_PLACE, nullptr, nullptr, memory, &length,
                                     nullptr, &another);
        },
        [&] { return peal_start(request); },
        [&] { return peal_startall(&request, 1); },
        [&] { return peal_send(group, 0, 1, memory, 64); },
        [&] { return peal_isend(group, 0, 1, memory, 64, &another); },
        [&] { return peal_recv(group, 0, 1, memory, 64, nullptr); },
        [&] { return peal_irecv(group, 0, 1, memory, 64, &another); },
        [&] { return peal_put(group, 0, memory, 64, 1, 0, &another); },
        [&] { return peal_get(group, 0, memory, 64, 1, 0, &another); },
        [&] { return peal_fence(group, 0, &another); },
        [&] { return peal_program_commit(group, written); },
        [&] { return peal_program_commit_all(group, &written, 1); },
        [&] { return peal_program_start(program, 1, &another); },
        [&] { return peal_program_free(program); },
        [&] { return peal_memory_name(context, memory, 64, &key, &place); },
        [&] { return peal_test(request, &flag); },
        [&] { return peal_wait(request); },
        [&] { return peal_wait_for(request, 1); },
        [&] { return peal_request_free(request); },
        [&] { return peal_completion_fd(context, &fd); },
        [&] { return peal_arm(context, &flag); },
        [&] { return peal_test_any(&request, 1, &count); },
        [&] { return peal_wait_any(&request, 1, 1, &count); },
        [&] { return peal_wait_all(&request, 1); },
        [&] { return peal_read_statistics(context, &statistics); },
        [&] { return peal_group_wait(group); },
        [&] { return peal_group_abort(group); },
        [&] { return peal_group_destroy(group); },
    };
    // Behind the name of the call.
    const std::string wanted = ": its context was opened by process " + std::to_string(getppid()) +
                               ", of which this is a child: open another";
    for (const auto& call : calls) {
      number++;
      if (call() != PEAL_ERR_FORKED) return number;
      const std::string text = peal_last_error_text();
      const size_t name = text.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
      if (text.rfind("peal_", 0) != 0 || text.substr(name) != wanted) return number;
    }
    return peal_group_failed_rank(group) == -1 && peal_request_failed_rank(request) == -1 &&
                   peal_request_card_ns(request) == 0
               ? 0
               : 99;
  }

  // The parent's context works as if nothing had been.
  void expect_untouched() {
    peal_submission stray = {};
    EXPECT_FALSE(card.take(&stray));
    EXPECT_EQ(card.keys.size(), 3u);
    EXPECT_EQ(card.left, 0);
    card.complete(entry);
    EXPECT_EQ(peal_wait(request), PEAL_OK);
    EXPECT_EQ(peal_request_free(request), PEAL_OK);
  }

  FakeCard card;
  peal_context* context = nullptr;
  peal_group* group = nullptr;
  peal_request* request = nullptr;
  peal_submission entry = {};
  void* memory = nullptr;
  char loose[64];
  peal_memory* registered = nullptr;
  peal_program* program = nullptr;
  peal_program* written = nullptr;  // but not committed
};

TEST_F(Forked, EveryCallIsRefusedByName) {
  EXPECT_EQ(in_child([&] {
              if (card.left != 1) return 100;  // its descriptors are closed already
              const int refused = use_everything();
              peal_close(context);
              return card.ended == 0 ? refused : 101;  // that is its parent's
            }),
            0);
  expect_untouched();
}

// A thread that holds the lock, or sleeps in a condition, is not there in the child to give it
// back.
TEST_F(Forked, ChildOfABusyProcess) {
  int fd = -1;
  int ready = 1;
  ASSERT_EQ(peal_completion_fd(context, &fd), PEAL_OK);
  while (ready != 0) ASSERT_EQ(peal_arm(context, &ready), PEAL_OK);
  {
    const std::lock_guard held(context->mutex);
    EXPECT_EQ(in_child([&] {
                alarm(60);
                const int refused = use_everything();
                peal_close(context);
                return refused;
              }),
              0);
  }
  expect_untouched();
}

TEST_F(Forked, ChildOpensItsOwn) {
  EXPECT_EQ(in_child([&] {
              FakeCard own_card;
              peal_context* own = open_fake(&own_card);
              peal_group* its = make_fake_group(own);
              peal_request* posted = nullptr;
              peal_submission taken = {};
              if (peal_ibarrier(its, &posted) != PEAL_OK || !own_card.take(&taken)) return 1;
              own_card.complete(taken);
              if (peal_wait(posted) != PEAL_OK) return 2;
              peal_close(own);
              peal_close(context);
              return 0;
            }),
            0);
  expect_untouched();
}

}  // namespace
}  // namespace peal::host
