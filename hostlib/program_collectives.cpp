// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/program_collectives.h"

#include <algorithm>
#include <bit>

namespace peal::host {
namespace {

// Of nothing there is nowhere else to be.
const uint8_t* at(const void* buffer, uint64_t offset) {
  return buffer == nullptr ? nullptr : static_cast<const uint8_t*>(buffer) + offset;
}

uint32_t rounds_of(uint32_t ranks) { return static_cast<uint32_t>(std::bit_width(ranks - 1)); }

Program::Remote behind(const Program::Remote& remote, uint64_t offset) {
  return {.key = remote.key, .offset = remote.offset + offset};
}

// Blocks that lie one behind the other, from `first` on, perhaps around the end.
struct Run {
  uint32_t first;
  uint32_t count;
};
std::vector<Run> runs_of(uint32_t first, uint32_t count, uint32_t ranks) {
  const uint32_t straight = std::min(count, ranks - first);
  std::vector<Run> runs = {{first, straight}};
  if (straight < count) runs.push_back({0, count - straight});
  return runs;
}

// One exchange of an allgather by doubling.
struct Exchange {
  uint32_t to;
  uint32_t from;
  uint32_t first;  // block of those that are sent
  uint32_t count;
};
Exchange exchange_of(uint32_t rank, uint32_t ranks, uint32_t round) {
  const uint32_t distance = 1u << round;
  if (std::has_single_bit(ranks)) {
    return {rank ^ distance, rank ^ distance, rank & ~(distance - 1), distance};
  }
  return {(rank + ranks - distance) % ranks, (rank + distance) % ranks, rank,
          std::min(distance, ranks - distance)};
}

// How many of the first exchanges go through the collective buffer.
uint32_t copied_rounds(uint32_t ranks, uint64_t block_bytes, uint64_t copied_bytes) {
  uint32_t rounds = 0;
  while (block_bytes != 0 && rounds < rounds_of(ranks) && (block_bytes << rounds) <= copied_bytes) {
    rounds++;
  }
  return rounds;
}

// Writes an allgather by doubling.
class Doubling {
 public:
  // In turn: nobody says that the collective buffers are ready, through which all exchanges go.
  explicit Doubling(const Gathering& gathering, bool in_turn = false)
      : own_(gathering),
        copied_(copied_rounds(own_.ranks, own_.block_bytes, own_.copied_bytes)),
        in_order_(std::has_single_bit(own_.ranks)),
        in_turn_(in_turn),
        program_({.rank = own_.rank, .ranks = own_.ranks, .together = in_turn, .posted = true}) {}

  Program write() {
    const uint32_t rounds = rounds_of(own_.ranks);
    for (uint32_t round = 0; round < rounds; round++) {
      const Exchange exchange = exchange_of(own_.rank, own_.ranks, round);
      if (!in_turn_) ready_.push_back(program_.add_counter(exchange.to));
      arrived_.push_back(program_.add_counter(exchange.from));
    }
    moved_ = program_.add_counter(own_.rank);
    for (uint32_t round = 0; round < rounds && !in_turn_; round++) {
      program_.signal(exchange_of(own_.rank, own_.ranks, round).from, {.counter = ready_[round]});
    }
    keep_own();
    for (uint32_t round = 0; round < rounds; round++) {
      const Exchange exchange = exchange_of(own_.rank, own_.ranks, round);
      if (!in_turn_) program_.wait(ready_[round], 1);
      if (round > 0) wait_for_copies();
      round < copied_ ? put_copied(exchange, round) : put(exchange, round);
      program_.wait(arrived_[round], 1);
      if (round + 1 == copied_) copy_out();
    }
    return std::move(program_);
  }

 private:
  // The block at which the collective buffer begins.
  [[nodiscard]] uint32_t first_collected() const {
    return in_order_ ? own_.rank & ~((1u << copied_) - 1) : own_.rank;
  }
  [[nodiscard]] uint64_t place(uint32_t block) const {
    return (block + own_.ranks - first_collected()) % own_.ranks * own_.block_bytes;
  }
  // Where the blocks that are sent in a copied round lie at their receiver.
  [[nodiscard]] uint64_t place_there(const Exchange& exchange, uint32_t round) const {
    return in_order_ ? place(exchange.first) : own_.block_bytes << round;
  }

  void copy(const void* from, uint64_t bytes, const Program::Remote& to) {
    if (bytes == 0) return;
    program_.put(own_.rank, from, bytes, to, nullptr, moved_);
    copies_++;
  }
  void wait_for_copies() {
    if (waited_ == copies_) return;
    program_.wait(moved_, copies_);
    waited_ = copies_;
  }

  // The own block to where it is sent from later.
  void keep_own() {
    const uint64_t offset = own_.rank * own_.block_bytes;
    if (copied_ > 0) {
      copy(own_.send, own_.block_bytes, behind(own_.collectives[own_.rank], place(own_.rank)));
    } else if (own_.send != own_.receive + offset) {
      copy(own_.send, own_.block_bytes, behind(own_.own, offset));
    }
  }
  void put_copied(const Exchange& exchange, uint32_t round) {
    const Program::Notice arrived = {.counter = arrived_[round]};
    const void* from = round == 0 ? own_.send : own_.collective + place(exchange.first);
    program_.put(exchange.to, from, exchange.count * own_.block_bytes,
                 behind(own_.collectives[exchange.to], place_there(exchange, round)), &arrived);
  }
  // Straight into the user's memory. What a rank puts is told in order: the last run speaks for
  // all.
  void put(const Exchange& exchange, uint32_t round) {
    const Program::Notice arrived = {.counter = arrived_[round]};
    const auto runs = runs_of(exchange.first, exchange.count, own_.ranks);
    for (const Run& run : runs) {
      const uint64_t offset = run.first * own_.block_bytes;
      const void* from = round == 0 ? own_.send : own_.receive + offset;
      program_.put(exchange.to, from, run.count * own_.block_bytes,
                   behind(own_.receives[exchange.to], offset),
                   &run == &runs.back() ? &arrived : nullptr);
    }
  }
  // All that has been collected, to its place.
  void copy_out() {
    wait_for_copies();
    const uint32_t held = std::min(1u << copied_, own_.ranks);
    for (const Run& run : runs_of(first_collected(), held, own_.ranks)) {
      copy(own_.collective + place(run.first), run.count * own_.block_bytes,
           behind(own_.own, run.first * own_.block_bytes));
    }
  }

  const Gathering& own_;
  uint32_t copied_;
  bool in_order_;
  bool in_turn_;
  Program program_;
  std::vector<uint16_t> ready_;  // counters, by round
  std::vector<uint16_t> arrived_;
  uint16_t moved_ = 0;
  uint32_t copies_ = 0;
  uint32_t waited_ = 0;
};

}  // namespace

Program chain_broadcast(uint32_t rank, uint32_t ranks, uint32_t root, void* buffer, uint64_t bytes,
                        uint64_t segment_bytes, const std::vector<Program::Remote>& buffers) {
  const uint32_t place = (rank + ranks - root) % ranks;
  const uint32_t before = (rank + ranks - 1) % ranks;
  const uint32_t next = (rank + 1) % ranks;
  const bool first = place == 0;
  const bool last = place + 1 == ranks;
  const uint64_t segment = std::max<uint64_t>(segment_bytes, 1);
  const uint64_t segments = std::max<uint64_t>((bytes + segment - 1) / segment, 1);

  // Whoever has nobody before it, or behind it, has nothing to pace.
  const bool paced = !first && !last;
  Program program({.rank = rank,
                   .ranks = ranks,
                   .mode = paced ? PEAL_PROGRAM_MODE_SESSION : PEAL_PROGRAM_MODE_TASKS});
  const uint16_t arrived = program.add_counter(first ? rank : before);
  const uint16_t ready = program.add_counter(last ? rank : next);
  if (!first) program.signal(before, {.counter = ready});
  if (!last) program.wait(ready, 1);
  if (paced) program.schedule(static_cast<uint32_t>(program.steps().size()));
  if (last && !first) program.wait(arrived, segments);
  for (uint64_t i = 0; i < segments && !last; i++) {
    const uint64_t offset = i * segment;
    const Program::Notice notice = {.counter = arrived};
    const Program::Remote to = {buffers[next].key, buffers[next].offset + offset};
    program.put(next, at(buffer, offset), std::min(segment, bytes - offset), to, &notice);
  }
  return program;
}

Program binomial_broadcast(uint32_t rank, uint32_t ranks, uint32_t root, void* buffer,
                           uint64_t bytes, const std::vector<Program::Remote>& buffers) {
  const uint32_t rounds = rounds_of(ranks);
  const uint32_t place = (rank + ranks - root) % ranks;
  const auto rank_at = [&](uint32_t at) { return (at + root) % ranks; };
  const uint32_t own_round = place == 0 ? rounds : static_cast<uint32_t>(std::countr_zero(place));
  const uint32_t parent = rank_at(place & (place - 1));
  const auto child = [&](uint32_t round) { return place + (1u << round); };
  const auto has_child = [&](uint32_t round) { return round < own_round && child(round) < ranks; };

  Program program({.rank = rank, .ranks = ranks, .posted = true});
  const uint16_t arrived = program.add_counter(place == 0 ? rank : parent);
  for (uint32_t round = 0; round < rounds; round++) {  // counter round + 1: that child is ready
    program.add_counter(has_child(round) ? rank_at(child(round)) : rank);
  }
  if (place != 0) {
    program.signal(parent, {.counter = static_cast<uint16_t>(own_round + 1)});
    program.wait(arrived, 1);
  }
  for (uint32_t round = own_round; round-- > 0;) {
    if (!has_child(round)) continue;
    const uint32_t to = rank_at(child(round));
    const Program::Notice notice = {.counter = arrived};
    program.put(to, buffer, bytes, buffers[to], &notice);
    program.gate(static_cast<uint16_t>(round + 1), 1);  // a late child holds back its own subtree
  }
  return program;
}

Program dissemination_barrier(uint32_t rank, uint32_t ranks) {
  Program program({.rank = rank, .ranks = ranks, .posted = true});
  for (uint32_t round = 0; round < rounds_of(ranks); round++) {
    const uint32_t distance = 1u << round;
    const uint16_t here = program.add_counter((rank + ranks - distance) % ranks);
    program.signal((rank + distance) % ranks, {.counter = here});
    program.wait(here, 1);
  }
  return program;
}

uint64_t collective_bytes(uint32_t ranks, uint64_t block_bytes, uint64_t copied_bytes) {
  const uint32_t rounds = copied_rounds(ranks, block_bytes, copied_bytes);
  return rounds == 0 ? 0 : std::min<uint64_t>(uint64_t{1} << rounds, ranks) * block_bytes;
}

Program doubling_allgather(const Gathering& gathering) { return Doubling(gathering).write(); }

Program collected_allgather(const Collecting& own) {
  Gathering gathering;
  gathering.rank = own.rank;
  gathering.ranks = own.ranks;
  gathering.send = at(own.send, own.in_place ? own.rank * own.block_bytes : 0);
  gathering.block_bytes = own.block_bytes;
  gathering.own = own.own;
  gathering.copied_bytes = UINT64_MAX;
  gathering.collective = own.collective;
  gathering.collectives = own.collectives;
  return Doubling(gathering, true).write();
}

Program ring_allgather(const Gathering& gathering) {
  const uint32_t rank = gathering.rank;
  const uint32_t ranks = gathering.ranks;
  const uint32_t before = (rank + ranks - 1) % ranks;
  const uint32_t next = (rank + 1) % ranks;
  const uint64_t bytes = gathering.block_bytes;
  const bool alone = ranks == 1;
  Program program({.rank = rank,
                   .ranks = ranks,
                   .mode = alone ? PEAL_PROGRAM_MODE_TASKS : PEAL_PROGRAM_MODE_SESSION});
  const uint16_t arrived = program.add_counter(before);
  const uint16_t ready = program.add_counter(next);
  const uint16_t last = program.add_counter(rank);
  if (bytes != 0 && gathering.send != gathering.receive + rank * bytes) {
    program.put(rank, gathering.send, bytes, behind(gathering.own, rank * bytes), nullptr);
  }
  if (alone) return program;
  program.signal(before, {.counter = ready});
  program.wait(ready, 1);
  for (uint32_t hop = 0; hop + 1 < ranks; hop++) {
    if (hop == 1) program.schedule(static_cast<uint32_t>(program.steps().size()));
    const uint64_t offset = (rank + ranks - hop) % ranks * bytes;
    const Program::Notice notice = {.counter = arrived};
    program.put(next, hop == 0 ? gathering.send : gathering.receive + offset, bytes,
                behind(gathering.receives[next], offset), &notice);
  }
  if (ranks == 2) program.schedule(static_cast<uint32_t>(program.steps().size()));
  // The last block moves the pointer as well, over this: COMPLETE would not wait for it.
  program.signal(rank, {.counter = last});
  return program;
}

Program pairwise_exchange(uint32_t rank, const std::vector<PairBlock>& blocks, uint32_t window,
                          const std::vector<PairBlock>& copied) {
  const auto ranks = static_cast<uint32_t>(blocks.size());
  Program program({.rank = rank, .ranks = ranks, .posted = true});
  const uint16_t arrived = program.add_counter(PEAL_ANY_RANK);
  // Counter k: rank + k is ready.
  for (uint32_t k = 1; k < ranks; k++) program.add_counter((rank + k) % ranks);
  const uint16_t sent = program.add_counter(rank);
  const uint16_t moved = program.add_counter(rank);
  uint64_t copies = 0;
  for (const PairBlock& block : copied) {
    if (block.bytes == 0) continue;
    program.put(rank, block.from, block.bytes, block.to, nullptr, moved);
    copies++;
  }
  if (copies > 0) program.wait(moved, copies);
  for (uint32_t k = 1; k < ranks; k++) {
    program.signal((rank + ranks - k) % ranks, {.counter = static_cast<uint16_t>(k)});
  }
  if (blocks[rank].bytes != 0) {
    program.put(rank, blocks[rank].from, blocks[rank].bytes, blocks[rank].to, nullptr);
  }
  for (uint32_t k = 1; k < ranks; k++) {
    const uint32_t to = (rank + k) % ranks;
    if (k > window) program.wait(sent, k - window);
    const Program::Notice notice = {.counter = arrived};
    program.put(to, blocks[to].from, blocks[to].bytes, blocks[to].to, &notice, sent);
    program.gate(static_cast<uint16_t>(k), 1);  // whoever is late holds back its own block alone
  }
  program.wait(arrived, ranks - 1);
  return program;
}

// (Who puts in the next start rests on everybody's having begun this one, also where it fails.)
Program collected_alltoall(const Collecting& own) {
  Program program({.rank = own.rank, .ranks = own.ranks, .together = true, .posted = true});
  const uint16_t arrived = program.add_counter(PEAL_ANY_RANK);
  const uint16_t sent = program.add_counter(own.rank);
  const Program::Notice notice = {.counter = arrived};
  for (uint32_t k = 1; k <= own.ranks; k++) {  // the own block last: it has the shortest way
    const uint32_t to = (own.rank + k) % own.ranks;
    program.put(to, at(own.send, to * own.block_bytes), own.block_bytes,
                behind(own.collectives[to], own.rank * own.block_bytes), &notice, sent);
  }
  program.wait(arrived, own.ranks);
  if (own.in_place) program.wait(sent, own.ranks);  // they read what is overwritten now
  program.put(own.rank, own.collective, own.ranks * own.block_bytes, own.own, nullptr);
  return program;
}

Program pairwise_alltoall(uint32_t rank, uint32_t ranks, const void* send, uint64_t block_bytes,
                          uint32_t window, const std::vector<Program::Remote>& receives) {
  std::vector<PairBlock> blocks;
  for (uint32_t to = 0; to < ranks; to++) {
    blocks.push_back(
        {at(send, to * block_bytes), block_bytes, behind(receives[to], rank * block_bytes)});
  }
  return pairwise_exchange(rank, blocks, window);
}

}  // namespace peal::host
