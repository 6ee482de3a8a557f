// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/hosts.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "abi/admin.h"
#include "abi/queue.h"
#include "base/names.h"
#include "emulator/cluster/mix.h"

namespace peal::sim {

namespace {

constexpr uint32_t kKindShift = 28;
constexpr uint64_t kThinkStream = 5;
constexpr uint32_t kChoiceHash = 0x5eed;

// With room for the buffers of every operation.
UserMemory::Shape memory_shape(const GroupPlan& plan, uint32_t rank) {
  UserMemory::Shape shape{static_cast<uint32_t>(plan.places.size()), rank, plan.depth, 0, 0};
  const auto add = [&shape](const OperationPlan& operation) {
    const BufferSizes blocks = buffer_sizes(operation.operation, shape.ranks);
    const uint64_t block = operation.block_bytes;
    shape.send_max = std::max(shape.send_max, block * blocks.send);
    shape.receive_max = std::max(shape.receive_max, block * blocks.receive);
  };
  for (const OperationPlan& operation : plan.operations) add(operation);
  for (const Disagreement& disagreement : plan.disagreements) add(disagreement.operation);
  return shape;
}

// Of the tables of parts that a member may have under way: what its sends and receives need.
uint64_t table_stride(const GroupPlan& plan) {
  const auto parts = [](const OperationPlan& operation) { return has_parts(operation.operation); };
  const auto other = [&](const Disagreement& each) { return parts(each.operation); };
  const bool any = std::any_of(plan.operations.begin(), plan.operations.end(), parts) ||
                   std::any_of(plan.disagreements.begin(), plan.disagreements.end(), other);
  return any ? 2 * plan.places.size() * sizeof(peal_part) : 0;
}

}  // namespace

void Hosts::fail(TimeNs now_ns, const std::string& what, peal_status status) {
  world_.findings.add(now_ns, "set-up", what + ": " + names::status(status));
}

void Hosts::schedule(TimeNs when_ns, EventKind kind, uint32_t index) {
  scheduled_++;
  cluster_->at(when_ns, static_cast<uint32_t>(kind) << kKindShift | index);
}

void Hosts::start(Cluster& cluster) {
  cluster_ = &cluster;
  const Scenario& scenario = world_.scenario;
  finished_members_.resize(scenario.groups.size());
  for (const GroupPlan& group : scenario.groups)
    for (const Place& place : group.places) open_process(0, place);
  for (uint32_t i = 0; i < scenario.accidents.size(); i++)
    schedule(scenario.accidents[i].at_ns, EventKind::kAccident, i);
  granted_.resize(scenario.chores.size());
  for (uint32_t i = 0; i < scenario.chores.size(); i++)
    schedule(scenario.chores[i].at_ns, EventKind::kChore, i);
  for (uint32_t i = 0; i < scenario.groups.size(); i++)
    if (scenario.groups[i].after_group == kNoGroup) plan_group(scenario.groups[i].made_ns, i);
}

void Hosts::open_process(TimeNs now_ns, const Place& place) {
  const auto key = std::pair(place.card, place.process);
  if (living_.contains(key)) return;
  Process process;
  process.place = place;
  process.open = true;
  const peal_status status = cluster_->open_context(place.card, &process.context);
  if (status != PEAL_STATUS_OK) return fail(now_ns, "open context", status);
  living_[key] = static_cast<uint32_t>(processes_.size());
  processes_.push_back(process);
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
    case EventKind::kPoll:
      poll(now_ns, index);
      break;
    case EventKind::kRestart:
      restart(now_ns, world_.scenario.accidents[index]);
      break;
    case EventKind::kClose:
      close_early(now_ns, index);
      break;
    case EventKind::kAbort:
      abort(now_ns, index);
      break;
    case EventKind::kChore:
      do_chore(now_ns, index);
      break;
    case EventKind::kChoreEnd:
      end_chore(now_ns, index);
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
  group.made_ns = now_ns;
  group.all_addresses = talks_to_everybody(plan);
  group.posted.assign(plan.post_count(), 0);
  // Whoever is dead by now has no address to exchange: without it there is no group.
  for (const Place& place : plan.places) {
    if (living_.contains({place.card, place.process}) && !cluster_->silent(place.card)) continue;
    unfinished_ -= plan.places.size() * plan.post_count();
    return;
  }
  for (const Accident& accident : world_.scenario.accidents)
    if (accident.kind == Accident::Kind::kRestart && now_ns > accident.at_ns + accident.for_ns &&
        std::any_of(plan.places.begin(), plan.places.end(),
                    [&](const Place& place) { return place.card == accident.place.card; }))
      world_.happened["group after a restart"]++;
  if (plan.after_group != kNoGroup) world_.happened["a group in the place of another"]++;
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
  member.process = living_.at({place.card, place.process});
  processes_[member.process].members_to_go++;
  state.context = processes_[member.process].context;
  member.think = emulator::Random(mix(mix(world_.scenario.seed, kThinkStream), group, rank));

  state.memory = UserMemory({world_.scenario.seed, group}, memory_shape(plan, rank));
  HostMemory& memory = cluster_->memory();
  // (What is lent is copied from one rank's to another's, which must not be the same.)
  const bool own = world_.scenario.check || world_.scenario.lends;
  const auto add = own ? &HostMemory::add_buffer : &HostMemory::add_unseen;
  const uint32_t send = (memory.*add)(place.card, state.memory.send_bytes());
  const uint32_t receive = (memory.*add)(place.card, state.memory.receive_bytes());
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
  member.parts_stride = table_stride(plan);
  if (status == PEAL_STATUS_OK && member.parts_stride > 0) {
    const uint64_t bytes = member.parts_stride * plan.depth;
    member.parts_region = memory.add(place.card, bytes);
    world_.region_member.resize(member.parts_region + 1, kNoMember);
    world_.region_member[member.parts_region] = world_.region_member[receive];
    state.memory.place_tables(member.parts_region, member.parts_stride);
    status = cluster_->register_memory(place.card, state.context, member.parts_region, bytes,
                                       PEAL_ACCESS_READ, &member.parts_key);
  }
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
  const GroupPlan& plan = world_.scenario.groups[state.group];
  const auto abandon = std::find_if(
      plan.abandons.begin(), plan.abandons.end(),
      [&state](const Abandon& each) { return each.rank == state.rank && each.posts == 0; });
  if (abandon != plan.abandons.end() && !abandon->connected) return give_up(now_ns, index);
  const std::vector<uint32_t>& ranks = world_.groups[state.group].members;
  const auto count = static_cast<uint32_t>(ranks.size());
  peal_connect_group request{};
  request.member = state.handle;
  request.group = world_.groups[state.group].id;
  request.choice_hash = kChoiceHash;
  peal_add_peers more{};
  more.member = state.handle;
  const auto name_peer = [&](uint32_t rank) {
    const peal_peer_address& address = members_[ranks[rank % count]].address;
    if (request.peer_count < PEAL_PEERS_PER_COMMAND) {
      request.peers[request.peer_count] = address;
    } else {
      more.peers[more.peer_count++] = address;
    }
    request.peer_count++;
  };
  for (uint32_t distance = 1; distance < count; distance *= 2) {
    name_peer(state.rank + distance);
    name_peer(state.rank + count - distance);
  }
  peal_status status = PEAL_STATUS_OK;
  if (more.peer_count > 0) status = cluster_->add_peers(state.place.card, state.context, more);
  if (status == PEAL_STATUS_OK && world_.groups[state.group].all_addresses)
    status = add_table(state, &request.addresses_key);
  members_[index].table_key = request.addresses_key;
  if (status == PEAL_STATUS_OK)
    status = cluster_->connect_group(state.place.card, state.context, request);
  if (status != PEAL_STATUS_OK) return fail(now_ns, "connect group", status);
  members_[index].connected = true;
  if (abandon != plan.abandons.end()) return give_up(now_ns, index);
  if (plan.first_sequence != 0)
    cluster_->start_at_sequence(state.place.card, state.handle, plan.first_sequence);
  schedule_post(std::max(now_ns, plan.first_post_ns[state.rank]), index);
}

// All ranks' addresses, in memory that the card may read.
peal_status Hosts::add_table(const MemberState& state, uint32_t* key) {
  const std::vector<uint32_t>& ranks = world_.groups[state.group].members;
  const size_t bytes = ranks.size() * sizeof(peal_peer_address);
  HostMemory& memory = cluster_->memory();
  const uint32_t region = memory.add(state.place.card, bytes);
  uint8_t* at = memory.data(region);
  for (const uint32_t rank : ranks) {
    std::memcpy(at, &members_[rank].address, sizeof(peal_peer_address));
    at += sizeof(peal_peer_address);
  }
  return cluster_->register_memory(state.place.card, state.context, region, bytes, PEAL_ACCESS_READ,
                                   key);
}

void Hosts::give_up(TimeNs now_ns, uint32_t index) {
  MemberState& state = world_.members[index];
  kill_member(index);
  state.gave_up = true;
  processes_[members_[index].process].members_to_go--;
  progress_ns_ = now_ns;
  world_.happened[members_[index].connected ? "abandon, connected" : "abandon, reserved"]++;
  const peal_status status = cluster_->abandon_group(state.place.card, state.context, state.handle);
  if (status != PEAL_STATUS_OK) fail(now_ns, "abandon group", status);
}

void Hosts::plan_abort(TimeNs now_ns, uint32_t index) {
  const MemberState& state = world_.members[index];
  for (const Abandon& abandon : world_.scenario.groups[state.group].abandons)
    if (abandon.rank == state.rank && abandon.posts == members_[index].next)
      schedule(now_ns + abandon.after_ns, EventKind::kAbort, index);
}

// The member leaves while the group runs. What it has posted still completes.
void Hosts::abort(TimeNs now_ns, uint32_t index) {
  MemberState& state = world_.members[index];
  Member& member = members_[index];
  const auto count = static_cast<uint32_t>(state.posts.size());
  // One that has posted its destroy leaves in order.
  if (state.dead || member.next == count || cluster_->silent(state.place.card)) return;
  state.aborted = true;
  unfinished_ -= count - member.next;
  member.next = count;
  state.pass_over();
  if (member.outstanding == 0) processes_[member.process].members_to_go--;
  progress_ns_ = now_ns;
  world_.happened[state.poisoned ? "abort of the dead" : "abort"]++;
  const peal_status status = cluster_->abandon_group(state.place.card, state.context, state.handle);
  if (status != PEAL_STATUS_OK) fail(now_ns, "abort group", status);
}

// --- chores: administration while operations run ---

uint32_t Hosts::open_process_at(const Place& place) const {
  const auto found = living_.find({place.card, place.process});
  if (found == living_.end() || cluster_->silent(place.card)) return kNoMember;
  return processes_[found->second].open ? found->second : kNoMember;
}

void Hosts::do_chore(TimeNs now_ns, uint32_t index) {
  const Chore& chore = world_.scenario.chores[index];
  const uint32_t number = open_process_at(chore.place);
  if (number == kNoMember) return;
  const uint32_t card = chore.place.card;
  const uint32_t context = processes_[number].context;
  Granted granted{number, 0};
  peal_status status = PEAL_STATUS_OK;
  switch (chore.kind) {
    case Chore::Kind::kRegister: {
      const uint64_t bytes = 1 + chore.choice % 20'000;
      const uint32_t region = cluster_->memory().add(card, bytes);
      status =
          cluster_->register_memory(card, context, region, bytes, PEAL_ACCESS_READ, &granted.name);
      break;
    }
    case Chore::Kind::kReserve: {
      peal_reserve_group request{};
      request.ranks = 1 + chore.choice % cluster_->device(card).ranks_max;
      request.rank = chore.choice % request.ranks;
      peal_peer_address address{};
      status = cluster_->reserve_group(card, context, request, &address);
      granted.name = address.member;
      break;
    }
    case Chore::Kind::kRefused:
      status = cluster_->ask_nonsense(card, context, chore.choice);
      if (status == PEAL_STATUS_OK)
        world_.findings.add(now_ns, "isolation",
                            "nonsense " + std::to_string(chore.choice) + " was not refused");
      world_.happened["a command refused"]++;
      return;
  }
  if (status == PEAL_STATUS_NO_RESOURCES) return;
  if (status != PEAL_STATUS_OK) return fail(now_ns, "chore", status);
  granted_[index] = granted;
  schedule(now_ns + chore.for_ns, EventKind::kChoreEnd, index);
}

void Hosts::end_chore(TimeNs now_ns, uint32_t index) {
  const Chore& chore = world_.scenario.chores[index];
  const Granted granted = granted_[index];
  if (open_process_at(chore.place) != granted.process) return;
  const uint32_t card = chore.place.card;
  const uint32_t context = processes_[granted.process].context;
  const bool memory = chore.kind == Chore::Kind::kRegister;
  const peal_status status = memory ? cluster_->unregister_memory(card, context, granted.name)
                                    : cluster_->abandon_group(card, context, granted.name);
  if (status != PEAL_STATUS_OK) return fail(now_ns, "end of a chore", status);
  if (unfinished_ > 0)
    world_.happened[memory ? "memory in mid-run" : "a place reserved and given back"]++;
}

// --- operations ---

void Hosts::schedule_post(TimeNs when_ns, uint32_t index) {
  Member& member = members_[index];
  const MemberState& state = world_.members[index];
  const GroupPlan& plan = world_.scenario.groups[state.group];
  const uint32_t depth = member.next <= plan.prompt ? 1 : plan.depth;
  if (member.post_scheduled || member.next == state.posts.size() || member.outstanding >= depth)
    return;
  member.post_scheduled = true;
  when_ns = std::max(when_ns, member.computes_until_ns);
  if (member.next >= plan.prompt) when_ns += member.think.below(plan.think_ns + 1);
  schedule(when_ns, EventKind::kPost, index);
}

void Hosts::post(TimeNs now_ns, uint32_t index) {
  Member& member = members_[index];
  MemberState& state = world_.members[index];
  member.post_scheduled = false;
  if (state.dead || member.next == state.posts.size() || member.free_slots.empty()) return;
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
  entry.operation = operation.operation;
  entry.algorithm = operation.algorithm;
  entry.flags = operation.in_place ? PEAL_SUBMIT_IN_PLACE : 0;
  entry.member = state.handle;
  entry.sequence = world_.scenario.groups[state.group].first_sequence + member.next;
  entry.cookie = make_cookie(index, member.next);
  entry.root = operation.root;
  if (has_parts(operation.operation)) {
    name_parts(index, post.slot, operation, &entry);
  } else {
    name_buffers(index, post.slot, operation, &entry);
  }
  world_.groups[state.group].posted[member.next]++;
  member.next++;
  member.outstanding++;
  progress_ns_ = now_ns;
  if (!cluster_->submit(state.place.card, state.context, entry))
    world_.findings.add(now_ns, "set-up", member_text(state) + ": its submission ring is full");
  plan_abort(now_ns, index);
  member.computes_until_ns = now_ns + world_.scenario.groups[state.group].work_ns;
  schedule_post(now_ns + world_.scenario.costs.post_ns, index);
}

void Hosts::name_buffers(uint32_t index, uint32_t slot, const OperationPlan& operation,
                         peal_submission* entry) const {
  const MemberState& state = world_.members[index];
  const auto ranks = static_cast<uint32_t>(world_.groups[state.group].members.size());
  const Blocks blocks(operation, ranks, state.rank);
  if (blocks.any()) entry->block_bytes = operation.block_bytes;
  // A buffer that the operation does not use has no key.
  if (blocks.sent() > 0 && !operation.in_place) {
    entry->send_offset = state.memory.send_offset(slot);
    entry->send_key = members_[index].send_key;
  }
  if (blocks.received() > 0) {
    entry->receive_offset = state.memory.receive_offset(slot);
    entry->receive_key = members_[index].receive_key;
  }
}

// Where the parts lie, in a table that the card reads.
void Hosts::name_parts(uint32_t index, uint32_t slot, const OperationPlan& operation,
                       peal_submission* entry) const {
  const MemberState& state = world_.members[index];
  const Member& member = members_[index];
  const auto ranks = static_cast<uint32_t>(world_.groups[state.group].members.size());
  const Blocks blocks(operation, ranks, state.rank);
  std::vector<peal_part> parts;
  const auto add = [&parts](uint64_t buffer, const Extent& extent) {
    parts.push_back({buffer + extent.offset, extent.bytes});
  };
  if (has_block_for_each(operation.operation) && !operation.in_place)
    for (uint32_t i = 0; i < blocks.sent(); i++)
      add(state.memory.send_offset(slot), blocks.sent_extent(i));
  for (uint32_t i = 0; i < blocks.received(); i++)
    add(state.memory.receive_offset(slot), blocks.received_extent(i));
  const uint64_t table = slot * member.parts_stride;
  std::memcpy(cluster_->memory().data(member.parts_region) + table, parts.data(),
              parts.size() * sizeof(peal_part));
  entry->parts_offset = table;
  entry->parts_key = member.parts_key;
  entry->receive_key = member.receive_key;
  if (operation.in_place) return;
  entry->send_key = member.send_key;
  if (operation.operation == PEAL_OPERATION_ALLGATHERV)
    entry->send_offset = state.memory.send_offset(slot);
}

// The table is the host's again.
void Hosts::spoil_parts(uint32_t index, uint32_t slot) const {
  const Member& member = members_[index];
  if (member.parts_stride == 0) return;
  std::memset(cluster_->memory().data(member.parts_region) + slot * member.parts_stride, 0xa5,
              member.parts_stride);
}

void Hosts::on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                          const peal_completion& entry) {
  const uint32_t index = completions_.check(now_ns, card, context, entry);
  if (index == kNoMember) return;
  MemberState& state = world_.members[index];
  const uint64_t sequence = entry.cookie & 0xffffffffu;
  if (world_.scenario.check) {
    const std::string problem =
        state.memory.finish(state.posts[sequence].slot, entry.status == PEAL_STATUS_OK);
    if (!problem.empty())
      world_.findings.add(
          now_ns, "right-bytes",
          member_text(state) + " sequence " + std::to_string(sequence) + ": " + problem);
  }
  spoil_parts(index, state.posts[sequence].slot);
  unfinished_--;
  progress_ns_ = now_ns;
  const uint32_t number = members_[index].process;
  Process& process = processes_[number];
  process.written.push_back({now_ns + world_.scenario.costs.completion_ns, entry});
  if (state.finished_below == state.posts.size()) member_finished(now_ns, state);
  schedule_poll(number);
}

void Hosts::schedule_poll(uint32_t number) {
  Process& process = processes_[number];
  if (process.poll_scheduled || process.seen == process.written.size()) return;
  process.poll_scheduled = true;
  schedule(process.written[process.seen].visible_ns, EventKind::kPoll, number);
}

// The host looks at its ring, and goes on with what it finds.
void Hosts::poll(TimeNs now_ns, uint32_t number) {
  Process& process = processes_[number];
  process.poll_scheduled = false;
  if (!process.open) return;
  // A card's processor may be ahead of the clock: what it writes then is not to be seen yet.
  while (process.seen < process.written.size() &&
         process.written[process.seen].visible_ns <= now_ns) {
    peal_completion entry;
    if (!cluster_->poll(process.place.card, process.context, &entry)) {
      world_.findings.add(now_ns, "exactly-once", "a completion is not in its ring");
      return;
    }
    take_completion(now_ns, process, entry);
  }
  if (process.seen == process.written.size()) {
    process.seen = 0;
    process.written.clear();
    peal_completion none;  // by this look the card hears that all was read
    if (process.open && cluster_->poll(process.place.card, process.context, &none)) {
      world_.findings.add(now_ns, "exactly-once", "a completion that nobody wrote is in its ring");
    }
  }
  schedule_poll(number);
  if (process.members_to_go > 0) return;
  for (const EarlyClose& close : world_.scenario.early_closes)
    if (close.place == process.place) schedule(now_ns + close.after_ns, EventKind::kClose, number);
}

void Hosts::take_completion(TimeNs now_ns, Process& process, const peal_completion& entry) {
  const peal_completion& written = process.written[process.seen++].entry;
  if (std::memcmp(&entry, &written, offsetof(peal_completion, phase)) != 0) {
    world_.findings.add(now_ns, "exactly-once", "the ring delivers what the card did not write");
    return;
  }
  const auto index = static_cast<uint32_t>(entry.cookie >> 32);
  Member& member = members_[index];
  const MemberState& state = world_.members[index];
  if (state.dead) return;
  member.free_slots.push_back(state.posts[entry.cookie & 0xffffffffu].slot);
  member.outstanding--;
  if (member.next == state.posts.size() && member.outstanding == 0) process.members_to_go--;
  schedule_post(now_ns, index);
}

// When all ranks have destroyed the group, those that waited for it are made.
void Hosts::member_finished(TimeNs now_ns, const MemberState& state) {
  if (state.poisoned || state.aborted) return;
  if (++finished_members_[state.group] < world_.groups[state.group].members.size()) return;
  for (uint32_t i = 0; i < world_.scenario.groups.size(); i++)
    if (world_.scenario.groups[i].after_group == state.group) plan_group(now_ns + kMicrosecond, i);
}

// --- accidents and the end ---

void Hosts::kill_member(uint32_t index) {
  MemberState& state = world_.members[index];
  if (state.dead) return;
  state.dead = true;
  for (uint64_t sequence = 0; sequence < state.posts.size(); sequence++)
    if (!state.is_over(sequence)) unfinished_--;
}

// (Its buffers: tables of parts stay.)
void Hosts::unmap(const Place& place) {
  for (uint32_t region = 0; region < world_.region_member.size(); region++) {
    const uint32_t index = world_.region_member[region];
    if (index == kNoMember || world_.members[index].place != place) continue;
    if (world_.members[index].memory.owns(region)) cluster_->memory().make_unreachable(region);
  }
}

// Whether a member there has something to do, or will have when its group is made.
bool Hosts::meets_work(const Place& place, bool whole_card) const {
  return std::any_of(world_.members.begin(), world_.members.end(), [&](const MemberState& member) {
    return !member.dead && member.finished_below < member.posts.size() &&
           (whole_card ? member.place.card == place.card : member.place == place);
  });
}

bool Hosts::meets_set_up(const Place& place) const {
  for (uint32_t i = 0; i < world_.members.size(); i++)
    if (!world_.members[i].dead && world_.members[i].place == place && !members_[i].connected)
      return true;
  return false;
}

void Hosts::note(const Accident& accident) {
  const bool whole_card = accident.kind == Accident::Kind::kSilence ||
                          accident.kind == Accident::Kind::kRestart ||
                          accident.kind == Accident::Kind::kFreeze;
  if (!meets_work(accident.place, whole_card)) return;
  world_.happened[accident_name(accident.kind)]++;
  if (accident.kind == Accident::Kind::kKill && meets_set_up(accident.place))
    world_.happened["death in set-up"]++;
}

void Hosts::accident(TimeNs now_ns, const Accident& accident) {
  progress_ns_ = now_ns;
  const Place& place = accident.place;
  note(accident);
  switch (accident.kind) {
    case Accident::Kind::kUnmap:
      return unmap(place);
    case Accident::Kind::kFreeze:
      return cluster_->freeze(place.card, now_ns + accident.for_ns);
    case Accident::Kind::kKill:
    case Accident::Kind::kReset:
    case Accident::Kind::kWild:
      return end_process(now_ns, place, accident.kind);
    case Accident::Kind::kSilence:
    case Accident::Kind::kRestart:
      break;
  }
  end_card(place.card);
  cluster_->silence(place.card);
  if (accident.kind == Accident::Kind::kRestart)
    schedule(now_ns + accident.for_ns, EventKind::kRestart,
             static_cast<uint32_t>(&accident - world_.scenario.accidents.data()));
}

void Hosts::end_card(uint32_t card) {
  for (uint32_t i = 0; i < world_.members.size(); i++)
    if (world_.members[i].place.card == card) kill_member(i);
  for (Process& process : processes_)
    if (process.place.card == card) process.open = false;
}

// The card comes back, and so do its processes, which have nothing to do with the former ones.
void Hosts::restart(TimeNs now_ns, const Accident& accident) {
  progress_ns_ = now_ns;
  const uint32_t card = accident.place.card;
  end_card(card);  // it may have come back before, from another accident
  std::erase_if(closed_, [card](const auto& closed) { return closed.first == card; });
  std::vector<Place> places;
  for (const auto& [key, process] : living_)
    if (key.first == card) places.push_back({key.first, key.second});
  for (const Place& place : places) living_.erase({place.card, place.process});
  cluster_->restart(card);
  for (const Place& place : places) open_process(now_ns, place);
}

void Hosts::end_process(TimeNs now_ns, const Place& place, Accident::Kind how) {
  const auto found = living_.find({place.card, place.process});
  if (found == living_.end() || cluster_->silent(place.card)) return;
  Process& process = processes_[found->second];
  for (uint32_t i = 0; i < world_.members.size(); i++) {
    if (members_[i].process != found->second) continue;
    kill_member(i);
    world_.members[i].closed = how == Accident::Kind::kKill;  // the others when the card looks
  }
  progress_ns_ = now_ns;
  process.open = false;
  closed_.emplace_back(place.card, process.context);
  if (how == Accident::Kind::kReset) {
    cluster_->reset_window(place.card, process.context);
  } else if (how == Accident::Kind::kWild) {
    cluster_->spoil_window(place.card, process.context);
  } else {
    cluster_->close_context(place.card, process.context);
  }
  living_.erase(found);
}

void Hosts::close_early(TimeNs now_ns, uint32_t number) {
  const Process& process = processes_[number];
  if (!process.open || process.members_to_go != 0) return;
  if (unfinished_ > 0) world_.happened["early close"]++;
  end_process(now_ns, process.place, Accident::Kind::kKill);
}

void Hosts::close_all(TimeNs now_ns) {
  for (uint32_t i = 0; i < world_.members.size(); i++) {
    const MemberState& state = world_.members[i];
    if (state.dead || state.aborted || !world_.scenario.groups[state.group].destroy ||
        state.finished_below < state.posts.size())
      continue;
    for (const uint32_t key : {members_[i].send_key, members_[i].receive_key, members_[i].table_key,
                               members_[i].parts_key}) {
      if (key == 0) continue;
      const peal_status status = cluster_->unregister_memory(state.place.card, state.context, key);
      if (status != PEAL_STATUS_OK)
        fail(now_ns, member_text(state) + ": unregister memory after the group's end", status);
    }
  }
  for (MemberState& state : world_.members) state.dead = true;
  for (const auto& [place, number] : living_) {
    if (cluster_->silent(place.first)) continue;
    closed_.emplace_back(place.first, processes_[number].context);
    processes_[number].open = false;
    cluster_->close_context(place.first, processes_[number].context);
  }
  living_.clear();
}

void Hosts::check_quiet(TimeNs now_ns) {
  for (const auto& [card, context] : closed_)
    if (!cluster_->silent(card) && !cluster_->context_quiet(card, context))
      world_.findings.add(now_ns, "conservation",
                          "card " + std::to_string(card) + ": context " + std::to_string(context) +
                              " is closed but never quiet");
  for (uint32_t card = 0; card < cluster_->card_count(); card++)
    if (!cluster_->silent(card) && cluster_->regions_held(card) != 0)
      world_.findings.add(now_ns, "conservation",
                          "card " + std::to_string(card) + " keeps " +
                              std::to_string(cluster_->regions_held(card)) +
                              " regions of memory when all its contexts are closed");
}

}  // namespace peal::sim
