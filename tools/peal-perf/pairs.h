// SPDX-License-Identifier: BSD-2-Clause
// Point-to-point: what a message, a put and a get take between ranks 2k and 2k + 1, all pairs at
// once, one at a time and so many together (--window). Where ranks are odd the last one idles.
//
// Messages go to and fro: a rank writes all of a window and sends it, the other one receives, reads
// and checks all of it and answers likewise; the time is half of the even rank's round trip. Puts
// and gets are the even rank's alone: it writes and puts until all is in the other's memory, or
// gets, reads and checks. Meanwhile the other rank waits for a message without bytes, which is not
// in the time; then it checks what was put, or writes what will be got next.
#pragma once

#include "tools/peal-perf/options.h"
#include "tools/peal-perf/report.h"
#include "tools/peal-perf/side.h"

namespace peal::perf {

class Pairs {
 public:
  Pairs(const Job& job, const Options& options, Memory memory);
  ~Pairs();
  Pairs(const Pairs&) = delete;
  Pairs& operator=(const Pairs&) = delete;

  // Collective.
  PairsRecord measure(uint64_t bytes);

 private:
  // The other rank's memory, as it names it.
  struct Name {
    uint32_t key;
    uint32_t reserved;
    uint64_t offset;
  };

  [[nodiscard]] bool has_peer() const { return peer_ < job_.size; }
  [[nodiscard]] bool begins() const { return has_peer() && job_.rank < peer_; }

  // `batches` of `window` under way together; the time of each is appended where this rank begins.
  void run(uint32_t window, uint32_t batches, std::vector<double>* us);
  void warm_up(uint32_t window, uint32_t batches);
  void exchange_messages(uint32_t window, bool last, std::vector<double>* us);
  void reach(uint32_t window, std::vector<double>* us);

  // Of the window's slots from 0 on.
  void write(uint32_t slot, uint32_t origin);
  void check(const uint8_t* buffer, uint32_t slot, uint32_t origin);
  void send(uint32_t window);
  void post_receives(uint32_t window);
  void finish_receives(uint32_t window);
  void put_or_get(uint32_t slot);
  void finish(peal_request* request);
  void signal();
  void await();
  // Everybody's times.
  std::vector<double> gather(const std::vector<double>& own, size_t count) const;

  const Job& job_;
  const Options& options_;
  uint32_t peer_;
  uint64_t bytes_ = 0;
  uint64_t iteration_ = 0;  // the window's first slot has its data, the next one's follow
  bool good_ = true;
  peal_context* context_ = nullptr;
  peal_group* group_ = nullptr;
  uint8_t* send_ = nullptr;
  uint8_t* receive_ = nullptr;
  Mapping own_send_;  // where they are no memory of the card's
  Mapping own_receive_;
  Name there_ = {};
  std::vector<peal_request*> sends_;
  std::vector<peal_request*> receives_;
};

}  // namespace peal::perf
