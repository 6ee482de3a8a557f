// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/point_to_point.h"

#include "firmware/p2p/abandoned.h"

namespace peal::queue {
namespace {

class PointToPoint final : public Network {
 public:
  [[nodiscard]] bool reaches(const Member& member, Rank rank) const override {
    return p2p::is_reachable(member, rank);
  }
  bool put(Card& card, Member& member, const Put& put, Ticket ticket) override {
    return p2p::start_put(card, member, put, ticket);
  }
  bool signal(Card& card, Member& member, const Signal& signal) override {
    return p2p::start_signal(card, member, signal);
  }
  bool send(Card& card, Member& member, const Send& send, Ticket ticket) override {
    return p2p::start_send(card, member, send, ticket);
  }
  bool receive(Card& card, Member& member, const Receive& receive, Ticket ticket) override {
    return p2p::start_receive(card, member, receive, ticket);
  }
  void give_up(Card& card, Member&, uint16_t queue) override { p2p::give_up_messages(card, queue); }
  void throw_away(Card& card, Member& member) override { p2p::throw_away_announced(card, member); }
  [[nodiscard]] bool is_landing(const Card& card, const Member& member, uint16_t name,
                                uint64_t from, uint64_t to) const override {
    return p2p::is_landing(card, member, static_cast<uint16_t>(name + 1), from, to);
  }
};

constinit PointToPoint the_network;

}  // namespace

Network& point_to_point() { return the_network; }

}  // namespace peal::queue
