// SPDX-License-Identifier: BSD-2-Clause
// One side of a comparison: something that carries out collectives for this rank, on buffers of its
// own. The measuring loop does exactly the same with each.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "peal/oob.h"
#include "tools/ideal-card/lengths.h"
#include "tools/peal-perf/mapping.h"
#include "tools/peal-perf/options.h"

namespace peal::perf {

// This rank's place in the job.
struct Job {
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = nullptr;
  int card_cpu = -1;
  bool card_yields = false;
  bool common_clock = true;  // all ranks run on one machine

  // Everybody's `value`; ends the program when a rank is gone.
  template <typename Value>
  void gather(const Value& value, Value* all) const {
    exchange(&value, all, sizeof(Value));
  }
  void exchange(const void* send, void* receive, size_t bytes) const;
  void barrier() const;
};

// One operation, as all ranks of the job call it.
struct Call {
  peal_operation operation = PEAL_OPERATION_NONE;
  uint64_t block_bytes = 0;  // where blocks differ, the mean
  uint32_t root =
      0;  // of a broadcast, which goes from its send buffer to the others' receive buffers
  ideal::Spread spread = ideal::Spread::kEven;  // of allgatherv and alltoallv

  [[nodiscard]] ideal::Lengths lengths(const Job& job) const {
    return {operation, spread, job.size, block_bytes};
  }
};

// How an operation was ended that may have been over before.
struct TimedEnd {
  bool was_over = false;
  uint64_t cpu_ns = 0;  // processor time that it took, a reading of the clock included
};

class Side {
 public:
  Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  virtual ~Side() = default;

  // What stands in the table where Peal has its algorithm.
  [[nodiscard]] virtual std::string name(const std::string& algorithm) const = 0;
  // From now on blocks are so long.
  virtual void use_block(uint64_t block_bytes) = 0;
  // What this rank sends, and what it receives, as long as the operation makes them. In place the
  // one lies in the other.
  virtual uint8_t* send_buffer() = 0;
  virtual uint8_t* receive_buffer() = 0;
  // All end the program with an explanation when they fail.
  virtual void run(const Call& call) = 0;
  // The same in parts, one operation at a time: begins it, looks whether it is done, waits for it.
  virtual void start(const Call& call) = 0;
  virtual bool test() = 0;
  virtual void wait() = 0;
  // The same look and wait, timed.
  virtual TimedEnd end_timed() = 0;
  // Before and after a round: no other side works in between.
  virtual void begin_round() = 0;
  virtual void end_round() = 0;
};

// For the life of the context: what is registered stays so until then, in memory that is `own`.
uint8_t* make_buffer(const Job& job, peal_context* context, Memory kind, size_t bytes,
                     unsigned access, Mapping* own);

// Packets sent by all cards of the job so far.
struct Packets {
  uint64_t collective = 0;  // data and signals, sent for the first time
  uint64_t recycling = 0;
  uint64_t repair = 0;  // NACKs, their answers and repairs, and what connections send again
  uint64_t other = 0;   // what else connections send (those of programs), liveness and verdicts
};

// How much memory the longest call needs on each rank: at least a byte.
struct BufferBytes {
  size_t send;
  size_t receive;
};
BufferBytes buffer_bytes(const Job& job, const Call& longest);

class PealSide final : public Side {
 public:
  // `card` is null for this rank's own. `algorithm` is one of the operation's, or kAuto.
  PealSide(const Job& job, const char* card, const std::string& algorithm, Memory memory,
           bool in_place, bool persistent, const Call& longest);
  ~PealSide() override;

  [[nodiscard]] std::string name(const std::string& algorithm) const override {
    return algorithm + ", no loss";
  }
  void use_block(uint64_t block_bytes) override;
  uint8_t* send_buffer() override;
  uint8_t* receive_buffer() override { return receive_; }
  void run(const Call& call) override;
  void start(const Call& call) override;
  bool test() override;
  void wait() override;
  TimedEnd end_timed() override;
  void begin_round() override {}
  void end_round() override {}

  // Collective.
  [[nodiscard]] Packets packets() const;

 private:
  // The request for such calls, made at the first of them: then this is collective.
  peal_request* persistent_for(const Call& call);
  void free_persistent();
  // A broadcast's.
  [[nodiscard]] uint8_t* buffer(uint32_t root) const {
    return job_.rank == root ? send_ : receive_;
  }
  [[nodiscard]] const void* send() const { return in_place_ ? PEAL_IN_PLACE : send_; }

  const Job& job_;
  bool in_place_;
  bool persistent_;
  std::map<uint32_t, peal_request*> requests_;  // persistent ones, by root
  Call call_;
  // Of the blocks of an operation in which they differ, as libpeal has them; `sends_` only of an
  // alltoallv.
  std::vector<size_t> sends_;
  std::vector<size_t> receives_;
  peal_context* context_ = nullptr;
  peal_group* group_ = nullptr;
  peal_request* request_ = nullptr;
  uint8_t* send_ = nullptr;
  uint8_t* receive_ = nullptr;
  Mapping own_send_;  // where they are no memory of the card's
  Mapping own_receive_;
};

// The ideal card (tools/ideal-card), shared by all ranks of the job. Rank 0 starts it.
std::unique_ptr<Side> make_floor_side(const Job& job, Memory memory, const Call& longest);

[[noreturn]] void give_up(const Job& job, const char* what);

}  // namespace peal::perf
