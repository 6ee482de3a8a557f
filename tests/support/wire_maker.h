// SPDX-License-Identifier: BSD-2-Clause
// Valid packets of a played peer, to be delivered as they are or changed field by field. What a
// test changes it seals again (seal), so that the change is met by its own check and not by the
// checksum's.
#pragma once

#include "tests/support/card_bench.h"
#include "tests/support/frame.h"

namespace peal::test {

// What a packet's signature is made from; all ranks of an operation agree on it.
struct OperationShape {
  peal_operation operation;
  peal_algorithm algorithm;
  uint64_t block_bytes;
  uint32_t root = 0;
};

inline constexpr OperationShape kBarrierShape{PEAL_OPERATION_BARRIER, PEAL_ALGORITHM_DISSEMINATION,
                                              0};
inline constexpr OperationShape kDestroyShape{PEAL_OPERATION_DESTROY, PEAL_ALGORITHM_DISSEMINATION,
                                              0};

inline OperationShape broadcast_shape(uint64_t block_bytes) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_ALL_TO_ALL_BROADCAST, block_bytes};
}
inline OperationShape bruck_shape(uint64_t block_bytes) {
  return {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_BRUCK, block_bytes};
}
inline OperationShape direct_shape(uint64_t block_bytes) {
  return {PEAL_OPERATION_ALLTOALL, PEAL_ALGORITHM_DIRECT, block_bytes};
}
inline OperationShape ring_shape(uint64_t block_bytes) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RING, block_bytes};
}
inline OperationShape doubling_shape(uint64_t block_bytes) {
  return {PEAL_OPERATION_ALLGATHER, PEAL_ALGORITHM_RECURSIVE_DOUBLING, block_bytes};
}
inline OperationShape binomial_shape(uint64_t block_bytes, uint32_t root) {
  return {PEAL_OPERATION_BROADCAST, PEAL_ALGORITHM_BINOMIAL, block_bytes, root};
}

class WireMaker {
 public:
  // Makes packets for this member of this card.
  explicit WireMaker(Membership member) : member_(std::move(member)) {}

  [[nodiscard]] Frame signal(uint32_t sender, OperationShape shape, uint32_t sequence,
                             uint32_t round) const;
  // All from the sender down have finished the epoch; all have. (From the rank 2^hop behind, in the
  // tree of that root.)
  [[nodiscard]] Frame recycle_below(uint32_t epoch, uint32_t root, uint32_t hop) const;
  [[nodiscard]] Frame recycle_all(uint32_t epoch, uint32_t root, uint32_t hop) const;
  // Asks this member for one of them, from the rank 2^hop ahead; and the answer "not yet" of one
  // behind.
  [[nodiscard]] Frame recycle_nack(uint32_t about, uint32_t epoch, uint32_t root,
                                   uint32_t hop) const;
  [[nodiscard]] Frame recycle_not_yet(uint32_t about, uint32_t epoch, uint32_t root, uint32_t hop,
                                      uint32_t asked_us = 0, uint32_t reason = PEAL_NOT_YET_WAITS,
                                      uint32_t patience_ms = 0) const;
  // A packet of the all-to-all broadcast: hop and sender are what the origin's tree says they are.
  [[nodiscard]] Frame hopping(OperationShape shape, uint32_t sequence, uint32_t piece,
                              uint32_t origin, std::vector<uint8_t> payload) const;
  // A packet of recursive doubling: the sender is what step and rank say it is.
  [[nodiscard]] Frame doubling(OperationShape shape, uint32_t sequence, uint32_t piece,
                               uint32_t step, uint32_t fragment,
                               std::vector<uint8_t> payload) const;
  // A packet of a broadcast, from this member's parent in the root's tree.
  [[nodiscard]] Frame binomial(OperationShape shape, uint32_t sequence, uint32_t piece,
                               uint32_t fragment, std::vector<uint8_t> payload) const;
  // All below the sender, a child by that hop, have so many pieces of a broadcast.
  [[nodiscard]] Frame credit(uint32_t sender, OperationShape shape, uint32_t sequence, uint32_t hop,
                             uint32_t pieces) const;
  // A packet of Bruck's all-to-all, from the rank that the step says.
  [[nodiscard]] Frame bruck(OperationShape shape, uint32_t sequence, uint32_t piece, uint32_t step,
                            uint32_t fragment, std::vector<uint8_t> payload) const;
  // A packet of a direct all-to-all.
  [[nodiscard]] Frame direct(uint32_t sender, OperationShape shape, uint32_t sequence,
                             uint32_t piece, std::vector<uint8_t> payload) const;
  // A packet of a ring, from the left neighbour, which holds so many back.
  [[nodiscard]] Frame ring(OperationShape shape, uint32_t sequence, uint32_t piece, uint32_t origin,
                           std::vector<uint8_t> payload, uint32_t held_back = 0) const;
  [[nodiscard]] Frame nack(uint32_t sender, OperationShape shape, uint32_t sequence, uint32_t piece,
                           uint32_t origin, uint32_t hop, uint64_t fragments = 1,
                           uint32_t credit = 0) const;
  [[nodiscard]] Frame not_yet(uint32_t sender, OperationShape shape, uint32_t sequence,
                              uint32_t piece, uint32_t origin, uint32_t hop, uint32_t asked_us = 0,
                              uint32_t reason = PEAL_NOT_YET_WAITS, uint32_t patience_ms = 0) const;
  [[nodiscard]] Frame refuse(uint32_t sender, OperationShape shape, uint32_t sequence,
                             uint32_t rank) const;
  [[nodiscard]] Frame death(uint32_t sender, uint32_t rank) const;
  [[nodiscard]] Frame probe(uint32_t sender) const;
  [[nodiscard]] Frame alive(uint32_t sender) const;
  [[nodiscard]] Frame farewell(uint32_t sender) const;
  // FAILURE, or KNOWN.
  [[nodiscard]] Frame failed(uint32_t sender, const peal_failed& body,
                             peal_packet_type type = PEAL_PACKET_FAILURE) const;
  // Makes it the answer to a NACK.
  static void make_repair(Frame& frame);
  // Makes it the packet of that number on its edge, or, of no data and no signal, what says so
  // many.
  [[nodiscard]] static Frame numbered(Frame frame, uint8_t number);

  // The sender that the hopping tree gives this member for an origin, and the hop.
  [[nodiscard]] uint32_t parent(uint32_t origin) const;
  [[nodiscard]] uint32_t hop_from(uint32_t origin) const;

 private:
  [[nodiscard]] Frame step_packet(uint32_t sender, OperationShape shape, uint32_t sequence,
                                  uint32_t piece, uint32_t step, uint32_t fragment,
                                  std::vector<uint8_t> payload) const;
  [[nodiscard]] Frame recycling(peal_packet_type type, uint32_t about, uint32_t epoch,
                                uint32_t root, uint32_t hop) const;
  [[nodiscard]] Frame base(peal_packet_type type, uint32_t sender, OperationShape shape,
                           uint32_t sequence) const;

  Membership member_;
};

// What packets of the rank that the test plays must carry.
uint32_t identity_of(uint32_t played_rank);

// The signature as docs describe it, computed here once more: CRC32C of three words (operation << 8
// | algorithm, root, block bytes), seeded with that of four (the group id's two halves, hash of the
// choice table, geometry); of no operation, the seed alone.
uint32_t reference_signature(const Membership& member, OperationShape shape);

}  // namespace peal::test
