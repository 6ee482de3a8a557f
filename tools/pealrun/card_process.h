// SPDX-License-Identifier: BSD-2-Clause
// The peal-nic that a job brings with it: started before the ranks, ended after them.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/pealrun/cpus.h"
#include "tools/pealrun/inherited.h"
#include "tools/pealrun/interruption.h"
#include "tools/pealrun/options.h"

namespace peal::run {

class CardProcess {
 public:
  CardProcess() = default;
  CardProcess(const CardProcess&) = delete;
  CardProcess& operator=(const CardProcess&) = delete;
  ~CardProcess() { stop(); }

  // Starts it with its sockets in `folder` and waits until it is ready; false after saying why, or
  // when it was interrupted.
  bool start(const Options& options, const Placement& placement, const std::string& folder,
             const Inherited& inherited, const Interruption& interruption);
  // Its exit was seen by the caller's wait.
  void reaped() { pid_ = -1; }
  // Ends it in good order, and with it whom it has started, where it is not peal-nic itself; false
  // when it did not end well.
  bool stop();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::string url(uint32_t card) const;

 private:
  bool wait_for_all(int* status) const;

  pid_t pid_ = -1;                    // and its process group
  std::vector<std::string> sockets_;  // of each polling core; it has every so manieth card
};

// The folder of this very program, for finding its neighbours.
std::string own_folder();

}  // namespace peal::run
