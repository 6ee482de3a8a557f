// SPDX-License-Identifier: BSD-2-Clause
// What a queue asks of whoever carries its messages, reliably and in order: point-to-point
// (firmware/p2p), or a test that writes down what was asked.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p/p2p.h"

namespace peal::queue {

using p2p::Notice;
using p2p::Put;
using p2p::Receive;
using p2p::Send;
using p2p::Signal;

// A ticket says whose a task is; it is handed back when that is over (tasks.h, task_over()).
using p2p::Ticket;

class Network {
 public:
  // May the member talk to that rank at all?
  [[nodiscard]] virtual bool reaches(const Member& member, Rank rank) const = 0;
  // False: there is no record for it now; asked again later.
  [[nodiscard]] virtual bool put(Card& card, Member& member, const Put& put,
                                 Ticket ticket) = 0;
  // A remote signal that is over at once. False: as a put() it may go.
  [[nodiscard]] virtual bool signal(Card& card, Member& member, const Signal& signal) = 0;
  [[nodiscard]] virtual bool send(Card& card, Member& member, const Send& send,
                                  Ticket ticket) = 0;
  [[nodiscard]] virtual bool receive(Card& card, Member& member, const Receive& receive,
                                     Ticket ticket) = 0;
  // Of a queue whose start has failed: messages that wait for their other half end, where that does
  // not know of them.
  virtual void give_up(Card& card, Member& member, uint16_t queue) = 0;
  // Iterations have failed: messages of theirs that came before are thrown away.
  virtual void throw_away(Card& card, Member& member) = 0;
  // Are bytes that were put for these iterations of the program being written?
  [[nodiscard]] virtual bool is_landing(const Card& card, const Member& member, uint16_t name,
                                        uint64_t from, uint64_t to) const = 0;

 protected:
  ~Network() = default;
};

// Before any program is committed; it outlives the card.
inline void use_network(Card& card, Network& network) { card.queues.network = &network; }

struct Scope {
  Card& card;
  Member& member;
  Queue& queue;
};

}  // namespace peal::queue
