// SPDX-License-Identifier: BSD-2-Clause
// What a queue asks of whoever carries its messages, reliably and in order: point-to-point
// (firmware/p2p), or a test that writes down what was asked.
#pragma once

#include "firmware/card_types.h"
#include "firmware/p2p_types.h"

namespace peal::queue {

using p2p::Notice;

// `key`, here and below: of the own memory, held until the task is over; 0: there is none.
// Own memory to a rank's, where its key and bounds are looked at; of no bytes: a notice alone.
struct Put {
  Rank to;
  HostAddress from;
  uint64_t bytes;
  uint32_t key;
  uint32_t remote_key;
  uint64_t remote_offset;
  Notice notice;
};

struct Message {
  Rank rank;  // to whom, or from whom
  HostAddress memory;
  uint64_t bytes;
  uint32_t key;
  uint64_t tag;
};

// Whose a task is; handed back when it is over (tasks.h, task_over()).
struct Ticket {
  uint16_t queue;  // index
  uint16_t task;
};

class Network {
 public:
  // May the member talk to that rank at all?
  [[nodiscard]] virtual bool reaches(const Member& member, Rank rank) const = 0;
  // False: there is no record for it now; asked again later.
  [[nodiscard]] virtual bool put(Card& card, Member& member, const Put& put, Ticket ticket) = 0;
  [[nodiscard]] virtual bool send(Card& card, Member& member, const Message& message,
                                  Ticket ticket) = 0;
  [[nodiscard]] virtual bool receive(Card& card, Member& member, const Message& message,
                                     Ticket ticket) = 0;

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
