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

struct Network {
  // May the member talk to that rank at all?
  bool (*reaches)(const Member& member, Rank rank);
  // False: there is no record for it now; asked again later.
  bool (*put)(Card& card, Member& member, const Put& put, Ticket ticket);
  // A remote signal that is over at once. False: as a put() it may go.
  bool (*signal)(Card& card, const Member& member, const Signal& signal);
  bool (*send)(Card& card, Member& member, const Send& send, Ticket ticket);
  bool (*receive)(Card& card, Member& member, const Receive& receive, Ticket ticket);
  // Of a queue whose start has failed: messages that wait for their other half end, where that does
  // not know of them.
  void (*give_up)(Card& card, uint16_t queue);
  // Iterations have failed: messages of theirs that came before are thrown away.
  void (*throw_away)(Card& card, Member& member);
  // Are bytes that were put for these iterations of the program being written?
  bool (*is_landing)(const Card& card, const Member& member, uint16_t slot, uint64_t from,
                     uint64_t to);
};

// Before any program is committed; it outlives the card.
inline void use_network(Card& card, const Network& network) { card.queues.network = &network; }

struct Scope {
  Card& card;
  Member& member;
  Queue& queue;
};

}  // namespace peal::queue
