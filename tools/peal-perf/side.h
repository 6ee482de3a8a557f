// SPDX-License-Identifier: BSD-2-Clause
// One side of a comparison: something that carries out collectives for this rank, on buffers of its
// own. The measuring loop does exactly the same with each.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "peal/oob.h"
#include "tools/peal-perf/options.h"

namespace peal::perf {

// This rank's place in the job.
struct Job {
  uint32_t rank = 0;
  uint32_t size = 0;
  peal_oob* oob = nullptr;
  int card_cpu = -1;
  bool common_clock = true;  // all ranks run on one machine

  // Everybody's `value`; ends the program when a rank is gone.
  template <typename Value>
  void gather(const Value& value, Value* all) const {
    exchange(&value, all, sizeof(Value));
  }
  void exchange(const void* send, void* receive, size_t bytes) const;
  void barrier() const;
};

class Side {
 public:
  Side() = default;
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  virtual ~Side() = default;

  virtual uint8_t* send_block() = 0;      // in place: within the receive buffer
  virtual uint8_t* receive_buffer() = 0;  // size * block bytes
  // Both end the program with an explanation when they fail.
  virtual void barrier() = 0;
  virtual void allgather(uint64_t block_bytes) = 0;
  // Before and after a round: no other side works in between.
  virtual void begin_round() = 0;
  virtual void end_round() = 0;
};

// Packets sent by all cards of the job so far.
struct Packets {
  uint64_t collective = 0;  // data and signals, sent for the first time
  uint64_t recycling = 0;
  uint64_t repair = 0;  // NACKs, their answers and repairs
  uint64_t other = 0;   // liveness and verdicts
};

class PealSide final : public Side {
 public:
  PealSide(const Job& job, Memory memory, peal_allgather_algorithm algorithm, bool in_place,
           uint64_t block_bytes_max);
  ~PealSide() override;

  uint8_t* send_block() override;
  uint8_t* receive_buffer() override { return receive_; }
  void barrier() override;
  void allgather(uint64_t block_bytes) override;
  void begin_round() override {}
  void end_round() override {}

  // Collective.
  [[nodiscard]] Packets packets() const;
  void use_block(uint64_t block_bytes) { block_bytes_ = block_bytes; }

 private:
  uint8_t* make_buffer(size_t bytes, unsigned access);

  const Job& job_;
  Memory memory_;
  bool in_place_;
  uint64_t block_bytes_ = 0;
  peal_context* context_ = nullptr;
  peal_group* group_ = nullptr;
  uint8_t* send_ = nullptr;
  uint8_t* receive_ = nullptr;
};

// The ideal card (tools/ideal-card), shared by all ranks of the job. Rank 0 starts it.
std::unique_ptr<Side> make_floor_side(const Job& job, Memory memory, uint64_t block_bytes_max);

[[noreturn]] void give_up(const Job& job, const char* what);

}  // namespace peal::perf
