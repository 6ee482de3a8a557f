// SPDX-License-Identifier: BSD-2-Clause
// What a run is to do: who is where, which operations every rank posts and when, and what goes
// wrong meanwhile. A scenario and nothing else decides a run.
// Plain data, known to the hosts and to the checkers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "abi/wire.h"
#include "emulator/cluster/cost_model.h"
#include "emulator/cluster/operation_plan.h"
#include "emulator/cluster/sim_time.h"
#include "emulator/cluster/wire_cut.h"
#include "emulator/common/fault_injector.h"

namespace peal::sim {

inline constexpr uint32_t kNoGroup = ~0u;

// A process: one context of one card.
struct Place {
  uint32_t card = 0;
  uint32_t process = 0;  // on that card
  bool operator==(const Place&) const = default;
};

// "broadcast by binomial, 64 bytes, root 3", …
[[nodiscard]] std::string operation_text(const OperationPlan& operation);

// Rank `rank` posts something else than the others as operation `index`.
struct Disagreement {
  uint32_t rank = 0;
  uint32_t index = 0;
  OperationPlan operation;
};

// A rank that gives its membership back: instead of being connected, instead of posting, or (abort)
// some time after it has posted so many operations.
struct Abandon {
  uint32_t rank = 0;
  bool connected = false;
  uint32_t posts = 0;  // 0: before the first
  TimeNs after_ns = 0;
};

struct GroupPlan {
  std::vector<Place> places;  // by rank
  std::vector<OperationPlan> operations;
  std::vector<Disagreement> disagreements;
  std::vector<Abandon> abandons;
  std::vector<TimeNs> connect_ns;     // by rank; the first post comes after it
  std::vector<TimeNs> first_post_ns;  // by rank
  uint32_t depth = 1;                 // operations a host has under way at once
  TimeNs think_ns = 0;                // longest pause of a host before a post
  uint32_t prompt = 0;                // the first operations: one at a time, without a pause
  TimeNs work_ns = 0;                 // what a host computes after each post, looking at nothing
  bool destroy = true;                // the last operation, after the planned ones
  uint32_t after_group = kNoGroup;  // this one is made when that one is destroyed on all its ranks
  TimeNs made_ns = 0;               // when it is made, if it follows no other
  uint64_t first_sequence = 0;      // of its first operation, a multiple of every K

  [[nodiscard]] size_t post_count() const { return operations.size() + (destroy ? 1 : 0); }
};

struct Accident {
  enum class Kind : uint8_t {
    kSilence,  // the card stops for good
    kKill,     // the process ends: its context is closed
    kReset,    // the process asks for a reset of its window
    kWild,     // the process lets the index of its window run wild
    kRestart,  // the card stops, and starts again as another incarnation
    kUnmap,    // the process takes its buffers away: every DMA to them fails
    kFreeze,   // the card's runner is stopped for a while
  };
  Kind kind = Kind::kSilence;
  Place place;
  TimeNs at_ns = 0;
  TimeNs for_ns = 0;  // how long a freeze lasts, or the silence before a restart
};

// The process closes its context as soon as the last of its groups is destroyed, or so much later:
// others may still be asking it.
struct EarlyClose {
  Place place;
  TimeNs after_ns = 0;
};

// What a process asks of its card's administration while operations run, and takes back later.
struct Chore {
  enum class Kind : uint8_t {
    kRegister,  // memory that no operation uses
    kReserve,   // a place in a group that is never made
    kRefused,   // a command that makes no sense
  };
  Kind kind = Kind::kRegister;
  Place place;
  TimeNs at_ns = 0;
  TimeNs for_ns = 0;
  uint32_t choice = 0;  // which memory, which nonsense
};

struct Timeouts {
  TimeNs nack_ns = 200 * kMicrosecond;
  TimeNs nack_max_ns = 20 * kMillisecond;
  TimeNs probe_interval_ns = 20 * kMillisecond;
  TimeNs dead_ns = 2 * kSecond;
};

enum class ChecksumChoice : uint8_t {
  kAuto,  // software whenever a frame could be damaged, else skipped
  kSoftware,
  kSkipped,
};

struct Scenario {
  std::string name;
  uint64_t seed = 1;
  uint32_t cards = 2;
  std::vector<GroupPlan> groups;
  std::vector<Accident> accidents;
  std::vector<EarlyClose> early_closes;
  std::vector<Chore> chores;
  emulator::FaultPlan faults;  // until_ns ends the safety phase
  std::vector<WireCut> cuts;
  Timeouts timeouts;
  CostModel costs;
  ChecksumChoice checksums = ChecksumChoice::kAuto;
  uint32_t packets_per_card = 4096;
  uint32_t sent_packets = 0;  // that a card may keep besides, when it has sent them
  uint32_t dma_per_card = ~0u;
  uint32_t dma_batch = 1;  // that a card is told its engine makes most of
  bool lends = false;      // what is read for one other card stays in host memory until it is
                           // written there (where nobody sums it)
  TimeNs stuck_ns = 10 * kSecond;  // without progress after healing, posts and accidents: stuck
  uint64_t events_max = ~0ull;     // a run that needs more has run away
  double effort_max = 0;           // packets per packet needed, at most; 0: anything
  bool check = true;  // fill, verify and watch; without, only the cards are timed, and nobody knows
                      // what they carry: nor are software checksums, and so traces, the same again
  bool teardown = true;  // close everything at the end and expect nothing left

  // Empty when the scenario makes sense, else what is wrong with it.
  [[nodiscard]] std::string problem() const;
};

// Nothing goes wrong but on the wire, and nobody waits for a host: packets are then sent for data,
// and again for what was lost.
[[nodiscard]] bool only_bad_wire(const Scenario& scenario);

// "kill", "restart", …
[[nodiscard]] const char* accident_name(Accident::Kind kind);

// Does everybody need everybody's address, and wire?
[[nodiscard]] bool talks_to_everybody(const GroupPlan& plan);

// The shape of an ordinary group: ranks in blocks of `members_per_card`, no skew.
GroupPlan make_group(uint32_t cards, uint32_t members_per_card);

}  // namespace peal::sim
