// SPDX-License-Identifier: BSD-2-Clause
#include "tests/support/program_model.h"

#include <algorithm>
#include <cstring>

namespace peal::test {

uint64_t ProgramModel::draw(uint64_t below) {
  state_ = state_ * 6364136223846793005u + 1442695040888963407u;
  return (state_ >> 33) % below;
}

host::Program::Remote ProgramModel::add_memory(uint8_t* memory) {
  memories_.push_back(memory);
  return {.key = static_cast<uint32_t>(memories_.size()), .offset = 0};
}

void ProgramModel::add_program(const host::Program& program) {
  uint32_t number = 0;
  for (const Rank& other : ranks_) {
    if (other.program->shape().rank == program.shape().rank) number++;
  }
  ranks_.push_back({.program = &program, .number = number, .counts = {}});
}

// What is told is the program there that has the number which the named one has here.
void ProgramModel::tell(uint32_t from, const host::Program::Step& step, uint64_t iteration) {
  uint32_t number = ranks_[from].number;
  if (step.told != nullptr) number = std::ranges::find(ranks_, step.told, &Rank::program)->number;
  Rank& to = *std::ranges::find_if(ranks_, [&](const Rank& rank) {
    return rank.program->shape().rank == step.descriptor.rank && rank.number == number;
  });
  farthest_ahead_ = std::max(farthest_ahead_, iteration - std::min(iteration, to.iteration));
  to.counts[{iteration, step.descriptor.counter}] += step.descriptor.steps;
}

void ProgramModel::arrive(const Task& task) {
  const peal_descriptor& descriptor = task.step->descriptor;
  if (descriptor.bytes != 0) {
    std::memcpy(memories_[descriptor.remote_key - 1] + descriptor.remote_offset, task.step->memory,
                descriptor.bytes);
  }
  if (task.step->tells) tell(task.rank, *task.step, task.iteration);
  Rank& from = ranks_[task.rank];
  from.under_way--;
  if (descriptor.done != PEAL_NO_COUNTER) from.counts[{task.iteration, descriptor.done}]++;
}

size_t ProgramModel::first_of_pair(size_t index) const {
  const Task& drawn = tasks_[index];
  for (size_t i = 0; i < index; i++) {
    const bool same = tasks_[i].rank == drawn.rank &&
                      tasks_[i].step->descriptor.rank == drawn.step->descriptor.rank;
    if (same) return i;
  }
  return index;
}

uint64_t ProgramModel::over_for(uint32_t rank) const {
  uint64_t over = ~uint64_t{0};
  for (const Rank& each : ranks_) {
    if (each.program->shape().rank == rank) over = std::min(over, each.iteration);
  }
  return over;
}

void ProgramModel::end_iteration(Rank& rank) {
  const uint64_t ended = rank.iteration++;
  rank.next = 0;
  const uint32_t number = rank.program->shape().rank;
  const auto host = hosts_.find(number);
  if (host != hosts_.end() && over_for(number) > ended) host->second(ended);
  const auto turn = turns_.find(number);
  if (turn != turns_.end()) turn->second(ended * programs_of(number) + rank.number);
}

uint64_t ProgramModel::programs_of(uint32_t rank) const {
  return static_cast<uint64_t>(std::ranges::count_if(
      ranks_, [rank](const Rank& each) { return each.program->shape().rank == rank; }));
}

// Those before it have begun as many iterations as it is to begin, and ended them; those behind it
// one less.
bool ProgramModel::has_turn(const Rank& rank) const {
  return std::ranges::all_of(ranks_, [&rank](const Rank& each) {
    if (each.program->shape().rank != rank.program->shape().rank) return true;
    return each.iteration == rank.iteration + (each.number < rank.number ? 1 : 0);
  });
}

bool ProgramModel::step(uint32_t number, uint64_t iterations) {
  const bool held_first = draw(2) == 0;
  if (held_first && put_held(number)) return true;
  return next_descriptor(number, iterations) || (!held_first && put_held(number));
}

// One whose gate is open, any of them.
bool ProgramModel::put_held(uint32_t number) {
  Rank& rank = ranks_[number];
  std::vector<size_t> open;
  for (const size_t held : rank.held_puts) {
    const peal_descriptor& put = rank.program->steps()[held].descriptor;
    if (rank.counts[{rank.iteration, put.gate}] >= put.threshold) open.push_back(held);
  }
  if (open.empty()) return false;
  const size_t drawn = open[draw(open.size())];
  std::erase(rank.held_puts, drawn);
  issue(number, rank.program->steps()[drawn]);
  return true;
}

void ProgramModel::issue(uint32_t number, const host::Program::Step& step) {
  ranks_[number].under_way++;
  tasks_.push_back({number, &step, ranks_[number].iteration});
}

bool ProgramModel::next_descriptor(uint32_t number, uint64_t iterations) {
  Rank& rank = ranks_[number];
  if (rank.held || rank.iteration == iterations) return false;
  const auto& steps = rank.program->steps();
  if (rank.next == steps.size()) {
    if (rank.under_way > 0 || !rank.held_puts.empty()) return false;
    end_iteration(rank);
    return true;
  }
  const host::Program::Shape& shape = rank.program->shape();
  if (rank.next == 0 && hosts_.contains(shape.rank) && over_for(shape.rank) < rank.iteration) {
    return false;
  }
  if (rank.next == 0 && turns_.contains(shape.rank) && !has_turn(rank)) return false;
  if (shape.mode == PEAL_PROGRAM_MODE_SESSION &&
      rank.next >= shape.scheduled + rank.counts[{rank.iteration, 0}]) {
    return false;
  }
  const host::Program::Step& step = steps[rank.next];
  const peal_descriptor& descriptor = step.descriptor;
  if (descriptor.opcode == PEAL_PROGRAM_WAIT) {
    if (rank.counts[{rank.iteration, descriptor.counter}] < descriptor.threshold) return false;
  } else if (descriptor.opcode == PEAL_PROGRAM_SIGNAL && descriptor.rank == shape.rank) {
    tell(number, step, rank.iteration);
  } else if (descriptor.opcode == PEAL_PROGRAM_PUT &&
             rank.counts[{rank.iteration, descriptor.gate}] < descriptor.threshold) {
    if (rank.held_puts.size() == places_) return false;
    rank.held_puts.push_back(rank.next);
  } else {
    issue(number, step);
  }
  rank.next++;
  return true;
}

bool ProgramModel::try_choice(uint64_t choice, uint64_t iterations, bool slow_too) {
  if (choice < ranks_.size()) return step(static_cast<uint32_t>(choice), iterations);
  const size_t index = first_of_pair(choice - ranks_.size());
  const Task task = tasks_[index];
  if (!slow_too && task.rank == slow_from_ && task.step->descriptor.rank == slow_to_) return false;
  tasks_.erase(tasks_.begin() + static_cast<ptrdiff_t>(index));
  arrive(task);
  return true;
}

bool ProgramModel::run(uint64_t iterations) {
  text_.clear();
  slow_from_ = static_cast<uint32_t>(draw(ranks_.size()));
  slow_to_ = static_cast<uint32_t>(draw(ranks_.size()));
  for (;;) {
    // Any rank or any task on its way may be the next. When none that was drawn can, all are tried,
    // those between the slow two last.
    const uint64_t choices = ranks_.size() + tasks_.size();
    bool moved = false;
    for (uint64_t i = 0; i < 2 * choices && !moved; i++) {
      moved = try_choice(draw(choices), iterations, false);
    }
    for (uint64_t i = 0; i < choices && !moved; i++) moved = try_choice(i, iterations, false);
    for (uint64_t i = 0; i < choices && !moved; i++) moved = try_choice(i, iterations, true);
    if (!moved) break;
  }
  for (const Rank& rank : ranks_) {
    if (rank.iteration == iterations) continue;
    text_ += "rank " + std::to_string(rank.program->shape().rank) + " waits at descriptor " +
             std::to_string(rank.next) + " of iteration " + std::to_string(rank.iteration) + "\n";
  }
  return text_.empty();
}

}  // namespace peal::test
