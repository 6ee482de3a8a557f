// SPDX-License-Identifier: BSD-2-Clause
// The processes of a job: started together, watched until the last has ended, and ended together
// when one fails. What they started goes with them.
#pragma once

#include <poll.h>
#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "tools/pealrun/card_process.h"
#include "tools/pealrun/cpus.h"
#include "tools/pealrun/inherited.h"
#include "tools/pealrun/interruption.h"
#include "tools/pealrun/options.h"
#include "tools/pealrun/orphans.h"
#include "tools/pealrun/output.h"

namespace peal::run {

class Ranks {
 public:
  Ranks(const Options& options, const Placement& placement, const Inherited& inherited,
        const Interruption& interruption, CardProcess& cards, Orphans& orphans)
      : options_(options),
        placement_(placement),
        inherited_(inherited),
        interruption_(interruption),
        cards_(cards),
        orphans_(orphans) {}
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;
  ~Ranks();

  // False after saying why, or when it was interrupted before all were there.
  bool start(const std::string& oob, const std::string& token);
  // Until all have ended, and nothing is left of them. `signals` is a signalfd of SIGCHLD and of
  // what is to be forwarded. `on_end` is told of each rank whose process has ended.
  // Returns the job's exit status.
  int watch(int signals, std::function<void(uint32_t)> on_end);

 private:
  struct Rank {
    uint32_t number = 0;
    pid_t pid = -1;
    int output = -1;  // pipe, with --label
    std::string line;
  };

  bool start_one(Rank& rank);
  [[noreturn]] void become(const Rank& rank, int output);
  void wait_for_news(int signals);
  void reap();
  void one_ended(Rank& rank, int status);
  void failed(int status);
  void terminate_if_late();
  void begin_grace(double seconds);
  bool kill_if_late();
  void forward(int number, bool of_terminal);
  void signal_all(int number);
  void end_all();
  void copy_outputs(const std::vector<pollfd>& waits);
  bool copy_output(Rank& rank);
  void end_output(Rank& rank);
  void wait_for_reader(size_t left_max);
  [[nodiscard]] size_t alive() const;
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] int milliseconds_left() const;

  const Options& options_;
  const Placement& placement_;
  const Inherited& inherited_;
  const Interruption& interruption_;
  CardProcess& cards_;
  Orphans& orphans_;
  std::string oob_;
  std::string token_;  // seen by nobody but the ranks: in no command line
  std::vector<Rank> ranks_;
  Output output_;          // of all, with --label
  size_t next_heard_ = 0;  // whose output is copied first
  std::function<void(uint32_t)> on_end_;
  int exit_status_ = 0;
  bool killed_ = false;        // all of them, by us
  bool gave_up_ = false;       // waiting for those, of whom one may be another user's
  double kill_at_s_ = 0;       // 0: not yet; when they were killed: gives up
  double terminate_at_s_ = 0;  // what ranks left behind; 0: not yet
  bool terminated_ = false;    // some of it
  double timeout_at_s_ = 0;
  double reader_until_s_ = 0;  // nobody waits longer for who reads the output; 0: for ever
};

}  // namespace peal::run
