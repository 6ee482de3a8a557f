// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/point_to_point.h"

namespace peal::queue {
namespace {

class PointToPoint final : public Network {
 public:
  [[nodiscard]] bool reaches(const Member& member, Rank rank) const override {
    return p2p::is_reachable(member, rank);
  }
  bool put(Card& card, Member& member, const Put& put, const Ticket& ticket) override {
    return p2p::start_put(card, member, put, ticket);
  }
  bool send(Card& card, Member& member, const Send& send, const Ticket& ticket) override {
    return p2p::start_send(card, member, send, ticket);
  }
  bool receive(Card& card, Member& member, const Receive& receive, const Ticket& ticket) override {
    return p2p::start_receive(card, member, receive, ticket);
  }
};

constinit PointToPoint network;

}  // namespace

Network& point_to_point() { return network; }

}  // namespace peal::queue
