// SPDX-License-Identifier: BSD-2-Clause
#include "firmware/p2p/copying.h"

#include <algorithm>

#include "abi/admin.h"
#include "firmware/base/kept.h"
#include "firmware/host/keys.h"
#include "firmware/p2p/ending.h"
#include "firmware/p2p/notices.h"
#include "firmware/p2p/records.h"
#include "firmware/p2p/request.h"
#include "firmware/p2p/timing.h"
#include "firmware/wire/transmit.h"

namespace peal::p2p {
namespace {

// Of a put, under way at once: one is read while another is written.
constexpr uint32_t kChunks = 2;

DmaTag tag_of(const State& state, const Request& put, DmaRole role, uint32_t key, uint32_t chunk) {
  return {.member = put.member,
          .owner = DmaOwner::kPointToPoint,
          .slot = 0,
          .role = static_cast<uint8_t>(role),
          .step = 0,
          .piece = key,
          .detail = chunk,
          .sequence = uint64_t{name_of(state, put)} << 32};
}

// False: there is no packet, or no DMA record.
bool read_chunk(Card& card, Member& member, Request& put) {
  if (!dma_suffices(card, 1)) return false;
  Packet* packet = take_packet(card);
  if (packet == nullptr) return false;
  const auto bytes = static_cast<uint32_t>(std::min<uint64_t>(put.bytes - put.at, kChunkBytes));
  const auto chunk = static_cast<uint32_t>(put.at / kChunkBytes);
  ++put.dma;
  ++member.dma;
  dma_read(card, {.host = {put.memory.region, put.memory.offset + put.at},
                  .card = packet->payload,
                  .bytes = bytes,
                  .packet = packet,
                  .tag = tag_of(card.p2p, put, DmaRole::kCopyIn, 0, chunk)});
  put.at += bytes;
  return true;
}

// OK: it is being written. Looked at is where the whole put goes: of one that does not fit nothing
// is written, and no chunk's place can come around the end of numbers.
peal_status write_chunk(Card& card, Member& member, Request& put, const DmaDone& read) {
  HostAddress to;
  const peal_status status = check_range(card, member.context, put.remote_key, put.remote_offset,
                                         put.bytes, PEAL_ACCESS_WRITE, &to);
  if (status != PEAL_STATUS_OK) return status;
  to.offset += uint64_t{read.detail} * kChunkBytes;
  hold_key(card, put.remote_key);
  ++put.dma;
  ++member.dma;
  // (The record of the read is free: there is one.)
  dma_write(card, {.host = to,
                   .card = read.packet->payload,
                   .bytes = read.bytes,
                   .packet = read.packet,
                   .tag = tag_of(card.p2p, put, DmaRole::kCopyOut, put.remote_key, read.detail)});
  return PEAL_STATUS_OK;
}

// A program's put that has failed, and that nothing of is under way: its iteration has failed, too,
// and nothing behind it is told before that is noted. False: another one is to be noted first.
bool ask_to_note(Card& card, const Request& put) {
  MissingPut& uncopied = card.p2p.uncopied;
  if (uncopied.status != PEAL_STATUS_OK) return false;
  uncopied = {.status = static_cast<peal_status>(put.status),
              .together = put.together,
              .late = false,
              .member = put.member,
              .program = put.program,
              .rank = put.rank,
              .connection = 0,
              .number = 0,
              .index = put.index,
              .iteration = put.notice.iteration,
              .told = {}};
  card.due.messages = true;
  return true;
}

void try_again_later(Card& card) {
  card.p2p.copies_starve = true;
  card.timers.arm_no_later(card.p2p.timer, card.now + kStarvedNs);
}

void end_failed(Card& card, Request& put) {
  end_request(card, put, static_cast<peal_status>(put.status), put.rank);
}

// False: there is no room to tell who waits for it.
bool end_copy(Card& card, Request& put) {
  State& state = card.p2p;
  if (put.notice.queue != kNoQueue) {
    if (state.notice_count == kWindow) return false;
    tell_noticed(card, put.member, put.rank, put.program, put.notice);
  }
  end_request(card, put, PEAL_STATUS_OK);
  return true;
}

}  // namespace

void start_copy(Card& card, Member& member, Request& put) {
  put_last(card.p2p, member.copies, put, Place::kCopies);
  if (member.copies.first == name_of(card.p2p, put)) go_on_copying(card, member);
}

void go_on_copying(Card& card, Member& member) {
  State& state = card.p2p;
  while (Request* put = request_at(state, member.copies.first)) {
    if (put->status != PEAL_STATUS_OK) {
      if (put->dma != 0) return;
      if (put->program != 0) {
        if (!ask_to_note(card, *put)) try_again_later(card);
        return;
      }
      end_failed(card, *put);
      continue;
    }
    bool starved = false;
    while (put->at < put->bytes && put->dma < kChunks && !starved) {
      starved = !read_chunk(card, member, *put);
    }
    if (!starved && put->landed < put->bytes) return;
    if (starved || !end_copy(card, *put)) return try_again_later(card);
  }
}

void end_uncopied(Card& card, const MissingPut& uncopied, bool noted) {
  if (!noted) return try_again_later(card);
  Member& member = card.members[uncopied.member];
  Request* put = request_at(card.p2p, member.copies.first);
  if (put != nullptr && put->status != PEAL_STATUS_OK) end_failed(card, *put);
  go_on_copying(card, member);
}

void on_copied_in(Card& card, const DmaDone& done) {
  Member& member = card.members[done.member];
  Request& put = kept(card.p2p.requests[(done.sequence >> 32) - 1]);
  --member.dma;
  if (!put.over && put.status == PEAL_STATUS_OK) {
    put.status = static_cast<uint16_t>(done.ok ? write_chunk(card, member, put, done)
                                               : PEAL_STATUS_DMA_FAULT);
  }
  unhold_packet(card, done.packet);
  request_dma_done(card, put);
  go_on_copying(card, member);
}

void on_copied_out(Card& card, const DmaDone& done) {
  Member& member = card.members[done.member];
  Request& put = kept(card.p2p.requests[(done.sequence >> 32) - 1]);
  --member.dma;
  let_go_of_key(card, done.piece);
  unhold_packet(card, done.packet);
  put.landed += done.bytes;
  if (!done.ok && !put.over && put.status == PEAL_STATUS_OK) put.status = PEAL_STATUS_DMA_FAULT;
  request_dma_done(card, put);
  go_on_copying(card, member);
}

}  // namespace peal::p2p
