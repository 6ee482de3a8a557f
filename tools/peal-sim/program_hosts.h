// SPDX-License-Identifier: BSD-2-Clause
// Hosts of the virtual-time cluster that run programs: a process for each rank, one group of all,
// and a rank's programs, which are started together, over one buffer that is read and one that is
// written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "emulator/cluster/one_group.h"
#include "emulator/cluster/violations.h"
#include "hostlib/program.h"
#include "hostlib/trinary.h"

namespace peal::sim {

// One program as a list.
host::Programs only(host::Program program);

class ProgramHosts final : private HostEvents {
 public:
  struct Place {
    uint32_t rank;
    void* send;
    void* receive;
    const std::vector<host::Program::Remote>& receives;  // of all
  };
  using Make = std::function<host::Program(const Place&)>;
  using MakeSeveral = std::function<host::Programs(const Place&)>;
  struct Layout {
    size_t bytes;  // of each of a rank's buffers
    uint32_t ranks_per_card = 1;
  };

  // Ranks fill the first card, then the second. Programs are committed, and looked at by the cards.
  // The observer may be null.
  ProgramHosts(const ClusterOptions& options, const Layout& layout, const MakeSeveral& make,
               Observer* observer = nullptr);
  // With a rank a card, and a program a rank.
  ProgramHosts(const ClusterOptions& options, size_t bytes, const Make& make,
               Observer* observer = nullptr);

  [[nodiscard]] uint32_t ranks() const { return static_cast<uint32_t>(ranks_.size()); }

  [[nodiscard]] uint8_t* send(uint32_t rank);
  [[nodiscard]] uint8_t* receive(uint32_t rank);
  // So many iterations on that rank, `late_ns` from now.
  void start(uint32_t rank, uint64_t passes, TimeNs late_ns = 0);
  // The same, of that program alone.
  void start_one(uint32_t rank, size_t program, TimeNs late_ns = 0);
  void start_all(uint64_t passes = 1);
  // The rank's send buffer is no registered memory any more, so that whatever reads it fails;
  // false: it is being read, and still is. And it is again, by another key, which its programs have
  // from their next start on that fetches them.
  bool lose_send(uint32_t rank);
  void regain_send(uint32_t rank);
  // Until all starts are over, nothing happens any more, or a minute has passed; how long it took.
  TimeNs run();
  // Each rank starts so many times, one start after the other: it posts, computes for so long on a
  // processor of its own without a look at the start, and waits for its end. How long it took until
  // the last one had computed and seen its last end.
  TimeNs run_computing(uint64_t starts, TimeNs work_ns);
  // How starts ended that did not end well, and those that did not end; completions that are not
  // as they must be, and what must never happen (violations.h); "" when all is well.
  [[nodiscard]] std::string problems() const;
  // Something never ended, and nothing else was wrong.
  [[nodiscard]] bool only_stuck() const;
  // Starts that did not end well, each rank's since the last call.
  [[nodiscard]] std::vector<peal_completion> take_failures(uint32_t rank);
  // Frees all programs and looks whether the cards have given everything back; "" if so.
  [[nodiscard]] std::string leaks();
  Cluster& cluster() { return cluster_; }
  // Called with each completion of a rank's.
  std::function<void(uint32_t rank, const peal_completion&)> on_completion_of;

 private:
  struct Committed {
    uint32_t handle = 0;
    uint64_t next = 0;  // iteration
    uint32_t memory = 0;
    host::Program written{host::Program::Shape{}};
  };
  struct Planned {
    uint64_t passes;
    size_t program;  // kAll: each
  };
  static constexpr size_t kAll = ~size_t{0};
  struct Rank {
    RankProcess process;
    uint32_t send = 0;  // regions of host memory, and their keys
    uint32_t receive = 0;
    uint32_t send_key = 0;
    uint32_t receive_key = 0;
    std::vector<Committed> programs;
    uint64_t outstanding = 0;  // starts of programs
    uint64_t next_cookie = 0;
    std::map<uint64_t, uint64_t> posted;  // starts that are not over: first iterations, by cookie
    std::vector<Planned> planned;         // starts that are still to be posted
    uint64_t more = 0;                    // starts that follow the one under way
    TimeNs computes_until = 0;
    TimeNs over = 0;  // it has computed, and seen the last end
    std::string trouble;
    std::vector<peal_completion> failures;
  };

  void on_host_event(TimeNs now_ns, uint32_t item) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;
  void note_failure(uint32_t rank, const peal_completion& entry);
  void commit(uint32_t rank, const host::Programs& programs);
  void commit(uint32_t rank, const host::Program& program);
  // What the rank's card reads of it, with the keys as they are.
  void encode(uint32_t rank, const Committed& program);
  void post(uint32_t rank, const Planned& start);
  [[nodiscard]] TimeNs last_over() const;

  Findings findings_;
  Violations violations_;  // (outlives the cluster)
  Cluster cluster_;
  TimeNs post_ns_;
  TimeNs completion_ns_;
  TimeNs work_ns_ = 0;
  size_t bytes_;
  std::vector<Rank> ranks_;
  std::vector<host::Program::Remote> receives_;
  std::string trouble_;  // of completions that are not as they must be
};

}  // namespace peal::sim
