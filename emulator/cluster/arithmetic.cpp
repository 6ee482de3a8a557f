// SPDX-License-Identifier: BSD-2-Clause
#include "emulator/cluster/arithmetic.h"

#include <algorithm>

#include "abi/admin.h"
#include "emulator/cluster/blocks.h"
#include "firmware/p2p_types.h"
#include "peal_config.h"

namespace peal::sim {

namespace {

uint64_t divided_up(uint64_t bytes, uint64_t by) { return bytes == 0 ? 1 : (bytes + by - 1) / by; }

struct Group {
  const CardShape& card;
  uint32_t ranks;
};

// Every rank signals one peer a round.
uint64_t dissemination(const Group& group, uint64_t /*bytes*/) {
  return uint64_t{group.ranks} * rounds_of(group.ranks);
}

// And says farewell to each peer whose signals were awaited.
uint64_t destroy(const Group& group, uint64_t bytes) { return 2 * dissemination(group, bytes); }

// Every block of a piece reaches every other rank once.
uint64_t broadcast_piece(const Group& group, uint64_t /*bytes*/) {
  return uint64_t{group.ranks} * (group.ranks - 1);
}

// Step k of a piece carries min(2^k, N - 2^k) blocks, cut into packets.
uint64_t doubling_piece(const Group& group, uint64_t bytes) {
  uint64_t packets = 0;
  for (uint32_t held = 1; held < group.ranks; held *= 2)
    packets +=
        divided_up(uint64_t{std::min(held, group.ranks - held)} * bytes, group.card.mtu_bytes);
  return group.ranks * packets;
}

// Every packet of the root's block reaches every other rank once; pieces are images, of 128 KiB and
// 32 packets at most, and each that comes back to a place of the channel waits for its credits.
uint64_t binomial(const Group& group, uint64_t bytes) {
  const CardShape& card = group.card;
  const uint64_t image = card.image_bytes;
  const uint64_t packet = image < card.mtu_bytes ? image & ~7u : card.mtu_bytes;
  const uint64_t packets = std::min<uint64_t>({image / packet, (128u << 10) / packet, 32});
  const uint64_t pieces = divided_up(bytes, packets * packet);
  const uint64_t places = 2 * card.piece_window;
  const uint64_t credits =
      pieces <= places ? 0 : divided_up(pieces - places, std::max(card.piece_window / 2, 1u));
  return (group.ranks - 1) * (divided_up(bytes, packet) + credits);
}

// Blocks that step k of Bruck's all-to-all passes on: those whose way has bit k.
uint64_t bruck_blocks(uint32_t ranks, uint64_t lot) {
  uint64_t blocks = 0;
  for (uint64_t way = 0; way < ranks; way++) blocks += (way & lot) != 0;
  return blocks;
}

// Whole ones, and of 2^k that stay together at most eight lots a packet.
uint64_t bruck_piece(const Group& group, uint64_t bytes) {
  uint64_t packets = 0;
  for (uint64_t lot = 1; lot < group.ranks; lot *= 2) {
    const uint64_t blocks = bruck_blocks(group.ranks, lot);
    uint64_t room = bytes == 0 ? blocks : group.card.mtu_bytes / bytes;
    if (bytes > 0 && room >= lot) room = std::min<uint64_t>(room / lot, 8) * lot;
    packets += divided_up(blocks, room);
  }
  return group.ranks * packets;
}

// Every block of a piece makes N - 1 hops.
uint64_t ring_piece(const Group& group, uint64_t /*bytes*/) {
  return uint64_t{group.ranks} * (group.ranks - 1);
}

// Every block of a piece goes straight to its rank.
uint64_t direct_piece(const Group& group, uint64_t /*bytes*/) {
  return uint64_t{group.ranks} * (group.ranks - 1);
}

// Two ranks exchange as many packets each way as the longer block needs, at least one, but none
// where that is short. A piece and the end of its packet's header take a place in so many bytes.
uint64_t pair_packets(const Group& group, const OperationPlan& operation, uint32_t image_bytes,
                      int64_t short_bytes) {
  const uint32_t place = std::min(image_bytes / group.ranks, group.card.mtu_bytes);
  const uint64_t piece = (place & ~7u) - 24;
  uint64_t packets = 0;
  for (uint32_t a = 0; a < group.ranks; a++)
    for (uint32_t b = 0; b < a; b++) {
      const bool to_each = has_block_for_each(operation.operation);
      const uint64_t there = block_length(operation, {a, to_each ? b : 0});
      const uint64_t back = block_length(operation, {b, to_each ? a : 0});
      const uint64_t longer = std::max(there, back);
      if (static_cast<int64_t>(longer) > short_bytes) packets += 2 * divided_up(longer, piece);
    }
  return packets;
}

uint64_t direct_parts(const Group& group, const OperationPlan& operation) {
  return pair_packets(group, operation, group.card.image_bytes, -1);
}

// A packet for each step, of half of the blocks at the most, each behind four bytes; an image has
// room for what steps send and get besides.
uint64_t bruck_parts(const Group& group, const OperationPlan& operation) {
  const CardShape& card = group.card;
  const uint32_t images = 2 * card.piece_window;
  const uint32_t image = card.image_bytes;
  const auto places = [&](uint32_t ranks) {
    return static_cast<uint32_t>(divided_up(2 * rounds_of(ranks), images));
  };
  const uint32_t log = std::min(card.mtu_bytes, image / 2 / places(remembered_addresses())) & ~7u;
  const uint32_t share = group.ranks < 2 ? 4 : log / (group.ranks / 2);
  const uint64_t steps = uint64_t{group.ranks} * rounds_of(group.ranks);
  return steps +
         pair_packets(group, operation, image - places(group.ranks) * log, int64_t{share} - 4);
}

// Blocks of a piece that a card keeps side by side: one of every rank, or also what each
// step sends.
uint32_t one_of_each(uint32_t ranks) { return ranks; }
uint32_t bruck_image(uint32_t ranks) {
  uint64_t blocks = ranks;
  for (uint64_t lot = 1; lot < ranks; lot *= 2) blocks += bruck_blocks(ranks, lot);
  return static_cast<uint32_t>(blocks);
}

// What each algorithm needs: for the whole operation, or for a piece of so many bytes.
struct Model {
  uint8_t operation;
  uint8_t algorithm;
  uint32_t (*image)(uint32_t ranks);  // blocks of a piece; null: not cut
  uint64_t (*packets)(const Group& group, uint64_t bytes);
  uint64_t (*parts)(const Group& group, const OperationPlan& operation) = nullptr;
};

constexpr Model kModels[] = {
    {PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION, nullptr, dissemination},
    {PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION, nullptr, destroy},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, one_of_each, broadcast_piece},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, one_of_each, doubling_piece},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_DIRECT, one_of_each, direct_piece},
    {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING, one_of_each, ring_piece},
    {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, nullptr, binomial},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, bruck_image, bruck_piece},
    {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, one_of_each, direct_piece},
    {PEAL_OPERATION_ALLGATHERV, PEAL_ALGORITHM_DIRECT, nullptr, nullptr, direct_parts},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_DIRECT, nullptr, nullptr, direct_parts},
    {PEAL_OPERATION_ALLTOALLV, PEAL_ALGORITHM_BRUCK, nullptr, nullptr, bruck_parts},
};

}  // namespace

std::vector<uint32_t> algorithms_of(uint32_t operation) {
  std::vector<uint32_t> algorithms;
  for (const Model& model : kModels)
    if (model.operation == operation) algorithms.push_back(model.algorithm);
  return algorithms;
}

std::vector<uint32_t> algorithms_of(uint32_t operation, uint32_t ranks) {
  std::vector<uint32_t> algorithms = algorithms_of(operation);
  std::erase_if(algorithms, [=](uint32_t each) { return !may_run(operation, each, ranks); });
  return algorithms;
}

uint32_t remembered_addresses() { return CONFIG_REMEMBERED_ADDRESSES; }
uint32_t parked_operations() { return CONFIG_PARKED_OPERATIONS; }
uint32_t program_counters() { return CONFIG_QUEUE_COUNTERS; }
uint32_t program_starts() { return CONFIG_QUEUE_STARTS; }
uint32_t requests_at_once() { return p2p::kRequests - p2p::kServices; }

bool may_run(uint32_t operation, uint32_t algorithm, uint32_t ranks) {
  return !talks_to_all(operation, algorithm) ||
         peal_may_talk_to_all(ranks, remembered_addresses()) != 0;
}

CardShape shape_of(const peal_device& device) {
  const uint32_t short_image = 4096 / device.channels;
  return {device.mtu_bytes, (device.channel_bytes - short_image) / (2 * device.piece_window),
          device.channels, device.piece_window};
}

uint32_t rounds_of(uint32_t ranks) {
  uint32_t rounds = 0;
  while ((uint64_t{1} << rounds) < ranks) rounds++;
  return rounds;
}

uint64_t needed_packets(const CardShape& card, uint32_t ranks, const OperationPlan& operation) {
  const Group group = {card, ranks};
  for (const Model& model : kModels) {
    if (model.operation != operation.operation || model.algorithm != operation.algorithm) continue;
    if (model.parts != nullptr) return model.parts(group, operation);
    if (model.image == nullptr) return model.packets(group, operation.block_bytes);
    const uint32_t share = card.image_bytes / model.image(ranks);
    const uint64_t piece = std::min(card.mtu_bytes, share < 8 ? share : share & ~7u);
    const uint64_t pieces = divided_up(operation.block_bytes, piece);
    const uint64_t last = operation.block_bytes - (pieces - 1) * piece;
    return (pieces - 1) * model.packets(group, piece) + model.packets(group, last);
  }
  return 0;
}

uint32_t beginner_of(const OperationPlan& operation) {
  return operation.operation == PEAL_OPERATION_BROADCAST ? operation.root : kEverybody;
}

uint64_t recycling_packets(const CardShape& card, uint32_t ranks,
                           const std::vector<uint32_t>& beginners) {
  const size_t epoch = card.channels / 2;
  uint64_t packets = 0;
  for (size_t end = epoch; end <= beginners.size(); end += epoch) {
    const auto last = beginners.begin() + static_cast<ptrdiff_t>(end);
    if (std::find(last - static_cast<ptrdiff_t>(epoch / 2), last, kEverybody) != last) continue;
    packets += ranks - 1;
    const size_t next = end + epoch;
    if (next < beginners.size() && beginners[next] != beginners[end - 1]) packets += ranks - 1;
  }
  return packets;
}

}  // namespace peal::sim
