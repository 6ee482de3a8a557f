// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/rendezvous_hosts.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

#include "base/names.h"

namespace peal::sim {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr TimeNs kGiveUpNs = 10'000'000'000;

}  // namespace

TimeNs registering_ns(const CostModel& model, uint64_t bytes) {
  return model.register_ns + (bytes + kPageBytes - 1) / kPageBytes * model.register_page_ns;
}

RendezvousHosts::RendezvousHosts(const ClusterOptions& options, uint64_t block_bytes,
                                 Registration registration)
    : cluster_(options, nullptr, this),
      costs_(options.costs),
      block_bytes_(block_bytes),
      registration_(registration),
      ranks_(options.cards) {
  if (!std::has_single_bit(options.cards)) {
    throw std::runtime_error(std::to_string(options.cards) + " ranks are no power of two");
  }
  steps_ = static_cast<uint32_t>(std::countr_zero(options.cards));
  std::vector<RankProcess*> everybody;
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    Rank& own = ranks_[rank];
    own.process.card = rank;
    open_process(cluster_, own.process);
    own.memory = add_memory(cluster_, own.process, block_bytes_ * ranks_.size(), &own.key);
    everybody.push_back(&own.process);
  }
  make_one_group(cluster_, everybody);
}

TimeNs RendezvousHosts::register_ns(uint64_t bytes) const {
  return registration_ == Registration::kKept ? 0 : registering_ns(costs_, bytes);
}

TimeNs RendezvousHosts::give_back_ns() const {
  return registration_ == Registration::kKept ? 0 : costs_.deregister_ns;
}

uint8_t RendezvousHosts::byte_of(uint32_t rank, uint64_t i) const {
  return static_cast<uint8_t>((rank + 1) * 37 + i * 11 + i / 256 + round_ * 101);
}

TimeNs RendezvousHosts::run() {
  actions_.clear();
  const TimeNs from = cluster_.now();
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) {
    Rank& own = ranks_[rank];
    own.step = 0;
    own.busy_until = from;
    uint8_t* const block = cluster_.memory().data(own.memory) + rank * block_bytes_;
    for (uint64_t i = 0; i < block_bytes_; i++) block[i] = byte_of(rank, i);
  }
  for (uint32_t rank = 0; rank < ranks_.size(); rank++) begin_step(from, rank);
  const auto pending = [&] {
    return std::ranges::any_of(ranks_, [&](const Rank& rank) { return rank.step < steps_; });
  };
  while (pending() && cluster_.now() < from + kGiveUpNs && cluster_.step()) {
  }
  if (pending()) throw std::runtime_error("an allgather by rendezvous does not end");
  TimeNs last = from;
  for (const Rank& rank : ranks_) {
    last = std::max(last, rank.busy_until);
    peal_completion taken;
    while (cluster_.poll(rank.process.card, rank.process.context, &taken)) {
    }
  }
  round_++;
  return last - from;
}

peal_submission RendezvousHosts::entry(uint32_t rank, uint32_t step, Kind kind) const {
  peal_submission made{};
  made.member = ranks_[rank].process.address.member;
  made.root = rank ^ (1u << step);
  made.cookie = tag(step, kind) * 2;
  if (kind == kData) {
    const uint64_t held = held_at(rank, step);
    made.operation = PEAL_OPERATION_PUT;
    made.block_bytes = bytes_of(step);
    made.send_key = ranks_[rank].key;
    made.send_offset = held;
    made.receive_key = ranks_[made.root].key;
    made.receive_offset = held;
    return made;
  }
  made.operation = PEAL_OPERATION_SEND;
  made.sequence = tag(step, kind);
  return made;
}

peal_submission RendezvousHosts::receive(uint32_t rank, uint32_t step, Kind kind) const {
  peal_submission made = entry(rank, step, kind);
  made.operation = PEAL_OPERATION_RECEIVE;
  made.cookie++;
  return made;
}

void RendezvousHosts::work(TimeNs now_ns, TimeNs cost_ns, Action action) {
  Rank& own = ranks_[action.rank];
  own.busy_until = std::max(now_ns, own.busy_until) + cost_ns;
  actions_.push_back(std::move(action));
  cluster_.at(own.busy_until, static_cast<uint32_t>(actions_.size() - 1));
}

void RendezvousHosts::begin_step(TimeNs now_ns, uint32_t rank) {
  Rank& own = ranks_[rank];
  const uint32_t step = own.step;
  own.open = 2;
  Action action{.rank = rank, .entries = {}};
  for (const Kind kind : {kRequest, kClear, kFinished}) {
    action.entries.push_back(receive(rank, step, kind));
  }
  action.entries.push_back(entry(rank, step, kRequest));
  work(now_ns, costs_.message_ns + register_ns(bytes_of(step)), std::move(action));
}

// The partner's request: taken, and answered.
void RendezvousHosts::answer(TimeNs now_ns, uint32_t rank) {
  const uint32_t step = ranks_[rank].step;
  work(now_ns, 2 * costs_.message_ns + register_ns(bytes_of(step)),
       {.rank = rank, .entries = {entry(rank, step, kClear)}});
}

void RendezvousHosts::close_one(TimeNs now_ns, TimeNs cost_ns, Action action) {
  Rank& own = ranks_[action.rank];
  own.open--;
  action.next_step = own.open == 0;
  work(now_ns, cost_ns, std::move(action));
}

void RendezvousHosts::expect_data(uint32_t rank) {
  const Rank& own = ranks_[rank];
  const uint64_t first = held_at(rank ^ (1u << own.step), own.step);
  const uint8_t* const there = cluster_.memory().data(own.memory) + first;
  for (uint64_t i = 0; i < bytes_of(own.step); i++) {
    const auto from = static_cast<uint32_t>((first + i) / block_bytes_);
    if (there[i] == byte_of(from, i % block_bytes_)) continue;
    throw std::runtime_error("rank " + std::to_string(rank) + " was told of bytes of rank " +
                             std::to_string(from) + " that are not there");
  }
}

void RendezvousHosts::on_host_event(TimeNs now_ns, uint32_t number) {
  const Action action = actions_[number];
  Rank& own = ranks_[action.rank];
  for (const peal_submission& each : action.entries) {
    if (!cluster_.submit(action.rank, own.process.context, each)) {
      throw std::runtime_error("the ring is full");
    }
  }
  if (!action.next_step) return;
  own.step++;
  if (own.step < steps_) begin_step(now_ns, action.rank);
}

void RendezvousHosts::on_completion(TimeNs now_ns, uint32_t rank, uint32_t,
                                    const peal_completion& taken) {
  if (taken.status != PEAL_STATUS_OK) {
    throw std::runtime_error("rank " + std::to_string(rank) + ": " + names::status(taken.status));
  }
  const bool received = taken.cookie % 2 == 1;
  const auto kind = static_cast<Kind>(taken.cookie / 2 % kKinds);
  const TimeNs seen_ns = now_ns + costs_.completion_ns;
  const uint32_t step = ranks_[rank].step;
  const TimeNs message_ns = costs_.message_ns;
  // A message does not wait for a put before it: so the put's end is waited for.
  if (kind == kData) {
    return close_one(seen_ns, message_ns + give_back_ns(),
                     {.rank = rank, .entries = {entry(rank, step, kFinished)}});
  }
  if (!received) return;
  if (kind == kRequest) return answer(seen_ns, rank);
  if (kind == kClear) {
    return work(seen_ns, 2 * message_ns, {.rank = rank, .entries = {entry(rank, step, kData)}});
  }
  expect_data(rank);
  close_one(seen_ns, message_ns + give_back_ns(), {.rank = rank, .entries = {}});
}

}  // namespace peal::sim
