// SPDX-License-Identifier: BSD-2-Clause
// Deliberate faults, one for each of the design's eight invariants. A test that has one of them
// must fail: the proof that the invariant's test could. They are in a firmware built with
// -DPEAL_MUTATIONS, of which the test's program chooses one at its start. In every real build
// mutated() is false and gone.
#pragma once

namespace peal {

enum class Mutation {
  kNone = 0,
  kDuplicateAccepted = 1,  // exactly once: a repeated packet counts as a new arrival
  kNoRetention = 2,        // send buffers: repairs read the user's buffer after completion
  kNoRecycling = 3,        // bounded running ahead: operations start without recycling
  kStormOnLate = 4,        // any skew: waiting does not slow a requester down
  kNoBoundsCheck = 5,      // isolation: commands may leave their region
  kDeathUntold = 6,        // failure is told: a suspected peer is forgotten instead
  kRandomness = 7,         // deterministic: a time-out depends on state that is not the card's
  kLeakOnDrop = 8,         // no growth: a refused packet is not given back
};

#ifdef PEAL_MUTATIONS
extern Mutation present_mutation;  // the program's
inline bool mutated(Mutation mutation) { return mutation == present_mutation; }
#else
constexpr bool mutated(Mutation /*mutation*/) { return false; }
#endif

}  // namespace peal
