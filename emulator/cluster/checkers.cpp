// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/checkers.h"

#include <algorithm>

#include "abi/status.h"
#include "base/names.h"
#include "emulator/common/packet_text.h"

namespace peal::sim {

// --- wire ---

void WireChecker::wrong(TimeNs now_ns, const peal_wire_header& header, const std::string& text) {
  world_.findings.add(now_ns, "wire", text + ": " + emulator::packet_text(header));
}

void WireChecker::on_send(TimeNs now_ns, const FrameView& frame) {
  const peal_wire_header& header = *frame.header;
  if (header.type == 0 || header.type >= PEAL_PACKET_TYPE_COUNT)
    return wrong(now_ns, header, "unknown type");
  sent_[header.type]++;
  const bool repair = (header.flags & PEAL_PACKET_REPAIR) != 0;
  if (repair) repairs_++;
  if (header.operation == PEAL_OPERATION_RECYCLE && header.type == PEAL_PACKET_SIGNAL && !repair)
    recycle_signals_++;
  if (header.operation == PEAL_OPERATION_BROADCAST && header.type == PEAL_PACKET_SIGNAL)
    world_.happened["credit"]++;
  if (header.version != PEAL_WIRE_VERSION || header.ethertype != __builtin_bswap16(PEAL_ETHERTYPE))
    wrong(now_ns, header, "not a frame of this version");
  if (emulator::card_of_mac(header.source) != frame.from_card)
    wrong(now_ns, header, "source address is not the sender's");
  if (header.group == 0 || header.group > world_.groups.size())
    return wrong(now_ns, header, "unknown group");
  const GroupState& group = world_.groups[header.group - 1];
  if (header.sender >= group.members.size()) return wrong(now_ns, header, "sender is no rank");
  const MemberState& sender = world_.members[group.members[header.sender]];
  if (sender.place.card != frame.from_card) wrong(now_ns, header, "sender lives on another card");
  if (!is_home(header.group - 1, frame.to_card)) wrong(now_ns, header, "goes to no member's card");
  if (!repair && header.type != PEAL_PACKET_NACK && header.operation != PEAL_OPERATION_RECYCLE &&
      (header.type == PEAL_PACKET_DATA || header.type == PEAL_PACKET_SIGNAL))
    check_running_ahead(now_ns, group, header);
}

bool WireChecker::is_home(uint32_t group, uint32_t card) {
  if (homes_.size() < world_.groups.size()) homes_.resize(world_.groups.size());
  std::vector<bool>& homes = homes_[group];
  if (homes.empty()) {
    homes.resize(world_.scenario.cards);
    for (const uint32_t index : world_.groups[group].members) {
      homes.at(world_.members[index].place.card) = true;
    }
  }
  return card < homes.size() && homes[card];
}

// A packet of operation s says that its sender runs s; then everybody must have finished s - K.
void WireChecker::check_running_ahead(TimeNs now_ns, const GroupState& group,
                                      const peal_wire_header& header) {
  if (finished_below_.size() < world_.groups.size()) finished_below_.resize(world_.groups.size());
  uint64_t& known = finished_below_[header.group - 1];
  // From the group's first operation on, over the wire's 32 bits.
  const uint32_t first =
      static_cast<uint32_t>(world_.scenario.groups[header.group - 1].first_sequence);
  const uint64_t operation = header.sequence - first;
  if (operation < known + world_.channels) return;
  known = ~0ull;
  uint32_t slowest = 0;
  for (const uint32_t index : group.members) {
    const MemberState& member = world_.members[index];
    if (member.finished_below >= known) continue;
    known = member.finished_below;
    slowest = member.rank;
  }
  if (operation < known + world_.channels) return;
  world_.findings.add(now_ns, "running-ahead",
                      "rank " + std::to_string(slowest) + " has not finished operation " +
                          std::to_string(known) + ": " + emulator::packet_text(header));
}

// --- memory ---

void MemoryChecker::on_dma(TimeNs now_ns, const DmaView& dma) {
  if (!dma.held) return world_.findings.add(now_ns, unheld_check(dma), unheld_text(dma));
  if (dma.region >= world_.region_member.size()) return;
  const uint32_t index = world_.region_member[dma.region];
  if (index == kNoMember) return;
  const MemberState& member = world_.members[index];
  if (member.dead) {
    // A closing context lets go of its DMA in its own time, but starts none. (What an engine of few
    // places refused is offered again: it was started before.)
    if (member.closed && !dma.finished && world_.scenario.dma_per_card == ~0u)
      world_.findings.add(now_ns, "dead-memory",
                          member_text(member) + ": a DMA starts after its process is gone");
    return;
  }
  const std::string problem =
      member.memory.check_access(dma.region, dma.offset, dma.bytes, dma.write);
  if (!problem.empty())
    world_.findings.add(now_ns, "user-buffers", member_text(member) + ": " + problem);
}

// --- completions ---

namespace {

// For findings: made only where there is one, because every completion comes by.
std::string post_text(const MemberState& member, uint64_t sequence) {
  return member_text(member) + " sequence " + std::to_string(sequence);
}

// Whether the wire parts the rank from one of those that watch it: the ranks 2^k away, or all.
template <typename Parts>
bool parted_from_a_peer(const GroupPlan& plan, uint32_t rank, Parts parts) {
  const auto ranks = static_cast<uint32_t>(plan.places.size());
  if (talks_to_everybody(plan))
    return std::any_of(plan.places.begin(), plan.places.end(), [&](const Place& other) {
      return parts(plan.places[rank].card, other.card);
    });
  for (uint32_t distance = 1; distance < ranks; distance *= 2)
    for (const uint32_t peer : {(rank + distance) % ranks, (rank + ranks - distance) % ranks})
      if (parts(plan.places[rank].card, plan.places[peer].card)) return true;
  return false;
}

}  // namespace

bool may_be_dead(const World& world, uint32_t group, uint32_t rank, TimeNs now_ns) {
  const GroupPlan& plan = world.scenario.groups[group];
  if (rank >= plan.places.size()) return false;
  const Place& place = plan.places[rank];
  // Silence begins with the last frame that came through, so an outage may be a little shorter than
  // the time-out.
  const TimeNs dead_ns = world.scenario.timeouts.dead_ns;
  const TimeNs enough_ns =
      dead_ns - std::min(dead_ns, 4 * world.scenario.timeouts.probe_interval_ns);
  for (const Accident& accident : world.scenario.accidents) {
    if (accident.at_ns > now_ns || accident.place.card != place.card) continue;
    switch (accident.kind) {
      case Accident::Kind::kSilence:
        return true;
      case Accident::Kind::kRestart:
        if (world.groups[group].made_ns <= accident.at_ns + accident.for_ns) return true;
        break;
      case Accident::Kind::kKill:
      case Accident::Kind::kReset:
      case Accident::Kind::kWild:
        if (accident.place == place) return true;
        break;
      case Accident::Kind::kFreeze:
        if (accident.for_ns >= enough_ns) return true;
        break;
      case Accident::Kind::kUnmap:
        break;
    }
  }
  const std::vector<uint32_t>& ranks = world.groups[group].members;
  if (!ranks.empty()) {
    const MemberState& member = world.members[ranks[rank]];
    if (member.gave_up || member.aborted) return true;
  }
  for (const emulator::Partition& partition : world.scenario.faults.partitions) {
    if (partition.from_ns > now_ns || partition.until_ns - partition.from_ns < enough_ns) continue;
    const auto inside = [&partition](uint32_t card) {
      return card >= partition.first_card && card <= partition.last_card;
    };
    if (parted_from_a_peer(plan, rank,
                           [&](uint32_t a, uint32_t b) { return inside(a) != inside(b); }))
      return true;
  }
  for (const WireCut& cut : world.scenario.cuts) {
    if (cut.from_ns > now_ns || cut.until_ns - cut.from_ns < enough_ns) continue;
    if (parted_from_a_peer(plan, rank, [&](uint32_t a, uint32_t b) {
          return (a == cut.from_card && b == cut.to_card) ||
                 (b == cut.from_card && a == cut.to_card);
        }))
      return true;
  }
  return false;
}

bool may_be_unmapped(const World& world, uint32_t group, uint32_t rank, TimeNs now_ns) {
  const GroupPlan& plan = world.scenario.groups[group];
  if (rank >= plan.places.size()) return false;
  for (const Accident& accident : world.scenario.accidents)
    if (accident.kind == Accident::Kind::kUnmap && accident.at_ns <= now_ns &&
        accident.place == plan.places[rank])
      return true;
  return false;
}

uint32_t CompletionChecker::check(TimeNs now_ns, uint32_t card, uint32_t context,
                                  const peal_completion& entry) {
  const auto index = static_cast<uint32_t>(entry.cookie >> 32);
  const auto sequence = entry.cookie & 0xffffffffu;
  if (index >= world_.members.size() || sequence >= world_.members[index].posts.size()) {
    world_.findings.add(
        now_ns, "exactly-once",
        "completion with a cookie that nobody posted: " + std::to_string(entry.cookie));
    return kNoMember;
  }
  MemberState& member = world_.members[index];
  Post& post = member.posts[sequence];
  const auto who = [&] { return post_text(member, sequence); };
  if (post.state != PostState::kPosted) {
    world_.findings.add(
        now_ns, "exactly-once",
        who() + (post.state == PostState::kCompleted ? ": completed twice"
                                                     : ": completed, never posted"));
    return kNoMember;
  }
  // A host that spoils its window is gone for the card when the card has looked.
  if (member.dead && !member.closed && member.place.card == card) return kNoMember;
  if (member.place.card != card || member.context != context || member.dead) {
    world_.findings.add(now_ns, "exactly-once",
                        who() + ": completed to the wrong or to a dead process");
    return kNoMember;
  }
  if (entry.member != member.handle ||
      entry.sequence != world_.scenario.groups[member.group].first_sequence + sequence ||
      entry.operation != world_.operation(member, sequence).operation)
    world_.findings.add(now_ns, "exactly-once", who() + ": completion differs from its post");
  check_status(now_ns, member, sequence, entry);
  post.state = PostState::kCompleted;
  post.status = entry.status;
  post.completed_ns = now_ns;
  member.pass_over();
  return index;
}

namespace {

// In place or not is each rank's own choice.
bool agree(OperationPlan a, const OperationPlan& b) {
  a.in_place = b.in_place;
  return a == b;
}

// Where blocks have lengths of their own a rank sees what others send to it, and nothing else.
bool sees_disagreement(const World& world, const MemberState& member, uint64_t index) {
  const OperationPlan own = world.operation(member, index);
  if (!has_parts(own.operation) || !world.disagreed(member.group, index))
    return world.disagreed(member.group, index);
  const auto& ranks = world.groups[member.group].members;
  const bool to_each = has_block_for_each(own.operation);
  return std::any_of(ranks.begin(), ranks.end(), [&](uint32_t other) {
    const MemberState& sender = world.members[other];
    const OperationPlan theirs = world.operation(sender, index);
    const BlockName name = {sender.rank, to_each ? member.rank : 0};
    return theirs.operation != own.operation || theirs.algorithm != own.algorithm ||
           block_length(theirs, name) != block_length(own, name);
  });
}

}  // namespace

void CompletionChecker::check_success(TimeNs now_ns, const MemberState& member, uint64_t index,
                                      const peal_completion& entry) {
  const auto who = [&] { return post_text(member, index); };
  const GroupState& group = world_.groups[member.group];
  const OperationPlan own = world_.operation(member, index);
  const auto ranks = static_cast<uint32_t>(group.members.size());
  const bool needs_all = Blocks(own, ranks, member.rank).waits_for_all();
  const MemberState& root = world_.members[group.members[own.root]];
  if (needs_all && group.posted[index] < ranks)
    world_.findings.add(now_ns, "barrier",
                        who() + ": succeeded when " + std::to_string(group.posted[index]) + " of " +
                            std::to_string(ranks) + " ranks had posted it");
  if (!needs_all && root.posts[index].state == PostState::kNotPosted)
    world_.findings.add(now_ns, "barrier", who() + ": succeeded before the root had posted it");
  // Who needs nobody but the root may not hear of the others.
  const bool disagrees = needs_all ? sees_disagreement(world_, member, index)
                                   : !agree(own, world_.operation(root, index));
  if (disagrees)
    world_.findings.add(now_ns, "status", who() + ": succeeded although the ranks disagree");
  if (member.poisoned)
    world_.findings.add(now_ns, "status", who() + ": succeeded after a death was told");
  if (entry.failed_rank != PEAL_NO_RANK)
    world_.findings.add(now_ns, "status", who() + ": succeeded and names a failed rank");
}

void CompletionChecker::check_status(TimeNs now_ns, MemberState& member, uint64_t index,
                                     const peal_completion& entry) {
  if (entry.status == PEAL_STATUS_OK) return check_success(now_ns, member, index, entry);
  const auto who = [&] { return post_text(member, index); };
  // The card may not have seen the entry before the member was gone.
  if (member.aborted && entry.status == PEAL_STATUS_BAD_GROUP) return;
  switch (entry.status) {
    case PEAL_STATUS_MISMATCH:
      if (!world_.disagreed(member.group, index))
        world_.findings.add(now_ns, "status", who() + ": MISMATCH although all ranks agree");
      // Which of them it names depends on whose packet came first.
      if (entry.failed_rank >= world_.groups[member.group].members.size())
        world_.findings.add(now_ns, "status",
                            who() + ": MISMATCH with rank " + std::to_string(entry.failed_rank) +
                                ", which the group does not have");
      return;
    case PEAL_STATUS_PEER_DEAD:
      member.poisoned = true;
      if (!may_be_dead(world_, member.group, entry.failed_rank, now_ns))
        world_.findings.add(now_ns, "status",
                            who() + ": says that rank " + std::to_string(entry.failed_rank) +
                                " is dead, which it is not");
      return;
    case PEAL_STATUS_DMA_FAULT:
      if (!may_be_unmapped(world_, member.group, entry.failed_rank, now_ns))
        world_.findings.add(now_ns, "status",
                            who() + ": says that the memory of rank " +
                                std::to_string(entry.failed_rank) +
                                " cannot be reached, which it can");
      return;
    default:
      world_.findings.add(now_ns, "status",
                          who() + ": unexpected status " + names::status(entry.status));
  }
}

// --- at the end ---

void check_progress(World& world, TimeNs now_ns) {
  for (const MemberState& member : world.members) {
    if (member.dead || member.finished_below == member.posts.size()) continue;
    const auto state = member.posts[member.finished_below].state;
    world.findings.add(
        now_ns, "stuck",
        member_text(member) + ": sequence " + std::to_string(member.finished_below) + " of " +
            std::to_string(member.posts.size()) +
            (state == PostState::kPosted ? " was never completed" : " was never posted"));
  }
}

void check_garbage(World& world, TimeNs now_ns) {
  for (const MemberState& member : world.members) {
    if (member.dead) continue;
    for (uint32_t slot = 0; slot < world.scenario.groups[member.group].depth; slot++) {
      const std::string problem = member.memory.check_garbage(slot);
      if (!problem.empty())
        world.findings.add(now_ns, "user-buffers", member_text(member) + ": " + problem);
    }
  }
}

}  // namespace peal::sim
