// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/program_text.h"

#include <cinttypes>
#include <cstdio>
#include <set>

#include "base/names.h"

namespace peal::host {
namespace {

std::string number(uint64_t value) { return std::to_string(value); }

std::string source_text(const Program& program, uint32_t counter) {
  const uint32_t source = program.sources()[counter];
  if (source == program.shape().rank) return "own";
  if (source == PEAL_ANY_RANK) return "told by any rank";
  return "told by rank " + number(source);
}

std::string memory_text(const Program::Step& step) {
  char text[64];
  std::snprintf(text, sizeof(text), "%" PRIu64 " bytes at 0x%" PRIxPTR, step.descriptor.bytes,
                reinterpret_cast<uintptr_t>(step.memory));
  return text;
}

std::string told_text(const Program& program, const Program::Step& step) {
  const bool another = step.told != nullptr && step.told != &program;
  return "counter " + number(step.descriptor.counter) + (another ? " of another program" : "") +
         " by " + number(step.descriptor.steps);
}

std::string what_text(const Program& program, const Program::Step& step) {
  const peal_descriptor& descriptor = step.descriptor;
  switch (descriptor.opcode) {
    case PEAL_PROGRAM_PUT: {
      std::string text = memory_text(step) + " to rank " + number(descriptor.rank);
      if (descriptor.bytes != 0) {
        text +=
            " at key " + number(descriptor.remote_key) + " + " + number(descriptor.remote_offset);
      }
      return step.tells ? text + ", moves " + told_text(program, step) : text;
    }
    case PEAL_PROGRAM_SEND:
      return memory_text(step) + " to rank " + number(descriptor.rank) + ", tag " +
             number(descriptor.tag);
    case PEAL_PROGRAM_RECEIVE:
      return memory_text(step) + " from rank " + number(descriptor.rank) + ", tag " +
             number(descriptor.tag);
    case PEAL_PROGRAM_WAIT:
      return "until counter " + number(descriptor.counter) + " has reached " +
             number(descriptor.threshold);
    default:
      return "rank " + number(descriptor.rank) + ", moves " + told_text(program, step);
  }
}

bool has_gate(const Program::Step& step) {
  return step.descriptor.opcode == PEAL_PROGRAM_PUT && step.descriptor.threshold != 0;
}

bool counts_end(const Program::Step& step) {
  return step.descriptor.opcode != PEAL_PROGRAM_WAIT && step.descriptor.done != PEAL_NO_COUNTER;
}

std::string line_of(const Program& program, const Program::Step& step) {
  std::string text = names::row_of(names::kProgramOpcodes, step.descriptor.opcode)->name;
  text += " " + what_text(program, step);
  if (has_gate(step)) {
    text += ", held until counter " + number(step.descriptor.gate) + " has reached " +
            number(step.descriptor.threshold);
  }
  if (counts_end(step)) text += "; its end adds one to counter " + number(step.descriptor.done);
  return text;
}

bool is_session(const Program& program) {
  return program.shape().mode == PEAL_PROGRAM_MODE_SESSION;
}

// Other ranks that it deals with, as nodes.
std::string ranks_of(const Program& program) {
  std::set<uint32_t> ranks;
  for (const uint32_t source : program.sources()) ranks.insert(source);
  for (const Program::Step& step : program.steps()) {
    if (step.descriptor.opcode != PEAL_PROGRAM_WAIT) ranks.insert(step.descriptor.rank);
  }
  ranks.erase(program.shape().rank);
  std::string text;
  for (const uint32_t rank : ranks) {
    const std::string name = rank == PEAL_ANY_RANK ? "any" : number(rank);
    text += "  rank_" + name + " [shape=ellipse, label=\"" +
            (rank == PEAL_ANY_RANK ? "any rank" : "rank " + name) + "\"];\n";
  }
  return text;
}

std::string counters_of(const Program& program) {
  std::string text;
  for (uint32_t counter = 0; counter < program.sources().size(); counter++) {
    const uint32_t source = program.sources()[counter];
    const bool pointer = is_session(program) && counter == 0;
    text += "  counter_" + number(counter) + " [shape=diamond, label=\"" +
            (pointer ? "pointer" : "counter " + number(counter)) + "\"];\n";
    if (source == program.shape().rank) continue;
    text += "  rank_" + (source == PEAL_ANY_RANK ? "any" : number(source)) + " -> counter_" +
            number(counter) + ";\n";
  }
  return text;
}

std::string arrows_of(const Program& program, const Program::Step& step, const std::string& node) {
  const peal_descriptor& descriptor = step.descriptor;
  const auto waits_for = [&](uint16_t counter) {
    return "  counter_" + number(counter) + " -> " + node + " [label=\"" +
           number(descriptor.threshold) + "\"];\n";
  };
  if (descriptor.opcode == PEAL_PROGRAM_WAIT) return waits_for(descriptor.counter);
  std::string text;
  if (has_gate(step)) text += waits_for(descriptor.gate);
  if (descriptor.rank != program.shape().rank) {
    const std::string rank = "rank_" + number(descriptor.rank);
    text += descriptor.opcode == PEAL_PROGRAM_RECEIVE ? "  " + rank + " -> " + node + ";\n"
                                                      : "  " + node + " -> " + rank + ";\n";
  } else if (step.tells && (step.told == nullptr || step.told == &program)) {
    text += "  " + node + " -> counter_" + number(descriptor.counter) + ";\n";
  }
  if (counts_end(step)) {
    text += "  " + node + " -> counter_" + number(descriptor.done) + " [style=dashed];\n";
  }
  return text;
}

}  // namespace

std::string text_of(const Program& program) {
  const Program::Shape& shape = program.shape();
  std::string text = "program of rank " + number(shape.rank) + " of " + number(shape.ranks) + ": ";
  text += is_session(program) ? "session mode, " + number(shape.scheduled) + " scheduled" : "tasks";
  if (shape.posted) text += ", posted puts";
  text += "\n";
  for (uint32_t counter = 0; counter < program.sources().size(); counter++) {
    const bool pointer = is_session(program) && counter == 0;
    text += "counter " + number(counter) + (pointer ? ", the scheduling pointer: " : ": ") +
            source_text(program, counter) + "\n";
  }
  uint32_t index = 0;
  for (const Program::Step& step : program.steps()) {
    text += number(index++) + " " + line_of(program, step) + "\n";
  }
  text += number(index++) + " complete\n";
  text += number(index) + " jump\n";
  return text;
}

std::string graph_of(const Program& program) {
  std::string text = "digraph program {\n  node [shape=box];\n";
  text += ranks_of(program) + counters_of(program);
  std::string order;
  uint32_t index = 0;
  for (const Program::Step& step : program.steps()) {
    const std::string node = "step_" + number(index);
    text += "  " + node + " [label=\"" + number(index) + " " +
            names::row_of(names::kProgramOpcodes, step.descriptor.opcode)->name + "\"];\n";
    text += arrows_of(program, step, node);
    order += node + " -> ";
    index++;
  }
  text += "  end [label=\"complete, jump\"];\n";
  text += "  " + order + "end [style=bold, weight=10];\n}\n";
  return text;
}

}  // namespace peal::host
