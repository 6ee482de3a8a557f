// SPDX-License-Identifier: BSD-2-Clause
// The card's control program, whole: a pure event-driven machine. Its runner calls one entry point
// at a time (not thread-safe) and passes the time in; effects leave through the Port. All memory is
// inside the object, sized by Kconfig (memory_budget.h adds it up); construct it in zeroed static
// or mapped memory.
//
// A turn of the runner: on_packet for arrivals, on_submission for ring entries, on_dma_done for
// finished DMA; then on_timer when now >= next_deadline(). Whatever had arrived when the deadline
// was noticed comes first: an answer must be heard before the card asks again, or calls somebody
// dead. What arrives after that does not:
// a card that never catches up must still ask for what it lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "abi/admin.h"
#include "abi/counters.h"
#include "abi/queue.h"
#include "abi/status.h"
#include "abi/window.h"
#include "firmware/port.h"
#include "firmware/timeouts.h"

namespace peal {

// The Kconfig defaults.
CardTimeouts default_timeouts();

struct Card;  // all state; defined in firmware/card_types.h

// Bytes and alignment of a Card, for runners that place it themselves.
size_t card_bytes();
size_t card_alignment();
// The geometry that all cards of a group must share (struct peal_peer_address).
uint32_t card_geometry();
// Starts a card in `memory` (card_bytes() long, aligned, zeroed). The port outlives it. No
// destructor: drop the memory.
Card* card_start(void* memory, Port& port, const CardIdentity& identity,
                 const CardTimeouts& timeouts);

// Fills the device block of a window (all fields but capabilities, context and ring_entries).
void card_describe(const Card& card, peal_device* device);

// --- administration: immediate, no effects on the wire except where said ---
// A host process or driver client, in a slot of the table that its owner chooses: an owner has
// more to let go of than the card knows. NO_RESOURCES when the slot is taken or there is none.
// `client` is the runner's name for whoever is behind the context: contexts of one client share
// what groups that ended leave behind for a while, and cannot take it from other clients.
peal_status card_open_context(Card& card, ContextId context, ClientId client = 0);
// The client is gone: its pending operations end without completions, its live memberships die (the
// death is flooded), its keys go once no DMA refers to them. Memory may be let go when
// card_context_quiet() says so; close is then over and the id may come back from open.
void card_close_context(Card& card, ContextId context, TimeNs now);
[[nodiscard]] bool card_context_quiet(const Card& card, ContextId context);
// Registers `bytes` of the runner's region for the context. The key is generation << 16 | index.
peal_status card_register_memory(Card& card, ContextId context, RegionId region, uint64_t bytes,
                                 uint32_t access, uint32_t* key);
// BUSY while a pending operation uses the key; on OK the region is the runner's again.
peal_status card_unregister_memory(Card& card, ContextId context, uint32_t key, RegionId* region);
// Takes a member slot. `channels` is a region of kChannelsBytes (firmware/channels.h) that belongs
// to the card: it outlives the context, until card_channel_released() has named it.
peal_status card_reserve_group(Card& card, ContextId context, const peal_reserve_group& request,
                               RegionId channels, TimeNs now, peal_peer_address* address);
// Gives a reserved member those of its peers that a connect group has no room for.
peal_status card_add_peers(Card& card, ContextId context, const peal_add_peers& request);
// Gives a member its peers. Post nothing before *all* members are connected (libpeal ends group
// creation with an out-of-band allgather): a member without peers cannot answer probes, and would
// be taken for dead.
peal_status card_connect_group(Card& card, ContextId context, const peal_connect_group& request,
                               TimeNs now);
// Gives a member back without asking anybody (a group that all leave in order is destroyed by an
// operation). Where it was connected already its peers are told that it is dead, and what it has
// pending completes with PEER_DEAD naming itself, once no DMA needs the buffers.
peal_status card_abandon_group(Card& card, ContextId context, uint32_t member, TimeNs now);
// Takes a queue for a program in the context's memory (abi/program.h).
peal_status card_commit_program(Card& card, ContextId context, const peal_commit_program& request,
                                peal_commit_program_reply* reply);
// BUSY while a start of it is not over.
peal_status card_free_program(Card& card, ContextId context, uint32_t program);
// A channel region that the card has let go of since the last call; false when there is none.
bool card_channel_released(Card& card, RegionId* channels);

// --- events ---
// One entry copied from the context's ring. Everything in it is checked; a refused entry completes
// with its status.
void card_on_submission(Card& card, ContextId context, const peal_submission& entry, TimeNs now);
// Takes the packet over. payload_bytes is what the frame held behind the header; `frame_bytes` the
// whole frame's length, for frames too short to have a header (header then points at at least 64
// readable bytes).
void card_on_packet(Card& card, Packet* packet, uint32_t frame_bytes, TimeNs now);
void card_on_dma_done(Card& card, DmaToken token, bool ok, TimeNs now);
void card_on_timer(Card& card, TimeNs now);
[[nodiscard]] TimeNs card_next_deadline(const Card& card);

// --- statistics ---
[[nodiscard]] const uint64_t* card_counters(const Card& card);  // PEAL_COUNTER_COUNT values
const char* card_counter_name(peal_counter counter);
// Submissions accepted from the context and not yet completed: the runner's completion-space rule.
[[nodiscard]] uint32_t card_outstanding(const Card& card, ContextId context);
// For leak checks: packets and DMA records that the card holds now, and open operations; zero when
// nothing is pending, but for sent blocks.
struct CardHolds {
  uint32_t packets;
  uint32_t dma_records;
  uint32_t operations;   // records posted or open in unfinished state
  uint32_t sent_blocks;  // packets besides, that stay to be sent again: those that records name
};
// How many of these the card counts.
[[nodiscard]] uint32_t card_sent_blocks(const Card& card);
[[nodiscard]] CardHolds card_holds(const Card& card);

}  // namespace peal
