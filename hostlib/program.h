// SPDX-License-Identifier: BSD-2-Clause
// A program as it is written: descriptors (abi/program.h) whose own memory is still an address, and
// the queues they tell still programs. Needs no card; encode() makes what a card reads.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "abi/program.h"

namespace peal::host {

class Program {
 public:
  struct Shape {
    uint32_t rank = 0;
    uint32_t ranks = 1;
    peal_program_mode mode = PEAL_PROGRAM_MODE_TASKS;
    uint32_t scheduled = 0;  // session mode: descriptors behind the pointer at the beginning
    uint8_t engine = 0;
    bool together = false;  // a start that has failed ends when every rank has begun it
    bool posted = false;    // a short put to another rank is over when the card has its bytes
  };
  // As a card is told.
  [[nodiscard]] uint8_t mode() const {
    return static_cast<uint8_t>(shape_.mode | (shape_.together ? PEAL_PROGRAM_TOGETHER : 0) |
                                (shape_.posted ? PEAL_PROGRAM_POSTED : 0));
  }
  // What is told when a put or a signal has arrived: a counter of the program with the same name on
  // the receiving rank. Null: of this program's name.
  struct Notice {
    const Program* program = nullptr;
    uint16_t counter = 0;
    uint32_t steps = 1;
  };
  struct Remote {
    uint32_t key = 0;
    uint64_t offset = 0;
  };
  struct Step {
    peal_descriptor descriptor = {};
    const void* memory = nullptr;  // own; of descriptor.bytes
    const Program* told = nullptr;
    bool tells = false;
  };

  explicit Program(const Shape& shape) : shape_(shape) {}

  // One more counter, which that rank tells: the own one, another or PEAL_ANY_RANK. In session mode
  // the first is the scheduling pointer's.
  uint16_t add_counter(uint32_t source);
  // `done`, here and below: own counter to which the end adds one, or PEAL_NO_COUNTER.
  void put(uint32_t rank, const void* from, uint64_t bytes, const Remote& to, const Notice* notice,
           uint16_t done = PEAL_NO_COUNTER);
  void send(uint32_t rank, uint64_t tag, const void* from, uint64_t bytes,
            uint16_t done = PEAL_NO_COUNTER);
  void receive(uint32_t rank, uint64_t tag, void* to, uint64_t bytes,
               uint16_t done = PEAL_NO_COUNTER);
  void wait(uint16_t counter, uint64_t threshold);
  // The descriptor written last, a put, waits for that, and what follows need not. (False: it is no
  // put.)
  bool gate(uint16_t counter, uint64_t threshold);
  void signal(uint32_t rank, const Notice& notice, uint16_t done = PEAL_NO_COUNTER);

  // What tells `from` is to tell `to`.
  void redirect(const Program* from, const Program* to);

  [[nodiscard]] const Shape& shape() const { return shape_; }
  void schedule(uint32_t descriptors) { shape_.scheduled = descriptors; }
  [[nodiscard]] const std::vector<uint32_t>& sources() const { return sources_; }
  // Without COMPLETE and JUMP, which encode() puts behind them.
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  // Of what a card reads.
  [[nodiscard]] uint32_t count() const { return static_cast<uint32_t>(steps_.size()) + 2; }
  [[nodiscard]] size_t bytes() const;

  // By which other ranks' descriptors tell it; the same on all ranks.
  void set_name(uint16_t name) { name_ = name; }
  [[nodiscard]] uint16_t name() const { return name_; }

  // Own memory in what is registered. False: it is not.
  using FindMemory = std::function<bool(const void* memory, uint64_t bytes, bool written,
                                        uint32_t* key, uint64_t* offset)>;
  // What a card reads, bytes() long: sources, then descriptors. False: the memory of *bad_step is
  // not registered.
  [[nodiscard]] bool encode(const FindMemory& find, uint8_t* to, uint32_t* bad_step) const;

 private:
  Step& add(peal_program_opcode opcode, uint32_t rank, uint16_t done);
  static void tell(Step& step, const Notice& notice);

  Shape shape_;
  uint16_t name_ = PEAL_NO_QUEUE;
  std::vector<uint32_t> sources_;
  std::vector<Step> steps_;
};

}  // namespace peal::host
