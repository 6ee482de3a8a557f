// SPDX-License-Identifier: BSD-2-Clause
// What ranks start and leave behind. pealrun is a subreaper: a process whose parent has ended
// becomes a child of pealrun's own, whatever session or process group it is in, so nobody gets away
// by setsid(2). Ranks stay in pealrun's process group, for a terminal's signals and its input.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

namespace peal::run {

class Orphans {
 public:
  // From now on. Whoever is a child already is none: what somebody started before becoming pealrun
  // by exec.
  Orphans();
  // Once all others have ended.
  ~Orphans();
  Orphans(const Orphans&) = delete;
  Orphans& operator=(const Orphans&) = delete;
  // Of the cards' process.
  void leave_out(pid_t pid) { others_.push_back(pid); }

  // When no rank is alive: who was left behind and has not been waited for.
  [[nodiscard]] std::vector<pid_t> here() const;
  // A child's exit was seen; its number may come again.
  void reaped(pid_t pid);
  // When no rank is alive: asks all who were left behind, and were not asked yet, to end. True when
  // there was somebody.
  bool terminate();
  // Kills ranks and orphans, and whom these leave behind, until there is nobody; but no longer
  // than that, for there is who does not end: he waits in the kernel, or has a successor each
  // time. A process of another user, which a set-user-ID program may be, is let be where killing it
  // is forbidden. Says how many are left, and does nothing more then.
  void kill_all(uint64_t patience_ms = kPatienceMs);

  static constexpr uint64_t kPatienceMs = 10'000;
  // When ranks were waited for in vain: what they left behind has not been killed yet.
  static constexpr uint64_t kLastPatienceMs = 1'000;

 private:
  std::vector<pid_t> others_;  // children that were there before
  std::vector<pid_t> asked_;   // to end
  bool gave_up_ = false;
};

}  // namespace peal::run
