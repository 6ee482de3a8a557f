// SPDX-License-Identifier: BSD-2-Clause
// The loop of peal-nic: cards on one lcore, turn after turn; all of the process, or where there are
// several loops every so manieth. Time is stamped once a turn. With nothing to do for a while it
// announces that it sleeps, looks again, and waits in epoll for a doorbell, a client, a frame of
// another loop or a deadline.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "emulator/nic/card_runner.h"
#include "emulator/nic/frame_switch.h"
#include "emulator/nic/give_way.h"
#include "emulator/nic/host_interface.h"
#include "emulator/nic/linger.h"
#include "emulator/nic/packet_pool.h"
#include "emulator/nic/relay.h"
#include "emulator/nic/tsc_clock.h"
#include "emulator/nic/wake_helper.h"

namespace peal::nic {

// What the loops of a process share. It outlives them.
struct LoopTies {
  PacketPool& pool;
  WireRings& rings;
  uint32_t loop;  // which of them
};

struct LoopOptions {
  uint32_t cards = 1;           // of the process
  uint32_t packet_buffers = 0;  // for all cards together
  Checksums checksums = Checksums::kSoftware;
  CardTimeouts timeouts = {};
  SwitchOptions wire;
  uint32_t incarnation = 1;  // of card 0; the others count on
  TimeNs copy_deadline_ns = 2'000'000'000;
  uint64_t cache_bytes = 0;  // of the processors' last cache (host_copies.h)
  TimeNs idle_ns = 200'000;  // awake this long without work
  TimeNs linger_ns = 0;      // and this long after a host was told of an end (linger.h)
  bool may_sleep = true;
  bool yield_when_idle = false;  // the core is shared with hosts
  TimeNs look_on_ns = 0;         // but looks on before that (give_way.h); 0: not at all
  // Where the thread is that stands by (relay.h); empty: wherever run()'s caller may be.
  std::vector<int> standby_cpus;
};

struct LoopCounts {
  uint64_t turns = 0;
  uint64_t busy_turns = 0;
  uint64_t sleeps = 0;
  uint64_t yields = 0;
};

class NicLoop final : public LoopServices {
 public:
  NicLoop();
  ~NicLoop();
  NicLoop(const NicLoop&) = delete;
  NicLoop& operator=(const NicLoop&) = delete;

  // Creates pools, wire and cards. Empty on success, else what went wrong and what to do.
  std::string create(const LoopOptions& options);
  // One of several loops: those of the cards that are its own.
  std::string create(const LoopOptions& options, const LoopTies& ties);
  // Before run().
  void add_interface(std::unique_ptr<HostInterface> interface);
  // Until request_stop(); then shuts the interfaces down. The loop is a thread of its own, on the
  // caller's processors and with its lcore; the caller only waits, where who stands by does, and
  // takes the signals.
  void run();
  // From a signal handler or any thread.
  void request_stop();

  // LoopServices
  [[nodiscard]] uint32_t card_count() const override { return card_count_; }
  CardHost card(uint32_t index) override { return cards_[index]->host(); }
  bool watch(int fd) override;
  void unwatch(int fd) override;
  WakeSlot add_wake_eventfd(int fd) override { return helper_->add_eventfd(fd); }
  void remove_wake(WakeSlot slot) override { helper_->remove(slot); }
  void ring(WakeSlot slot) override { helper_->ring(slot); }
  // After create().
  WakeHelper& helper() { return *helper_; }
  CopyPool& copies() { return *copies_; }
  // After run(). False: a copy of some client's memory does not return, and may yet write into the
  // cards. The process can only end as a whole, without destructors.
  bool stop_copies() { return (copies_ == nullptr || copies_->stop()) && all_back_; }

  [[nodiscard]] const CardRunner& runner(uint32_t index) const { return *cards_[index]; }
  [[nodiscard]] const FrameSwitch& frame_switch() const { return *switch_; }
  // Everything that is counted, as one JSON object. Also called from the telemetry thread: figures
  // may be of different turns.
  [[nodiscard]] nlohmann::ordered_json counters_json() const;

  static constexpr TimeNs kBeatNs = 250'000'000;
  static constexpr TimeNs kTickNs = 1'000'000;

 private:
  std::string create_parts();
  bool serve();
  [[nodiscard]] uint32_t loops() const { return rings_ == nullptr ? 1 : rings_->loops(); }
  bool turn(TimeNs now);
  void found_nothing(TimeNs now);
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] uint64_t ends() const;
  bool poll_interfaces(TimeNs now);
  void tick(TimeNs now);
  void beat(TimeNs now);
  void sleep();
  void set_cards_sleeping(bool sleeping);
  [[nodiscard]] TimeNs wake_time(TimeNs now) const;
  void wait_for_events(TimeNs timeout_ns);

  LoopOptions options_;
  TscClock clock_;
  std::unique_ptr<PacketPool> own_pool_;
  PacketPool* pool_ = nullptr;
  WireRings* rings_ = nullptr;  // shared; null: the switch's own
  uint32_t loop_ = 0;
  std::unique_ptr<FrameSwitch> switch_;
  uint32_t card_count_ = 0;
  std::vector<std::unique_ptr<CardRunner>> cards_;
  std::vector<std::unique_ptr<HostInterface>> interfaces_;
  std::unique_ptr<WakeHelper> helper_;
  std::unique_ptr<emulator::HostCopies> mapped_;
  std::unique_ptr<CopyPool> copies_;
  GiveWay give_way_;
  Linger linger_;
  Relay relay_;
  // Of run(); a thread that is away may have them after its end.
  std::function<bool()> serve_;
  std::function<void(Relay::Part)> place_;
  bool all_back_ = true;
  int epoll_fd_ = -1;
  int stop_fd_ = -1;
  std::atomic<bool> stopping_{false};
  TimeNs last_work_ns_ = 0;
  TimeNs next_tick_ns_ = 0;
  TimeNs next_beat_ns_ = 0;
  TimeNs recheck_ns_;
  uint64_t beats_ = 0;
  LoopCounts counts_;
};

}  // namespace peal::nic
