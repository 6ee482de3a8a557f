// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/group/recycling_tree.h"

#include "firmware/base/kept.h"
#include "firmware/wire/edge.h"
#include "firmware/wire/wire_check.h"

namespace peal {
namespace {

// A member, as it stands to the root of a tree.
struct Standing {
  uint32_t ranks;
  uint32_t place;   // in the tree that leads down
  uint32_t mirror;  // and in that which leads up
};

Standing standing(const Membership& self, Rank root) {
  return {self.ranks, hopping::place(self.rank, root, self.ranks),
          hopping::place(root, self.rank, self.ranks)};
}

// Hops by which it is told, and tells, that all have; and by which it is told that all below have:
// a bit each.
uint32_t told_all(const Standing& at) {
  return at.place == 0 ? 0 : 1u << hopping::arriving_hop(at.place);
}
uint32_t tells_all(const Standing& at) { return hopping::leaving_hops(at.place, at.ranks); }
uint32_t tells_below(const Standing& at) {
  return at.mirror == 0 ? 0 : 1u << hopping::arriving_hop(at.mirror);
}
uint32_t told_below(const Standing& at) { return hopping::leaving_hops(at.mirror, at.ranks); }

void tell(Card& card, Member& member, uint64_t epoch, Rank root, uint32_t about, uint32_t hops) {
  for (; hops != 0; hops &= hops - 1) {
    const auto hop = static_cast<uint32_t>(__builtin_ctz(hops));
    Peer& to = kept(member.membership.peers[peer_ahead(hop)]);
    Packet* packet = begin_packet(card);
    if (packet == nullptr) {
      edge_skip(to);
      continue;
    }
    peal_wire_header* header = packet->header;
    *header = member.recycling_pattern;
    header->sequence = static_cast<uint32_t>(epoch);
    header->piece = about;
    header->origin = static_cast<uint16_t>(root);
    header->hop = static_cast<uint8_t>(hop);
    if (member.membership.losses) header->flags |= PEAL_PACKET_LOSSES;
    readdress_packet(to.address, header);
    edge_number(to, header);
    count(card, PEAL_COUNTER_SENT_RECYCLE);
    end_packet(card, packet);
  }
}

}  // namespace

void epoch_tree_root(const Membership& self, EpochTree& state, Rank root) {
  state.missing = told_below(standing(self, root)) << 1 | (state.missing & 1);
  state.root = static_cast<uint16_t>(root);
  state.told = false;
}

peal_wire_header pattern_of_recycling(const Membership& self) {
  peal_wire_header pattern =
      operation_pattern(self, PEAL_OPERATION_RECYCLE, kRecyclingAlgorithm, PEAL_PACKET_SIGNAL,
                        signature_of(self, PEAL_OPERATION_RECYCLE, kRecyclingAlgorithm, 0, 0), 0);
  pattern.flags = PEAL_PACKET_NUMBERED;
  return pattern;
}

peal_counter check_tree_edge(const Membership& self, const peal_wire_header& header) {
  if (header.piece > PEAL_RECYCLE_ALL) return PEAL_COUNTER_DROP_PIECE;
  if (header.origin >= self.ranks) return PEAL_COUNTER_DROP_ORIGIN;
  if (header.hop >= self.rounds) return PEAL_COUNTER_DROP_HOP;
  const Standing at = standing(self, header.origin);
  const bool asks = header.type == PEAL_PACKET_NACK;
  uint32_t hops;
  if (header.piece == PEAL_RECYCLE_BELOW) {
    hops = asks ? tells_below(at) : told_below(at);
  } else {
    hops = asks ? tells_all(at) : told_all(at);
  }
  if ((hops >> header.hop & 1) == 0) return PEAL_COUNTER_DROP_HOP;
  const uint32_t entry = asks ? peer_ahead(header.hop) : peer_behind(header.hop);
  const bool expected = header.sender == self.peers[entry].address.rank;
  return expected ? kPacketGood : PEAL_COUNTER_DROP_SENDER;
}

void signal_below(Card& card, Member& member, uint64_t epoch, Rank root) {
  const Standing at = standing(member.membership, root);
  tell(card, member, epoch, root, PEAL_RECYCLE_BELOW, tells_below(at));
}

void signal_all_by(Card& card, Member& member, uint64_t epoch, Rank root, uint32_t hop) {
  tell(card, member, epoch, root, PEAL_RECYCLE_ALL, 1u << hop);
}

void signal_all(Card& card, Member& member, uint64_t epoch, Rank root) {
  const Standing at = standing(member.membership, root);
  tell(card, member, epoch, root, PEAL_RECYCLE_ALL, tells_all(at));
}

void tell_again(Card& card, const Membership& self, const peal_wire_header& question) {
  const peal_wire_header pattern = pattern_of_recycling(self);
  const PacketKind kind = {pattern, PEAL_PACKET_SIGNAL, question.sequence};
  const SmallPacket what = {.piece = question.piece,
                            .origin = question.origin,
                            .hop = question.hop,
                            .flags = PEAL_PACKET_REPAIR};
  const peal_peer_address& to = self.peers[peer_ahead(question.hop)].address;
  if (send_small(card, self, to, kind, what)) count(card, PEAL_COUNTER_SENT_REPAIR);
}

}  // namespace peal
