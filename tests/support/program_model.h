// SPDX-License-Identifier: BSD-2-Clause
// What programs mean, without cards: all ranks' programs are carried out here, a descriptor or an
// arrival at a time, in an order that a seed draws. What a put reads is read at some moment until
// it is over, and lies in memory before its notice is told. For programs in tests, which are few
// and good: nothing is checked that a card would refuse.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hostlib/program.h"

namespace peal::test {

class ProgramModel {
 public:
  explicit ProgramModel(uint64_t seed) : places_(seed % 4), state_(seed * 2 + 1) {}

  // Memory of a rank that others put into; the remote address of its beginning.
  host::Program::Remote add_memory(uint8_t* memory);
  // In the order of ranks, and those of a rank in the order in which all ranks have theirs; the
  // program outlives the model.
  void add_program(const host::Program& program);
  // Until so many iterations of all programs are over, those of a rank one after the other. False:
  // some wait for ever, as the text says.
  [[nodiscard]] bool run(uint64_t iterations);
  [[nodiscard]] const std::string& text() const { return text_; }
  // A rank does not start until it is let go.
  void hold(uint32_t rank) { ranks_[rank].held = true; }
  void let_go(uint32_t rank) { ranks_[rank].held = false; }
  // A host that has one start at a time: the rank's programs begin an iteration when all of them
  // are through with the one before, and then `at_end` is called with that one's number. Others'
  // programs go on each by itself, as those of whoever has started them several times.
  void start_one_by_one(uint32_t rank, std::function<void(uint64_t iteration)> at_end) {
    hosts_[rank] = std::move(at_end);
  }
  // A host whose starts go to its programs in turn, each when the one before is over; `at_end` is
  // called with the number of the start that is over.
  void start_in_turn(uint32_t rank, std::function<void(uint64_t start)> at_end) {
    turns_[rank] = std::move(at_end);
  }
  // Iterations that the rank has behind it.
  [[nodiscard]] uint64_t passed(uint32_t rank) const { return ranks_[rank].iteration; }
  // How many iterations a rank told another ahead of its own, at most.
  [[nodiscard]] uint64_t farthest_ahead() const { return farthest_ahead_; }

 private:
  struct Task {
    uint32_t rank;  // whose
    const host::Program::Step* step;
    uint64_t iteration;
  };
  struct Rank {
    const host::Program* program;
    uint32_t number = 0;  // among the programs of that rank
    uint64_t iteration = 0;
    size_t next = 0;
    uint32_t under_way = 0;
    bool held = false;
    std::vector<size_t> held_puts;                             // before closed gates
    std::map<std::pair<uint64_t, uint16_t>, uint64_t> counts;  // by iteration and counter
  };

  uint64_t draw(uint64_t below);
  bool step(uint32_t rank, uint64_t iterations);
  bool next_descriptor(uint32_t rank, uint64_t iterations);
  bool put_held(uint32_t rank);
  void issue(uint32_t rank, const host::Program::Step& step);
  void end_iteration(Rank& rank);
  // How many all programs of that rank are through with.
  [[nodiscard]] uint64_t over_for(uint32_t rank) const;
  [[nodiscard]] bool has_turn(const Rank& rank) const;
  [[nodiscard]] uint64_t programs_of(uint32_t rank) const;
  void arrive(const Task& task);
  bool try_choice(uint64_t choice, uint64_t iterations, bool slow_too);
  // Between two ranks things arrive in order: the first task of the same pair.
  [[nodiscard]] size_t first_of_pair(size_t index) const;
  void tell(uint32_t from, const host::Program::Step& step, uint64_t iteration);

  uint64_t places_;  // for held puts, of a program: one more holds back what follows
  uint64_t state_;
  // What is on its way from one to the other of these arrives when nothing else can happen.
  uint32_t slow_from_ = 0;
  uint32_t slow_to_ = 0;
  std::vector<uint8_t*> memories_;
  std::vector<Rank> ranks_;
  std::vector<Task> tasks_;
  std::map<uint32_t, std::function<void(uint64_t)>> hosts_;
  std::map<uint32_t, std::function<void(uint64_t)>> turns_;
  std::string text_;
  uint64_t farthest_ahead_ = 0;
};

}  // namespace peal::test
