// SPDX-License-Identifier: BSD-2-Clause
#include "hostlib/program_check.h"

#include <cstdio>
#include <set>

#include "base/names.h"

namespace peal::host {
namespace {

class Check {
 public:
  explicit Check(const Program& program)
      : program_(program),
        told_(program.sources().size(), 0),
        own_({.rank = program.shape().rank,
              .ranks = program.shape().ranks,
              .count = program.count(),
              .counters = static_cast<uint32_t>(program.sources().size()),
              .mode = static_cast<uint32_t>(program.shape().mode),
              .sources = program.sources().data()}) {}

  std::vector<Finding> run() {
    look_at_whole();
    for (const Program::Step& step : program_.steps()) {
      look_at(step);
      at_++;
    }
    if (!gated_) {
      remark(
          "nothing in it takes as long as a message: it cannot be started for several iterations");
    }
    return std::move(findings_);
  }

 private:
  void wrong(const std::string& text) { findings_.push_back({true, at_, text}); }
  void remark(const std::string& text) { findings_.push_back({false, at_, text}); }

  void look_at_whole() {
    const Program::Shape& shape = program_.shape();
    if (own_.count > PEAL_PROGRAM_DESCRIPTORS_MAX) {
      wrong(std::to_string(own_.count) + " descriptors with COMPLETE and JUMP, at most " +
            std::to_string(PEAL_PROGRAM_DESCRIPTORS_MAX));
    }
    if (own_.counters > PEAL_PROGRAM_COUNTERS_MAX) {
      wrong(std::to_string(own_.counters) + " counters, at most " +
            std::to_string(PEAL_PROGRAM_COUNTERS_MAX));
    }
    for (uint32_t counter = 0; counter < own_.counters; counter++) {
      if (peal_check_source(&own_, own_.sources[counter]) != PEAL_PROGRAM_REASON_NONE) {
        wrong("counter " + std::to_string(counter) + " is told by rank " +
              std::to_string(own_.sources[counter]) + ": there is no such rank");
      }
    }
    const bool session = shape.mode == PEAL_PROGRAM_MODE_SESSION;
    if (session && own_.counters == 0) wrong("session mode without a counter for its pointer");
    if (session ? shape.scheduled > own_.count : shape.scheduled != 0) {
      wrong(std::to_string(shape.scheduled) + " descriptors are scheduled at the beginning");
    }
  }

  void look_at(const Program::Step& step) {
    peal_descriptor descriptor = step.descriptor;
    if (step.tells) descriptor.queue = 0;
    // Its key is not known before there is a card.
    const peal_program_reason reason = peal_check_descriptor(&own_, at_, &descriptor);
    if (reason != PEAL_PROGRAM_REASON_NONE) {
      wrong(names::row_of(names::kProgramReasons, reason)->text);
      return;
    }
    gated_ = gated_ || peal_is_gate(&own_, &descriptor) != 0;
    switch (descriptor.opcode) {
      case PEAL_PROGRAM_WAIT:
        look_at_wait(descriptor.counter, descriptor.threshold);
        if (descriptor.threshold > 0) heard_.insert(own_.sources[descriptor.counter]);
        return;
      case PEAL_PROGRAM_PUT:
        look_at_put(step);
        break;
      case PEAL_PROGRAM_SIGNAL:
        if (descriptor.rank == own_.rank) tell_self(step);
        break;
      default:
        break;
    }
    if (descriptor.done != PEAL_NO_COUNTER) told_[descriptor.done]++;
  }

  void tell_self(const Program::Step& step) {
    const uint16_t counter = step.descriptor.counter;
    const bool this_one = step.told == nullptr || step.told == &program_;
    if (!this_one) return;
    if (!peal_counts_own(&own_, counter) &&
        (counter >= own_.counters || own_.sources[counter] != PEAL_ANY_RANK)) {
      wrong("tells counter " + std::to_string(counter) + " of its own, which is not its to tell");
      return;
    }
    told_[counter] += step.descriptor.steps;
  }

  // Descriptors are issued in order: what is told behind it comes too late. (A card may hold back
  // what follows a gate.)
  void look_at_wait(uint16_t counter, uint64_t threshold) {
    if (own_.sources[counter] != own_.rank || threshold <= told_[counter]) return;
    remark("waits for " + std::to_string(threshold) + " in counter " + std::to_string(counter) +
           ", which has " + std::to_string(told_[counter]) +
           " by then: for ever, unless another program of this rank tells it");
  }

  void look_at_put(const Program::Step& step) {
    const uint32_t rank = step.descriptor.rank;
    uint32_t opener = own_.rank;  // of its gate
    if (step.descriptor.threshold > 0) {
      look_at_wait(static_cast<uint16_t>(step.descriptor.gate), step.descriptor.threshold);
      opener = own_.sources[step.descriptor.gate];
    }
    if (step.descriptor.bytes == 0 || rank == own_.rank) return;
    const bool session = program_.shape().mode == PEAL_PROGRAM_MODE_SESSION;
    const bool paced = session && own_.counters > 0 && at_ >= program_.shape().scheduled &&
                       own_.sources[0] == rank;
    if (paced || opener == rank || opener == PEAL_ANY_RANK) return;
    if (heard_.contains(rank) || heard_.contains(PEAL_ANY_RANK)) return;
    if (unready_.insert(rank).second) {
      remark("puts into memory of rank " + std::to_string(rank) +
             ", of which it has not heard in this iteration that it is ready");
    }
  }

  const Program& program_;
  uint32_t at_ = 0;
  bool gated_ = false;
  std::vector<uint64_t> told_;  // by this program itself, so far
  std::set<uint32_t> heard_;    // ranks waited for, so far
  std::set<uint32_t> unready_;
  peal_program_shape own_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> check_program(const Program& program) { return Check(program).run(); }

std::string text_of(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += "descriptor " + std::to_string(finding.step) + ": " + (finding.wrong ? "wrong: " : "") +
            finding.text + "\n";
  }
  return text;
}

}  // namespace peal::host
