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
  ranks_.push_back({.program = &program, .counts = {}});
}

void ProgramModel::tell(uint32_t rank, const host::Program::Step& step, uint64_t iteration) {
  Rank& to = ranks_[rank];
  farthest_ahead_ = std::max(farthest_ahead_, iteration - std::min(iteration, to.iteration));
  to.counts[{iteration, step.descriptor.counter}] += step.descriptor.steps;
}

void ProgramModel::arrive(const Task& task) {
  const peal_descriptor& descriptor = task.step->descriptor;
  if (descriptor.bytes != 0) {
    std::memcpy(memories_[descriptor.remote_key - 1] + descriptor.remote_offset, task.step->memory,
                descriptor.bytes);
  }
  if (task.step->tells) tell(descriptor.rank, *task.step, task.iteration);
  Rank& from = ranks_[task.rank];
  from.under_way--;
  if (descriptor.done != PEAL_NO_COUNTER) from.counts[{task.iteration, descriptor.done}]++;
}

bool ProgramModel::step(uint32_t number, uint64_t iterations) {
  Rank& rank = ranks_[number];
  if (rank.iteration == iterations) return false;
  const auto& steps = rank.program->steps();
  if (rank.next == steps.size()) {
    if (rank.under_way > 0) return false;
    rank.iteration++;
    rank.next = 0;
    return true;
  }
  const host::Program::Shape& shape = rank.program->shape();
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
  } else {
    rank.under_way++;
    tasks_.push_back({number, &step, rank.iteration});
  }
  rank.next++;
  return true;
}

bool ProgramModel::run(uint64_t iterations) {
  for (;;) {
    // Any rank or any task on its way may be the next; if the one drawn cannot, all are tried.
    const uint64_t choices = ranks_.size() + tasks_.size();
    const uint64_t first = draw(choices);
    bool moved = false;
    for (uint64_t i = 0; i < choices && !moved; i++) {
      const uint64_t choice = (first + i) % choices;
      if (choice < ranks_.size()) {
        moved = step(static_cast<uint32_t>(choice), iterations);
        continue;
      }
      const size_t index = choice - ranks_.size();
      const Task task = tasks_[index];
      tasks_.erase(tasks_.begin() + static_cast<ptrdiff_t>(index));
      arrive(task);
      moved = true;
    }
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
