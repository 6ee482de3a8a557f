// SPDX-License-Identifier: BSD-2-Clause
// What the opaque handles of the C API are. One lock per context guards everything in it; the lock
// is given up only while a thread yields or sleeps, and during the caller's out-of-band exchange.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "abi/ring.h"
#include "base/file_descriptor.h"
#include "hostlib/address_tables.h"
#include "hostlib/choice.h"
#include "hostlib/fork_guard.h"
#include "hostlib/liveness.h"
#include "hostlib/memory_map.h"
#include "hostlib/mutex.h"
#include "hostlib/part_tables.h"
#include "hostlib/posting.h"
#include "hostlib/registration_cache.h"
#include "hostlib/transport.h"
#include "hostlib/wait_habit.h"
#include "peal/peal.h"

namespace peal::host {
inline constexpr uint64_t kNoSequence = ~uint64_t{0};

// What a builder is, only group.cpp knows.
struct DeleteBuilder {
  void operator()(peal_group_builder* builder) const;
};

// Where a group's memory is, only context_pages.cpp knows.
struct DeleteGroup {
  void operator()(peal_group* group) const;
};
using GroupPointer = std::unique_ptr<peal_group, DeleteGroup>;

// What a persistent request is started with, again and again.
struct Persistent {
  peal_group* group = nullptr;  // this one's alone; of a program: the company of its kind
  Posting posting = {};
  HeldKeys keys;            // that each start names
  uint64_t departures = 0;  // the cache's, when they were looked up
  // Programs that are started in turn: one, or two, the second of which is null else.
  peal_program* programs[2] = {};
  uint32_t handles[2] = {};  // of one program twice
  uint8_t turns = 1;
  uint64_t next_start = 0;  // of the programs together
  uint64_t listed = 0;      // by which peal_startall() last
};
}  // namespace peal::host

// One cache line: posting and completing touch nothing else of the table.
struct alignas(64) peal_request {
  // A persistent one is inactive until it is started, and again when its end was seen.
  enum class State : uint8_t { kFree, kPending, kDone, kInactive };

  peal_context* context = nullptr;
  union {
    peal_group* group = nullptr;  // while pending
    peal_request* next_free;      // while free
    uint64_t moved;               // when done: bytes of a message, a put or a get
  };
  peal::host::Persistent* persistent = nullptr;  // the context's
  uint32_t index = 0;
  uint32_t generation = 0;     // in the cookie, so that a stray completion finds nobody
  State state = State::kFree;  // changed by set_state(): it is also looked at without the lock
  bool detached = false;       // frees itself when it is done
  uint8_t operation = 0;
  union {
    bool any_tag = false;  // of a receive whose message is not known
    uint8_t bad_reason;    // of a start: enum peal_program_reason, PEAL_PROGRAM_ELSEWHERE
  };
  // How it ended, whoever else looks at it meanwhile: written before the state says that it is
  // done, and then left alone until it is freed.
  peal_error result = PEAL_OK;
  uint32_t failed_rank = PEAL_NO_RANK;
  union {
    uint32_t rank = PEAL_NO_RANK;  // the other one, of point-to-point
    uint32_t bad_index;            // of a start that failed: which descriptor, or which counter
  };
  uint64_t sequence = 0;  // of a message its tag
  uint64_t card_ns = 0;
};
static_assert(sizeof(peal_request) == 64);

struct peal_group {
  // The last registered region that served a buffer of this direction.
  struct Hit {
    uint64_t version = 0;  // memory_version()
    peal::host::Region region;
  };

  peal_context* context = nullptr;
  uint32_t rank = 0;
  uint32_t size = 0;
  uint32_t member = 0;  // the card's handle
  uint32_t flags = 0;
  uint32_t outstanding = 0;
  uint32_t outstanding_max = 0;
  // Besides those: point-to-point and starts of programs, which the card never parks.
  uint32_t unordered = 0;
  uint32_t failed_rank = PEAL_NO_RANK;
  uint64_t next_sequence = 0;
  uint64_t first_refused = peal::host::kNoSequence;  // of those still outstanding
  bool destroying = false;
  bool aborted = false;
  // The first detached operation that failed since peal_group_wait(); its state is kDone then.
  peal_request detached_failure;
  // Of its destroy, and of the library's own exchanges: they need none of the user's.
  peal_request own_request;
  peal::host::ChoiceTable choice;
  peal::host::AddressTables::Place table;  // where some ranks are no peers
  peal::host::PartTables part_tables{own_request};
  uint32_t programs_named = 0;          // as many on all ranks
  std::vector<peal_program*> programs;  // that are committed to it
  // Where its persistent requests' programs are; or that there is no such place.
  peal_group* company = nullptr;
  bool alone = false;
  // Of a persistent request's group, or a company: nobody needs it any more. (A company may end by
  // its own request, too: has_ended().)
  bool over = false;
  bool registers_exactly = false;  // what it registers by itself: no more than the buffer
  uint32_t users = 0;              // of a company: requests, and the group that made it
  Hit send_hit;
  Hit receive_hit;
};

struct peal_memory {
  peal_context* context;
  uint32_t key;
};

// What every operation touches lies side by side, on the first two cache lines: behind work that
// takes longer than the caches remember, each line costs a miss. docs/decisions/0059
// And it begins a page, on which its first group and its first requests are, too: each page costs a
// walk (context_pages.h).
struct alignas(64) peal_context {
  static void* operator new(size_t bytes, std::align_val_t alignment);
  static void operator delete(void* memory, std::align_val_t alignment);

  peal::host::Mutex mutex;
  peal_error broken = PEAL_OK;  // CARD_GONE or CARD_ANSWER, for good
  peal_host_ring ring = {};

  peal::host::OwnerProcess owner;
  // A request is a promise of a submission and a completion slot. Some slots are kept for the own
  // requests of groups (start_rings()).
  peal_request* requests = nullptr;       // request_count(), in the context's memory
  peal_request* free_requests = nullptr;  // a list; the last that was freed is the next
  // For looks without the lock: how far the completions were taken.
  std::atomic<uint64_t> completions_taken = 0;
  // Ever. As many were posted as the ring's tail says.
  uint64_t completed = 0;
  uint64_t card_ns = 0;
  bool sleeper = false;         // a thread sleeps in the transport, one at most
  bool programs_ended = false;  // some are in ended_programs
  uint32_t request_count = 0;

  std::atomic<uint64_t> tested_ticks = 0;     // when a test last looked after the card
  std::vector<peal_program*> ended_programs;  // of requests that are gone
  std::unique_ptr<peal::host::Transport> transport;
  peal::host::MemoryMap memory;
  peal::host::RegistrationCache cache;  // of what operations register by themselves
  std::vector<std::unique_ptr<peal_memory>> registrations;
  std::atomic_flag near_place_taken;  // a group has the place beside the context
  std::vector<peal::host::GroupPointer> groups;
  peal::host::AddressTables tables;
  std::vector<peal::host::Allocation> left_memory;  // the library's own, which the card still reads
  std::vector<std::unique_ptr<peal::host::Persistent>> persistents;
  bool programs = true;   // of persistent requests are wanted: $PEAL_PROGRAMS
  uint32_t ordinary = 0;  // persistent requests that are no programs, ever
  std::vector<std::unique_ptr<peal_group_builder, peal::host::DeleteBuilder>> builders;
  uint32_t next_own = 0;

  // Ever.
  uint64_t failed = 0;
  uint64_t doorbells = 0;
  uint64_t sleeps = 0;

  uint64_t next_look_ns = 0;  // at the connection
  peal::host::Liveness liveness;
  uint64_t completed_before = 0;  // the last look
  peal::host::WaitHabit habit;
  std::condition_variable_any woken;  // of threads that wait while another one sleeps

  // peal_completion_fd()
  peal::host::OwnDescriptor event_fd;
  bool armed = false;
  bool stopping = false;
  uint64_t completed_seen = 0;
  std::condition_variable_any rearmed;
  std::thread watcher;

  // Last, so that it goes first: what it leaves must still be there.
  peal::host::ForkGuard guard{[](void* context) { leave(*static_cast<peal_context*>(context)); },
                              this};

 private:
  static void leave(peal_context& context) noexcept;
};

namespace peal::host {

// FORKED in a child of the process that opened the context. Before the lock: in a child nobody may
// ever give it back.
inline peal_error check_owner(const peal_context& context, const char* call) {
  if (!context.owner.inherited()) [[likely]]
    return PEAL_OK;
  return fail(PEAL_ERR_FORKED,
              "%s: its context was opened by process %d, of which this is a child: open another",
              call, static_cast<int>(context.owner.id()));
}

// Its request is gone; forget_ended_programs() gives it back to the card.
inline void note_ended(peal_context& context, peal_program* program) {
  context.ended_programs.push_back(program);
  context.programs_ended = true;
}

// Changes whenever memory that an operation found may be found no more.
inline uint64_t memory_version(const peal_context& context) {
  return context.memory.version() + context.cache.departures();
}

// Runs a function that may throw std::bad_alloc or a system error of the standard library,
// at the C boundary.
template <typename Function>
peal_error guarded(Function&& function) noexcept {
  try {
    return function();
  } catch (const std::exception& error) {
    return fail(PEAL_ERR_NO_MEMORY, "%s", error.what());
  }
}

// The same for what only the process that opened the context may do.
template <typename Function>
peal_error guarded(const peal_context& context, const char* call, Function&& function) noexcept {
  const peal_error error = check_owner(context, call);
  return error == PEAL_OK ? guarded(function) : error;
}

}  // namespace peal::host
