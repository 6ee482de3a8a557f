// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/message_hosts.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "base/names.h"

namespace peal::sim {
namespace {

using Flaw = MessagePlan::Flaw;
using Transfer = MessagePlan::Transfer;

constexpr size_t kPlace = MessagePlan::kPlaceBytes;
constexpr TimeNs kEndNs = 10'000'000'000;  // by then all is over, deaths are told as well
constexpr uint32_t kDeath = ~0u;           // host event

bool is_point_to_point(peal_operation operation) {
  return operation >= PEAL_OPERATION_SEND && operation <= PEAL_OPERATION_FENCE;
}
bool reads_own(peal_operation operation) {
  return operation == PEAL_OPERATION_SEND || operation == PEAL_OPERATION_PUT;
}

std::string line(const MessagePlan::Post& post, const std::string& what) {
  return "rank " + std::to_string(post.rank) + ": " + names::operation(post.operation) +
         " of transfer " + std::to_string(post.transfer) + ": " + what + "\n";
}

}  // namespace

MessageHosts::MessageHosts(const ClusterOptions& options, const MessagePlan& plan,
                           Observer* observer)
    : GroupHosts(options, observer),
      plan_(plan),
      memory_(plan.ranks()),
      ended_(plan.posts().size()),
      came_(plan.transfers().size() * plan.ranks()) {
  for (uint32_t rank = 0; rank < plan.ranks(); rank++) {
    Memory& own = memory_[rank];
    own.send = add_memory(rank, plan.bytes(), &own.send_key);
    own.receive = add_memory(rank, plan.bytes(), &own.receive_key);
  }
  for (uint32_t t = 0; t < plan.transfers().size(); t++) {
    const Transfer& transfer = plan.transfers()[t];
    uint8_t* place = cluster_.memory().data(memory_[transfer.from].send) + t * kPlace;
    for (size_t i = 0; i < transfer.bytes; i++) place[i] = plan.byte_of(t, i);
  }
  for (uint32_t i = 0; i < plan.posts().size(); i++) {
    cluster_.at(plan.posts()[i].at, i);
    pending_ += plan.posts()[i].rank == plan.victim() ? 0 : 1;
  }
  if (plan.victim() != MessagePlan::kNobody) cluster_.at(plan.death_ns(), kDeath);
}

void MessageHosts::run() {
  while (pending_ > 0 && cluster_.now() < kEndNs && cluster_.step()) {
  }
  calm_down();
  take_completions();
}

void MessageHosts::on_host_event(TimeNs, uint32_t item) {
  if (item == kDeath) return cluster_.silence(plan_.victim());
  const uint32_t rank = plan_.posts()[item].rank;
  if (cluster_.silent(rank)) return;
  if (!cluster_.submit(rank, processes_[rank].context, entry_of(item))) {
    throw std::runtime_error("the ring is full");
  }
}

// Own and other memory, by place.
void MessageHosts::name_buffers(const Transfer& transfer, const MessagePlan::Post& post,
                                peal_submission* entry) const {
  if (transfer.bytes == 0) return;
  const uint64_t offset = post.transfer * kPlace;
  const bool collective = !is_point_to_point(post.operation);
  const bool sends = reads_own(post.operation) || (collective && post.rank == transfer.from);
  const Memory& own = memory_[post.rank];
  if (sends) {
    entry->send_key = own.send_key;
    entry->send_offset = offset;
  } else {
    entry->receive_key = own.receive_key;
    entry->receive_offset = offset;
  }
  const uint32_t spoilt = transfer.flaw == Flaw::kKey ? 0x10000 : 0;
  const uint64_t beyond = transfer.flaw == Flaw::kBounds ? plan_.bytes() : 0;
  if (post.operation == PEAL_OPERATION_PUT) {
    entry->receive_key = memory_[transfer.to].receive_key ^ spoilt;
    entry->receive_offset = offset + beyond;
  }
  if (post.operation == PEAL_OPERATION_GET) {
    entry->send_key = memory_[transfer.from].send_key ^ spoilt;
    entry->send_offset = offset + beyond;
  }
}

peal_submission MessageHosts::entry_of(uint32_t number) const {
  const MessagePlan::Post& post = plan_.posts()[number];
  const Transfer& transfer = plan_.transfers()[post.transfer];
  peal_submission entry{};
  entry.operation = static_cast<uint8_t>(post.operation);
  entry.member = processes_[post.rank].address.member;
  entry.cookie = number;
  entry.block_bytes = transfer.bytes;
  name_buffers(transfer, post, &entry);
  switch (post.operation) {
    case PEAL_OPERATION_BARRIER:
      entry.algorithm = PEAL_ALGORITHM_DISSEMINATION;
      entry.sequence = post.sequence;
      break;
    case PEAL_OPERATION_BROADCAST:
      entry.algorithm = PEAL_ALGORITHM_BINOMIAL;
      entry.sequence = post.sequence;
      entry.root = transfer.from;
      break;
    case PEAL_OPERATION_RECEIVE:
      entry.root = transfer.from;
      entry.sequence = transfer.any_tag ? 0 : transfer.tag;
      entry.flags = transfer.any_tag ? PEAL_SUBMIT_ANY_TAG : 0;
      entry.block_bytes -= transfer.flaw == Flaw::kRoom ? 1 : 0;
      break;
    case PEAL_OPERATION_GET:
      entry.root = transfer.from;
      break;
    default:
      entry.root = transfer.to;
      entry.sequence = post.operation == PEAL_OPERATION_SEND ? transfer.tag : 0;
  }
  return entry;
}

void MessageHosts::wrong(const MessagePlan::Post& post, const std::string& what) {
  trouble_ += line(post, what);
}

bool MessageHosts::has_come(uint32_t transfer, uint32_t rank) {
  const uint8_t* place = cluster_.memory().data(memory_[rank].receive) + transfer * kPlace;
  for (size_t i = 0; i < kPlace; i++) {
    const bool within = i < plan_.transfers()[transfer].bytes;
    if (place[i] != (within ? plan_.byte_of(transfer, i) : 0)) return false;
  }
  return true;
}

bool MessageHosts::is_untouched(uint32_t transfer, uint32_t rank) {
  const uint8_t* place = cluster_.memory().data(memory_[rank].receive) + transfer * kPlace;
  return std::all_of(place, place + kPlace, [](uint8_t each) { return each == 0; });
}

void MessageHosts::scribble(uint32_t transfer, uint32_t rank) {
  std::memset(cluster_.memory().data(memory_[rank].send) + transfer * kPlace, 0xbb,
              plan_.transfers()[transfer].bytes);
}

void MessageHosts::on_completion(TimeNs, uint32_t rank, uint32_t context,
                                 const peal_completion& entry) {
  if (entry.cookie >= ended_.size() || plan_.posts()[entry.cookie].rank != rank) {
    trouble_ += "rank " + std::to_string(rank) + ": a completion of nothing\n";
    return;
  }
  const auto number = static_cast<uint32_t>(entry.cookie);
  const MessagePlan::Post& post = plan_.posts()[number];
  if (ended_[number]++ > 0) return wrong(post, "ended twice");
  if (rank != plan_.victim()) pending_--;
  if (entry.sequence != entry_of(number).sequence) wrong(post, "has another sequence");
  const RankProcess& process = processes_[rank];
  if (context != process.context || entry.member != process.address.member ||
      entry.operation != post.operation) {
    wrong(post, "differs from what was asked for");
  }
  if (entry.status == PEAL_STATUS_OK && post.operation == PEAL_OPERATION_FENCE) check_fence(number);
  check(post, entry);
}

void MessageHosts::check(const MessagePlan::Post& post, const peal_completion& entry) {
  const Transfer& transfer = plan_.transfers()[post.transfer];
  const bool own_send = reads_own(post.operation) ||
                        (post.operation == PEAL_OPERATION_BROADCAST && post.rank == transfer.from);
  if (own_send) scribble(post.transfer, post.rank);
  if (entry.status == PEAL_STATUS_PEER_DEAD && plan_.victim() != MessagePlan::kNobody) {
    if (entry.failed_rank != plan_.victim()) wrong(post, "names another rank as dead");
    if (post.rank != plan_.victim()) told_of_a_death_++;
    return;
  }
  const peal_status expected = plan_.status_of(post);
  if (entry.status != expected) return wrong(post, "ended with " + names::status(entry.status));
  const bool refused = expected == PEAL_STATUS_BAD_KEY || expected == PEAL_STATUS_BAD_BOUNDS;
  const uint32_t owner = post.operation == PEAL_OPERATION_PUT ? transfer.to : transfer.from;
  if (entry.failed_rank != (refused ? owner : PEAL_NO_RANK)) wrong(post, "names another rank");
  const bool moves = is_point_to_point(post.operation) && !refused;
  if (entry.bytes != (moves ? transfer.bytes : 0)) wrong(post, "has another length");
  const bool received = post.operation == PEAL_OPERATION_RECEIVE;
  if (entry.tag != (received ? transfer.tag : 0)) wrong(post, "has another tag");
  if (expected != PEAL_STATUS_OK) return;
  const bool broadcast = post.operation == PEAL_OPERATION_BROADCAST && post.rank != transfer.from;
  if (broadcast || received || post.operation == PEAL_OPERATION_GET) {
    note_come(post, post.rank);
  } else if (post.operation == PEAL_OPERATION_PUT) {
    note_come(post, transfer.to);
  }
}

// Its bytes are at that rank now.
void MessageHosts::note_come(const MessagePlan::Post& post, uint32_t rank) {
  if (!has_come(post.transfer, rank)) return wrong(post, "is not in memory");
  came_[size_t{post.transfer} * plan_.ranks() + rank] = true;
}

// All puts that this rank posted before are over.
void MessageHosts::check_fence(uint32_t number) {
  const MessagePlan::Post& fence = plan_.posts()[number];
  const uint32_t to = plan_.transfers()[fence.transfer].to;
  for (uint32_t i = 0; i < number; i++) {
    const MessagePlan::Post& each = plan_.posts()[i];
    const bool awaited = each.rank == fence.rank && each.operation == PEAL_OPERATION_PUT &&
                         (to == PEAL_NO_RANK || plan_.transfers()[each.transfer].to == to);
    if (awaited && ended_[i] == 0) wrong(fence, "overtook a put");
  }
}

std::string MessageHosts::unended() const {
  std::string text;
  for (uint32_t i = 0; i < ended_.size(); i++) {
    const MessagePlan::Post& post = plan_.posts()[i];
    if (ended_[i] == 0 && post.rank != plan_.victim()) text += line(post, "never ended");
  }
  return text;
}

void MessageHosts::check_memory(bool all_over) {
  for (uint32_t t = 0; t < plan_.transfers().size(); t++) {
    const Transfer& transfer = plan_.transfers()[t];
    const bool point = is_point_to_point(transfer.operation);
    for (uint32_t rank = 0; rank < plan_.ranks(); rank++) {
      const bool receives = point ? rank == transfer.to : rank != transfer.from;
      const bool refused = transfer.flaw != Flaw::kNone;
      const MessagePlan::Post about = {0, rank, t, 0, transfer.operation};
      if (!receives || refused || transfer.bytes == 0) {
        if (!is_untouched(t, rank)) wrong(about, "was written where nothing may be");
      } else if ((all_over || came_[size_t{t} * plan_.ranks() + rank]) && !has_come(t, rank)) {
        wrong(about, "is no longer what it was");
      }
    }
  }
}

std::string MessageHosts::problems() {
  const bool death = plan_.victim() != MessagePlan::kNobody;
  const std::string stuck = unended();
  check_memory(!death && stuck.empty());
  std::string text = findings_.text() + trouble_;
  only_stuck_ = text.empty() && !stuck.empty();
  if (!stuck.empty()) return text + stuck;
  text += held();
  const uint64_t opened = cluster_.counter(PEAL_COUNTER_CONNECTIONS_OPENED);
  if (!death && opened != cluster_.counter(PEAL_COUNTER_CONNECTIONS_CLOSED)) {
    text += "connections are still open\n";
  }
  return text;
}

}  // namespace peal::sim
