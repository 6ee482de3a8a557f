// SPDX-License-Identifier: BSD-2-Clause
// The processes of all simulated machines: they open contexts, make groups, post what the scenario
// says through the rings of their windows, overwrite their buffers the moment an operation is
// complete, destroy their groups, are late, give up, close early, and get killed.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "emulator/cluster/checkers.h"
#include "emulator/cluster/cluster.h"
#include "emulator/cluster/world.h"

namespace peal::sim {

class Hosts final : public HostEvents {
 public:
  explicit Hosts(World& world) : world_(world), completions_(world) {}

  // Opens every process and makes the groups that need not wait for another. The cluster outlives
  // the hosts' use.
  void start(Cluster& cluster);
  void on_host_event(TimeNs now_ns, uint32_t item) override;
  void on_completion(TimeNs now_ns, uint32_t card, uint32_t context,
                     const peal_completion& entry) override;

  // Posts that living members still have to make or to see completed.
  [[nodiscard]] uint64_t unfinished() const { return unfinished_; }
  // Host events that are still to come.
  [[nodiscard]] uint64_t scheduled() const { return scheduled_; }
  // When something last moved on: a post, a completion, an accident.
  [[nodiscard]] TimeNs progress_ns() const { return progress_ns_; }

  // Gives everything back, once all is finished and drained:
  // keys of destroyed groups, then all contexts.
  void close_all(TimeNs now_ns);
  // After that: every closed context must be quiet.
  void check_quiet(TimeNs now_ns);

 private:
  enum class EventKind : uint32_t {
    kConnect,
    kPost,
    kAccident,
    kMakeGroup,
    kPoll,
    kRestart,
    kClose,
    kAbort,
    kChore,
    kChoreEnd,
  };

  // A completion in the ring, in the order in which the card wrote them.
  struct Written {
    TimeNs visible_ns;
    peal_completion entry;
  };

  // A context, from the host's side.
  struct Process {
    Place place;
    uint32_t context = 0;
    bool open = false;
    bool poll_scheduled = false;
    uint32_t members_to_go = 0;  // of groups that are made and not over here
    size_t seen = 0;             // of written: how many the ring has delivered
    std::vector<Written> written;
  };

  // A chore that was granted: what it is to be taken back by.
  struct Granted {
    uint32_t process = kNoMember;
    uint32_t name = 0;  // key or handle
  };

  struct Member {
    uint32_t next = 0;  // sequence of the next post
    uint32_t outstanding = 0;
    bool post_scheduled = false;
    bool connected = false;
    TimeNs computes_until_ns = 0;
    uint32_t process = 0;
    std::vector<uint32_t> free_slots;
    uint32_t send_key = 0;
    uint32_t receive_key = 0;
    uint32_t table_key = 0;  // of all ranks' addresses
    uint32_t parts_key = 0;  // of tables of parts, one for each slot
    uint32_t parts_region = 0;
    uint64_t parts_stride = 0;
    peal_peer_address address{};
    emulator::Random think{0};
  };

  void schedule(TimeNs when_ns, EventKind kind, uint32_t index);
  void plan_group(TimeNs when_ns, uint32_t group);
  void make_group(TimeNs now_ns, uint32_t group);
  void add_member(TimeNs now_ns, uint32_t group, uint32_t rank);
  void connect(TimeNs now_ns, uint32_t index);
  peal_status add_table(const MemberState& state, uint32_t* key);
  void give_up(TimeNs now_ns, uint32_t index);
  void plan_abort(TimeNs now_ns, uint32_t index);
  void abort(TimeNs now_ns, uint32_t index);
  void do_chore(TimeNs now_ns, uint32_t index);
  void end_chore(TimeNs now_ns, uint32_t index);
  [[nodiscard]] uint32_t open_process_at(const Place& place) const;
  void post(TimeNs now_ns, uint32_t index);
  void name_buffers(uint32_t index, uint32_t slot, const OperationPlan& operation,
                    peal_submission* entry) const;
  void name_parts(uint32_t index, uint32_t slot, const OperationPlan& operation,
                  peal_submission* entry) const;
  void spoil_parts(uint32_t index, uint32_t slot) const;
  void schedule_post(TimeNs when_ns, uint32_t index);
  [[nodiscard]] bool meets_work(const Place& place, bool whole_card) const;
  [[nodiscard]] bool meets_set_up(const Place& place) const;
  void note(const Accident& accident);
  void accident(TimeNs now_ns, const Accident& accident);
  void open_process(TimeNs now_ns, const Place& place);
  void schedule_poll(uint32_t process);
  void poll(TimeNs now_ns, uint32_t process);
  void take_completion(TimeNs now_ns, Process& process, const peal_completion& entry);
  void end_process(TimeNs now_ns, const Place& place, Accident::Kind how);
  void close_early(TimeNs now_ns, uint32_t process);
  void end_card(uint32_t card);
  void restart(TimeNs now_ns, const Accident& accident);
  void member_finished(TimeNs now_ns, const MemberState& state);
  void kill_member(uint32_t index);
  void unmap(const Place& place);
  void fail(TimeNs now_ns, const std::string& what, peal_status status);

  World& world_;
  CompletionChecker completions_;
  Cluster* cluster_ = nullptr;
  std::vector<Member> members_;
  std::vector<Process> processes_;
  std::vector<Granted> granted_;  // by chore
  std::map<std::pair<uint32_t, uint32_t>, uint32_t>
      living_;                                         // (card, process): index in processes_
  std::vector<std::pair<uint32_t, uint32_t>> closed_;  // (card, context)
  std::vector<uint32_t> finished_members_;             // by group: how many have nothing left to do
  uint64_t unfinished_ = 0;
  uint64_t scheduled_ = 0;
  TimeNs progress_ns_ = 0;
};

}  // namespace peal::sim
