// SPDX-License-Identifier: BSD-2-Clause
// The figures of the papers of programs, in virtual time: how long the pipelined broadcasts of
// Tofu2 take, and what starting them costs; how the pairwise all-to-all of CORE-Direct does with
// its window; what MVAPICH's allgather saves by not copying. Results are compared, byte by byte.
#pragma once

#include <cstdint>

#include "emulator/cluster/cost_model.h"
#include "hostlib/trinary.h"

namespace peal::sim {

enum class Start : uint8_t {
  kResident,  // the programs lie on the card: an entry each
  kEnqueued,  // as the paper: every descriptor is written anew, each time
};

struct BroadcastFigure {
  bool trinary = false;  // else the chain
  Start start = Start::kResident;
  uint64_t bytes = 0;
  uint64_t segment_bytes = 0;
};

struct BroadcastTimes {
  uint64_t descriptors = 0;  // of the rank that has most
  TimeNs start_ns = 0;       // what a start costs that rank's host
  TimeNs total_ns = 0;       // from the first host's start to the last one's seeing its end
};

// From rank 0, on the cards of the model's torus. Throws std::runtime_error where it cannot be, or
// a rank has not got what the root has.
BroadcastTimes measure(const CostModel& model, const BroadcastFigure& figure);

struct AlltoallFigure {
  uint32_t ranks = 0;
  uint32_t ranks_per_card = 1;
  uint64_t block_bytes = 0;
  uint32_t window = 1;
};

struct AlltoallTimes {
  TimeNs total_ns = 0;      // from the first host's start to the last one's seeing its end
  uint64_t sent_again = 0;  // packets, and nothing was lost
};

// Throws as above.
AlltoallTimes measure(const CostModel& model, const AlltoallFigure& figure);

// What hosts can compute in while that all-to-all runs, start after start (see overlap.h): times
// are those of one start, on the average, after a first one that opens the connections.
struct AlltoallOverlap {
  double comm_ns = 0;  // hosts wait
  double work_ns = 0;  // as long
  double both_ns = 0;  // hosts compute from the start on, and then wait
  double share = 0;    // (comm + work - both) / the shorter one of comm and work
  double ratio = 0;    // as the paper has it: work / both, 1 without a wait
};

// Throws as above.
AlltoallOverlap measure_overlap(const CostModel& model, const AlltoallFigure& figure,
                                uint32_t starts);

// Recursive doubling, a rank a card. Exchanges of up to `copied_bytes` go through the collective
// buffers.
struct AllgatherFigure {
  uint32_t ranks = 0;
  uint64_t block_bytes = 0;
  uint64_t copied_bytes = 0;
  bool in_place = false;  // a rank's own block is where it belongs
};

// From the first host's start to the last one's seeing its end. Throws as above.
TimeNs measure(const CostModel& model, const AllgatherFigure& figure);

// The allgather without copies against one whose every exchange is a message with a rendezvous of
// hosts (rendezvous_hosts.h); both in place, with connections open.
struct AllgatherComparison {
  TimeNs program_ns = 0;               // all memory is registered
  TimeNs program_registering_ns = 0;   // the result is registered, once, and given back
  TimeNs messages_ns = 0;              // all memory is registered
  TimeNs messages_registering_ns = 0;  // both ends of each message are, and given back
};

// `ranks` is a power of two. Throws as above.
AllgatherComparison compare(const CostModel& model, uint32_t ranks, uint64_t block_bytes);

}  // namespace peal::sim
