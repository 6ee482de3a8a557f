// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/program.h"

#include <cstring>

namespace peal::host {

uint16_t Program::add_counter(uint32_t source) {
  sources_.push_back(source);
  return static_cast<uint16_t>(sources_.size() - 1);
}

Program::Step& Program::add(peal_program_opcode opcode, uint32_t rank, uint16_t done) {
  Step& step = steps_.emplace_back();
  step.descriptor.opcode = static_cast<uint8_t>(opcode);
  step.descriptor.rank = rank;
  step.descriptor.done = done;
  return step;
}

void Program::tell(Step& step, const Notice& notice) {
  step.tells = true;
  step.told = notice.program;
  step.descriptor.counter = notice.counter;
  step.descriptor.steps = notice.steps;
}

void Program::put(uint32_t rank, const void* from, uint64_t bytes, const Remote& to,
                  const Notice* notice, uint16_t done) {
  Step& step = add(PEAL_PROGRAM_PUT, rank, done);
  step.descriptor.queue = PEAL_NO_QUEUE;
  step.descriptor.bytes = bytes;
  if (bytes != 0) {
    step.memory = from;
    step.descriptor.remote_key = to.key;
    step.descriptor.remote_offset = to.offset;
  }
  if (notice != nullptr) tell(step, *notice);
}

void Program::send(uint32_t rank, uint64_t tag, const void* from, uint64_t bytes, uint16_t done) {
  Step& step = add(PEAL_PROGRAM_SEND, rank, done);
  step.memory = from;
  step.descriptor.tag = tag;
  step.descriptor.bytes = bytes;
}

void Program::receive(uint32_t rank, uint64_t tag, void* to, uint64_t bytes, uint16_t done) {
  Step& step = add(PEAL_PROGRAM_RECEIVE, rank, done);
  step.memory = to;
  step.descriptor.tag = tag;
  step.descriptor.bytes = bytes;
}

void Program::wait(uint16_t counter, uint64_t threshold) {
  Step& step = add(PEAL_PROGRAM_WAIT, 0, 0);
  step.descriptor.counter = counter;
  step.descriptor.threshold = threshold;
}

bool Program::gate(uint16_t counter, uint64_t threshold) {
  if (steps_.empty() || steps_.back().descriptor.opcode != PEAL_PROGRAM_PUT) return false;
  peal_descriptor& put = steps_.back().descriptor;
  put.gate = counter;
  put.threshold = threshold;
  return true;
}

void Program::signal(uint32_t rank, const Notice& notice, uint16_t done) {
  tell(add(PEAL_PROGRAM_SIGNAL, rank, done), notice);
}

void Program::redirect(const Program* from, const Program* to) {
  for (Step& step : steps_) {
    if (step.told == from) step.told = to;
  }
}

size_t Program::bytes() const {
  return peal_program_sources_bytes(static_cast<uint32_t>(sources_.size())) +
         count() * sizeof(peal_descriptor);
}

bool Program::encode(const FindMemory& find, uint8_t* to, uint32_t* bad_step) const {
  std::memset(to, 0, bytes());
  if (!sources_.empty()) std::memcpy(to, sources_.data(), sources_.size() * sizeof(uint32_t));
  to += peal_program_sources_bytes(static_cast<uint32_t>(sources_.size()));
  for (const Step& step : steps_) {
    peal_descriptor descriptor = step.descriptor;
    if (step.tells) descriptor.queue = step.told == nullptr ? name_ : step.told->name_;
    const bool written = descriptor.opcode == PEAL_PROGRAM_RECEIVE;
    if (descriptor.bytes != 0 &&
        !find(step.memory, descriptor.bytes, written, &descriptor.key, &descriptor.offset)) {
      *bad_step = static_cast<uint32_t>(&step - steps_.data());
      return false;
    }
    std::memcpy(to, &descriptor, sizeof(descriptor));
    to += sizeof(descriptor);
  }
  for (const uint8_t opcode : {PEAL_PROGRAM_COMPLETE, PEAL_PROGRAM_JUMP}) {
    peal_descriptor last = {};
    last.opcode = opcode;
    std::memcpy(to, &last, sizeof(last));
    to += sizeof(last);
  }
  return true;
}

}  // namespace peal::host
