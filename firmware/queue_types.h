// SPDX-License-Identifier: BSD-2-Clause
// What a card keeps of programs (abi/program.h): a queue for each that was committed, from a fixed
// pool. Only data; what happens to it is in firmware/queue/. A zeroed queue is free.
// docs/decisions/0031
#pragma once

#include <bit>
#include <cstdint>

#include "abi/program.h"
#include "abi/status.h"
#include "firmware/base/ranks.h"
#include "firmware/base/timer_heap.h"
#include "firmware/p2p_types.h"
#include "firmware/port.h"
#include "peal_config.h"

namespace peal::queue {

inline constexpr uint32_t kDescriptors = CONFIG_QUEUE_DESCRIPTORS;  // of a program, on the card
inline constexpr uint32_t kStarts = CONFIG_QUEUE_STARTS;            // outstanding, of a program
inline constexpr uint32_t kTasks = CONFIG_QUEUE_TASKS;              // under way, of a program
// Puts before closed gates, of a program, whose queue goes on. Another one holds its queue back.
inline constexpr uint32_t kHeld = kTasks;

static_assert((kDescriptors & (kDescriptors - 1)) == 0, "an index names its place by its low bits");
static_assert(CONFIG_QUEUE_COUNTERS <= PEAL_PROGRAM_COUNTERS_MAX);
static_assert(PEAL_PROGRAM_DESCRIPTORS_MAX <= 0xffff);
static_assert(CONFIG_QUEUES < 0xffff && kStarts < 0xff && kTasks < 0xfffe);

// What the host asked for by START: so many iterations of the program, one after the other.
struct Start {
  uint64_t first;   // iteration
  uint32_t passes;  // 0: the program is only looked at
  uint64_t cookie;
  TimeNs accepted_ns;
};

inline constexpr uint16_t kNoTask = 0xffff;
inline constexpr uint16_t kTaken = 0xfffe;

// A put, send, receive or remote signal that is not over.
struct Task {
  uint16_t done;   // counter, or PEAL_NO_COUNTER
  uint16_t next;   // of those that are free; kTaken: this one is not
  uint32_t index;  // of its descriptor
  uint32_t rank;   // that it is for
};

// Why the start that runs, or the next one, ends.
struct Failure {
  peal_status status;  // OK: it does not
  peal_program_reason reason;
  uint32_t index;          // of the descriptor; of the counter where a rank told too much
  uint32_t rank;           // PEAL_NO_RANK: nobody's
  bool elsewhere = false;  // it was another start that failed, of `rank`
};

// Iterations of a program that have failed, here or on another rank: no rank of the group carries
// them out any more. Kept for what may still come of them until its place is needed (failed.h).
struct FailedIterations {
  bool in_use;
  uint8_t backoff;
  uint16_t name;    // of the program
  uint8_t hops;     // so far from here those may be that do not know it yet
  bool together;    // the starts end when every rank has begun: a dissemination
  bool entered;     // of it: this rank has
  uint8_t begun;    // how far this rank is, as packets have it
  uint16_t heard;   // of it: bit per round
  uint32_t member;  // handle
  uint32_t untold;  // bit per peer entry
  uint64_t from;
  uint64_t to;  // behind the last
  Failure why;
  TimeNs noted_ns;
  TimeNs next_ns;  // to those that have not answered
};
inline constexpr uint32_t kFailures = 4 * CONFIG_QUEUES;
// So many of them may be what other ranks have told a member: no group takes all places; nor does a
// client, whatever its own programs do.
inline constexpr uint32_t kFailedOfMember = CONFIG_QUEUES;
inline constexpr uint32_t kFailedOfContext = 3 * CONFIG_QUEUES;
// Other programs that one tells.
inline constexpr uint32_t kToldPrograms = PEAL_SKIP_TOLD;

// Those of a queue for which there was no place: none where `to` is `from`, or is over.
struct Unnoted {
  uint64_t from;
  uint64_t to;  // behind the last
  Failure why;  // of the first that had none
};

// What the descriptor that is next waits for; whatever else happens leaves the queue alone.
enum class Awaits : uint8_t {
  kAnything,
  kTask,           // one to be over
  kAllTasks,       // all
  kCounterOrGate,  // the same as kCounter, and puts are held
  kCounter,        // `awaited` to reach `awaited_count`
};

// What carrying a descriptor out comes to.
enum class Way : uint8_t {
  kComplete,  // and JUMP
  kPut,
  kSignal,  // of another rank's counter
  kWait,
  kTell,     // a signal of an own counter
  kMessage,  // SEND, RECEIVE
  kGated,    // a put that has a gate
};

// What a descriptor of this opcode named when it was looked at last and found good: the next one
// often names the same. Opcode 0: nothing is known.
struct Named {
  uint8_t opcode;
  Rank rank;
  uint32_t key;
  RegionId region;
  uint64_t bytes;  // of the key's memory; 0 where it names none
};

// What is known of a descriptor in the cache.
struct Known {
  struct Step {
    Way way;
    bool good;  // its rank can be talked to, and its own memory is there; no key has gone since
  };
  Step step;
  RegionId region;  // of its own memory, if it names any
};
inline bool is_good_put(Known::Step step) {
  return std::bit_cast<uint16_t>(step) == std::bit_cast<uint16_t>(Known::Step{Way::kPut, true});
}

enum class Sources : uint8_t { kUnread, kReading, kKnown };

struct Queue {
  bool in_use;
  bool running;   // the first start has begun
  bool issuing;   // it has begun, nothing has failed, and its descriptors are carried out
  bool fetching;  // a DMA brings descriptors
  bool gated;     // this pass took as long as a message, at least
  bool listed;
  bool doomed;   // its group is over: all starts end with `doom`
  bool leaving;  // so is its member: free when it is quiet
  bool told;     // the group knows of `failure`, or need not
  uint8_t tells_count;
  Sources sources_phase;
  Awaits awaits;
  uint8_t first_start;
  uint8_t start_count;
  uint16_t generation;
  uint16_t index;
  uint16_t name;                  // by which other ranks' descriptors know it
  uint16_t tells[kToldPrograms];  // other programs that descriptors seen so far tell, as slots
  uint16_t awaited;
  uint16_t held_count;
  uint64_t awaited_count;
  uint32_t member;  // handle
  ContextId context;
  uint32_t key;  // of the program, held
  HostAddress program;
  peal_program_shape shape;
  Queue* next;             // of those that have something to do
  Queue* next_named;       // of its bucket
  uint32_t tellable;       // so many counters; none before their sources are known
  uint32_t most_of_first;  // that counter 0 may come to
  uint32_t scheduled;      // session mode: how far, at the beginning of each iteration
  uint64_t next_to_start;  // iteration that the host's next start begins with
  uint64_t failed_before;  // the first iteration behind the last start that failed
  p2p::Ticket ticket;      // of the task that is taken next; kNoTask: none is free
  p2p::Origin origin;      // of puts; its iteration runs, or will run next
  uint32_t passes_done;    // of the first start
  uint32_t consumer;       // index of the descriptor to be issued next
  uint32_t fetched;        // all below are, or were, in the cache
  uint32_t look_at;        // before this one is issued, fetch() is to look at the cache
  uint32_t under_way;      // tasks
  uint16_t held[kHeld];    // indices of held puts, in their order; they stay in the cache
  Failure failure;
  Failure doom;
  Start starts[kStarts];
  Task tasks[kTasks];
  Known known[kDescriptors];           // of those in the cache
  Named named[PEAL_PROGRAM_COMPLETE];  // by opcode
  Unnoted unnoted;
  // Those from the first that is held, or `consumer`, to `fetched`, each in the place of its index
  // modulo kDescriptors.
  alignas(64) peal_descriptor cache[kDescriptors];
  // From here on nothing is read before it was written.
  uint32_t sources[(CONFIG_QUEUE_COUNTERS + 15) & ~15];
  // Of the iteration that runs and those that follow it, each in the place of its number modulo
  // kStarts: ranks that are ahead tell what they have for later ones.
  uint32_t counts[kStarts][CONFIG_QUEUE_COUNTERS];
};

struct Network;  // queue/network.h

struct QueuePool {
  const Network* network;  // null: no tasks
  Timer timer;
  Timer watch_timer;    // armed while a start is not over
  Timer failure_timer;  // armed while some peer has not answered
  bool gone;            // some member died or went, or a key: queues are looked after
  uint16_t in_use;
  uint16_t listed;      // how many have something to do
  uint16_t patient;     // of those: the last turn had no record for what they ask for
  uint16_t failed_top;  // all behind them are not in use
  uint16_t unnoted;     // not zero: some queue has had something that found no place
  Queue* first;         // of those that have something to do, in the order in which they are served
  Queue* last;
  Queue* named[CONFIG_QUEUES];  // buckets, by their names
  FailedIterations failed[kFailures];
  Queue queues[CONFIG_QUEUES];
};

}  // namespace peal::queue
