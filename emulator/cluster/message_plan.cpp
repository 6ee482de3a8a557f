// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/message_plan.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "emulator/cluster/arithmetic.h"

namespace peal::sim {
namespace {

constexpr uint64_t kTags = 3;
constexpr TimeNs kSpreadNs = 150'000;  // over which a rank posts
constexpr TimeNs kLateNs = 400'000;

bool is_collective(peal_operation operation) {
  return operation == PEAL_OPERATION_BARRIER || operation == PEAL_OPERATION_BROADCAST;
}

}  // namespace

MessagePlan::MessagePlan(uint64_t seed) : seed_(seed), random_(seed) {
  ranks_ = static_cast<uint32_t>(2 + below(7));
  any_.resize(size_t{ranks_} * ranks_);
  for (size_t pair = 0; pair < any_.size(); pair++) any_[pair] = below(4) == 0;
  const uint64_t count = 1 + below(60);
  for (uint64_t drawn = 0; drawn < count; drawn++) draw_transfer();
  draw_posts();
  if (below(4) != 0) return;
  victim_ = static_cast<uint32_t>(below(ranks_));
  death_ns_ = below(kSpreadNs + kLateNs);
}

void MessagePlan::draw_transfer() {
  static constexpr peal_operation kKinds[] = {
      PEAL_OPERATION_SEND, PEAL_OPERATION_SEND, PEAL_OPERATION_SEND,     PEAL_OPERATION_PUT,
      PEAL_OPERATION_PUT,  PEAL_OPERATION_GET,  PEAL_OPERATION_FENCE,    PEAL_OPERATION_BARRIER,
      PEAL_OPERATION_PUT,  PEAL_OPERATION_GET,  PEAL_OPERATION_BROADCAST};
  Transfer made = {};
  made.operation = kKinds[below(std::size(kKinds))];
  made.from = static_cast<uint32_t>(below(ranks_));
  made.to = static_cast<uint32_t>(below(ranks_));
  const bool empty =
      made.operation == PEAL_OPERATION_FENCE || made.operation == PEAL_OPERATION_BARRIER;
  if (!empty) made.bytes = static_cast<uint32_t>(below(below(3) == 0 ? kPlaceBytes + 1 : 200));
  if (made.operation == PEAL_OPERATION_FENCE && below(3) == 0) made.to = PEAL_NO_RANK;
  if (made.operation == PEAL_OPERATION_SEND) {
    made.tag = below(kTags);
    made.any_tag = any_[made.from * ranks_ + made.to];
    if (made.bytes > 0 && below(12) == 0) made.flaw = Flaw::kRoom;
  }
  const bool remote = made.operation == PEAL_OPERATION_PUT || made.operation == PEAL_OPERATION_GET;
  if (remote && made.bytes > 0 && below(10) == 0) {
    made.flaw = below(2) == 0 ? Flaw::kKey : Flaw::kBounds;
  }
  if (has_room(made)) transfers_.push_back(made);
}

bool MessagePlan::has_room(const Transfer& transfer) {
  if (is_collective(transfer.operation)) {
    if (collectives_ == parked_operations()) return false;
    collectives_++;
    return true;
  }
  const bool gets = transfer.operation == PEAL_OPERATION_GET;
  const bool sends = transfer.operation == PEAL_OPERATION_SEND;
  requests_.resize(ranks_);
  std::vector<uint32_t> more(ranks_);
  more[gets ? transfer.to : transfer.from]++;
  if (sends) more[transfer.to]++;
  for (uint32_t rank = 0; rank < ranks_; rank++) {
    if (requests_[rank] + more[rank] > requests_at_once()) return false;
  }
  for (uint32_t rank = 0; rank < ranks_; rank++) requests_[rank] += more[rank];
  return true;
}

void MessagePlan::draw_posts() {
  std::vector<TimeNs> late(ranks_);
  for (TimeNs& each : late) each = below(4) == 0 ? below(kLateNs) : 0;
  const auto post = [&](uint32_t rank, uint32_t transfer, peal_operation operation) {
    posts_.push_back({late[rank] + below(kSpreadNs), rank, transfer, 0, operation});
  };
  for (uint32_t t = 0; t < transfers_.size(); t++) {
    const Transfer& transfer = transfers_[t];
    if (is_collective(transfer.operation)) {
      for (uint32_t rank = 0; rank < ranks_; rank++) post(rank, t, transfer.operation);
    } else if (transfer.operation == PEAL_OPERATION_GET) {
      post(transfer.to, t, PEAL_OPERATION_GET);
    } else {
      post(transfer.from, t, transfer.operation);
      if (transfer.operation == PEAL_OPERATION_SEND) post(transfer.to, t, PEAL_OPERATION_RECEIVE);
    }
  }
  keep_order();
  std::stable_sort(posts_.begin(), posts_.end(),
                   [](const Post& a, const Post& b) { return a.at < b.at; });
  std::map<uint32_t, uint64_t> sequences;
  for (Post& each : posts_) {
    if (is_collective(each.operation)) each.sequence = sequences[each.rank]++;
  }
}

// Collectives of a rank, and messages that only their order tells apart, are posted as they are
// listed: the times that were drawn for them are given out in order.
void MessagePlan::keep_order() {
  using Stream = std::tuple<uint32_t, peal_operation, uint32_t, uint32_t, uint64_t>;
  std::map<Stream, std::vector<size_t>> streams;
  for (size_t i = 0; i < posts_.size(); i++) {
    const Post& each = posts_[i];
    const Transfer& transfer = transfers_[each.transfer];
    if (is_collective(each.operation)) {
      streams[{each.rank, PEAL_OPERATION_BARRIER, 0, 0, 0}].push_back(i);
    } else if (transfer.operation == PEAL_OPERATION_SEND) {
      const uint64_t tag = transfer.any_tag ? 0 : transfer.tag;
      streams[{each.rank, each.operation, transfer.from, transfer.to, tag}].push_back(i);
    }
  }
  for (const auto& [stream, members] : streams) {
    std::vector<TimeNs> times;
    for (const size_t i : members) times.push_back(posts_[i].at);
    std::sort(times.begin(), times.end());
    for (size_t k = 0; k < members.size(); k++) posts_[members[k]].at = times[k];
  }
}

peal_status MessagePlan::status_of(const Post& post) const {
  switch (transfers_[post.transfer].flaw) {
    case Flaw::kRoom:
      return PEAL_STATUS_TRUNCATED;
    case Flaw::kKey:
      return PEAL_STATUS_BAD_KEY;
    case Flaw::kBounds:
      return PEAL_STATUS_BAD_BOUNDS;
    case Flaw::kNone:
      break;
  }
  return PEAL_STATUS_OK;
}

uint8_t MessagePlan::byte_of(uint32_t transfer, size_t i) const {
  return static_cast<uint8_t>((seed_ * 131 + transfer * 37 + i) * 2654435761u >> 13);
}

}  // namespace peal::sim
