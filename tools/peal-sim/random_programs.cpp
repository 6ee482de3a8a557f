// SPDX-License-Identifier: BSD-2-Clause
#include "tools/peal-sim/random_programs.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "emulator/cluster/arithmetic.h"

namespace peal::sim {
namespace {

uint8_t untouched(uint32_t round) { return static_cast<uint8_t>(0x5a + round); }

}  // namespace

using host::Program;

RandomPrograms::RandomPrograms(uint64_t seed) : seed_(seed) {
  emulator::Random random(seed);
  // Two counters for each rank, and two more.
  const uint64_t most = std::min<uint64_t>(8, (program_counters() - 2) / 2);
  ranks_ = static_cast<uint32_t>(2 + random.below(most - 1));
  window_ = static_cast<uint32_t>(1 + random.below(6));
  const uint64_t count = 1 + random.below(40);
  for (uint32_t t = 0; t < count; t++) {
    Transfer made = {};
    made.kind = static_cast<Kind>(std::min<uint64_t>(random.below(5) / 2, 2));
    made.from = static_cast<uint32_t>(random.below(ranks_));
    made.to = static_cast<uint32_t>(random.below(ranks_));
    made.source = kOwn;
    made.bytes =
        made.kind == Kind::kSignal
            ? 0
            : static_cast<uint32_t>(random.below(random.below(3) == 0 ? kPlaceBytes + 1 : 200));
    made.waits_at_once = random.below(2) == 0;
    // A signal to itself is told at once, before puts that are under way: counted with them it
    // would say nothing.
    if (made.to == made.from) made.kind = Kind::kPut;
    // Something that has come to the sender, where there is such.
    for (uint32_t other = t; made.kind != Kind::kSignal && other-- > 0;) {
      const Transfer& earlier = transfers_[other];
      if (earlier.to != made.from || earlier.bytes == 0 || random.below(2) == 0) continue;
      made.source = other;
      made.bytes = earlier.bytes;
      counts_.passed_on++;
      break;
    }
    counts_.puts += made.kind == Kind::kPut ? 1 : 0;
    counts_.messages += made.kind == Kind::kMessage ? 1 : 0;
    counts_.signals += made.kind == Kind::kSignal ? 1 : 0;
    counts_.to_itself += made.to == made.from ? 1 : 0;
    transfers_.push_back(made);
  }
  // What comes behind a held put may overtake it, and arrivals from a rank are counted: so it is
  // the last of those to its receiver.
  std::set<std::pair<uint32_t, uint32_t>> followed;
  for (size_t t = transfers_.size(); t-- > 0;) {
    Transfer& made = transfers_[t];
    if (made.kind == Kind::kMessage || !followed.insert({made.from, made.to}).second) continue;
    made.gated = made.kind == Kind::kPut && random.below(4) != 0;
    counts_.gated += made.gated ? 1 : 0;
  }
}

uint8_t RandomPrograms::byte_of(uint32_t transfer, uint32_t round, size_t i) const {
  while (transfers_[transfer].source != kOwn) transfer = transfers_[transfer].source;
  return static_cast<uint8_t>((seed_ * 131 + transfer * 37 + round * 90'001 + i) * 2654435761u >>
                              13);
}

void RandomPrograms::fill(uint32_t rank, uint32_t round, uint8_t* send, uint8_t* receive) const {
  std::memset(receive, untouched(round), bytes());
  for (uint32_t t = 0; t < transfers_.size(); t++) {
    if (transfers_[t].from != rank) continue;
    for (size_t i = 0; i < transfers_[t].bytes; i++) {
      send[t * kPlaceBytes + i] = byte_of(t, round, i);
    }
  }
}

bool RandomPrograms::everybody_has_a_part() const {
  std::set<uint32_t> ranks;
  for (const Transfer& transfer : transfers_) ranks.insert({transfer.from, transfer.to});
  return ranks.size() == ranks_;
}

size_t RandomPrograms::wrong_bytes(uint32_t rank, uint32_t round, const uint8_t* receive) const {
  size_t wrong = 0;
  for (uint32_t t = 0; t < transfers_.size(); t++) {
    const size_t bytes = transfers_[t].to == rank ? transfers_[t].bytes : 0;
    for (size_t i = 0; i < kPlaceBytes; i++) {
      const uint8_t expected = i < bytes ? byte_of(t, round, i) : untouched(round);
      wrong += receive[t * kPlaceBytes + i] == expected ? 0 : 1;
    }
  }
  return wrong;
}

// One rank's part. Counter r: what has arrived from rank r; ranks + r: r is ready; 2 * ranks: own
// puts that are over; 2 * ranks + 1: own receives.
class RandomPrograms::Writer {
 public:
  Writer(const RandomPrograms& plan, const ProgramHosts::Place& place)
      : plan_(plan),
        place_(place),
        program_({.rank = place.rank,
                  .ranks = plan.ranks_,
                  .posted = plan.seed_ % 2 == 0}) {  // all wait for notices
    for (int twice = 0; twice < 2; twice++) {
      for (uint32_t rank = 0; rank < plan.ranks_; rank++) program_.add_counter(rank);
    }
    sent_ = program_.add_counter(place.rank);
    received_ = program_.add_counter(place.rank);
  }

  Program write() {
    for (uint32_t t = 0; t < plan_.transfers_.size(); t++) {
      const Transfer& transfer = plan_.transfers_[t];
      if (transfer.to == place_.rank) expect(t, transfer);
      if (transfer.from == place_.rank) give(t, transfer);
      if (transfer.to == place_.rank && transfer.waits_at_once) wait_for(t);
    }
    for (uint32_t t = 0; t < plan_.transfers_.size(); t++) {
      if (plan_.transfers_[t].to == place_.rank) wait_for(t);
    }
    return program_;
  }

 private:
  [[nodiscard]] uint16_t arrived(uint32_t rank) const { return static_cast<uint16_t>(rank); }
  [[nodiscard]] uint16_t ready(uint32_t rank) const {
    return static_cast<uint16_t>(plan_.ranks_ + rank);
  }
  [[nodiscard]] uint8_t* place_of(uint32_t t) const {
    return static_cast<uint8_t*>(place_.receive) + t * kPlaceBytes;
  }

  // The receiver's side: it may come from now on.
  void expect(uint32_t t, const Transfer& transfer) {
    if (transfer.kind == Kind::kMessage) {
      program_.receive(transfer.from, t, place_of(t), transfer.bytes, received_);
      due_[t] = ++receives_;
      return;
    }
    due_[t] = ++expected_[transfer.from];
    if (transfer.kind == Kind::kPut)
      program_.signal(transfer.from, {.counter = ready(place_.rank)});
  }

  void wait_for(uint32_t t) {
    const Transfer& transfer = plan_.transfers_[t];
    if (!waited_.insert(t).second) return;
    const bool message = transfer.kind == Kind::kMessage;
    // Receives end in any order: all that were posted so far.
    program_.wait(message ? received_ : arrived(transfer.from), message ? receives_ : due_[t]);
  }

  void give(uint32_t t, const Transfer& transfer) {
    const uint8_t* from = static_cast<const uint8_t*>(place_.send) + t * kPlaceBytes;
    if (transfer.source != kOwn) {
      wait_for(transfer.source);
      from = place_of(transfer.source);
    }
    const Program::Notice notice = {.counter = arrived(place_.rank)};
    if (transfer.kind == Kind::kSignal) return program_.signal(transfer.to, notice);
    if (transfer.kind == Kind::kMessage) {
      return program_.send(transfer.to, t, from, transfer.bytes);
    }
    if (sent_count_ >= plan_.window_) program_.wait(sent_, sent_count_ - plan_.window_ + 1);
    sent_count_++;
    readies_[transfer.to]++;
    if (!transfer.gated) program_.wait(ready(transfer.to), readies_[transfer.to]);
    program_.put(transfer.to, from, transfer.bytes,
                 {place_.receives[transfer.to].key, t * kPlaceBytes}, &notice, sent_);
    if (transfer.gated) program_.gate(ready(transfer.to), readies_[transfer.to]);
  }

  const RandomPrograms& plan_;
  const ProgramHosts::Place& place_;
  Program program_;
  uint16_t sent_ = 0;
  uint16_t received_ = 0;
  uint64_t sent_count_ = 0;
  uint64_t receives_ = 0;
  std::map<uint32_t, uint64_t> due_;       // by transfer
  std::map<uint32_t, uint64_t> expected_;  // by rank
  std::map<uint32_t, uint64_t> readies_;   // by rank
  std::set<uint32_t> waited_;
};

Program RandomPrograms::write(const ProgramHosts::Place& place) const {
  return Writer(*this, place).write();
}

}  // namespace peal::sim
