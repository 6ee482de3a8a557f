// SPDX-License-Identifier: BSD-2-Clause
// What is known of a run while it runs: who the members are, what they posted and what was
// completed, and what was found wrong. Hosts write it, checkers read it.
// Nothing of the firmware is in here.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "emulator/cluster/findings.h"
#include "emulator/cluster/scenario.h"
#include "emulator/cluster/sim_time.h"
#include "emulator/cluster/user_memory.h"

namespace peal::sim {

inline constexpr uint32_t kNoMember = ~0u;

enum class PostState : uint8_t { kNotPosted, kPosted, kCompleted };

struct Post {
  TimeNs posted_ns = 0;
  TimeNs completed_ns = 0;
  uint32_t slot = 0;
  uint16_t status = 0;
  PostState state = PostState::kNotPosted;
};

// One rank of one group.
struct MemberState {
  uint32_t group = 0;  // index in the scenario
  uint32_t rank = 0;
  Place place;
  uint32_t context = 0;
  uint32_t handle = 0;          // on its card
  std::vector<Post> posts;      // by sequence
  uint64_t finished_below = 0;  // all sequences below are over
  bool dead = false;            // its card is silent, its process was killed, or it gave up
  bool gave_up = false;         // it left before it had posted anything
  bool closed = false;          // its context is closed
  bool poisoned = false;        // it was told of a death
  bool aborted = false;         // it left while it had operations under way, or might have
  UserMemory memory;

  // Completed; or, of one that aborted, never to be posted.
  [[nodiscard]] bool is_over(uint64_t sequence) const;
  // Goes on behind what is over now.
  void pass_over();
};

struct GroupState {
  uint32_t id = 0;  // on the wire
  TimeNs made_ns = 0;
  bool all_addresses = false;     // its members have a table of them
  std::vector<uint32_t> posted;   // by operation: how many ranks have posted it
  std::vector<uint32_t> members;  // by rank; empty before the group is made
};

struct World {
  explicit World(const Scenario& plan) : scenario(plan), groups(plan.groups.size()) {}

  // What rank posts as operation `sequence` of the group; past the last one it is destroyed.
  [[nodiscard]] OperationPlan operation(const MemberState& member, uint64_t sequence) const;
  [[nodiscard]] bool disagreed(uint32_t group, uint64_t sequence) const;

  const Scenario& scenario;
  uint32_t channels = 0;  // K
  std::vector<GroupState> groups;
  std::vector<MemberState> members;
  std::vector<uint32_t> region_member;  // by region: whose user memory it is, or kNoMember
  // How often something happened that a scenario can only ask for, by name.
  std::map<std::string, uint64_t> happened;
  Findings findings;
};

std::string member_text(const MemberState& member);

}  // namespace peal::sim
