// SPDX-License-Identifier: BSD-2-Clause
// Valid packets, field by field as abi/wire.h says.
#include "tests/support/wire_maker.h"

#include <bit>
#include <cstring>

#include "emulator/common/packet_text.h"

namespace peal::test {
namespace {

peal_not_yet not_yet_body(uint32_t asked_us, uint32_t reason, uint32_t patience_ms) {
  return {asked_us, static_cast<uint16_t>(reason), static_cast<uint16_t>(patience_ms)};
}

constexpr OperationShape kRecycleShape{PEAL_OPERATION_RECYCLE, PEAL_ALGORITHM_BINOMIAL, 0};
constexpr OperationShape kNoShape{PEAL_OPERATION_NONE, PEAL_ALGORITHM_NONE, 0};

template <typename T>
void set_payload(Frame& frame, const T& value) {
  frame.payload.resize(sizeof(value));
  std::memcpy(frame.payload.data(), &value, sizeof(value));
}

Frame sealed(Frame frame) {
  seal(frame);
  return frame;
}

}  // namespace

uint32_t identity_of(uint32_t played_rank) {
  const peal_peer_address address = CardBench::played_address(played_rank);
  return peal_identity(&address);
}

uint32_t reference_signature(const Membership& member, OperationShape shape) {
  const uint32_t seed_words[4] = {static_cast<uint32_t>(member.group),
                                  static_cast<uint32_t>(member.group >> 32), kChoiceHash,
                                  member.address.geometry};
  const uint32_t seed = reference_crc32c(seed_words, sizeof(seed_words), 0);
  if (shape.operation == PEAL_OPERATION_NONE) return seed;
  const uint32_t words[3] = {
      static_cast<uint32_t>(shape.operation) << 8 | static_cast<uint32_t>(shape.algorithm),
      shape.root, static_cast<uint32_t>(shape.block_bytes)};
  return reference_crc32c(words, sizeof(words), seed);
}

Frame WireMaker::base(peal_packet_type type, uint32_t sender, OperationShape shape,
                      uint32_t sequence) const {
  Frame frame;
  peal_wire_header& header = frame.header;
  const peal_peer_address& from = member_.everybody.at(sender);
  std::memcpy(header.destination, member_.address.mac, PEAL_MAC_BYTES);
  std::memcpy(header.source, from.mac, PEAL_MAC_BYTES);
  header.ethertype = __builtin_bswap16(PEAL_ETHERTYPE);
  header.version = PEAL_WIRE_VERSION;
  header.type = static_cast<uint8_t>(type);
  header.group = static_cast<uint32_t>(member_.group);
  header.member = member_.handle();
  header.identity = peal_identity(&from);
  header.sequence = sequence;
  header.sender = static_cast<uint16_t>(sender);
  header.operation = static_cast<uint8_t>(shape.operation);
  header.algorithm = static_cast<uint8_t>(shape.algorithm);
  header.block_bytes = static_cast<uint32_t>(shape.block_bytes);
  header.signature = reference_signature(member_, shape);
  header.origin = static_cast<uint16_t>(shape.root);
  return frame;
}

uint32_t WireMaker::parent(uint32_t origin) const {
  const uint32_t place = (member_.rank + member_.ranks - origin) % member_.ranks;
  const uint32_t above = place & ~std::bit_floor(place);
  return (origin + above) % member_.ranks;
}

uint32_t WireMaker::hop_from(uint32_t origin) const {
  const uint32_t place = (member_.rank + member_.ranks - origin) % member_.ranks;
  return static_cast<uint32_t>(std::bit_width(place)) - 1;
}

Frame WireMaker::signal(uint32_t sender, OperationShape shape, uint32_t sequence,
                        uint32_t round) const {
  Frame frame = base(PEAL_PACKET_SIGNAL, sender, shape, sequence);
  frame.header.hop = static_cast<uint8_t>(round);
  seal(frame);
  return frame;
}

Frame WireMaker::recycling(peal_packet_type type, uint32_t about, uint32_t epoch, uint32_t root,
                           uint32_t hop) const {
  const uint32_t distance = 1u << hop;
  const uint32_t ahead = type == PEAL_PACKET_NACK ? distance : member_.ranks - distance;
  Frame frame = base(type, (member_.rank + ahead) % member_.ranks, kRecycleShape, epoch);
  frame.header.piece = about;
  frame.header.origin = static_cast<uint16_t>(root);
  frame.header.hop = static_cast<uint8_t>(hop);
  if (type == PEAL_PACKET_NACK) set_payload(frame, peal_nack{});
  seal(frame);
  return frame;
}

Frame WireMaker::recycle_below(uint32_t epoch, uint32_t root, uint32_t hop) const {
  return recycling(PEAL_PACKET_SIGNAL, PEAL_RECYCLE_BELOW, epoch, root, hop);
}

Frame WireMaker::recycle_all(uint32_t epoch, uint32_t root, uint32_t hop) const {
  return recycling(PEAL_PACKET_SIGNAL, PEAL_RECYCLE_ALL, epoch, root, hop);
}

Frame WireMaker::recycle_nack(uint32_t about, uint32_t epoch, uint32_t root, uint32_t hop) const {
  return recycling(PEAL_PACKET_NACK, about, epoch, root, hop);
}

Frame WireMaker::recycle_not_yet(uint32_t about, uint32_t epoch, uint32_t root, uint32_t hop,
                                 uint32_t asked_us, uint32_t reason, uint32_t patience_ms) const {
  Frame frame = recycling(PEAL_PACKET_NOT_YET, about, epoch, root, hop);
  set_payload(frame, not_yet_body(asked_us, reason, patience_ms));
  seal(frame);
  return frame;
}

Frame WireMaker::hopping(OperationShape shape, uint32_t sequence, uint32_t piece, uint32_t origin,
                         std::vector<uint8_t> payload) const {
  Frame frame = base(PEAL_PACKET_DATA, parent(origin), shape, sequence);
  frame.header.piece = piece;
  frame.header.origin = static_cast<uint16_t>(origin);
  frame.header.hop = static_cast<uint8_t>(hop_from(origin));
  frame.payload = std::move(payload);
  seal(frame);
  return frame;
}

Frame WireMaker::step_packet(uint32_t sender, OperationShape shape, uint32_t sequence,
                             uint32_t piece, uint32_t step, uint32_t fragment,
                             std::vector<uint8_t> payload) const {
  Frame frame = base(PEAL_PACKET_DATA, sender, shape, sequence);
  frame.header.origin = frame.header.sender;
  frame.header.piece = piece;
  frame.header.hop = static_cast<uint8_t>(step);
  frame.header.fragment = static_cast<uint8_t>(fragment);
  frame.payload = std::move(payload);
  seal(frame);
  return frame;
}

Frame WireMaker::doubling(OperationShape shape, uint32_t sequence, uint32_t piece, uint32_t step,
                          uint32_t fragment, std::vector<uint8_t> payload) const {
  const uint32_t distance = 1u << step;
  const uint32_t sender = std::has_single_bit(member_.ranks)
                              ? member_.rank ^ distance
                              : (member_.rank + distance) % member_.ranks;
  return step_packet(sender, shape, sequence, piece, step, fragment, std::move(payload));
}

Frame WireMaker::bruck(OperationShape shape, uint32_t sequence, uint32_t piece, uint32_t step,
                       uint32_t fragment, std::vector<uint8_t> payload) const {
  const uint32_t sender = (member_.rank + (1u << step)) % member_.ranks;
  return step_packet(sender, shape, sequence, piece, step, fragment, std::move(payload));
}

Frame WireMaker::binomial(OperationShape shape, uint32_t sequence, uint32_t piece,
                          uint32_t fragment, std::vector<uint8_t> payload) const {
  Frame frame = hopping(shape, sequence, piece, shape.root, std::move(payload));
  frame.header.fragment = static_cast<uint16_t>(fragment);
  seal(frame);
  return frame;
}

Frame WireMaker::credit(uint32_t sender, OperationShape shape, uint32_t sequence, uint32_t hop,
                        uint32_t pieces) const {
  Frame frame = signal(sender, shape, sequence, hop);
  frame.header.piece = pieces;
  seal(frame);
  return frame;
}

Frame WireMaker::direct(uint32_t sender, OperationShape shape, uint32_t sequence, uint32_t piece,
                        std::vector<uint8_t> payload) const {
  Frame frame = base(PEAL_PACKET_DATA, sender, shape, sequence);
  frame.header.origin = frame.header.sender;
  frame.header.piece = piece;
  frame.payload = std::move(payload);
  seal(frame);
  return frame;
}

Frame WireMaker::ring(OperationShape shape, uint32_t sequence, uint32_t piece, uint32_t origin,
                      std::vector<uint8_t> payload, uint32_t held_back) const {
  const uint32_t left = (member_.rank + member_.ranks - 1) % member_.ranks;
  Frame frame = direct(left, shape, sequence, piece, std::move(payload));
  frame.header.origin = static_cast<uint16_t>(origin);
  frame.header.fragment = static_cast<uint8_t>(held_back);
  seal(frame);
  return frame;
}

Frame WireMaker::nack(uint32_t sender, OperationShape shape, uint32_t sequence, uint32_t piece,
                      uint32_t origin, uint32_t hop, uint64_t fragments, uint32_t credit) const {
  Frame frame = base(PEAL_PACKET_NACK, sender, shape, sequence);
  frame.header.piece = piece;
  frame.header.origin = static_cast<uint16_t>(origin);
  frame.header.hop = static_cast<uint8_t>(hop);
  peal_nack nack{};
  nack.fragments = fragments;
  nack.credit = credit;
  set_payload(frame, nack);
  seal(frame);
  return frame;
}

Frame WireMaker::not_yet(uint32_t sender, OperationShape shape, uint32_t sequence, uint32_t piece,
                         uint32_t origin, uint32_t hop, uint32_t asked_us, uint32_t reason,
                         uint32_t patience_ms) const {
  Frame frame = base(PEAL_PACKET_NOT_YET, sender, shape, sequence);
  set_payload(frame, not_yet_body(asked_us, reason, patience_ms));
  frame.header.piece = piece;
  frame.header.origin = static_cast<uint16_t>(origin);
  frame.header.hop = static_cast<uint8_t>(hop);
  seal(frame);
  return frame;
}

Frame WireMaker::refuse(uint32_t sender, OperationShape shape, uint32_t sequence,
                        uint32_t rank) const {
  Frame frame = base(PEAL_PACKET_REFUSE, sender, shape, sequence);
  set_payload(frame, peal_verdict{rank, PEAL_STATUS_MISMATCH});
  return sealed(frame);
}

Frame WireMaker::death(uint32_t sender, uint32_t rank) const {
  Frame frame = base(PEAL_PACKET_DEATH, sender, kNoShape, 0);
  set_payload(frame, peal_verdict{rank, PEAL_STATUS_PEER_DEAD});
  return sealed(frame);
}

Frame WireMaker::failed(uint32_t sender, const peal_failed& body, peal_packet_type type) const {
  Frame frame = base(type, sender, kNoShape, 0);
  set_payload(frame, body);
  return sealed(frame);
}

Frame WireMaker::probe(uint32_t sender) const {
  return sealed(base(PEAL_PACKET_PROBE, sender, kNoShape, 0));
}

Frame WireMaker::alive(uint32_t sender) const {
  return sealed(base(PEAL_PACKET_ALIVE, sender, kNoShape, 0));
}

Frame WireMaker::farewell(uint32_t sender) const {
  return sealed(base(PEAL_PACKET_FAREWELL, sender, kNoShape, 0));
}

Frame WireMaker::numbered(Frame frame, uint8_t number) {
  frame.header.flags |= PEAL_PACKET_NUMBERED;
  frame.header.edge = number;
  seal(frame);
  return frame;
}

void WireMaker::make_repair(Frame& frame) {
  frame.header.flags |= PEAL_PACKET_REPAIR;
  seal(frame);
}

}  // namespace peal::test
