// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/queue/point_to_point.h"

#include "firmware/p2p/p2p.h"

namespace peal::queue {
namespace {

class PointToPoint final : public Network {
 public:
  [[nodiscard]] bool reaches(const Member& member, Rank rank) const override {
    return p2p::is_reachable(member, rank);
  }
  bool put(Card& card, Member& member, const Put& put, Ticket ticket) override {
    return p2p::start_put(card, member,
                          {.to = put.to,
                           .from = put.from,
                           .bytes = put.bytes,
                           .remote_key = put.remote_key,
                           .remote_offset = put.remote_offset,
                           .notice = put.notice,
                           .key = put.key},
                          of_queue(ticket));
  }
  bool send(Card& card, Member& member, const Message& message, Ticket ticket) override {
    return p2p::start_send(card, member,
                           {.to = message.rank,
                            .from = message.memory,
                            .bytes = message.bytes,
                            .tag = message.tag,
                            .key = message.key},
                           of_queue(ticket));
  }
  bool receive(Card& card, Member& member, const Message& message, Ticket ticket) override {
    return p2p::start_receive(card, member,
                              {.from = message.rank,
                               .to = message.memory,
                               .bytes = message.bytes,
                               .tag = message.tag,
                               .any_tag = false,
                               .key = message.key},
                              of_queue(ticket));
  }

 private:
  static p2p::Ticket of_queue(Ticket ticket) {
    return {.owner = p2p::Owner::kQueue,
            .queue = ticket.queue,
            .descriptor = ticket.task,
            .iteration = 0};
  }
};

constinit PointToPoint network;

}  // namespace

Network& point_to_point() { return network; }

}  // namespace peal::queue
