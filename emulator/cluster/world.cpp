// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/world.h"

#include "emulator/cluster/mix.h"

namespace peal::sim {

namespace {
constexpr uint64_t kPlaceStream = 11;
}  // namespace

bool MemberState::is_over(uint64_t sequence) const {
  const PostState state = posts[sequence].state;
  return state == PostState::kCompleted || (aborted && state == PostState::kNotPosted);
}

void MemberState::pass_over() {
  while (finished_below < posts.size() && is_over(finished_below)) finished_below++;
}

OperationPlan World::operation(const MemberState& member, uint64_t sequence) const {
  const GroupPlan& group = scenario.groups[member.group];
  if (sequence >= group.operations.size())
    return {PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION, false, 0};
  OperationPlan posted = group.operations[sequence];
  for (const Disagreement& disagreement : group.disagreements)
    if (disagreement.rank == member.rank && disagreement.index == sequence)
      posted = disagreement.operation;
  if (posted.place_by_rank)
    posted.in_place = mix(mix(scenario.seed, kPlaceStream), sequence, member.rank) % 2 != 0;
  return posted;
}

bool World::disagreed(uint32_t group, uint64_t sequence) const {
  for (const Disagreement& disagreement : scenario.groups[group].disagreements)
    if (disagreement.index == sequence) return true;
  return false;
}

std::string member_text(const MemberState& member) {
  return "group " + std::to_string(member.group) + " rank " + std::to_string(member.rank);
}

}  // namespace peal::sim
