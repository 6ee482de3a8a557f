// SPDX-License-Identifier: BSD-2-Clause
// A card's turn: DMA completions, arrivals, submissions;
// then timers, and the hosts that sleep are told.
#include "emulator/nic/card_runner.h"

#include <rte_prefetch.h>

#include <algorithm>
#include <cassert>

#include "emulator/common/packet_text.h"

namespace peal::nic {
namespace {

constexpr uint32_t kArrivals = 32;            // packets a burst
constexpr uint32_t kSubmissionsPerTurn = 16;  // from each window
// A worker that has been at one batch for this long is stuck, and another takes its place.
constexpr TimeNs kStuckNs = 50'000;
constexpr TimeNs kTendMaxNs = 10'000'000;

}  // namespace

void CardPort::push_done(DmaToken token, bool ok) {
  // There are no more records than places.
  assert(pending_count_ < kQueue);
  queues_[filling_][pending_count_++] = {token, ok};
}

bool CardPort::dma_read(const DmaTransfer& transfer, DmaToken token) {
  if (pending_count_ == kQueue) return false;
  const uint8_t* const memory = regions_.mapped(transfer.host, transfer.bytes);
  if (memory == nullptr) return copy(transfer, token, true);
  mapped_.read(transfer.card, memory, transfer.bytes);
  push_done(token, true);
  return true;
}

bool CardPort::dma_read_lent(const DmaTransfer& transfer, DmaToken token, LenderId who,
                             ReadFor whom) {
  const bool lends = may_lend_ && transfer.bytes >= LentMemory::kLeast &&
                     transfer.bytes == transfer.packet->payload_bytes;
  const uint8_t* const memory = lends ? regions_.mapped(transfer.host, transfer.bytes) : nullptr;
  if (memory == nullptr) return dma_read(transfer, token);
  if (pending_count_ == kQueue) return false;
  lent_.lend(transfer.packet, memory, who, whom);
  push_done(token, true);
  return true;
}

// False: the bytes are not there any more.
bool CardPort::write_mapped(uint8_t* memory, const DmaTransfer& transfer) {
  const auto& [host, card, packet, bytes] = transfer;
  if (packet == nullptr || !LentMemory::was_lent(packet)) [[likely]] {
    mapped_.write(memory, card, bytes);
    return true;
  }
  const LentMemory::Claim claim = lent_.claim(packet, card, bytes);
  if (claim.from == nullptr) {
    regions_.count_fault();
  } else if (claim.lent) {
    mapped_.between(memory, claim.from, bytes);
    if (claim.ends) LentMemory::deliver(packet);
  } else {
    mapped_.write(memory, claim.from, bytes);
  }
  return claim.from != nullptr;
}

bool CardPort::dma_write(const DmaTransfer& transfer, DmaToken token) {
  if (pending_count_ == kQueue) return false;
  uint8_t* const memory = regions_.mapped(transfer.host, transfer.bytes);
  if (memory != nullptr) {
    push_done(token, write_mapped(memory, transfer));
    return true;
  }
  const Packet* const packet = transfer.packet;
  if (packet != nullptr && LentMemory::was_lent(packet) && !lent_.bring(packet)) {
    regions_.count_fault();
    push_done(token, false);
    return true;
  }
  return copy(transfer, token, false);
}

// Guests' pages, and memory of processes.
bool CardPort::copy(const DmaTransfer& transfer, DmaToken token, bool to_card) {
  const auto& [host, card, packet, bytes] = transfer;
  emulator::RegionTable::ProcessRange range = {};
  if (!regions_.process_range(host, bytes, &range)) {
    push_done(token,
              to_card ? regions_.copy_in(host, card, bytes) : regions_.copy_out(card, host, bytes));
    return true;
  }
  LaneState* const state = range.owner < emulator::kContexts ? &lanes_[range.owner] : nullptr;
  if (state == nullptr || state->lane == nullptr || state->lane->abandoned()) {
    regions_.count_fault();
    push_done(token, false);
    return true;
  }
  state->lane->add(
      {range.pid, range.pidfd, range.memory, range.address, card, bytes, token, to_card, false});
  if (!state->active) {
    *state = {.lane = state->lane, .active = true, .progress = state->lane->progress()};
    active_[active_count_++] = range.owner;
  }
  state->added++;
  state->added_bytes += bytes;
  return true;
}

bool CardPort::has_done() const {
  if (pending_count_ > 0) return true;
  for (uint32_t i = 0; i < active_count_; i++) {
    if (lanes_[active_[i]].lane->has_done()) return true;
  }
  return false;
}

// A lane that was abandoned is waited for by nobody: its worker tells when it comes back.
bool CardPort::copies_under_way() const {
  return std::any_of(active_.begin(), active_.begin() + active_count_,
                     [&](ContextId context) { return !lanes_[context].lane->abandoned(); });
}

void CardPort::collect_copies() {
  for (uint32_t i = 0; i < active_count_;) {
    LaneState& state = lanes_[active_[i]];
    while (const CopyPiece* const piece = state.lane->take()) {
      if (!piece->ok) regions_.count_fault();
      push_done(piece->token, piece->ok);
    }
    if (state.lane->outstanding() > 0) {
      i++;
      continue;
    }
    set_stuck(state, false);
    state.active = false;
    active_[i] = active_[--active_count_];
  }
}

uint32_t CardPort::take_done(const DmaDone** done) {
  collect_copies();
  *done = queues_[filling_].data();
  const uint32_t count = pending_count_;
  filling_ ^= 1;
  pending_count_ = 0;
  return count;
}

void CardPort::set_stuck(LaneState& state, bool stuck) {
  if (state.stuck != stuck) copies_.pool->count_stuck(stuck);
  state.stuck = stuck;
}

// True when the lane's client is overdue.
bool CardPort::tend(LaneState& state, TimeNs passed_ns) {
  const CopyLane& lane = *state.lane;
  const bool moved = lane.progress() != state.progress;
  state.progress = lane.progress();
  state.age_ns = moved || !lane.in_hand() ? 0 : state.age_ns + passed_ns;
  state.wait_ns = moved || !lane.waits() ? 0 : state.wait_ns + passed_ns;
  set_stuck(state, state.age_ns > kStuckNs);
  // Whoever holds most of the card's DMA records holds up the others, and gets less time.
  const TimeNs deadline_ns =
      lane.outstanding() > CONFIG_DMA_RECORDS / 2 ? copies_.deadline_ns / 4 : copies_.deadline_ns;
  return !lane.abandoned() && state.age_ns > deadline_ns;
}

ContextId CardPort::tend_lanes(TimeNs now) {
  // What a loop that was not there has not seen, it holds against nobody.
  const TimeNs passed_ns = std::min(now - tended_ns_, kTendMaxNs);
  tended_ns_ = now;
  ContextId overdue = emulator::kNoContext;
  bool waits = false;
  for (uint32_t i = 0; i < active_count_; i++) {
    LaneState& state = lanes_[active_[i]];
    if (tend(state, passed_ns)) overdue = active_[i];
    waits |= state.wait_ns > kStuckNs && !state.stuck;
    if (state.added == 0) continue;
    copies_.pool->serve(state.lane, state.added, state.added_bytes);
    state.added = 0;
    state.added_bytes = 0;
  }
  if (waits) copies_.pool->notify();
  if (overdue != emulator::kNoContext) lanes_[overdue].lane->abandon();
  return overdue;
}

CardRunner::CardRunner(uint32_t index, PacketPool& pool, FrameSwitch& frame_switch,
                       emulator::HostCopies& mapped, Checksums checksums,
                       const CardTimeouts& timeouts, uint32_t incarnation,
                       const CopyOptions& copies)
    : index_(index),
      switch_(frame_switch),
      regions_(emulator::kRegionsPerCard),
      port_(index, pool, frame_switch, regions_, mapped, checksums, copies),
      memory_(card_bytes()),
      card_(start(memory_.data(), port_, index, incarnation, timeouts)),
      windows_(*card_),
      admin_(*card_, regions_, windows_) {
  port_.set_windows(&windows_);
  refresh();
}

Card* CardRunner::start(void* memory, Port& port, uint32_t index, uint32_t incarnation,
                        const CardTimeouts& timeouts) {
  CardIdentity identity = {};
  emulator::card_mac(index, identity.mac);
  identity.incarnation = incarnation;
  identity.index = static_cast<uint16_t>(index);
  return card_start(memory, port, identity, timeouts);
}

bool CardRunner::serve_dma(TimeNs now) {
  if (!port_.has_done()) return false;
  const CardPort::DmaDone* done = nullptr;
  const uint32_t count = port_.take_done(&done);
  for (uint32_t i = 0; i < count; i++) card_on_dma_done(*card_, done[i].token, done[i].ok, now);
  return true;
}

bool CardRunner::serve_packets(TimeNs now) {
  if (!switch_.has_frames(index_)) return false;
  Packet* packets[kArrivals];
  const uint32_t count = switch_.receive(index_, packets, kArrivals);
  for (uint32_t i = 0; i < count; i++) {
    if (i + 1 < count) rte_prefetch0(packets[i + 1]->header);
    const auto frame_bytes =
        static_cast<uint32_t>(sizeof(peal_wire_header)) + packets[i]->payload_bytes;
    card_on_packet(*card_, packets[i], frame_bytes, now);
  }
  return true;
}

bool CardRunner::serve(TimeNs now) {
  bool any = serve_dma(now);
  uint32_t bursts = 0;
  while (bursts < share_.bursts && serve_packets(now)) bursts++;
  any |= bursts > 0;
  any |= windows_.poll(kSubmissionsPerTurn, now);
  // What these have begun is mostly done, and need not wait for the turns of all other cards.
  for (uint32_t i = 0; any && i < share_.dma_rounds && serve_dma(now); i++) {
  }
  port_.transmit();
  // Who took more than others usually do says so now: they may take as much.
  if (bursts > 1) windows_.flush();
  cut_short_ = windows_.has_unread();
  served_ = any;
  return any;
}

// How many turns it takes to serve what waits now. One more, because a peer that is asked in one
// turn answers in the next.
uint32_t CardRunner::turns_to_serve() const {
  return std::max(switch_.frames(index_) / (share_.bursts * kArrivals),
                  emulator::kRingEntries / kSubmissionsPerTurn) +
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
  refresh();
  windows_.flush();
}

bool CardRunner::tend_copies(TimeNs now) {
  if (!port_.copies_under_way()) {
    port_.nothing_to_tend(now);
    return false;
  }
  const ContextId overdue = port_.tend_lanes(now);
  if (overdue == emulator::kNoContext) return false;
  admin_.close_context(overdue, now, emulator::EndReason::kCopyOverdue);
  return true;
}

}  // namespace peal::nic
