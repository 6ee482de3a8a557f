// SPDX-License-Identifier: BSD-2-Clause
// The side of a comparison that goes through libpeal.
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/names.h"
#include "tools/peal-perf/side.h"
#include "tools/peal-perf/time_end.h"

namespace peal::perf {

void give_up(const Job& job, const char* what) {
  fprintf(stderr, "peal-perf: rank %u: %s: %s\n", job.rank, what, peal_last_error_text());
  // Not exit(): the others learn from the closed connection at once.
  fflush(nullptr);
  _Exit(1);
}

void Job::exchange(const void* send, void* receive, size_t bytes) const {
  if (peal_oob_exchange(oob, send, receive, bytes) != 0) give_up(*this, "out-of-band exchange");
}

void Job::barrier() const {
  const uint8_t here = 1;
  std::vector<uint8_t> all(size);
  exchange(&here, all.data(), 1);
}

BufferBytes buffer_bytes(const Job& job, const Call& longest) {
  const ideal::Lengths lengths = longest.lengths(job);
  return {std::max<size_t>(lengths.sent_by_any(), 1), std::max<size_t>(lengths.received(), 1)};
}

uint8_t* make_buffer(const Job& job, peal_context* context, Memory kind, size_t bytes,
                     unsigned access, Mapping* own) {
  void* memory = nullptr;
  if (kind == Memory::kAllocated) {
    if (peal_alloc(context, bytes, &memory) != PEAL_OK) give_up(job, "allocating memory");
  } else {
    memory = own->map(bytes);
    peal_memory* handle = nullptr;
    if (memory == nullptr || peal_register(context, memory, bytes, access, &handle) != PEAL_OK) {
      give_up(job, "registering memory");
    }
  }
  memset(memory, 0, bytes);  // no page faults while measuring
  return static_cast<uint8_t*>(memory);
}

PealSide::PealSide(const Job& job, const char* card, const std::string& algorithm, Memory memory,
                   bool in_place, bool persistent, const Call& longest)
    : job_(job), in_place_(in_place), persistent_(persistent), call_(longest) {
  if (peal_open(card, &context_) != PEAL_OK) give_up(job_, "opening the card");
  const BufferBytes bytes = buffer_bytes(job, longest);
  send_ = make_buffer(job, context_, memory, bytes.send, PEAL_READ, &own_send_);
  receive_ =
      make_buffer(job, context_, memory, bytes.receive, PEAL_READ | PEAL_WRITE, &own_receive_);
  const std::string rule = names::operation(longest.operation) + ":" + algorithm;
  peal_group_params params = {};
  params.struct_bytes = sizeof(params);
  params.algorithms = algorithm == kAuto ? nullptr : rule.c_str();
  if (peal_group_create(context_, job.rank, job.size, peal_oob_exchange, job.oob, &params,
                        &group_) != PEAL_OK) {
    give_up(job_, "making the group");
  }
}

PealSide::~PealSide() {
  free_persistent();
  if (peal_group_destroy(group_) != PEAL_OK) give_up(job_, "destroying the group");
  peal_close(context_);
}

void PealSide::use_block(uint64_t block_bytes) {
  free_persistent();
  call_.block_bytes = block_bytes;
  const ideal::Lengths lengths = call_.lengths(job_);
  sends_.clear();
  receives_.clear();
  for (uint32_t r = 0; r < job_.size; r++) {
    sends_.push_back(lengths.bytes(job_.rank, r));
    receives_.push_back(lengths.bytes(r, job_.rank));
  }
}

uint8_t* PealSide::send_buffer() {
  if (!in_place_) return send_;
  const bool own_block =
      call_.operation == PEAL_OPERATION_ALLGATHER || call_.operation == PEAL_OPERATION_ALLGATHERV;
  return receive_ + (own_block ? call_.lengths(job_).offset_in_receive(job_.rank, job_.rank) : 0);
}

void PealSide::free_persistent() {
  for (const auto& [root, request] : requests_) {
    if (peal_request_free(request) != PEAL_OK) give_up(job_, "freeing the request");
  }
  requests_.clear();
}

peal_request* PealSide::persistent_for(const Call& call) {
  peal_request*& made = requests_[call.root];
  if (made != nullptr) return made;
  peal_error error = PEAL_OK;
  switch (call.operation) {
    case PEAL_OPERATION_ALLGATHER:
      error = peal_allgather_init(group_, send(), receive_, call.block_bytes, &made);
      break;
    case PEAL_OPERATION_ALLTOALL:
      error = peal_alltoall_init(group_, send(), receive_, call.block_bytes, &made);
      break;
    case PEAL_OPERATION_ALLGATHERV:
      error = peal_allgatherv_init(group_, send(), receive_, receives_.data(), nullptr, &made);
      break;
    case PEAL_OPERATION_ALLTOALLV:
      error = peal_alltoallv_init(group_, send(), sends_.data(), nullptr, receive_,
                                  receives_.data(), nullptr, &made);
      break;
    case PEAL_OPERATION_BROADCAST:
      error = peal_bcast_init(group_, buffer(call.root), call.block_bytes, call.root, &made);
      break;
    default:
      error = peal_barrier_init(group_, &made);
  }
  if (error != PEAL_OK) give_up(job_, "making the request");
  return made;
}

void PealSide::run(const Call& call) {
  if (persistent_) {
    start(call);
    wait();
    return;
  }
  peal_error error = PEAL_OK;
  switch (call.operation) {
    case PEAL_OPERATION_ALLGATHER:
      error = peal_allgather(group_, send(), receive_, call.block_bytes);
      break;
    case PEAL_OPERATION_ALLTOALL:
      error = peal_alltoall(group_, send(), receive_, call.block_bytes);
      break;
    case PEAL_OPERATION_ALLGATHERV:
      error = peal_allgatherv(group_, send(), receive_, receives_.data(), nullptr);
      break;
    case PEAL_OPERATION_ALLTOALLV:
      error = peal_alltoallv(group_, send(), sends_.data(), nullptr, receive_, receives_.data(),
                             nullptr);
      break;
    case PEAL_OPERATION_BROADCAST:
      error = peal_bcast(group_, buffer(call.root), call.block_bytes, call.root);
      break;
    default:
      error = peal_barrier(group_);
  }
  if (error != PEAL_OK) give_up(job_, names::operation(call.operation).c_str());
}

void PealSide::start(const Call& call) {
  if (persistent_) {
    request_ = persistent_for(call);
    if (peal_start(request_) != PEAL_OK) give_up(job_, "starting the request");
    return;
  }
  peal_error error = PEAL_OK;
  switch (call.operation) {
    case PEAL_OPERATION_ALLGATHER:
      error = peal_iallgather(group_, send(), receive_, call.block_bytes, &request_);
      break;
    case PEAL_OPERATION_ALLTOALL:
      error = peal_ialltoall(group_, send(), receive_, call.block_bytes, &request_);
      break;
    case PEAL_OPERATION_ALLGATHERV:
      error = peal_iallgatherv(group_, send(), receive_, receives_.data(), nullptr, &request_);
      break;
    case PEAL_OPERATION_ALLTOALLV:
      error = peal_ialltoallv(group_, send(), sends_.data(), nullptr, receive_, receives_.data(),
                              nullptr, &request_);
      break;
    case PEAL_OPERATION_BROADCAST:
      error = peal_ibcast(group_, buffer(call.root), call.block_bytes, call.root, &request_);
      break;
    default:
      error = peal_ibarrier(group_, &request_);
  }
  if (error != PEAL_OK) give_up(job_, names::operation(call.operation).c_str());
}

bool PealSide::test() {
  int done = 0;
  if (peal_test(request_, &done) != PEAL_OK) give_up(job_, "test");
  return done != 0;
}

void PealSide::wait() {
  if (peal_wait(request_) != PEAL_OK) give_up(job_, "wait");
  if (persistent_) return;
  if (peal_request_free(request_) != PEAL_OK) give_up(job_, "freeing the request");
}

TimedEnd PealSide::end_timed() { return time_end(*this); }

Packets PealSide::packets() const {
  struct Report {
    uint64_t card;  // several ranks may share one
    Packets packets;
  };
  Report own = {};
  peal_card_info info = {};
  info.struct_bytes = sizeof(info);
  std::vector<uint64_t> values(256);
  size_t count = 0;
  if (peal_card_query(context_, &info) != PEAL_OK ||
      peal_counters(context_, values.data(), values.size(), &count) != PEAL_OK) {
    give_up(job_, "reading counters");
  }
  memcpy(&own.card, info.mac, sizeof(info.mac));
  own.card |= uint64_t{info.card_index} << 48;
  for (size_t i = 0; i < std::min(count, values.size()); i++) {
    const char* name_text = peal_counter_name(i);
    const std::string_view name = name_text != nullptr ? name_text : "";
    Packets& packets = own.packets;
    if (name == "sent_data" || name == "sent_signal") packets.collective += values[i];
    if (name == "sent_recycle") packets.recycling += values[i];
    if (name == "sent_nack" || name == "sent_repair" || name == "sent_not_yet" ||
        name == "sent_p2p_again") {
      packets.repair += values[i];
    }
    if (name == "sent_p2p" || name == "sent_p2p_control" || name == "sent_verdict" ||
        name == "sent_liveness") {
      packets.other += values[i];
    }
  }
  std::vector<Report> all(job_.size);
  job_.exchange(&own, all.data(), sizeof(own));
  Packets sum;
  for (size_t i = 0; i < all.size(); i++) {
    const bool seen = std::any_of(all.begin(), all.begin() + static_cast<ptrdiff_t>(i),
                                  [&](const Report& r) { return r.card == all[i].card; });
    if (seen) continue;
    sum.collective += all[i].packets.collective;
    sum.recycling += all[i].packets.recycling;
    sum.repair += all[i].packets.repair;
    sum.other += all[i].packets.other;
  }
  return sum;
}

}  // namespace peal::perf
