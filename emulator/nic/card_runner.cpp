// SPDX-License-Identifier: BSD-2-Clause
// A card's turn: DMA completions, arrivals, submissions; then timers, and the hosts that sleep are
// told.
#include "emulator/nic/card_runner.h"

#include <rte_prefetch.h>

#include <algorithm>
#include <cassert>
#include <cstring>
#include <new>

#include "emulator/common/packet_text.h"

namespace peal::nic {
namespace {

constexpr uint32_t kArrivals = 32;            // packets a turn
constexpr uint32_t kSubmissionsPerTurn = 16;  // from each window

void* map_card_memory() {
  // Zeroed, page-aligned, and never touched where the card does not use it.
  void* const memory = mmap(nullptr, card_bytes(), PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace

bool CardPort::dma_read(HostAddress from, uint8_t* card, uint32_t bytes, DmaToken token) {
  if (pending_count_ == kQueue) return false;
  const bool ok = regions_.copy_in(from, card, bytes);
  queues_[filling_][pending_count_++] = {token, ok};
  return true;
}

bool CardPort::dma_write(const uint8_t* card, HostAddress to, uint32_t bytes, DmaToken token) {
  if (pending_count_ == kQueue) return false;
  const bool ok = regions_.copy_out(card, to, bytes);
  queues_[filling_][pending_count_++] = {token, ok};
  return true;
}

uint32_t CardPort::take_done(const DmaDone** done) {
  *done = queues_[filling_].data();
  const uint32_t count = pending_count_;
  filling_ ^= 1;
  pending_count_ = 0;
  return count;
}

CardRunner::CardRunner(uint32_t index, PacketPool& pool, Wire& wire, Checksums checksums,
                       const CardTimeouts& timeouts, uint32_t incarnation)
    : index_(index),
      wire_(wire),
      regions_(emulator::kRegionsPerCard),
      port_(index, pool, wire, regions_, checksums),
      memory_(map_card_memory()),
      card_(start(memory_, port_, index, incarnation, timeouts)),
      admin_(*card_, regions_) {
  port_.set_admin(&admin_);
  refresh_deadline();
}

CardRunner::~CardRunner() { munmap(memory_, card_bytes()); }

Card* CardRunner::start(void* memory, Port& port, uint32_t index, uint32_t incarnation,
                        const CardTimeouts& timeouts) {
  CardIdentity identity = {};
  emulator::card_mac(index, identity.mac);
  identity.incarnation = incarnation;
  identity.index = static_cast<uint16_t>(index);
  return card_start(memory, port, identity, timeouts);
}

bool CardRunner::serve(TimeNs now) {
  bool any = false;
  if (port_.has_done()) {
    const CardPort::DmaDone* done = nullptr;
    const uint32_t count = port_.take_done(&done);
    for (uint32_t i = 0; i < count; i++) card_on_dma_done(*card_, done[i].token, done[i].ok, now);
    any = true;
  }
  if (wire_.has_frames(index_)) {
    Packet* packets[kArrivals];
    const uint32_t count = wire_.receive(index_, packets, kArrivals);
    for (uint32_t i = 0; i < count; i++) {
      if (i + 1 < count) rte_prefetch0(packets[i + 1]->header);
      const auto frame_bytes =
          static_cast<uint32_t>(sizeof(peal_wire_header)) + packets[i]->payload_bytes;
      card_on_packet(*card_, packets[i], frame_bytes, now);
    }
    any = true;
  }
  any |= admin_.poll_windows(kSubmissionsPerTurn, now);
  cut_short_ = admin_.has_unread_window();
  served_ = any;
  return any;
}

// How many turns it takes to serve what waits now. One more, because a peer that is asked in one
// turn answers in the next.
uint32_t CardRunner::turns_to_serve() const {
  return std::max(wire_.frames(index_) / kArrivals,
                  emulator::Admin::kRingEntries / kSubmissionsPerTurn) +
         2;
}

void CardRunner::run_timers(TimeNs now, bool quiet) {
  if (!served_ && now < deadline_ns_) return;
  if (now >= card_next_deadline(*card_)) {
    if (patience_ == 0) patience_ = turns_to_serve();
    if ((quiet && !cut_short_) || --patience_ == 0) {
      patience_ = 0;
      card_on_timer(*card_, now);
    }
  }
  refresh_deadline();
  admin_.flush_windows();
}

}  // namespace peal::nic
