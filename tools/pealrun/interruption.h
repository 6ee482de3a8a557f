// SPDX-License-Identifier: BSD-2-Clause
// The signals that ask a job to end while there is nobody to whom they could be forwarded: no rank
// was started yet, or none is left.
#pragma once

#include <csignal>

namespace peal::run {

class Interruption {
 public:
  // Of signals that are blocked already. What whoever started pealrun has it ignore interrupts
  // nothing: nohup(1), or a shell that starts it in the background.
  Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  ~Interruption();

  // The signal that waits to be taken, or 0. It stays there.
  [[nodiscard]] int signal() const;
  // For poll(2): readable while there is one.
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  sigset_t set_ = {};
  int descriptor_ = -1;
};

}  // namespace peal::run
