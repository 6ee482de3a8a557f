// SPDX-License-Identifier: BSD-2-Clause
// Benches wired together.
#include "tests/support/cluster.h"

#include <algorithm>
#include <stdexcept>

#include "emulator/common/packet_text.h"
#include "tests/support/pattern.h"

namespace peal::test {
namespace {

// More than K + parked operations are never outstanding, so buffers of older sequences are free.
constexpr size_t kSlots = CONFIG_CHANNELS + CONFIG_PARKED_OPERATIONS;
constexpr uint64_t kCookieBase = 100;
constexpr uint8_t kScribble = 0x5c;

}  // namespace

Cluster::Cluster(uint32_t ranks, const BenchOptions& options)
    : silent_(ranks, false), completions_(ranks), buffers_(ranks) {
  std::vector<peal_peer_address> everybody;
  for (uint32_t rank = 0; rank < ranks; rank++) {
    BenchOptions own = options;
    own.index = rank;
    benches_.push_back(std::make_unique<CardBench>(own));
    members_.push_back(benches_.back()->reserve(ranks, rank));
    everybody.push_back(members_.back().address);
  }
  for (uint32_t rank = 0; rank < ranks; rank++) {
    if (options.tables) benches_[rank]->add_table(members_[rank], everybody);
    const peal_status status = benches_[rank]->connect(members_[rank], everybody);
    if (status != PEAL_STATUS_OK) throw std::runtime_error("connect: " + status_text(status));
  }
}

// --- submissions ---

void Cluster::barrier(uint32_t rank, uint64_t sequence) {
  bench(rank).submit(barrier_entry(members_[rank], sequence, kCookieBase + sequence));
}

void Cluster::destroy(uint32_t rank, uint64_t sequence) {
  bench(rank).submit(destroy_entry(members_[rank], sequence, kCookieBase + sequence));
}

// Two buffers per slot, made when a slot is first used and again when it is too small.
Cluster::Buffers& Cluster::buffers(uint32_t rank, uint64_t sequence, size_t block_bytes,
                                   uint32_t send_blocks, uint32_t receive_blocks) {
  auto& slots = buffers_[rank];
  if (slots.size() < kSlots) slots.resize(kSlots);
  Buffers& slot = slots[sequence % kSlots];
  slot.sequence = sequence;
  slot.scribbled = false;
  CardBench& card = bench(rank);
  const bool fresh = slot.send.key == 0 && slot.receive.key == 0;
  const size_t send_bytes = std::max<size_t>(block_bytes * send_blocks, 8);
  const size_t receive_bytes = std::max<size_t>(block_bytes * receive_blocks, 8);
  if (fresh || card.port.bytes(slot.send.region).size() < send_bytes ||
      card.port.bytes(slot.receive.region).size() < receive_bytes) {
    if (!fresh) {
      RegionId region = 0;
      for (const uint32_t key : {slot.send.key, slot.receive.key}) {
        const peal_status status =
            card_unregister_memory(card.card(), card.context(), key, &region);
        if (status != PEAL_STATUS_OK)
          throw std::runtime_error("a buffer is " + status_text(status));
        card.port.remove_region(region);
      }
    }
    slot.send = card.add_memory("send", send_bytes, PEAL_ACCESS_READ);
    slot.receive = card.add_memory("receive", receive_bytes, PEAL_ACCESS_READ | PEAL_ACCESS_WRITE);
  }
  return slot;
}

void Cluster::allgather(uint32_t rank, uint64_t sequence, peal_algorithm algorithm,
                        size_t block_bytes, bool in_place) {
  const Buffers& slot = buffers(rank, sequence, block_bytes, 1, ranks());
  CardBench& card = bench(rank);
  auto& receive = card.port.bytes(slot.receive.region);
  std::fill(receive.begin(), receive.end(), uint8_t{0xee});
  const auto block = pattern_block(sequence, rank, 0, block_bytes);
  auto own = in_place ? receive.begin() + static_cast<std::ptrdiff_t>(rank * block_bytes)
                      : card.port.bytes(slot.send.region).begin();
  std::copy(block.begin(), block.end(), own);
  peal_submission entry =
      allgather_entry(members_[rank], sequence, kCookieBase + sequence, algorithm, block_bytes,
                      in_place ? 0 : slot.send.key, slot.receive.key);
  if (in_place) entry.flags = PEAL_SUBMIT_IN_PLACE;
  card.submit(entry);
}

void Cluster::broadcast(uint32_t rank, uint64_t sequence, uint32_t root, size_t block_bytes) {
  // One more than comes: nothing may be written behind it.
  const Buffers& slot = buffers(rank, sequence, block_bytes, 1, 2);
  CardBench& card = bench(rank);
  auto& receive = card.port.bytes(slot.receive.region);
  std::fill(receive.begin(), receive.end(), uint8_t{0xee});
  const auto block = pattern_block(sequence, root, 0, block_bytes);
  if (rank == root)
    std::copy(block.begin(), block.end(), card.port.bytes(slot.send.region).begin());
  card.submit(broadcast_entry(members_[rank], sequence, kCookieBase + sequence, root, block_bytes,
                              rank == root ? slot.send.key : 0,
                              rank == root ? 0 : slot.receive.key));
}

std::string Cluster::check_broadcast(uint32_t rank, uint64_t sequence, uint32_t root,
                                     size_t block_bytes) {
  return compare_result(rank, sequence, block_bytes,
                        pattern_block(sequence, root, 0, rank == root ? 0 : block_bytes));
}

void Cluster::alltoall(uint32_t rank, uint64_t sequence, size_t block_bytes, bool in_place) {
  const Buffers& slot = buffers(rank, sequence, block_bytes, ranks(), ranks());
  CardBench& card = bench(rank);
  auto& receive = card.port.bytes(slot.receive.region);
  std::fill(receive.begin(), receive.end(), uint8_t{0xee});
  auto given = in_place ? receive.begin() : card.port.bytes(slot.send.region).begin();
  for (uint32_t to = 0; to < ranks(); to++) {
    const auto block = pattern_between(sequence, rank, to, 0, block_bytes);
    given = std::copy(block.begin(), block.end(), given);
  }
  peal_submission entry =
      alltoall_entry(members_[rank], sequence, kCookieBase + sequence, block_bytes,
                     in_place ? 0 : slot.send.key, slot.receive.key);
  entry.algorithm = static_cast<uint8_t>(alltoall_algorithm);
  if (in_place) entry.flags = PEAL_SUBMIT_IN_PLACE;
  card.submit(entry);
}

std::string Cluster::check_alltoall(uint32_t rank, uint64_t sequence, size_t block_bytes) {
  std::vector<uint8_t> expected;
  for (uint32_t from = 0; from < ranks(); from++) {
    const auto block = pattern_between(sequence, from, rank, 0, block_bytes);
    expected.insert(expected.end(), block.begin(), block.end());
  }
  return compare_result(rank, sequence, block_bytes, expected);
}

std::string Cluster::check_result(uint32_t rank, uint64_t sequence, size_t block_bytes) {
  return compare_result(rank, sequence, block_bytes,
                        pattern_result(sequence, ranks(), block_bytes));
}

std::string Cluster::compare_result(uint32_t rank, uint64_t sequence, size_t block_bytes,
                                    const std::vector<uint8_t>& expected) {
  const Buffers& slot = buffers_[rank][sequence % kSlots];
  const auto& receive = bench(rank).port.bytes(slot.receive.region);
  const std::string byte =
      "rank " + std::to_string(rank) + " sequence " + std::to_string(sequence) + ": byte ";
  const auto late = slot.scribbled ? first_wrong(receive, {}, kScribble) : -1;
  if (late >= 0) return byte + std::to_string(late) + " was written after the end";
  const auto wrong = first_wrong(slot.scribbled ? slot.result : receive, expected, 0xee);
  if (wrong < 0) return "";
  return byte + std::to_string(wrong) + " (origin " +
         std::to_string(static_cast<size_t>(wrong) / std::max<size_t>(block_bytes, 1)) +
         ") is wrong";
}

void Cluster::scribble_buffers(uint32_t rank, uint64_t sequence) {
  auto& slots = buffers_[rank];
  if (slots.empty() || slots[sequence % kSlots].send.key == 0) return;
  Buffers& slot = slots[sequence % kSlots];
  if (slot.sequence != sequence || slot.scribbled) return;
  auto& send = bench(rank).port.bytes(slot.send.region);
  auto& receive = bench(rank).port.bytes(slot.receive.region);
  if (slot.result.size() != receive.size()) slot.result = HostBytes(receive.size());
  std::copy(receive.begin(), receive.end(), slot.result.begin());
  slot.scribbled = true;
  std::fill(send.begin(), send.end(), kScribble);
  std::fill(receive.begin(), receive.end(), kScribble);
}

// --- moving ---

bool Cluster::move_once() {
  bool moved = false;
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    CardBench& card = bench(rank);
    for (Frame& frame : card.port.take_sent()) {
      if (silent_[rank]) continue;
      moved = true;
      trace_.push_back(frame);
      times_.push_back(card.now);
      wire_.push_back(std::move(frame));
    }
    for (const auto& [context, entry] : card.port.take_completions()) {
      (void)context;
      completions_[rank].push_back(
          {entry.cookie, entry.status, entry.failed_rank, entry.bytes, entry.tag, entry.sequence});
      if (scribble_at_completion) scribble_buffers(rank, entry.sequence);
    }
  }
  for (size_t waiting = wire_.size(); waiting > 0; waiting--) {
    const Frame frame = std::move(wire_.front());
    wire_.pop_front();
    const uint32_t to = emulator::card_of_mac(frame.header.destination);
    if (to >= ranks() || silent_[to]) continue;
    for (uint32_t copies = fate ? fate(frame) : 1; copies > 0; copies--) bench(to).deliver(frame);
  }
  for (uint32_t rank = 0; rank < ranks(); rank++) {
    const size_t held = bench(rank).port.dma_count();
    for (size_t i = 0; i < held; i++) bench(rank).finish_dma();
    moved = moved || held > 0;
  }
  return moved;
}

void Cluster::settle() {
  for (uint64_t turns = 0; move_once(); turns++) {
    if (turns > 1'000'000) throw std::runtime_error("the cluster never settles");
  }
}

void Cluster::set_time(TimeNs now) {
  for (auto& card : benches_) card->now = std::max(card->now, now);
}

bool Cluster::run_until(const std::function<bool()>& done, TimeNs limit_ns) {
  settle();
  const TimeNs limit = bench(0).now + limit_ns;
  while (!done()) {
    TimeNs next = kNever;
    for (uint32_t rank = 0; rank < ranks(); rank++) {
      if (!silent_[rank]) next = std::min(next, card_next_deadline(bench(rank).card()));
    }
    if (next == kNever || next > limit) return false;
    set_time(next);
    for (uint32_t rank = 0; rank < ranks(); rank++) {
      if (!silent_[rank]) bench(rank).advance(0);
    }
    settle();
  }
  return true;
}

bool Cluster::run_until_completions(size_t count, TimeNs limit_ns) {
  return run_until(
      [&] {
        for (uint32_t rank = 0; rank < ranks(); rank++) {
          if (!silent_[rank] && completions_[rank].size() < count) return false;
        }
        return true;
      },
      limit_ns);
}

// --- looking ---

size_t Cluster::sent(peal_packet_type type, peal_operation operation) const {
  return static_cast<size_t>(std::count_if(trace_.begin(), trace_.end(), [&](const Frame& frame) {
    return frame.header.type == type && frame.header.operation == operation;
  }));
}

uint64_t Cluster::total(peal_counter counter) const {
  uint64_t sum = 0;
  for (const auto& card : benches_) sum += card->counter(counter);
  return sum;
}

std::string Cluster::problems() {
  std::string text;
  for (auto& card : benches_) {
    const std::string own = card->problems();
    if (!own.empty()) text += "card " + std::to_string(card->index()) + ": " + own;
  }
  return text;
}

}  // namespace peal::test
