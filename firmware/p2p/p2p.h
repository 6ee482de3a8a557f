// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point between members of a group: messages with tags, puts into and gets from memory
// that a key names at its owner, fences. Reliable and exactly once over connections that are
// taken when they are used (Myrinet GM; InfiniBand's reliable connections); nothing is copied
// on the card but what came before its receive: what is not acknowledged is read again, and a
// request is over when all of it is in memory, on both sides. docs/decisions/0029
#pragma once

#include "firmware/card_types.h"
#include "firmware/dma/dma.h"
#include "firmware/p2p/receiving.h"
#include "firmware/p2p/sending.h"

namespace peal::p2p {

// `key`, here and below: of the own memory, held until the request is over; 0: the caller sees to
// it that the memory stays. Own memory was checked by the caller, the other rank's is there.
// `engine`: by which its packets leave, and its answers at the other rank. Order is kept among what
// goes by one.
struct Put {
  // Rank, memory on both sides, and who is told: as a PUT or SIGNAL of a program has them. No
  // bytes: a signal, whose remote key is not looked at. Read before start_put() is back.
  const peal_descriptor& what;
  const Origin& origin;
  RegionId region;  // of the own memory
  uint32_t index;   // its place in its program
};
struct Get {
  Rank from;
  HostAddress to;
  uint64_t bytes;
  uint32_t remote_key;
  uint64_t remote_offset;
  uint32_t key = 0;
};
struct Send {
  Rank to;
  HostAddress from;
  uint64_t bytes;
  uint64_t tag;
  uint32_t key = 0;
  uint8_t engine = 0;
  uint16_t program = 0;  // as a slot's
  uint64_t iteration = 0;
};
// By whatever engine it comes.
struct Receive {
  Rank from;
  HostAddress to;
  uint64_t bytes;  // room
  uint64_t tag;
  bool any_tag;
  uint32_t key = 0;
};
struct Fence {
  Rank to;  // kEverybody: all
};

// May this member talk to that rank at all? Itself included.
[[nodiscard]] bool is_reachable(const Member& member, Rank rank);

// False: no record is free; ask again (counted). The rank is_reachable(). In a group that is
// poisoned they end with PEER_DEAD. Sends to one rank are matched in the order in which they
// are started, engine by engine, and so are receives from one.
[[nodiscard]] bool start_put(Card& card, Member& member, const Put& put, Ticket ticket);
// start_signal(): sending.h
[[nodiscard]] bool start_get(Card& card, Member& member, const Get& get, Ticket ticket);
[[nodiscard]] bool start_send(Card& card, Member& member, const Send& send, Ticket ticket);
[[nodiscard]] bool start_receive(Card& card, Member& member, const Receive& receive, Ticket ticket);
// Over when all puts of this member that were started before are.
[[nodiscard]] bool start_fence(Card& card, Member& member, const Fence& fence, Ticket ticket);

Request* take_over(Card& card);
// A request that is over, and has been handed back; forget_over() when its owner knows. Drained by
// card.cpp at the end of an entry point, until there is none.
inline Request* next_over(Card& card) {
  return card.p2p.over.first == 0 ? nullptr : take_over(card);
}
void forget_over(Card& card, Request& request);

// Bytes are in memory: all that is to be told; forget_noticed() when it has been.
inline Touched<const Noticed> noticed(const Card& card) {
  return {card.p2p.notices, card.p2p.notice_count};
}
inline void forget_noticed(Card& card) { card.p2p.notice_count = 0; }

// A packet, or a transfer, brings one at most, which is asked for before the next one comes. (Where
// copies go on by the timer, whoever finds the place taken tries again.)
inline bool next_missing(MissingPut& one, MissingPut* put) {
  if (one.status == PEAL_STATUS_OK) return false;
  *put = one;
  one = {};
  return true;
}
// What a posted put was refused with. Of its program the iteration has failed: give_up_refused()
// when that has been noted, else it is sent, and refused, again.
inline bool next_refused(Card& card, MissingPut* refused) {
  return next_missing(card.p2p.refused, refused);
}
void give_up_refused(Card& card, const MissingPut& refused);
// The same of a put that another rank skips: take_skipped() when that iteration is noted to have
// failed, else the SKIP comes again.
inline bool next_skipped(Card& card, MissingPut* skipped) {
  return next_missing(card.p2p.skipped, skipped);
}
void take_skipped(Card& card, const MissingPut& skipped);
// The same of a put to the own rank that has failed: end_uncopied() says whether that was noted;
// else it is asked for again.
inline bool next_uncopied(Card& card, MissingPut* uncopied) {
  return next_missing(card.p2p.uncopied, uncopied);
}
void end_uncopied(Card& card, const MissingPut& uncopied, bool noted);

// --- for card.cpp and receive.cpp ---
void start(Card& card);
// A packet of point-to-point; its sender is known, and lives at that address.
peal_counter receive(Card& card, Member& member, Packet* packet, const peal_peer_address& address);
// The connection of which the header names the place, in whatever life; null: there was none.
inline Connection* find_named(Card& card, const peal_wire_header& header) {
  const uint32_t index = header.block_bytes & 0xffff;
  return index < card.p2p.connections_touched ? &card.p2p.connections[index] : nullptr;
}
// A packet of a connection that both sides have: ACK, REFUSED, or one with a number. Its header was
// found to be what those of that connection are.
peal_counter on_connection(Card& card, Connection& connection, Packet* packet);
// (A PUT, as most are: on_usual_put(), receiving.h.)
void on_dma(Card& card, const DmaDone& done);
void on_connection_timer(Card& card, uint32_t index);
void on_timer(Card& card);
// Addresses of ranks that are no peers could not be read: who waits for one ends.
void fail_addresses(Card& card, const Member& member);
// The rest of an entry point: sends what may be sent, ends what must end.
void advance_all(Card& card);
inline void advance(Card& card) {
  const State& state = card.p2p;
  if (state.failing || state.wanted || state.ready_first != 0) advance_all(card);
  card.due.messages = false;
}

}  // namespace peal::p2p
