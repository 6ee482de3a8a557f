// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/hosts.h"

#include <algorithm>

#include "abi/admin.h"
#include "abi/queue.h"
#include "emulator/cluster/mix.h"

namespace peal::sim {

namespace {

constexpr uint32_t kKindShift = 28;
constexpr uint64_t kThinkStream = 5;
constexpr uint32_t kChoiceHash = 0x5eed;

uint64_t longest_block(const GroupPlan& plan) {
  uint64_t bytes = 0;
  for (const OperationPlan& operation : plan.operations)
    bytes = std::max<uint64_t>(bytes, operation.block_bytes);
  for (const Disagreement& disagreement : plan.disagreements)
    bytes = std::max<uint64_t>(bytes, disagreement.operation.block_bytes);
  return bytes;
}

}  // namespace

void Hosts::fail(TimeNs now_ns, const std::string& what, peal_status status) {
  world_.findings.add(now_ns, "set-up", what + ": status " + std::to_string(status));
}

void Hosts::schedule(TimeNs when_ns, EventKind kind, uint32_t index) {
  scheduled_++;
  cluster_->at(when_ns, static_cast<uint32_t>(kind) << kKindShift | index);
}

void Hosts::start(Cluster& cluster) {
  cluster_ = &cluster;
  const Scenario& scenario = world_.scenario;
  finished_members_.resize(scenario.groups.size());
  for (const GroupPlan& group : scenario.groups) {
    for (const Place& place : group.places) {
      const auto key = std::pair(place.card, place.process);
      if (contexts_.contains(key)) continue;
      uint32_t context = 0;
      const peal_status status = cluster.open_context(place.card, &context);
      if (status != PEAL_STATUS_OK) return fail(0, "open context", status);
      contexts_[key] = context;
    }
  }
  for (uint32_t i = 0; i < scenario.accidents.size(); i++)
    schedule(scenario.accidents[i].at_ns, EventKind::kAccident, i);
  for (uint32_t i = 0; i < scenario.groups.size(); i++)
    if (scenario.groups[i].after_group == kNoGroup) plan_group(0, i);
}

void Hosts::on_host_event(TimeNs now_ns, uint32_t item) {
  scheduled_--;
  const uint32_t index = item & ((1u << kKindShift) - 1);
  switch (static_cast<EventKind>(item >> kKindShift)) {
    case EventKind::kConnect:
      connect(now_ns, index);
      break;
    case EventKind::kPost:
      post(now_ns, index);
      break;
    case EventKind::kAccident:
      accident(now_ns, world_.scenario.accidents[index]);
      break;
    case EventKind::kMakeGroup:
      make_group(now_ns, index);
      break;
  }
}

// --- groups ---

void Hosts::plan_group(TimeNs when_ns, uint32_t index) {
  const GroupPlan& plan = world_.scenario.groups[index];
  unfinished_ += plan.places.size() * plan.post_count();
  schedule(when_ns, EventKind::kMakeGroup, index);
}

void Hosts::make_group(TimeNs now_ns, uint32_t index) {
  const GroupPlan& plan = world_.scenario.groups[index];
  GroupState& group = world_.groups[index];
  group.id = index + 1;
  // Whoever is dead by now has no address to exchange: without it there is no group.
  for (const Place& place : plan.places) {
    if (contexts_.contains({place.card, place.process}) && !cluster_->silent(place.card)) continue;
    unfinished_ -= plan.places.size() * plan.post_count();
    return;
  }
  const auto first = static_cast<uint32_t>(world_.members.size());
  for (uint32_t rank = 0; rank < plan.places.size(); rank++) {
    group.members.push_back(first + rank);
    add_member(now_ns, index, rank);
  }
  for (uint32_t rank = 0; rank < plan.places.size(); rank++)
    schedule(now_ns + plan.connect_ns[rank], EventKind::kConnect, first + rank);
}

void Hosts::add_member(TimeNs now_ns, uint32_t group, uint32_t rank) {
  const GroupPlan& plan = world_.scenario.groups[group];
  const Place place = plan.places[rank];
  MemberState& state = world_.members.emplace_back();
  Member& member = members_.emplace_back();
  state.group = group;
  state.rank = rank;
  state.place = place;
  state.posts.resize(plan.post_count());
  state.context = contexts_.at({place.card, place.process});
  member.think = emulator::Random(mix(mix(world_.scenario.seed, kThinkStream), group, rank));

  const UserMemory::Shape shape{static_cast<uint32_t>(plan.places.size()), rank, plan.depth,
                                longest_block(plan)};
  state.memory = UserMemory({world_.scenario.seed, group}, shape);
  HostMemory& memory = cluster_->memory();
  const uint32_t send = memory.add(place.card, state.memory.send_bytes());
  const uint32_t receive = memory.add(place.card, state.memory.receive_bytes());
  world_.region_member.resize(receive + 1, kNoMember);
  world_.region_member[send] = world_.region_member[receive] =
      static_cast<uint32_t>(world_.members.size() - 1);
  state.memory.place(send, memory.data(send), receive, memory.data(receive));
  for (uint32_t slot = plan.depth; slot-- > 0;) member.free_slots.push_back(slot);

  peal_status status =
      cluster_->register_memory(place.card, state.context, send, state.memory.send_bytes(),
                                PEAL_ACCESS_READ, &member.send_key);
  if (status == PEAL_STATUS_OK)
    status =
        cluster_->register_memory(place.card, state.context, receive, state.memory.receive_bytes(),
                                  PEAL_ACCESS_READ | PEAL_ACCESS_WRITE, &member.receive_key);
  if (status != PEAL_STATUS_OK) return fail(now_ns, "register memory", status);
  peal_reserve_group request{};
  request.ranks = static_cast<uint32_t>(plan.places.size());
  request.rank = rank;
  status = cluster_->reserve_group(place.card, state.context, request, &member.address);
  if (status != PEAL_STATUS_OK) return fail(now_ns, "reserve group", status);
  state.handle = member.address.member;
}

void Hosts::connect(TimeNs now_ns, uint32_t index) {
  MemberState& state = world_.members[index];
  if (state.dead) return;
  const std::vector<uint32_t>& ranks = world_.groups[state.group].members;
  const auto count = static_cast<uint32_t>(ranks.size());
  peal_connect_group request{};
  request.member = state.handle;
  request.group = world_.groups[state.group].id;
  request.choice_hash = kChoiceHash;
  for (uint32_t distance = 1; distance < count; distance *= 2) {
    request.peers[request.peer_count++] = members_[ranks[(state.rank + distance) % count]].address;
    request.peers[request.peer_count++] =
        members_[ranks[(state.rank + count - distance) % count]].address;
  }
  const peal_status status = cluster_->connect_group(state.place.card, state.context, request);
  if (status != PEAL_STATUS_OK) return fail(now_ns, "connect group", status);
  members_[index].connected = true;
  schedule_post(std::max(now_ns, world_.scenario.groups[state.group].first_post_ns[state.rank]),
                index);
}

// --- operations ---

void Hosts::schedule_post(TimeNs when_ns, uint32_t index) {
  Member& member = members_[index];
  const MemberState& state = world_.members[index];
  const GroupPlan& plan = world_.scenario.groups[state.group];
  if (member.post_scheduled || member.next == state.posts.size() ||
      member.outstanding == plan.depth)
    return;
  member.post_scheduled = true;
  schedule(when_ns + member.think.below(plan.think_ns + 1), EventKind::kPost, index);
}

void Hosts::post(TimeNs now_ns, uint32_t index) {
  Member& member = members_[index];
  MemberState& state = world_.members[index];
  member.post_scheduled = false;
  if (state.dead) return;
  const OperationPlan operation = world_.operation(state, member.next);
  Post& post = state.posts[member.next];
  post.state = PostState::kPosted;
  post.posted_ns = now_ns;
  post.slot = member.free_slots.back();
  member.free_slots.pop_back();
  if (world_.scenario.check) {
    const std::string problem = state.memory.prepare(post.slot, member.next, operation);
    if (!problem.empty())
      world_.findings.add(now_ns, "user-buffers", member_text(state) + ": " + problem);
  }
  peal_submission entry{};
  entry.opcode = operation.opcode;
  entry.algorithm = operation.algorithm;
  entry.flags = operation.in_place ? PEAL_SUBMIT_IN_PLACE : 0;
  entry.member = state.handle;
  entry.sequence = member.next;
  entry.cookie = make_cookie(index, member.next);
  if (operation.opcode == PEAL_OPERATION_ALLGATHER) {
    entry.block_bytes = operation.block_bytes;
    entry.send_offset = operation.in_place ? 0 : state.memory.send_offset(post.slot);
    entry.receive_offset = state.memory.receive_offset(post.slot);
    entry.send_key = operation.in_place ? 0 : member.send_key;
    entry.receive_key = member.receive_key;
  }
  member.next++;
  member.outstanding++;
  progress_ns_ = now_ns;
  cluster_->submit(state.place.card, state.context, entry);
  schedule_post(now_ns + world_.scenario.costs.post_ns, index);
}

void Hosts::on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                          const peal_completion& entry) {
  const uint32_t index = completions_.check(now_ns, card, context, entry);
  if (index == kNoMember) return;
  MemberState& state = world_.members[index];
  Member& member = members_[index];
  const Post& post = state.posts[entry.sequence];
  if (world_.scenario.check) {
    const std::string problem = state.memory.finish(post.slot, entry.status == PEAL_STATUS_OK);
    if (!problem.empty())
      world_.findings.add(
          now_ns, "right-bytes",
          member_text(state) + " sequence " + std::to_string(entry.sequence) + ": " + problem);
  }
  member.free_slots.push_back(post.slot);
  member.outstanding--;
  unfinished_--;
  progress_ns_ = now_ns;
  if (state.finished_below == state.posts.size()) member_finished(now_ns, state);
  schedule_post(now_ns + world_.scenario.costs.completion_ns, index);
}

// When all ranks have destroyed the group, those that waited for it are made.
void Hosts::member_finished(TimeNs now_ns, const MemberState& state) {
  if (state.poisoned) return;
  if (++finished_members_[state.group] < world_.groups[state.group].members.size()) return;
  for (uint32_t i = 0; i < world_.scenario.groups.size(); i++)
    if (world_.scenario.groups[i].after_group == state.group) plan_group(now_ns + kMicrosecond, i);
}

// --- accidents and the end ---

void Hosts::kill_member(uint32_t index) {
  MemberState& state = world_.members[index];
  if (state.dead) return;
  state.dead = true;
  for (const Post& post : state.posts)
    if (post.state != PostState::kCompleted) unfinished_--;
}

void Hosts::unmap(const Place& place) {
  for (uint32_t region = 0; region < world_.region_member.size(); region++) {
    const uint32_t index = world_.region_member[region];
    if (index != kNoMember && world_.members[index].place == place)
      cluster_->memory().make_unreachable(region);
  }
}

void Hosts::accident(TimeNs now_ns, const Accident& accident) {
  progress_ns_ = now_ns;
  if (accident.kind == Accident::Kind::kUnmap) return unmap(accident.place);
  if (accident.kind == Accident::Kind::kFreeze)
    return cluster_->freeze(accident.place.card, now_ns + accident.for_ns);
  const bool whole_card = accident.kind == Accident::Kind::kSilence;
  for (uint32_t i = 0; i < world_.members.size(); i++) {
    const Place& place = world_.members[i].place;
    if (place == accident.place || (whole_card && place.card == accident.place.card))
      kill_member(i);
  }
  if (whole_card) {
    cluster_->silence(accident.place.card);
    return;
  }
  const auto found = contexts_.find({accident.place.card, accident.place.process});
  if (found == contexts_.end() || cluster_->silent(accident.place.card)) return;
  closed_.emplace_back(accident.place.card, found->second);
  cluster_->close_context(accident.place.card, found->second);
  contexts_.erase(found);
}

void Hosts::close_all(TimeNs now_ns) {
  for (uint32_t i = 0; i < world_.members.size(); i++) {
    const MemberState& state = world_.members[i];
    if (state.dead || !world_.scenario.groups[state.group].destroy ||
        state.finished_below < state.posts.size())
      continue;
    for (const uint32_t key : {members_[i].send_key, members_[i].receive_key}) {
      const peal_status status = cluster_->unregister_memory(state.place.card, state.context, key);
      if (status != PEAL_STATUS_OK)
        fail(now_ns, member_text(state) + ": unregister memory after the group's end", status);
    }
  }
  for (MemberState& state : world_.members) state.dead = true;
  for (const auto& [place, context] : contexts_) {
    if (cluster_->silent(place.first)) continue;
    closed_.emplace_back(place.first, context);
    cluster_->close_context(place.first, context);
  }
  contexts_.clear();
}

void Hosts::check_quiet(TimeNs now_ns) {
  for (const auto& [card, context] : closed_)
    if (!cluster_->silent(card) && !cluster_->context_quiet(card, context))
      world_.findings.add(now_ns, "conservation",
                          "card " + std::to_string(card) + ": context " + std::to_string(context) +
                              " is closed but never quiet");
}

}  // namespace peal::sim
