// SPDX-License-Identifier: BSD-2-Clause
// The loop and its clock; see pairs.h.
#include "tools/peal-perf/pairs.h"

#include <algorithm>
#include <cstdio>

#include "tools/peal-perf/measure.h"
#include "tools/peal-perf/pattern.h"

namespace peal::perf {
namespace {

// Of the messages without bytes; those with bytes have the number of their slot.
constexpr uint64_t kSignalTag = kWindowMax;
// One out-of-band message takes at most 1 MiB.
constexpr size_t kTimesPerExchange = 65536;

double us_since(uint64_t start_ns) { return static_cast<double>(now_ns() - start_ns) * 1e-3; }

}  // namespace

Pairs::Pairs(const Job& job, const Options& options, Memory memory)
    : job_(job),
      options_(options),
      peer_(job.rank ^ 1),
      sends_(options.window),
      receives_(options.window) {
  if (peal_open(nullptr, &context_) != PEAL_OK) give_up(job_, "opening the card");
  const uint64_t most = *std::max_element(options.sizes.begin(), options.sizes.end());
  const size_t bytes = std::max<uint64_t>(most * options.window, 1);
  send_ = make_buffer(job, context_, memory, bytes, PEAL_READ, &own_send_);
  receive_ = make_buffer(job, context_, memory, bytes, PEAL_READ | PEAL_WRITE, &own_receive_);
  if (peal_group_create(context_, job.rank, job.size, peal_oob_exchange, job.oob, nullptr,
                        &group_) != PEAL_OK) {
    give_up(job_, "making the group");
  }
  Name own = {};
  uint8_t* const reached = options.talk == Talk::kGet ? send_ : receive_;
  if (options.talk != Talk::kSendReceive &&
      peal_memory_name(context_, reached, bytes, &own.key, &own.offset) != PEAL_OK) {
    give_up(job_, "naming the memory");
  }
  std::vector<Name> all(job.size);
  job.gather(own, all.data());
  if (has_peer()) there_ = all[peer_];
}

Pairs::~Pairs() {
  if (peal_group_destroy(group_) != PEAL_OK) give_up(job_, "destroying the group");
  peal_close(context_);
}

PairsRecord Pairs::measure(uint64_t bytes) {
  bytes_ = bytes;
  std::vector<double> single_us;
  std::vector<double> window_us;
  const uint32_t singles = std::max(options_.iterations / options_.rounds, 1u);
  const uint32_t windows = std::max(singles / options_.window, 1u);
  for (uint32_t round = 0; round < options_.rounds; round++) {
    job_.barrier();
    warm_up(1, options_.warmup);
    run(1, singles, &single_us);
    job_.barrier();
    warm_up(options_.window, options_.warmup / options_.window);
    run(options_.window, windows, &window_us);
  }
  single_us = gather(single_us, size_t{singles} * options_.rounds);
  window_us = gather(window_us, size_t{windows} * options_.rounds);

  PairsRecord record;
  record.setting.operation = talk_name(*options_.talk);
  record.setting.ranks = job_.size;
  record.setting.bytes = bytes;
  record.setting.iterations = options_.iterations;
  record.pairs = job_.size / 2;
  record.latency_us = spread(single_us);
  record.latency_us_p99 = percentile(single_us, 99);
  record.latency_us_mean = mean(single_us);
  record.window = options_.window;
  record.message_us = median(window_us) / options_.window;
  record.verified = all_good(job_, good_);
  return record;
}

void Pairs::warm_up(uint32_t window, uint32_t batches) {
  std::vector<double> ignored;
  run(window, batches, &ignored);
}

void Pairs::run(uint32_t window, uint32_t batches, std::vector<double>* us) {
  if (!has_peer()) return;
  const bool messages = options_.talk == Talk::kSendReceive;
  if (messages && !begins() && batches > 0) post_receives(window);
  for (uint32_t i = 0; i < batches; i++) {
    messages ? exchange_messages(window, i + 1 == batches, us) : reach(window, us);
    iteration_ += window;
  }
}

// Receives are posted before what is sent for them can come: by the one who begins before it sends,
// by the other one before it answers the last window.
void Pairs::exchange_messages(uint32_t window, bool last, std::vector<double>* us) {
  const uint64_t start_ns = now_ns();
  if (begins()) {
    post_receives(window);
    send(window);
    finish_receives(window);
    us->push_back(us_since(start_ns) / 2);
  } else {
    finish_receives(window);
    if (!last) post_receives(window);
    send(window);
  }
  for (uint32_t slot = 0; slot < window; slot++) finish(sends_[slot]);
}

void Pairs::reach(uint32_t window, std::vector<double>* us) {
  const bool puts = options_.talk == Talk::kPut;
  if (begins()) {
    if (!puts) await();
    const uint64_t start_ns = now_ns();
    for (uint32_t slot = 0; slot < window; slot++) put_or_get(slot);
    for (uint32_t slot = 0; slot < window; slot++) {
      finish(sends_[slot]);
      if (!puts) check(receive_, slot, peer_);
    }
    us->push_back(us_since(start_ns));
    signal();
    if (puts) await();
    return;
  }
  for (uint32_t slot = 0; !puts && slot < window; slot++) write(slot, job_.rank);
  if (!puts) signal();
  await();
  for (uint32_t slot = 0; puts && slot < window; slot++) check(receive_, slot, peer_);
  if (puts) signal();
}

void Pairs::write(uint32_t slot, uint32_t origin) {
  fill_pattern(send_ + slot * bytes_, bytes_, origin, iteration_ + slot);
}

void Pairs::check(const uint8_t* buffer, uint32_t slot, uint32_t origin) {
  const unsigned long long iteration = iteration_ + slot;
  if (check_pattern(buffer + slot * bytes_, bytes_, origin, iteration)) return;
  if (good_) {
    fprintf(stderr, "peal-perf: rank %u: iteration %llu: what came of rank %u is wrong\n",
            job_.rank, iteration, origin);
  }
  good_ = false;
}

void Pairs::send(uint32_t window) {
  for (uint32_t slot = 0; slot < window; slot++) {
    write(slot, job_.rank);
    if (peal_isend(group_, peer_, slot, send_ + slot * bytes_, bytes_, &sends_[slot]) != PEAL_OK)
      give_up(job_, "sending");
  }
}

void Pairs::post_receives(uint32_t window) {
  for (uint32_t slot = 0; slot < window; slot++) {
    if (peal_irecv(group_, peer_, slot, receive_ + slot * bytes_, bytes_, &receives_[slot]) !=
        PEAL_OK) {
      give_up(job_, "receiving");
    }
  }
}

void Pairs::finish_receives(uint32_t window) {
  for (uint32_t slot = 0; slot < window; slot++) {
    finish(receives_[slot]);
    check(receive_, slot, peer_);
  }
}

void Pairs::put_or_get(uint32_t slot) {
  const uint64_t offset = slot * bytes_;
  peal_error error = PEAL_OK;
  if (options_.talk == Talk::kPut) {
    write(slot, job_.rank);
    error = peal_put(group_, peer_, send_ + offset, bytes_, there_.key, there_.offset + offset,
                     &sends_[slot]);
  } else {
    error = peal_get(group_, peer_, receive_ + offset, bytes_, there_.key, there_.offset + offset,
                     &sends_[slot]);
  }
  if (error != PEAL_OK) give_up(job_, talk_name(*options_.talk));
}

void Pairs::finish(peal_request* request) {
  if (peal_wait(request) != PEAL_OK) give_up(job_, talk_name(*options_.talk));
  if (peal_request_free(request) != PEAL_OK) give_up(job_, "freeing the request");
}

void Pairs::signal() {
  peal_request* request = nullptr;
  if (peal_isend(group_, peer_, kSignalTag, nullptr, 0, &request) != PEAL_OK)
    give_up(job_, "sending");
  finish(request);
}

void Pairs::await() {
  peal_request* request = nullptr;
  if (peal_irecv(group_, peer_, kSignalTag, nullptr, 0, &request) != PEAL_OK)
    give_up(job_, "receiving");
  finish(request);
}

std::vector<double> Pairs::gather(const std::vector<double>& own, size_t count) const {
  std::vector<double> padded = own;  // of those who answered nothing was timed
  padded.resize(count);
  std::vector<double> times;
  for (size_t first = 0; first < count; first += kTimesPerExchange) {
    const size_t some = std::min(kTimesPerExchange, count - first);
    std::vector<double> all(some * job_.size);
    job_.exchange(&padded[first], all.data(), some * sizeof(double));
    for (uint32_t rank = 0; rank + 1 < job_.size; rank += 2) {
      const auto from = all.begin() + static_cast<ptrdiff_t>(rank * some);
      times.insert(times.end(), from, from + static_cast<ptrdiff_t>(some));
    }
  }
  return times;
}

}  // namespace peal::perf
