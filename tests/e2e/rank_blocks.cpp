// SPDX-License-Identifier: BSD-2-Clause
// Allgatherv and alltoallv: all shapes of lengths, in any place, in place and not; see
// rank_blocks.h.
#include "tests/e2e/rank_blocks.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace peal::e2e {
namespace {

constexpr size_t kGapMax = 40;
constexpr uint8_t kGarbage = 0xa5;

uint32_t origin_of(const Job& job, uint32_t from, uint32_t to, bool to_each) {
  return to_each ? from * job.size + to : from;
}

size_t draw_length(std::mt19937& random, Shape shape, size_t longest) {
  const size_t drawn = random() % 4 == 0 ? random() % (longest + 1) : random() % 300;
  const size_t bytes = std::min(drawn, longest);
  switch (shape) {
    case Shape::kHalfEmpty:
      return random() % 2 == 0 ? 0 : bytes;
    case Shape::kAny:
      return bytes;
    default:
      return 0;
  }
}

// One behind the other, or in any order with gaps.
BlockSide place(std::vector<size_t> bytes, std::mt19937& own) {
  BlockSide side;
  side.bytes = std::move(bytes);
  side.end = std::accumulate(side.bytes.begin(), side.bytes.end(), size_t{0});
  if (own() % 3 == 0) return side;
  std::vector<uint32_t> order(side.bytes.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), own);
  side.offsets.resize(order.size());
  side.end = 0;
  for (const uint32_t block : order) {
    side.offsets[block] = side.end + own() % kGapMax;
    side.end = side.offsets[block] + side.bytes[block];
  }
  return side;
}

// LONGEST ROUNDS: every shape, by turns in place.
void run_shapes(Job& job, bool to_each) {
  const size_t longest = job.number(0, 20'000);
  const uint64_t rounds = job.number(1, 3);
  std::mt19937 random(job.size);
  open_all(job);
  const size_t bytes = side_bytes_max(job, longest);
  uint8_t* send = allocate(job, bytes);
  uint8_t* receive = allocate(job, bytes);
  uint64_t iteration = 0;
  for (uint64_t round = 0; round < rounds; round++) {
    for (const Shape shape : kShapes) {
      for (const bool in_place : {false, true}) {
        const BlockCall call = draw_call(job, random, to_each, in_place, shape, longest);
        fill_blocks(job, call, send, receive, bytes, ++iteration);
        EXPECT_OK(job, run_blocks(job, call, send, receive));
        EXPECT_TRUE(job, blocks_are_right(job, call, receive, bytes, iteration));
      }
    }
  }
  close_all(job);
}

}  // namespace

size_t BlockSide::offset(uint32_t block) const {
  if (!offsets.empty()) return offsets[block];
  return std::accumulate(bytes.begin(), bytes.begin() + block, size_t{0});
}

size_t side_bytes_max(const Job& job, size_t longest) { return job.size * (longest + kGapMax); }

BlockCall draw_call(const Job& job, std::mt19937& random, bool to_each, bool in_place, Shape shape,
                    size_t longest) {
  const uint32_t rows = to_each ? job.size : 1;
  std::vector<size_t> drawn(size_t{rows} * job.size);  // [from][to], or [from]
  for (size_t& bytes : drawn) bytes = draw_length(random, shape, longest);
  const auto one = random();
  if (shape == Shape::kAllOfOne) drawn[one % drawn.size()] = longest;
  const auto length = [&](uint32_t from, uint32_t to) {
    if (!to_each) return drawn[from];
    if (in_place && from > to) std::swap(from, to);
    return drawn[from * job.size + to];
  };
  std::mt19937 own(random() + job.rank);
  BlockCall call;
  call.to_each = to_each;
  call.in_place = in_place;
  std::vector<size_t> sends;
  std::vector<size_t> receives;
  for (uint32_t r = 0; r < job.size; r++) {
    sends.push_back(length(job.rank, r));
    receives.push_back(length(r, job.rank));
  }
  call.receive = place(receives, own);
  if (to_each && !in_place) call.send = place(sends, own);
  return call;
}

void fill_blocks(const Job& job, const BlockCall& call, uint8_t* send, uint8_t* receive,
                 size_t receive_bytes, uint64_t iteration) {
  memset(receive, kGarbage, receive_bytes);
  const BlockSide& side = call.in_place ? call.receive : call.send;
  uint8_t* const from = call.in_place ? receive : send;
  if (!call.to_each) {
    fill(from + (call.in_place ? side.offset(job.rank) : 0), call.receive.bytes[job.rank], job.rank,
         iteration);
    return;
  }
  for (uint32_t r = 0; r < job.size; r++) {
    fill(from + side.offset(r), side.bytes[r], origin_of(job, job.rank, r, true), iteration);
  }
}

peal_error start_blocks(const Job& job, const BlockCall& call, const uint8_t* send,
                        uint8_t* receive, peal_request** request) {
  const void* const sent = call.in_place ? PEAL_IN_PLACE : send;
  if (!call.to_each) {
    return peal_iallgatherv(job.group, sent, receive, call.receive.bytes.data(),
                            call.receive.places(), request);
  }
  return peal_ialltoallv(job.group, sent, call.send.bytes.data(), call.send.places(), receive,
                         call.receive.bytes.data(), call.receive.places(), request);
}

peal_error init_blocks(const Job& job, const BlockCall& call, const uint8_t* send, uint8_t* receive,
                       peal_request** request) {
  const void* const sent = call.in_place ? PEAL_IN_PLACE : send;
  if (!call.to_each) {
    return peal_allgatherv_init(job.group, sent, receive, call.receive.bytes.data(),
                                call.receive.places(), request);
  }
  return peal_alltoallv_init(job.group, sent, call.send.bytes.data(), call.send.places(), receive,
                             call.receive.bytes.data(), call.receive.places(), request);
}

peal_error run_blocks(const Job& job, const BlockCall& call, const uint8_t* send,
                      uint8_t* receive) {
  const void* const sent = call.in_place ? PEAL_IN_PLACE : send;
  if (!call.to_each) {
    return peal_allgatherv(job.group, sent, receive, call.receive.bytes.data(),
                           call.receive.places());
  }
  return peal_alltoallv(job.group, sent, call.send.bytes.data(), call.send.places(), receive,
                        call.receive.bytes.data(), call.receive.places());
}

bool blocks_are_right(const Job& job, const BlockCall& call, const uint8_t* receive,
                      size_t receive_bytes, uint64_t iteration) {
  std::vector<uint8_t> untouched(receive_bytes, 1);
  for (uint32_t r = 0; r < job.size; r++) {
    const size_t at = call.receive.offset(r);
    const size_t bytes = call.receive.bytes[r];
    std::fill_n(untouched.begin() + static_cast<ptrdiff_t>(at), bytes, 0);
    if (!is_filled(receive + at, bytes, origin_of(job, r, job.rank, call.to_each), iteration)) {
      return false;
    }
  }
  for (size_t i = 0; i < receive_bytes; i++) {
    if (untouched[i] != 0 && receive[i] != kGarbage) return false;
  }
  return true;
}

void run_allgatherv(Job& job) { run_shapes(job, false); }
void run_alltoallv(Job& job) { run_shapes(job, true); }

}  // namespace peal::e2e
